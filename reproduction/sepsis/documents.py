"""README.md and the figures of the sepsis study, from its rows.

Source: Tsirtsis and Gomez-Rodriguez (2023), Fig. 2, 3, 5 and 6.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.objectives.counterfactual_return import return_record
from rehearsal_torch.reporting.figures import model_figures, sequence_figures
from rehearsal_torch.reporting.labels import wording
from rehearsal_torch.reporting.sequence_report import truth_means
from rehearsal_torch.run_folder import RunFolder
from reproduction.page import RUN, Block, Section, table
from reproduction.plan import study, texts
from reproduction.run import Options, Paper
from reproduction.sepsis import patient_panel, search_panels, trainings
from reproduction.sepsis.episode_rows import STAGES, Case, Point, frame, points, rows_of_cases
from reproduction.sepsis.fitted import cohort, configuration, decide, objective
from reproduction.sepsis.jobs import TRUTH, layouts, rows_of
from reproduction.sepsis.jobs import planned as planned_jobs
from reproduction.sepsis.lipschitz_cells import LAYOUT, decreases
from reproduction.sepsis.search_panels import Axis
from reproduction.sepsis.searches import BOUND, DEFAULT, HORIZON, planned

# Stage to the column along which its cases differ, the label of that axis, and whether it is logarithmic.
_AXES = {
    "lipschitz": ("L_h", "Lipschitz constant of the location, $L_h$", False),
    "samples": ("M", "Sequences simulated for anchors, M", True),
    "changes": ("k", "Changed actions at most, k", False),
    "anchors": ("M", "States in the anchor set", True),
}
_NAMES = {
    "astar": "A*",
    "astar_paper": "A*, the paper's expansions",
    "branch_and_bound": "branch and bound",
    "mc_lipschitz_of_size": "MC-Lipschitz",
    "mc_uniform_of_size": "MC-Uniform",
    "facility_location_of_size": "Facility-Location",
}


def parts(out: RunFolder, options: Options) -> Iterator[Block | Section]:
    """The parts of the page, from its rows; the models of one patient's figure are fitted, or are there."""
    record, run = PAPER.record(out.path, options, TRUTH), out.read_json(RUN)
    rows, truth, cells = frame(record), record.rows(TRUTH), decreases(out.path / LAYOUT.file)
    lines = {stage: points_of(rows, stage, [each.case for each in planned(stage)]) for stage in STAGES}
    yield f"# {study('sepsis')['title']}"
    yield texts("sepsis")["made"].format(
        commit=run.get("commit"), horizon=HORIZON, limit=options["limit_seconds"]
    )
    yield Section(figures=search_figures(lines))
    best = certified(rows)
    if len(best):
        improvements = best["improvement"].to_list()
        episode = best["episode"].to_list()[int(best["improvement"].to_numpy().argmax())]
        yield Section(figures={"improvement": sequence_figures.draw_improvements({"k = 3": improvements})})
        yield Section(figures={"patient": _patient(options, episode)})
    if cells:
        yield Section(figures={"lipschitz_grid": model_figures.draw_lipschitz(cells)})
    if truth:
        drawn = sequence_figures.draw_errors([row for row in truth if row["k"] == "3"])
        yield Section(figures={"truth_errors": drawn})
    yield "## The numbers"
    for stage, found in lines.items():
        yield points_table(stage, found)
    for changes in sorted({row["k"] for row in truth}):
        yield f"### Values under the true distribution, k = {changes}"
        yield errors([row for row in truth if row["k"] == changes])
    spread = trainings.spread(record.rows(trainings.STAGE))
    if spread:
        yield Section(["### Several trainings of the default model", texts("sepsis")["trainings"], spread])


PAPER = Paper("sepsis", layouts, (), rows_of, parts, planned_jobs)


def errors(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The means of rows of ``truth.csv`` as a table, in the features' units."""
    heads = ("treatment", "quantity", "feature", "estimator", "mean", "patients")
    body = [(*key, str(mean), str(mean.count)) for key, mean in truth_means(rows).items()]
    return [f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *body)]


def points_of(rows: pd.DataFrame, stage: str, cases: Sequence[Case]) -> dict[str, list[Point]]:
    """The points of a stage, by search, or by kind of anchors for the stage that compares these.

    Args:
        rows: The rows of all searches.
        stage: One of `STAGES`.
        cases: The cases of the stage.
    """
    some, by = rows_of_cases(rows, cases), "anchors" if stage == "anchors" else "search"
    found = {
        name: points(some[some[by] == name], _AXES[stage][0])
        for name in dict.fromkeys(getattr(case, by) for case in cases)
    }
    return {_NAMES[name]: line for name, line in found.items() if line}


def search_figures(lines: Mapping[str, Mapping[str, Sequence[Point]]]) -> dict[str, Figure]:
    """File name to figure, for the stages that have points; to be called within `drawing`.

    Args:
        lines: Stage to name of a search to its points.
    """
    axes = {stage: Axis(_AXES[stage][1], line, _AXES[stage][2]) for stage, line in lines.items() if line}
    found = {}
    anchors = axes.pop("anchors", None)
    if axes:
        found["efficiency"] = search_panels.efficiency(list(axes.values()))
    if anchors:
        found["anchors"] = search_panels.efficiency([anchors])
    exact = {name: line for name, line in lines["changes"].items() if name == _NAMES[BOUND]}
    if exact:
        found["improvement_by_changes"] = search_panels.improvement(exact)
    return found


def certified(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of branch and bound for k = 3 and L_h = 1.

    Args:
        rows: The rows of all searches.
    """
    return rows[(rows["search"] == BOUND) & (rows["k"] == 3) & (rows["L_h"] == 1.0)]


def points_table(stage: str, lines: Mapping[str, Sequence[Point]]) -> Section:
    """The points behind a figure, as a table; lower bounds are marked with "≥".

    Args:
        stage: One of `STAGES`.
        lines: Name of a search to its points.
    """
    if not lines:
        return Section()
    axis = "|S|" if stage == "anchors" else _AXES[stage][0]
    body = []
    for name, line in lines.items():
        for point in line:
            least = "" if point.proven == 1 else "≥ "
            body.append(
                {
                    "search": name,
                    axis: f"{point.x:g}",
                    "episodes": str(point.ebf.count),
                    "EBF": f"{least}{point.ebf}",
                    "seconds": f"{least}{point.seconds}",
                    "improvement %": f"{least}{point.improvement.times(100)}",
                    "proven %": f"{100 * point.proven:.0f}",
                }
            )
    return Section([f"### Along {axis}", table(body)])


def _patient(options: Options, episode: str) -> Figure:
    """The observed and the counterfactual trajectory of an episode."""
    decision_case = EpisodeCase(next(each for each in cohort(options)[0].chosen if each.identity == episode))
    case = replace(DEFAULT, search=BOUND, anchors="", size=0)
    decision = decide(options, decision_case, case)
    trajectory = return_record(objective(options, decision_case, case), decision)
    words = wording(plain(configuration(options)))
    return patient_panel.draw({"identity": episode, "trajectory": trajectory}, words)
