"""Searches along the axes of the study: effective branching factor, runtime, and improvement.

Bars are 95% intervals of the mean over episodes. A filled marker means that the optimum of every episode is
proven. An open marker means that the time limit ended some searches: the mean is a lower bound, and the share
of proven episodes is printed beside it.

Source: Tsirtsis and Gomez-Rodriguez (2023), Fig. 2, 3a and 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.evaluation.bootstrap import Interval
from rehearsal_torch.reporting.figure_style import COLOURS, DASHES, MARKERS, panels
from reproduction.sepsis.episode_rows import Point


@dataclass(frozen=True)
class Axis:
    """The points along one axis.

    Attributes:
        label: Label of the axis.
        lines: Name of a search to its points.
        logarithmic: Whether the axis is logarithmic.
    """

    label: str
    lines: Mapping[str, Sequence[Point]]
    logarithmic: bool = False


def efficiency(axes: Sequence[Axis]) -> Figure:
    """One column per axis, the branching factor above and the runtime below; to be called within `drawing`.

    Args:
        axes: The axes, from left to right.
    """
    figure, grid = panels(2, len(axes), width=4.2, height=3.1)
    names = list(dict.fromkeys(name for axis in axes for name in axis.lines))
    for axis, above, below in zip(axes, *grid, strict=True):
        for name, line in axis.lines.items():
            style = names.index(name)
            series(above, line, [point.ebf for point in line], name, style)
            series(below, line, [point.seconds for point in line], name, style)
        ticks = sorted({point.x for line in axis.lines.values() for point in line})
        for panel in (above, below):
            panel.set_xlabel(axis.label)
            if axis.logarithmic:
                panel.set_xscale("log")
            panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks], rotation=45 if len(ticks) > 6 else 0)
            panel.set_xticks([], minor=True)
        below.set_yscale("log")
    grid[0][0].set_ylabel("Effective branching factor")
    grid[1][0].set_ylabel("Runtime (s an episode)")
    handles = {
        label: handle
        for row in grid
        for panel in row
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    columns = len(handles) if len(axes) > 1 else 1
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns)
    return figure


def improvement(lines: Mapping[str, Sequence[Point]]) -> Figure:
    """Average improvement in percent against the number of changes k; to be called within `drawing`.

    Args:
        lines: Name of a search to its points along k.
    """
    figure, [[axes]] = panels()
    for index, (label, line) in enumerate(lines.items()):
        series(axes, line, [point.improvement.times(100) for point in line], label, index)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="Changed actions at most, k", ylabel="Average counterfactual improvement (%)")
    axes.legend()
    return figure


def series(axes: Axes, line: Sequence[Point], means: Sequence[Interval], label: str, style: int) -> None:
    """Draws the means of one search along an axis, with bars and open markers for lower bounds.

    Args:
        axes: Where to draw.
        line: The points.
        means: The drawn quantity at each point.
        label: Name of the search.
        style: Index of colour, marker and dash.
    """
    colour, marker = COLOURS[style % len(COLOURS)], MARKERS[style % len(MARKERS)]
    x, y = [point.x for point in line], np.array([mean.mean for mean in means])
    bars = np.nan_to_num(
        np.array([[mean.mean - mean.low for mean in means], [mean.high - mean.mean for mean in means]])
    )
    axes.errorbar(
        x,
        y,
        bars,
        color=colour,
        linestyle=DASHES[style % len(DASHES)],
        marker=marker,
        markersize=5,
        capsize=3,
        label=label,
    )
    for point, mean in zip(line, means, strict=True):
        if point.proven < 1:
            axes.plot(
                [point.x],
                [mean.mean],
                marker,
                markersize=6,
                markerfacecolor="white",
                markeredgecolor=colour,
                zorder=3,
            )
            axes.annotate(
                f"{100 * point.proven:.0f}% proven",
                (point.x, mean.mean),
                (0, 8),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=colour,
            )
