"""Computational efficiency along one setting after the other: effective branching factor and runtime.

A filled marker stands for a setting in which every episode's optimum is proven. An open one is censored: a
limit ended some searches, so the mean is a lower bound; the share proven stands beside it. Bars are 95%
intervals over episodes.

Source: Tsirtsis and Gomez-Rodriguez (2023), Fig. 2 and Fig. 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rehearsal_torch.evaluation.bootstrap import Interval
from rehearsal_torch.reporting.style import COLOURS, DASHES, MARKERS, panels
from rehearsal_torch.studies.sepsis.episode_rows import Point


@dataclass(frozen=True)
class Setting:
    """One panel's axis.

    Attributes:
        label: The axis label.
        lines: Name of a search to its points.
        logarithmic: Whether the axis is.
    """

    label: str
    lines: Mapping[str, Sequence[Point]]
    logarithmic: bool = False


def draw(settings: Sequence[Setting], *, runtime: bool = True) -> Figure:
    """A column for each setting; the branching factor above, the runtime below (unless left out)."""
    figure, grid = panels(2 if runtime else 1, len(settings), width=4.2, height=3.1)
    names = list(dict.fromkeys(name for setting in settings for name in setting.lines))
    for column, setting in enumerate(settings):
        for name, line in setting.lines.items():
            style = names.index(name)
            series(grid[0][column], line, [point.ebf for point in line], name, style)
            if runtime:
                series(grid[1][column], line, [point.seconds for point in line], name, style)
        for row in grid:
            axes = row[column]
            axes.set_xlabel(setting.label)
            if setting.logarithmic:
                axes.set_xscale("log")
            ticks = sorted({point.x for line in setting.lines.values() for point in line})
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], rotation=45 if len(ticks) > 6 else 0)
            axes.set_xticks([], minor=True)
    grid[0][0].set_ylabel("Effective branching factor")
    if runtime:
        grid[1][0].set_ylabel("Runtime (s an episode)")
        for axes in grid[1]:
            axes.set_yscale("log")
    handles = {
        label: handle
        for row in grid
        for axes in row
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=len(handles) if len(settings) > 1 else 1,
    )
    return figure


def series(axes: Axes, line: Sequence[Point], means: Sequence[Interval], label: str, style: int) -> None:
    """One search's means along an axis, with bars and censored points."""
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
