"""The simulated sepsis cohort: searches along the axes of the figures, the true values of what they
recommend, and the cost of the Lipschitz constraint.

``episodes.csv`` has one row per episode and case, ``truth.csv`` the values of the recommended sequences under
the true distribution, ``trainings.csv`` those of several trainings of the default model,
``lipschitz_grid.csv`` one row per cell and fold. Models are fitted once and kept outside the results.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5, App. F and G.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rehearsal_torch.evaluation.counterfactual_errors import truth_rows
from reproduction.plan import study
from reproduction.record import Layout, Row
from reproduction.sepsis import lipschitz_cells, searches, trainings
from reproduction.sepsis.episode_rows import LAYOUT, STAGES, Case
from reproduction.sepsis.fitted import cohort, decide, model
from reproduction.sepsis.searches import tasks

TRUTH = "truth"
TRUTH_LAYOUT = Layout(
    study("sepsis")["stages"][TRUTH]["file"],
    ("k", "episode"),
    ("k", "episode", "sequence", "quantity", "feature", "estimator", "value"),
    exact=True,
)


@dataclass(frozen=True)
class EpisodeJob:
    """A case on one episode.

    Attributes:
        stage: The stage of its rows.
        key: The cells that identify its rows.
        episode: Index of the episode.
        case: The search and its settings.
    """

    stage: str
    key: tuple[str, ...]
    episode: int
    case: Case


def layouts(options: Mapping[str, Any]) -> dict[str, Layout]:  # noqa: ARG001
    """Stage to the file of its rows."""
    others = {TRUTH: TRUTH_LAYOUT, trainings.STAGE: trainings.LAYOUT}
    return dict.fromkeys(STAGES, LAYOUT) | others | {lipschitz_cells.STAGE: lipschitz_cells.LAYOUT}


def planned(name: str, options: Mapping[str, Any], stage: str) -> list[Any]:  # noqa: ARG001
    """The jobs of a stage; the models that it needs are fitted, or are there already.

    Raises:
        UserError: if more episodes are asked for than the cohort has.
    """
    if stage == trainings.STAGE:
        return trainings.trainings()
    if stage == lipschitz_cells.STAGE:
        return lipschitz_cells.cells()
    plan = searches.planned(stage)
    _, cases = cohort(options)
    for constant in {each.case.constant for each in plan}:
        model(options, constant)
    identities = [case.identity for case in cases]
    if stage == TRUTH:
        return [
            EpisodeJob(stage, (str(each.case.changes), identity), episode, each.case)
            for episode, identity in enumerate(identities)
            for each in plan
        ]
    return [
        EpisodeJob(stage, case.key(identities[episode]), episode, case)
        for episode, case in tasks(plan, len(identities))
    ]


def rows_of(options: Mapping[str, Any], job: Any) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job.

    The true optimum is enumerated up to the number of changes in the facts of study.yaml.
    """
    if job.stage == trainings.STAGE:
        return trainings.retrained(options, job), {}
    if job.stage == lipschitz_cells.STAGE:
        return lipschitz_cells.validated(options, job), {}
    problem, cases = cohort(options)
    case, decision_case = job.case, cases[job.episode]
    decision = decide(options, decision_case, case)
    if job.stage != TRUTH:
        return [case.row(decision_case.identity, decision)], {}
    enumerated = int(study("sepsis")["facts"]["enumerated"])
    fitted = model(options, case.constant)
    found = truth_rows(fitted, problem, [(decision_case, decision)], case.changes, enumerated)
    return [{"k": case.changes, **asdict(row)} for row in found], {}
