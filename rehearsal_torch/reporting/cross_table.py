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
    summaries: Cells = {}
    for (dataset, method), some in grouped(rows, "dataset", "method").items():
        summaries.setdefault(str(dataset), {})[str(method)] = summed(
            some, (no_action_count or {}).get((dataset, method), 0)
        )
    return summaries


def as_text(summaries: Cells, title: str) -> str:
    """The table for a terminal, `WIDTH` columns wide."""
    return text_table(*_table(summaries), title, width=WIDTH)


def markdown(summaries: Cells) -> list[str]:
    """The table as lines of Markdown."""
    return markdown_table(*_table(summaries))


def shares(summaries: Cells) -> list[str]:
    """The share of the possible gain that each method reached, as lines of Markdown; no action, 0 by
    definition, is left out.
    """
    names = [name for name in _methods(summaries) if name != NO_ACTION]
    body = [
        [dataset, *(percent(line[name].share) if name in line else "-" for name in names)]
        for dataset, line in summaries.items()
    ]
    return markdown_table(["world", *names], body)


def draw(summaries: Cells) -> Figure:
    """One group of points per world, one point per method, with error bars of one standard deviation; to be
    called within `drawing`.
    """
    width = max(5.2, 1.5 * len(summaries) + 2)
    figure_, [[axes]] = panels(width=width, height=4.4)
    names = [name for name in _methods(summaries) if name != NO_ACTION]
    for world, row in enumerate(summaries.values()):
        in_world = list(row.values())
        for height, dash, label in (
            (_shared(in_world, "oracle"), "-", "best possible"),
            (_shared(in_world, "no_action"), ":", "no action"),
        ):
            # Labels that begin with an underscore are not shown in the legend.
            axes.hlines(
                height,
                world - 0.42,
                world + 0.42,
                color="black",
                linestyle=dash,
                linewidth=1.2,
                label=label if world == 0 else f"_{label}",
            )
    for index, name in enumerate(names):
        offset = (index - (len(names) - 1) / 2) * 0.7 / max(len(names), 1)
        known = [(world, row[name]) for world, row in enumerate(summaries.values()) if name in row]
        bars = np.nan_to_num([summary.std for _, summary in known])
        x, y = [world + offset for world, _ in known], [summary.auf.mean for _, summary in known]
        axes.errorbar(x, y, bars, **point_style(index), markersize=5, capsize=2, label=name)
    axes.set_xticks(range(len(summaries)), list(summaries))
    axes.set(ylabel="True probability of a desired outcome", ylim=(0, 1.02))
    axes.grid(visible=False, axis="x")
    legend_below(figure_, max(2, min(5, int(width // 1.8))))
    return figure_


def plus_minus(summary: MethodSummary) -> str:
    """Mean and standard deviation over seeds."""
    return figure(summary.auf.mean) + ("" if math.isnan(summary.std) else f" ± {summary.std:.3f}")


def _table(summaries: Cells) -> tuple[list[str], list[list[str]]]:
    names = [name for name in _methods(summaries) if name != NO_ACTION]
    body = []
    for dataset, line in summaries.items():
        in_world = list(line.values())
        ends = [figure(_shared(in_world, "no_action")), figure(_shared(in_world, "oracle"))]
        body.append(
            [dataset, ends[0], *(plus_minus(line[name]) if name in line else "-" for name in names), ends[1]]
        )
    return ["world", "no action", *names, "oracle"], body


def _methods(summaries: Cells) -> list[str]:
    return list(dict.fromkeys(name for line in summaries.values() for name in line))


def _shared(in_world: Sequence[MethodSummary], which: str) -> float:
    """A reference value of a world, from the method with the most contexts: methods share contexts, but a
    method may have failed in some of them.
    """
    largest = max(in_world, key=lambda summary: summary.count)
    return largest.oracle if which == "oracle" else largest.no_action
