"""Figure: the claimed probability of a desired outcome over each action, for a few decisions of a run.

A row of panels for each case, one for each action that the decision sets, the other actions as recommended:
the claim with its interval, the value to set, the present value where it is known, and what is claimed of the
present values or of no action. Where there is no line, the place lies outside the data, and is shaded; a
value to set that lies there has no point either (`data.finding`). Bars from below are numbers of
observations, of levels one at each of them; hatched ones stand for 1 to 4, which are not told apart.

With more than three actions, those along which the claim changes most are shown.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.evaluation.claim_curves import BEFORE, CLAIM, PRESENT, ROWS, SET
from rehearsal_torch.evaluation.rehearsal_rows import number
from rehearsal_torch.reporting.style import BLACK, BLUE, GREEN, PALE, legend_below, panels

Rows = Sequence[Mapping[str, str]]
ACROSS = 3
# Curves of at most so many points are levels, shown as points; the heights of the tallest bar and of a
# hatched one, and the margins left and right, as shares of a panel; the longest label.
FEW, TALLEST, HATCHED, MARGIN, LONGEST = 6, 0.2, 0.025, 0.03, 44
# Levels that are named at an axis.
TICKS = 9
GREY = "#B4B4B4"
# Inches of a line of the legend.
LINE = 0.24


def draw(
    rows: Rows,
    units: Mapping[str, str] | None = None,
    codings: Mapping[str, Coding] | None = None,
    beyond: Collection[str] = (),
) -> Figure | None:
    """The figure of rows of ``claims.csv`` (`evaluation.claim_curves`); None if no panel has a claim. To be
    called within `drawing`.

    Args:
        units: Action to its unit.
        codings: Action to the coding of its texts, which stand at its axis.
        beyond: The cases whose decision lies outside the data.
    """
    cases: dict[str, dict[str, list[Mapping[str, str]]]] = {}
    for row in rows:
        cases.setdefault(row["case"], {}).setdefault(row["along"], []).append(row)
    shown = {
        case: {name: rows_along for name, rows_along in along.items() if name in _most(along)}
        for case, along in cases.items()
    }
    shown = {case: along for case, along in shown.items() if along}
    if not shown:
        return None
    across = max(map(len, shown.values()))
    figure, grid = panels(len(shown), across, width=4.6, height=3.0)
    for line, (case, along) in zip(grid, shown.items(), strict=True):
        for axes, (name, rows_along) in zip(line, along.items(), strict=False):
            coding = None if codings is None else codings.get(name)
            _panel(axes, rows_along, coding is None or not coding.of_classes, case in beyond)
            unit = f" ({units[name]})" if units and units.get(name) else ""
            axes.set(
                xlabel=_short(f"{name}{unit}"), ylabel="Claimed probability", title=_short(f"Case {case}")
            )
            if coding is not None:
                at = np.unique(_columns(rows_along, CLAIM)[0]).astype(int)
                axes.set_xticks(at, [_short(coding.levels[code]) for code in at])
        for axes in line[len(along) :]:
            axes.set_visible(False)
    columns = 1 if across == 1 else 3
    entries = legend_below(figure, columns)
    figure.set_figheight(figure.get_figheight() + LINE * -(-entries // columns))
    return figure


def _most(along: Mapping[str, Rows]) -> list[str]:
    """The actions of a case along which the claim changes most."""
    change = {name: np.nanmax(point) - np.nanmin(point) for name, point in _points(along).items()}
    return sorted(change, key=lambda name: -change[name])[:ACROSS]


def _points(along: Mapping[str, Rows]) -> dict[str, np.ndarray]:
    points = {name: _columns(rows, CLAIM)[1] for name, rows in along.items()}
    return {name: point for name, point in points.items() if np.isfinite(point).any()}


def _panel(axes: Axes, rows: Rows, ordered: bool, beyond: bool) -> None:
    """A panel; the claims of classes, which have no order, are points that no line joins."""
    at, point, low, high, level = _columns(rows, CLAIM)
    bars, _, left, *_ = _columns(rows, ROWS)
    levelled = bool((bars > left).any())
    few = len(at) <= FEW or levelled
    if np.isfinite(low + high).any():
        levels = np.unique(level[np.isfinite(level)])
        label = f"{levels[0]:.0%} interval" if len(levels) == 1 else "interval"
        if few:
            axes.vlines(at, low, high, color=BLUE, alpha=0.35, linewidth=4, label=label)
        else:
            axes.fill_between(at, low, high, color=BLUE, alpha=0.2, linewidth=0, label=label)
    line, marker = "-" if ordered else "none", "o" if few or not ordered else None
    label = "claim, the others as recommended"
    axes.plot(at, point, color=BLUE, linestyle=line, marker=marker, label=label)
    for _, value in zip(*_columns(rows, BEFORE)[:2], strict=True):
        words = "present values" if len(_columns(rows, PRESENT)[0]) else "no action"
        axes.axhline(value, color=BLACK, linestyle="--", linewidth=1.1, label=f"claim for {words}")
    for at_value in _columns(rows, PRESENT)[0]:
        axes.axvline(at_value, color=BLACK, linestyle=":", linewidth=1.4, label="present value")
    for at_value, chosen, lower, upper, _ in zip(*_columns(rows, SET), strict=True):
        axes.axvline(at_value, color=GREEN, linestyle="-.", linewidth=1.6, label="recommended")
        if not beyond:
            axes.plot(at_value, chosen, "o", color=GREEN, markersize=5)
            axes.vlines(at_value, lower, upper, color=GREEN, linewidth=2.5, alpha=0.6)
    _outside(axes, at, point, levelled)
    _bars(axes, rows)
    if levelled:
        axes.set_xticks(bars[:: -(-len(bars) // TICKS)])
    axes.set_ylim(-0.02, 1.02)


def _outside(axes: Axes, at: np.ndarray, point: np.ndarray, levelled: bool) -> None:
    """Shades the places without a number, each up to half-way to the next one; levels on both sides."""
    between = (at[1:] + at[:-1]) / 2
    beside = float(np.diff(at).min()) / 2 if levelled and len(at) > 1 else 0.0
    starts, ends = np.concatenate([at[:1] - beside, between]), np.concatenate([between, at[-1:] + beside])
    for start, end in zip(starts[np.isnan(point)], ends[np.isnan(point)], strict=True):
        axes.axvspan(start, end, color=PALE, linewidth=0, zorder=0.2, label="outside the data")


def _bars(axes: Axes, rows: Rows) -> None:
    """Numbers of observations, as bars whose heights are shares of the panel."""
    _, count, left, right, _ = _columns(rows, ROWS)
    if not len(count):
        return
    known = np.nan_to_num(count)
    height = TALLEST * known / max(float(known.max()), 1.0)
    across = axes.get_xaxis_transform()
    axes.bar(
        left, height, right - left, align="edge", color=GREY, alpha=0.6, zorder=0.5, transform=across,
        label="number of observations",
    )  # fmt: skip
    hidden = np.isnan(count)
    if hidden.any():
        axes.bar(
            left[hidden], HATCHED, (right - left)[hidden], align="edge", facecolor="none", edgecolor=GREY,
            linewidth=0, hatch="////", zorder=0.5, transform=across, label="1 to 4 observations",
        )  # fmt: skip
    room = MARGIN * float(right.max() - left.min())
    axes.set_xlim(float(left.min()) - room, float(right.max()) + room)


def _columns(rows: Rows, series: str) -> tuple[np.ndarray, ...]:
    """x, point, lower, upper and level of one series; NaN for empty cells."""
    selected = [row for row in rows if row["series"] == series]
    return tuple(
        np.array([number(row[name]) for row in selected], dtype=float)
        for name in ("x", "point", "lower", "upper", "level")
    )


def _short(text: str) -> str:
    """A text that fits above or below a panel, and is shown as it is."""
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    return text.replace("$", r"\$")
