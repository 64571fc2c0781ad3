"""The figures and tables of the sepsis study, from its rows.

Source: Tsirtsis and Gomez-Rodriguez (2023), Fig. 2, 3 and 5.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from rehearsal_torch.reporting.figures import improvement_distribution
from rehearsal_torch.studies.sepsis import efficiency, improvement_by_changes
from rehearsal_torch.studies.sepsis.efficiency import Setting
from rehearsal_torch.studies.sepsis.episode_rows import Case, Point, chosen, points

Lines = Mapping[str, Sequence[Point]]
_AXES = {
    "lipschitz": ("L_h", "Lipschitz constant of the location, $L_h$", False),
    "samples": ("M", "Sequences simulated for anchors, M", True),
    "changes": ("k", "Changed actions at most, k", False),
}
_WORDS = {
    "astar": "A*",
    "astar_paper": "A*, the paper's expansions",
    "branch_and_bound": "branch and bound",
    "mc_lipschitz_of_size": "MC-Lipschitz",
    "mc_uniform_of_size": "MC-Uniform",
    "facility_location_of_size": "Facility-Location",
}


def lines(frame: pd.DataFrame, stage: str, cases: Sequence[Case]) -> dict[str, list[Point]]:
    """A stage's points, by search (by anchors where they are what varies); searches without rows are left
    out.
    """
    rows = chosen(frame, cases)
    by, along = ("anchors", "M") if stage == "anchors" else ("search", _AXES[stage][0])
    found = {
        name: points(rows[rows[by] == name], along)
        for name in dict.fromkeys(getattr(case, by) for case in cases)
    }
    return {_WORDS[name]: line for name, line in found.items() if line}


def figures(frame: pd.DataFrame, stages: Mapping[str, Sequence[Case]]) -> dict[str, Figure]:
    """File name to figure, those that there are rows for; to be called while drawing.

    Args:
        frame: The study's rows.
        stages: Stage to its cases.
    """
    found = {}
    axes = {stage: lines(frame, stage, stages[stage]) for stage in _AXES}
    settings = [Setting(_AXES[stage][1], line, _AXES[stage][2]) for stage, line in axes.items() if line]
    if settings:
        found["efficiency"] = efficiency.draw(settings)
    anchors = lines(frame, "anchors", stages["anchors"])
    if anchors:
        found["anchors"] = efficiency.draw([Setting("States in the anchor set", anchors, logarithmic=True)])
    exact = {name: line for name, line in axes["changes"].items() if name == _WORDS["branch_and_bound"]}
    if exact:
        found["improvement_by_changes"] = improvement_by_changes.draw(exact)
    three = best(frame)
    if len(three):
        found["improvement"] = improvement_distribution.draw({"k = 3": three["improvement"].to_list()})
    return found


def best(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the certified search for k = 3 under the usual model."""
    return frame[(frame["search"] == "branch_and_bound") & (frame["k"] == 3) & (frame["L_h"] == 1.0)]


def tables(frame: pd.DataFrame, stages: Mapping[str, Sequence[Case]]) -> list[str]:
    """The points behind the figures, as lines of Markdown."""
    found = []
    for stage, cases in stages.items():
        shown = lines(frame, stage, cases)
        if not shown:
            continue
        along = "|S|" if stage == "anchors" else _AXES[stage][0]
        found += [
            "",
            f"### Along {along}",
            "",
            f"| search | {along} | episodes | EBF | seconds | improvement % | proven % |",
            "|---|---|---|---|---|---|---|",
        ]
        for name, line in shown.items():
            for point in line:
                percent = point.improvement.times(100)
                least = "" if point.proven == 1 else "≥ "
                sums = (
                    f"{least}{point.ebf} | {least}{point.seconds} | {least}{percent} | "
                    f"{100 * point.proven:.0f}"
                )
                found.append(f"| {name} | {point.x:g} | {point.ebf.count} | {sums} |")
    return found
