"""Figure: what a method claims for each case, beside its estimate for no action.

One column per case: a filled point with the interval of the estimate where an alteration is recommended, an
open circle for no action, or a square where the comparison is with present values. A case without a filled
point has no recommendation; where it was refused, its mark is crossed. A case outside the data has no number,
and is shaded (`data.finding`). Many cases stand in several panels, with a common scale.
"""

from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rehearsal_torch.reporting.decision_frame import beyond, refused
from rehearsal_torch.reporting.style import BLACK, BLUE, PALE, VERMILION, legend_below, panel_list

# Names of cases are written below the axis up to this number of cases.
NAMED = 30
# Characters of a name that are shown; characters of all names that fit on an inch of the figure.
LONGEST, ACROSS = 24, 8
# Characters of a line of the vertical axis' label.
BROAD = 26
# Entries of a legend side by side in a panel; inches of a line of it, and of a letter of a name upright.
ENTRIES, LINE, LETTER = 2, 0.24, 0.075
# Cases of a panel, and panels side by side.
CASES, BESIDE = 14, 2


def in_panels(frame: pd.DataFrame, of: str) -> Figure:
    """The figure of all cases, with at most `CASES` of them in a panel; to be called within `drawing`.

    Args:
        frame: One row per case (`reporting.decision_frame`), at least one.
        of: What the estimates are of.
    """
    pieces = np.array_split(np.arange(len(frame)), -(-len(frame) // CASES))
    figure, every = panel_list(len(pieces), BESIDE)
    columns = min(len(pieces), BESIDE)
    for axes, cases in zip(every, pieces, strict=True):
        _panel(axes, frame.iloc[cases], of)
    entries = legend_below(figure, ENTRIES * columns)
    # Names that stand upright, and the legend, take no room from the panels.
    upright = any(_upright(axes, frame.iloc[cases]) for axes, cases in zip(every, pieces, strict=True))
    tall = max(len(_plain(name)) for name in frame["case"]) if upright else 0
    lines = LETTER * tall * -(-len(pieces) // columns) + LINE * -(-entries // (ENTRIES * columns))
    figure.set_figheight(figure.get_figheight() + lines)
    ends = [end for axes in every for end in axes.get_ylim()]
    for axes in every:
        axes.set_ylim(min(ends), max(ends))
    return figure


def draw(axes: Axes, frame: pd.DataFrame, of: str) -> None:
    """Draws into given axes, with a legend above them; to be called within `drawing`.

    Args:
        frame: One row per case (`reporting.decision_frame`).
        of: What the estimates are of.
    """
    _panel(axes, frame, of)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    axes.legend(
        list(unique.values()), list(unique), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=ENTRIES
    )


def _panel(axes: Axes, frame: pd.DataFrame, of: str) -> None:
    """Draws all but the legend."""
    places, hidden = np.arange(len(frame)), beyond(frame).to_numpy()
    point, low, high, before, present = (
        np.where(hidden, np.nan, frame[name].to_numpy(float))
        if name in frame
        else np.full(len(frame), np.nan)
        for name in ("estimate", "lower", "upper", "no_action", "unchanged")
    )
    before = np.where(np.isnan(present), before, np.nan)
    acted = (frame["status"] != "leave").to_numpy() & ~hidden
    unknown = refused(frame).to_numpy() & ~hidden
    bounded = acted & ~np.isnan(low + high)
    if bounded.any():
        levels = frame["level"][bounded].unique()
        label = f"{levels[0]:.0%} interval" if len(levels) == 1 else "interval"
        axes.vlines(
            places[bounded], low[bounded], high[bounded], color=BLUE, alpha=0.45, linewidth=3, label=label
        )
    axes.plot(places[acted], point[acted], "o", color=BLUE, markersize=5, label="after the alteration")
    known = ~np.isnan(before)
    kept = ~np.isnan(present)
    if known.any() or not kept.any():
        axes.plot(places[known], before[known], "o", color=BLACK, fillstyle="none", label="no action")
    if kept.any():
        axes.plot(places[kept], present[kept], "s", color=BLACK, fillstyle="none", label="present values")
    if unknown.any():
        at = np.where(kept, present, before)
        axes.plot(places[unknown], at[unknown], "x", color=VERMILION, label="refused")
    for case in places[hidden]:
        axes.axvspan(case - 0.5, case + 0.5, color=PALE, linewidth=0, zorder=0.2, label="outside the data")
    axes.set(xlabel="Case", ylabel=fill(f"Claimed {of}", BROAD))
    if of.startswith("probability"):
        axes.set_ylim(-0.02, 1.02)
    if len(frame) <= NAMED:
        names = [_plain(name) for name in frame["case"]]
        axes.set_xticks(places, names, rotation=90 if _upright(axes, frame) else 0)


def _upright(axes: Axes, frame: pd.DataFrame) -> bool:
    """Whether names stand upright, as they would lie on each other."""
    figure, cell = axes.get_figure(root=True), axes.get_subplotspec()
    beside = 1 if cell is None else cell.get_gridspec().ncols
    room = 0.0 if figure is None else ACROSS * figure.get_figwidth() / beside
    return len(frame) <= NAMED and sum(len(_plain(name)) + 2 for name in frame["case"]) > room


def _plain(text: str) -> str:
    """A name that is not long, and shown as it is: a pair of dollar signs would be read as a formula."""
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    return text.replace("$", r"\$")
