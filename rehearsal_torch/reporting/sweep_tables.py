"""Tables of the jobs of a sweep: worlds or problems by methods, and a figure of the worlds.

Worlds: the mean true probability of a desired outcome over contexts, +- its standard deviation over seeds
    (none for a single seed), beside that of no action and the best possible one (the oracle); Du et al.
    (2026), Tab. 1. Every seed has its own data and its own contexts, which all methods share.

Trials: the expected reward of the recommended action beside the best of the start design and the optimum, and
    the mean normalised regret, over the problems on which all methods of the table were run, and the seeds
    that all of them have there; its interval is over seeds. Ren et al. (2025), Fig. 4-14 and Tab. 2-3.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from rehearsal_torch.evaluation.claim_rows import Row
from rehearsal_torch.evaluation.method_summaries import (
    MethodSummary,
    TrialSummary,
    grouped,
    mean,
    summed,
    trial_summary,
)
from rehearsal_torch.reporting.alteration_report import figure
from rehearsal_torch.reporting.figure_style import legend_below, panels, point_style
from rehearsal_torch.reporting.text_table import markdown_table, text_table

WorldCells = dict[str, dict[str, MethodSummary]]
TrialCells = dict[str, dict[str, TrialSummary]]
# Characters of a line in a terminal.
WIDTH = 160
# The method that never alters anything.
NO_ACTION = "none"


def methods(summaries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """All methods but no action, in order of appearance."""
    names = dict.fromkeys(name for line in summaries.values() for name in line)
    return [name for name in names if name != NO_ACTION]


def world_cells(
    rows: Sequence[Row], no_action_count: Mapping[tuple[object, object], int] | None = None
) -> WorldCells:
    """World to method to summary; `no_action_count`: (world, method) to decisions without an alteration."""
    summaries: WorldCells = {}
    for (dataset, method), runs in grouped(rows, "dataset", "method").items():
        count = (no_action_count or {}).get((dataset, method), 0)
        summaries.setdefault(str(dataset), {})[str(method)] = summed(runs, count)
    return summaries


def worlds_as_text(summaries: WorldCells, title: str) -> str:
    """The table for a terminal."""
    return text_table(*_table_of_worlds(summaries), title, width=WIDTH)


def worlds_as_markdown(summaries: WorldCells) -> list[str]:
    """The table as lines of Markdown."""
    return markdown_table(*_table_of_worlds(summaries))


def draw_worlds(summaries: WorldCells) -> Figure:
    """Points of methods by world, with error bars of one standard deviation; call it within `drawing`."""
    width = max(5.2, 1.5 * len(summaries) + 2)
    drawn, [[axes]] = panels(width=width, height=4.4)
    for world, line in enumerate(summaries.values()):
        reference, ends = _largest(line), (world - 0.42, world + 0.42)
        for height, dash, label in (
            (reference.oracle, "-", "best possible"),
            (reference.no_action, ":", "no action"),
        ):
            # Labels that begin with an underscore are not shown in the legend.
            name = f"_{label}" if world else label
            axes.hlines(height, *ends, color="black", linestyle=dash, linewidth=1.2, label=name)
    names = methods(summaries)
    for index, name in enumerate(names):
        offset = (index - (len(names) - 1) / 2) * 0.7 / max(len(names), 1)
        results = [(world, line[name]) for world, line in enumerate(summaries.values()) if name in line]
        deviations = np.nan_to_num([summary.std for _, summary in results])
        x, y = [world + offset for world, _ in results], [summary.auf.mean for _, summary in results]
        axes.errorbar(x, y, deviations, **point_style(index), markersize=5, capsize=2, label=name)
    axes.set_xticks(range(len(summaries)), list(summaries))
    axes.set(ylabel="True probability of a desired outcome", ylim=(0, 1.02))
    axes.grid(visible=False, axis="x")
    legend_below(drawn, max(2, min(5, int(width // 1.8))))
    return drawn


def plus_minus(summary: MethodSummary) -> str:
    """Mean and standard deviation over seeds."""
    return figure(summary.auf.mean) + ("" if math.isnan(summary.std) else f" ± {summary.std:.3f}")


def _table_of_worlds(summaries: WorldCells) -> tuple[list[str], list[list[str]]]:
    names, body = methods(summaries), []
    for dataset, line in summaries.items():
        reference = _largest(line)
        cells = [plus_minus(line[name]) if name in line else "-" for name in names]
        body.append([dataset, figure(reference.no_action), *cells, figure(reference.oracle)])
    return ["world", "no action", *names, "oracle"], body


def _largest(line: Mapping[str, MethodSummary]) -> MethodSummary:
    """The method with the most contexts, for reference values: others may have failed in some of them."""
    return max(line.values(), key=lambda summary: summary.count)


def problem_of(row: Row) -> str:
    """Name of a problem, with its setting."""
    return " ".join(text for text in (str(row["problem"]), str(row["setting"])) if text)


def grouped_rows(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """Problem (with setting) to method to rows, in order of appearance."""
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        groups.setdefault(problem_of(row), {}).setdefault(str(row["method"]), []).append(row)
    return groups


def trial_cells(rows: Sequence[Row]) -> TrialCells:
    """Problem to method to summary, after the last round."""
    return {
        problem: {method: trial_summary(runs) for method, runs in line.items()}
        for problem, line in grouped_rows(rows).items()
    }


def shared(rows: Sequence[Row]) -> list[Row]:
    """The rows of the problems on which every method was run, with the seeds that all methods have on all of
    them; if the problems have no seed in common, each keeps its own.
    """
    methods_of: dict[tuple[str, int], set[str]] = {}
    for row in rows:
        methods_of.setdefault((problem_of(row), int(row["seed"])), set()).add(str(row["method"]))
    method_names, seeds = {str(row["method"]) for row in rows}, dict[str, set[int]]()
    for (problem, seed), names in methods_of.items():
        if names == method_names:
            seeds.setdefault(problem, set()).add(seed)
    common = set.intersection(*seeds.values()) if seeds else set()
    seeds_of = {problem: common or values for problem, values in seeds.items()}
    return [row for row in rows if int(row["seed"]) in seeds_of.get(problem_of(row), ())]


def regret(summaries: TrialCells, method: str) -> Interval:
    """The mean normalised regret of a method over the problems (of `shared` rows), with an interval over
    seeds. The regret of a seed is divided by the problem's mean gap between optimum and start design.
    Problems with different numbers of seeds have no interval: that of some seeds is another mean's.
    """
    results = [line[method] for line in summaries.values() if line[method].optimum > line[method].start]
    if not results:
        return mean_interval([])
    average = mean([summary.normalised for summary in results])
    counts = {summary.seeds for summary in results}
    if len(counts) > 1:
        return Interval(average, math.nan, math.nan, min(counts))
    shares = [
        [summary.regrets[seed] / (summary.optimum - summary.start) for summary in results]
        for seed in range(min(counts))
    ]
    interval = mean_interval(list(map(mean, shares)))
    return Interval(average, interval.low, interval.high, len(shares))


def trials_as_text(rows: Sequence[Row]) -> str:
    """The table for a terminal."""
    return text_table(*_table_of_trials(rows), "Expected reward of the recommended action, mean over seeds")


def trials_as_markdown(rows: Sequence[Row]) -> list[str]:
    """The table as lines of Markdown."""
    return markdown_table(*_table_of_trials(rows))


def _table_of_trials(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    summaries, common = trial_cells(rows), trial_cells(shared(rows))
    names, body = methods(summaries), []
    for problem, line in summaries.items():
        summary = next(iter(line.values()))
        cells = [_interval(line[name].recommended) if name in line else "-" for name in names]
        body.append([problem, f"{summary.start:.4g}", *cells, f"{summary.optimum:.4g}"])
    if common:
        seeds = min(summary.seeds for line in common.values() for summary in line.values())
        counts = f"{len(common)} problem{'s'[: len(common) > 1]}, {seeds} seed{'s'[: seeds > 1]}"
        regrets = [_interval(regret(common, name)) for name in names]
        body.append([f"mean normalised regret, {counts}", "1", *regrets, "0"])
    return ["problem", "start", *names, "optimum"], body


def _interval(interval: Interval) -> str:
    ends = "" if math.isnan(interval.low) else f" [{interval.low:.3g}, {interval.high:.3g}]"
    return f"{interval.mean:.4g}{ends}"
