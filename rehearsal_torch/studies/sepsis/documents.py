"""README.md and the figures of the sepsis study, from its rows.

Source: Tsirtsis and Gomez-Rodriguez (2023), Fig. 2, 3, 5 and 6.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.reporting.figures import lipschitz_grid, patient_trajectory, truth_errors
from rehearsal_torch.reporting.style import drawing, save, wording
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.committed import caution_of_run
from rehearsal_torch.studies.results_folder import RUN, commands
from rehearsal_torch.studies.sepsis import figures as sepsis_figures
from rehearsal_torch.studies.sepsis.episode_rows import STAGES, episodes_in, frame
from rehearsal_torch.studies.sepsis.fitted import Fitted
from rehearsal_torch.studies.sepsis.lipschitz_cells import LAYOUT, decreases
from rehearsal_torch.studies.sepsis.reproduction import TRUTH, truth_in
from rehearsal_torch.studies.sepsis.searches import BOUND, HORIZON, LIMIT, USUAL, planned
from rehearsal_torch.studies.study_files import study, texts


def documents(out: RunFolder, fitted: Fitted, config: Mapping[str, Any]) -> None:
    """Writes README.md and figures/.

    Args:
        out: The study's folder.
        fitted: Episodes and models, of which one patient is drawn.
        config: The configuration, whose words name what is drawn.
    """
    rows = frame(episodes_in(out.path))
    stages = {stage: [each.case for each in planned(stage)] for stage in STAGES}
    run = out.read_json(RUN)
    text = [f"# {study('sepsis').title}", "", *caution_of_run(run), _made(run)]
    truth = truth_in(out.path).rows(TRUTH)
    with drawing():
        found = sepsis_figures.figures(rows, stages)
        three = sepsis_figures.best(rows)
        if len(three):
            found["patient"] = _patient(
                fitted, three["episode"].to_list()[int(three["improvement"].to_numpy().argmax())], config
            )
        cells = decreases(out.path / LAYOUT.file)
        if cells:
            found["lipschitz_grid"] = lipschitz_grid.draw(cells)
        if truth:
            found["truth_errors"] = truth_errors.draw([row for row in truth if row["k"] == "3"])
        for name, figure in found.items():
            save(figure, out.path / "figures", name)
            text += ["", f"![{name.replace('_', ' ')}](figures/{name}.svg)"]
    text += ["", "## The numbers", *sepsis_figures.tables(rows, stages)]
    for changes in sorted({row["k"] for row in truth}):
        text += [
            "",
            f"### What the truth says, k = {changes}",
            "",
            *truth_errors.markdown([row for row in truth if row["k"] == changes]),
        ]
    out.write("README.md", "\n".join(text) + "\n")


def _patient(fitted: Fitted, episode: str, config: Mapping[str, Any]) -> Figure:
    decision_case = EpisodeCase(next(each for each in fitted.problem.chosen if each.identity == episode))
    case = replace(USUAL, search=BOUND, anchors="", size=0)
    trajectory = fitted.objective(decision_case, case).trajectory_record(fitted.decide(decision_case, case))
    return patient_trajectory.draw({"identity": episode, "trajectory": trajectory}, wording(dict(config)))


def _made(run: Mapping[str, Any]) -> str:
    limit = run.get("limit_seconds") or LIMIT
    return texts("sepsis")["made"].format(
        commands=commands(run), commit=run.get("commit"), horizon=HORIZON, limit=limit
    )
