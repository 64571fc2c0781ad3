"""Table and figure of worlds by methods: the mean true probability of a desired outcome.

    mean +- sd,    sd over seeds of the mean over contexts; no sd for a single seed

Each row also holds the probabilities without an alteration and of the best possible one (the oracle). Every
seed has its own data and its own contexts, which all methods share.

Source: Du et al. (2026), Tab. 1; the oracle's column is ours.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from rehearsal_torch.evaluation.rehearsal_rows import Row
from rehearsal_torch.evaluation.summaries import MethodSummary, grouped, summed
from rehearsal_torch.reporting.decision_table import figure, percent
from rehearsal_torch.reporting.style import legend_below, panels, point_style
from rehearsal_torch.reporting.text_table import markdown_table, text_table

Cells = dict[str, dict[str, MethodSummary]]
WIDTH = 160
NO_ACTION = "none"


def cells(rows: Sequence[Row], no_action_count: Mapping[tuple[object, object], int] | None = None) -> Cells:
    """World to method to summary, both in order of appearance.

    Args:
        rows: The rows of all worlds and methods.
        no_action_count: (world, method) to the number of decisions without an alteration; None if it is not
            needed.
    """
    found: Cells = {}
    for (dataset, method), some in grouped(rows, "dataset", "method").items():
        found.setdefault(str(dataset), {})[str(method)] = summed(
            some, (no_action_count or {}).get((dataset, method), 0)
        )
    return found


def as_text(found: Cells, title: str) -> str:
    """The table for a terminal, `WIDTH` columns wide."""
    return text_table(*_table(found), title, width=WIDTH)


def markdown(found: Cells) -> list[str]:
    """The table as lines of Markdown."""
    return markdown_table(*_table(found))


def shares(found: Cells) -> list[str]:
    """The share of the possible gain that each method reached, as lines of Markdown; no action, 0 by
    definition, is left out.
    """
    names = [name for name in _methods(found) if name != NO_ACTION]
    body = [
        [dataset, *(percent(line[name].share) if name in line else "-" for name in names)]
        for dataset, line in found.items()
    ]
    return markdown_table(["world", *names], body)


def draw(found: Cells) -> Figure:
    """One group of points per world, one point per method, with error bars of one standard deviation; to be
    called within `drawing`.
    """
    width = max(5.2, 1.5 * len(found) + 2)
    figure_, [[axes]] = panels(width=width, height=4.4)
    names = [name for name in _methods(found) if name != NO_ACTION]
    for place, line in enumerate(found.values()):
        some = list(line.values())
        for height, dash, label in (
            (_shared(some, "oracle"), "-", "best possible"),
            (_shared(some, "no_action"), ":", "no action"),
        ):
            # Labels that begin with an underscore are not shown in the legend.
            axes.hlines(
                height,
                place - 0.42,
                place + 0.42,
                color="black",
                linestyle=dash,
                linewidth=1.2,
                label=label if place == 0 else f"_{label}",
            )
    for index, name in enumerate(names):
        offset = (index - (len(names) - 1) / 2) * 0.7 / max(len(names), 1)
        known = [(place, line[name]) for place, line in enumerate(found.values()) if name in line]
        bars = np.nan_to_num([one.std for _, one in known])
        x, y = [place + offset for place, _ in known], [one.auf.mean for _, one in known]
        axes.errorbar(x, y, bars, **point_style(index), markersize=5, capsize=2, label=name)
    axes.set_xticks(range(len(found)), list(found))
    axes.set(ylabel="True probability of a desired outcome", ylim=(0, 1.02))
    axes.grid(visible=False, axis="x")
    legend_below(figure_, max(2, min(5, int(width // 1.8))))
    return figure_


def plus_minus(one: MethodSummary) -> str:
    """Mean and standard deviation over seeds."""
    return figure(one.auf.mean) + ("" if math.isnan(one.std) else f" ± {one.std:.3f}")


def _table(found: Cells) -> tuple[list[str], list[list[str]]]:
    names = [name for name in _methods(found) if name != NO_ACTION]
    body = []
    for dataset, line in found.items():
        some = list(line.values())
        ends = [figure(_shared(some, "no_action")), figure(_shared(some, "oracle"))]
        body.append(
            [dataset, ends[0], *(plus_minus(line[name]) if name in line else "-" for name in names), ends[1]]
        )
    return ["world", "no action", *names, "oracle"], body


def _methods(found: Cells) -> list[str]:
    return list(dict.fromkeys(name for line in found.values() for name in line))


def _shared(some: Sequence[MethodSummary], which: str) -> float:
    """A reference value of a world, from the method with the most contexts: methods share contexts, but a
    method may have failed in some of them.
    """
    largest = max(some, key=lambda one: one.count)
    return largest.oracle if which == "oracle" else largest.no_action
