"""The study of the simulated sepsis cohort: searches along the axes of the figures, the true values of what
they recommend, and the cost of the Lipschitz constraint.

``episodes.csv`` has one row per episode and case, ``truth.csv`` the values of the recommended sequences under
the true distribution, ``trainings.csv`` those of several trainings of the default model,
``lipschitz_grid.csv`` one row per cell and fold. Models are fitted once and kept
outside the results; ``run.json`` holds digests of their weights, so that rows of different models are not
mixed.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5, App. F and G.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rehearsal_torch.cli.build import plain, problem_of, seed_and_use_one_thread
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.evaluation.truth_panel import truth_rows
from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
from rehearsal_torch.studies.job import configured
from rehearsal_torch.studies.record import Layout, Outcome, Record
from rehearsal_torch.studies.request import Request
from rehearsal_torch.studies.results_folder import RUN
from rehearsal_torch.studies.runner import Reproduction, Work
from rehearsal_torch.studies.sepsis import lipschitz_cells, searches, trainings
from rehearsal_torch.studies.sepsis.episode_rows import LAYOUT, STAGES, Case, episodes_in
from rehearsal_torch.studies.sepsis.fitted import Fitted, fingerprints, models
from rehearsal_torch.studies.sepsis.lipschitz_cells import Validated
from rehearsal_torch.studies.sepsis.searches import DEFAULT, HORIZON, tasks
from rehearsal_torch.studies.sepsis.trainings import Trained
from rehearsal_torch.studies.study_files import study

TRUTH = "truth"
TRUTH_LAYOUT = Layout(
    study("sepsis").stages[TRUTH].file,
    ("k", "episode"),
    ("k", "episode", "sequence", "quantity", "feature", "estimator", "value"),
    ("k", "value"),
    exact=True,
)
# The record of the values under the true distribution in a folder.
truth_in = partial(Record, layouts={TRUTH: TRUTH_LAYOUT})


@dataclass(frozen=True)
class EpisodeJob:
    """A case on one episode.

    Attributes:
        stage: The stage of its rows, or one with the same file.
        key: The identifying cells of its rows.
        episode: Index of the episode.
        case: The search and its settings.
    """

    stage: str
    key: tuple[str, ...]
    episode: int
    case: Case


def solved(fitted: Fitted, job: EpisodeJob) -> Outcome[EpisodeJob]:
    """The row of a search.

    Args:
        fitted: Episodes and models.
        job: The case and its episode.
    """
    decision_case = fitted.decision_cases[job.episode]
    return Outcome(job, [job.case.row(decision_case.identity, fitted.decide(decision_case, job.case))])


def evaluated(fitted: Fitted, job: EpisodeJob) -> Outcome[EpisodeJob]:
    """The rows of a recommended sequence under the true distribution.

    The true optimum is enumerated up to the number of changes in the facts of study.yaml.

    Args:
        fitted: Episodes and models.
        job: The case and its episode.
    """
    decision_case, case = fitted.decision_cases[job.episode], job.case
    decision = fitted.decide(decision_case, case)
    max_changes = int(study("sepsis").facts["enumerated"])
    found = truth_rows(
        fitted.models[case.constant], fitted.problem, [(decision_case, decision)], case.changes, max_changes
    )
    return Outcome(job, [{"k": case.changes, **asdict(row)} for row in found])


class SepsisEpisodes(Reproduction):
    """The study; its models are fitted, or read from the cache, when it is created.

    Args:
        request: What the user asked for.

    Raises:
        UserError: if more episodes are asked for than the cohort has.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.overrides = [*request.study.overrides, *request.overrides, "trainer.progress=false"]
        config = configured(request.conf, [*self.overrides, f"dataset.horizon={HORIZON}"])
        seed_and_use_one_thread(int(config.seed))
        self.config = plain(config)
        problem = problem_of(config)
        assert isinstance(problem, SepsisSimulated)
        count = int(request.options["episodes"])
        if problem.count() < count:
            raise UserError(
                f"only {problem.count()} test patients stay {HORIZON} steps or more; {count} episodes "
                "were asked for",
                "episodes",
            )
        stages = [stage for stage in STAGES if stage in request.stages]
        self.plan = [each for stage in stages for each in searches.planned(stage)]
        self.stages = stages
        # Trainings have models of their own.
        alone = self.request.stages == (trainings.STAGE,)
        constants = sorted(
            {each.case.constant for each in self.plan} | (set() if alone else {DEFAULT.constant})
        )
        cache = Path(request.options["cache"])
        self.fitted = Fitted(
            [problem.case(index) for index in range(count)],
            models(request.conf, cache, problem, constants, self.overrides),
            problem.observations(),
            problem,
            float(request.options["limit_seconds"]),
        )
        self.weights = fingerprints(cache, constants)

    def seed(self) -> int:
        """See `Reproduction.seed`."""
        return int(self.config["seed"])

    def begin(self) -> dict[str, object]:
        """See `Reproduction.begin`.

        Raises:
            UserError: if the rows there came from other models.
        """
        before = self.out.read_json(RUN)
        kept = before.get("models", {})
        odd = [constant for constant, digest in self.weights.items() if kept.get(constant, digest) != digest]
        if odd and (self.out.path / LAYOUT.file).exists():
            raise UserError(
                f"the rows there came from other models (L_h = {', '.join(odd)})",
                str(self.out.path),
                "Move the folder away, or bring those models back",
            )
        # The limit is that of the rows; a command that only draws figures must not change it.
        limit = self.fitted.limit if self.stages else before.get("limit_seconds")
        return {"limit_seconds": limit, "models": kept | self.weights}

    def works(self) -> Iterator[Work]:
        """See `Reproduction.works`."""
        identities = [decision_case.identity for decision_case in self.fitted.decision_cases]
        if self.stages:
            wanted = [
                EpisodeJob(self.stages[0], case.key(identities[episode]), episode, case)
                for episode, case in tasks(self.plan, len(identities))
            ]
            record = episodes_in(self.out.path)
            yield Work(" ".join(self.stages), record, wanted, solved, self.fitted, _proven)
        if TRUTH in self.request.stages:
            cases = [each.case for each in searches.planned(TRUTH)]
            wanted = [
                EpisodeJob(TRUTH, (str(case.changes), identity), episode, case)
                for episode, identity in enumerate(identities)
                for case in cases
            ]
            yield Work(TRUTH, truth_in(self.out.path), wanted, evaluated, self.fitted, _row_count)
        if trainings.STAGE in self.request.stages:
            shared = Trained(self.request.conf, self.overrides, self.seed(), HORIZON, len(identities))
            record = Record(self.out.path, {trainings.STAGE: trainings.LAYOUT})
            each = trainings.trainings()
            yield Work(trainings.STAGE, record, each, trainings.retrained, shared, _row_count)
        if lipschitz_cells.STAGE in self.request.stages:
            common = Validated(
                self.fitted.problem.episodes("train"),
                self.config["surrogate"],
                self.config["trainer"],
                int(self.request.options["grid_epochs"]),
            )
            record = Record(self.out.path, {lipschitz_cells.STAGE: lipschitz_cells.LAYOUT})
            cells = lipschitz_cells.cells()
            yield Work(lipschitz_cells.STAGE, record, cells, lipschitz_cells.validated, common, _row_count)

    def documents(self) -> None:
        """See `Reproduction.documents`."""
        from rehearsal_torch.studies.sepsis.documents import documents

        documents(self.out, self.fitted, self.config)


def _proven(outcome: Outcome[EpisodeJob]) -> str:
    (row,) = outcome.rows
    return f"{row['value']:.4g}, {'proven' if row['proven'] else 'not proven'}, {row['seconds']:.1f} s"


def _row_count(outcome: Outcome) -> str:
    return f"{len(outcome.rows)} rows"
