"""Table of problems by methods: expected reward of the recommended action, and mean normalised regret.

Each row holds the best of the start design, the methods, and the optimum. The mean normalised regret is over
the problems on which all methods of the table were run, and the seeds that all of them have there; its
interval is over seeds.

Source: Ren et al. (2025), Fig. 4-14 and Tab. 2-3 as one table; the normalised regret is ours.
"""

import math
from collections.abc import Sequence

from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from rehearsal_torch.evaluation.summaries import TrialSummary, mean, trial_summary
from rehearsal_torch.evaluation.trial_rows import Row
from rehearsal_torch.reporting.text_table import markdown_table, text_table

Cells = dict[str, dict[str, TrialSummary]]


def problem_of(row: Row) -> str:
    """Name of a problem, with its setting."""
    return " ".join(text for text in (str(row["problem"]), str(row["setting"])) if text)


def grouped_rows(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """Problem (with setting) to method to rows, in order of appearance."""
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        groups.setdefault(problem_of(row), {}).setdefault(str(row["method"]), []).append(row)
    return groups


def cells(rows: Sequence[Row], round_: int | None = None) -> Cells:
    """Problem to method to summary, after round `round_`; None for the last round."""
    return {
        problem: {method: trial_summary(some, round_) for method, some in line.items()}
        for problem, line in grouped_rows(rows).items()
    }


def shared(rows: Sequence[Row]) -> list[Row]:
    """The rows of the problems on which every method was run, with the seeds that all methods have on all of
    these problems.

    If the problems have no seed in common, each keeps its own.
    """
    tried: dict[tuple[str, int], set[str]] = {}
    for row in rows:
        tried.setdefault((problem_of(row), int(row["seed"])), set()).add(str(row["method"]))
    every, seeds = {str(row["method"]) for row in rows}, dict[str, set[int]]()
    for (problem, seed), names in tried.items():
        if names == every:
            seeds.setdefault(problem, set()).add(seed)
    common = set.intersection(*seeds.values()) if seeds else set()
    return [
        row
        for row in rows
        if int(row["seed"]) in (common or seeds.get(problem_of(row), set())) and problem_of(row) in seeds
    ]


def regret(summaries: Cells, method: str) -> Interval:
    """The mean normalised regret of a method over the problems that all methods share, with an interval over
    seeds.

    The regret of a seed is divided by the problem's mean gap between optimum and start design. If problems
    have different numbers of seeds, the mean is over all of them and there is no interval: one over some of
    the seeds would not belong to that mean.

    Args:
        summaries: Those of `shared` rows, for an interval.
    """
    known = [
        (line[method], line[method].optimum - line[method].start)
        for line in summaries.values()
        if line[method].optimum > line[method].start
    ]
    if not known:
        return mean_interval([])
    whole = mean([summary.normalised for summary, _ in known])
    counts = {summary.seeds for summary, _ in known}
    seeds = min(counts)
    if len(counts) > 1:
        return Interval(whole, math.nan, math.nan, seeds)
    interval = mean_interval(
        [mean([summary.regrets[seed] / gap for summary, gap in known]) for seed in range(seeds)]
    )
    return Interval(whole, interval.low, interval.high, seeds)


def methods(summaries: Cells) -> list[str]:
    """All methods, in order of appearance."""
    return list(dict.fromkeys(name for line in summaries.values() for name in line))


def as_text(rows: Sequence[Row]) -> str:
    """The table for a terminal."""
    title = "Expected reward of the recommended action, mean over seeds"
    return text_table(*_table(rows), title)


def markdown(rows: Sequence[Row]) -> list[str]:
    """The table as lines of Markdown."""
    return markdown_table(*_table(rows))


def shown(value: float) -> str:
    """A reward in four significant digits."""
    return f"{value:.4g}"


def _table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    summaries, fair = cells(rows), cells(shared(rows))
    names, body = methods(summaries), []
    for problem, line in summaries.items():
        summary = next(iter(line.values()))
        body.append(
            [
                problem,
                shown(summary.start),
                *(_cell(line.get(name)) for name in names),
                shown(summary.optimum),
            ]
        )
    if fair:
        body.append(
            [
                f"mean normalised regret, {_counted(fair)}",
                "1",
                *(_interval(regret(fair, name)) for name in names),
                "0",
            ]
        )
    return ["problem", "start", *names, "optimum"], body


def _counted(fair: Cells) -> str:
    several = len(fair)
    seeds = min(summary.seeds for line in fair.values() for summary in line.values())
    return f"{several} problem{'s' if several > 1 else ''}, {seeds} seed{'s' if seeds > 1 else ''}"


def _cell(summary: TrialSummary | None) -> str:
    return "-" if summary is None else _interval(summary.recommended)


def _interval(interval: Interval) -> str:
    ends = "" if interval.low != interval.low else f" [{interval.low:.3g}, {interval.high:.3g}]"
    return f"{interval.mean:.4g}{ends}"
