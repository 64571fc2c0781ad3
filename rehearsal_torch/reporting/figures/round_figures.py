"""Figures of runs that learn from each answer, round by round; to be called in `drawing`.

A line is the mean over repeats or seeds, its band one standard deviation (online runs; Qin et al., 2023, Fig.
4) or one standard error (trials; Ren et al., 2025, Fig. 4-7, 10, 12-14) to either side; a single repeat has
no band. A method has one colour and dash in all panels.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.evaluation.claim_rows import Row, by_run
from rehearsal_torch.reporting.figure_style import (
    BLACK,
    CHANCES,
    COLOURS,
    legend_below,
    line_style,
    logarithmic,
    panels,
)

Groups = Mapping[str, Sequence[Row]]
Curve = tuple[np.ndarray, np.ndarray, np.ndarray]
# The smallest regret that is drawn, as a share of the distance between the optimum and the start design.
FLOOR = 1e-3


def draw_trials(problems: Mapping[str, Groups]) -> Figure:
    """Panels by problem: best so far, average, and regret (logarithmic) of the recommended action."""
    figure, grid = panels(len(problems), 3, width=4.4, height=3.1)
    methods = list(dict.fromkeys(method for groups in problems.values() for method in groups))
    for line, (problem, groups) in zip(grid, problems.items(), strict=True):
        _problem_panels(line, problem, groups, methods)
    legend_below(figure, 8)
    return figure


def mean_of_seeds(rows: Sequence[Row], key: str, *, running: bool = False) -> Curve:
    """Rounds, means and standard errors over seeds, (n,) each, of the common rounds, or of running means."""
    values = _by_round(by_run(rows, "seed"), key)
    values = values.cumsum(-1) / np.arange(1, values.shape[-1] + 1) if running else values
    rounds, means, deviations = _curve(values)
    return rounds, means, deviations / len(values) ** 0.5


def mean_of_repeats(rows: Sequence[Row], key: str, *, summed: bool = False) -> Curve:
    """Rounds, means and standard deviations over repeats, (n,) each, for the common rounds; or of sums."""
    values = _by_round(by_run(rows, "repeat"), key)
    return _curve(values.cumsum(-1) if summed else values)


def _by_round(runs: Mapping[int, Sequence[Row]], key: str) -> np.ndarray:
    """The values of a column, (runs, rounds)."""
    length = min(map(len, runs.values()))
    return np.array([[row[key] for row in run[:length]] for run in runs.values()], dtype=float)


def _curve(values: np.ndarray) -> Curve:
    count, length = values.shape
    deviations = values.std(0, ddof=1) if count > 1 else np.zeros(length)
    return np.arange(1, length + 1), values.mean(0), deviations


def _band(axes: Axes, curve: Curve, style: Mapping[str, Any], name: str) -> None:
    rounds, means, spread = curve
    axes.plot(rounds, means, label=name, **style)
    axes.fill_between(rounds, means - spread, means + spread, color=style["color"], alpha=0.15, linewidth=0)


def _problem_panels(line: Sequence[Axes], problem: str, groups: Groups, methods: Sequence[str]) -> None:
    best, average, regret = line
    optimum = next(iter(groups.values()))[0]["optimum"]
    start = np.mean([row["start"] for rows in groups.values() for row in rows])
    floor = FLOOR * max(optimum - start, 1e-12)
    for name, rows in groups.items():
        style = line_style(methods.index(name))
        _band(best, mean_of_seeds(rows, "best_expected"), style, name)
        _band(average, mean_of_seeds(rows, "expected", running=True), style, name)
        rounds, means, _ = mean_of_seeds(rows, "recommended_expected")
        regret.plot(rounds, np.maximum(optimum - means, floor), **style)
    for axes, label in ((best, "Best expected reward so far"), (average, "Average expected reward")):
        axes.axhline(optimum, color=BLACK, linewidth=1.0, label="best possible" if axes is best else None)
        axes.set(xlabel="Round", ylabel=label, title=problem)
    regret.set(xlabel="Round", ylabel="Expected reward that the\nrecommendation misses", title=problem)
    logarithmic(regret.yaxis)
    for axes in line:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_online(worlds: Mapping[str, Groups], bounded: Mapping[str, str] | None = None) -> Figure:
    """One row of panels per world: successes, true probability, information gain, and the mean ends of the
    bounds (of the posterior mean and, wider, of the truth). `worlds` maps a world to label (a method or a
    tau) to rows; `bounded` maps it to the label whose bounds are shown, by default the first that has some.
    """
    figure, grid = panels(len(worlds), 4, width=4.0, height=3.2)
    labels = list(dict.fromkeys(label for groups in worlds.values() for label in groups))
    for line, (world, groups) in zip(grid, worlds.items(), strict=True):
        _world_panels(line, world.replace("_", " "), groups, labels)
        _bounds_panel(line[3], groups, (bounded or {}).get(world))
    legend_below(figure, len(labels) + 1, [axes for line in grid for axes in line[:2]])
    return figure


def _world_panels(line: Sequence[Axes], title: str, groups: Groups, labels: Sequence[str]) -> None:
    for axes, key, ylabel in (
        (line[0], "success", "Successes so far"),
        (line[1], "p_true", "True probability of success"),
        (line[2], "information", "Expected information gain"),
    ):
        for name, rows in groups.items():
            curve = mean_of_repeats(rows, key, summed=key == "success")
            if not np.isnan(curve[1]).all():
                _band(axes, curve, line_style(labels.index(name)), name)
        axes.set(xlabel="Round", ylabel=ylabel, title=title)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    rounds, best, _ = mean_of_repeats(next(iter(groups.values())), "oracle")
    line[0].plot(rounds, best.cumsum(), color=BLACK, linewidth=1.0, label="best possible")
    line[1].plot(rounds, best, color=BLACK, linewidth=1.0)
    line[1].set_ylim(*CHANCES)
    if all(np.isnan(row["information"]) for rows in groups.values() for row in rows):
        line[2].set_visible(False)


def _bounds_panel(axes: Axes, groups: Groups, bounded: str | None) -> None:
    labels = [name for name, rows in groups.items() if not np.isnan(mean_of_repeats(rows, "lower")[1]).all()]
    name = bounded if bounded in labels else next(iter(labels), None)
    if name is None:
        axes.set_visible(False)
        return
    rows = groups[name]
    rounds, true, _ = mean_of_repeats(rows, "p_true")
    bands = [("", "bound", COLOURS[0])]
    if all("truth_lower" in row for row in rows):
        bands = [
            ("truth_", "bound of the truth", COLOURS[2]),
            ("", "bound of the posterior mean", COLOURS[0]),
        ]
    for prefix, label, colour in bands:
        lower, upper = (mean_of_repeats(rows, f"{prefix}{end}")[1] for end in ("lower", "upper"))
        axes.fill_between(rounds, lower, upper, color=colour, alpha=0.25, linewidth=0, label=label)
    axes.plot(rounds, true, color=COLOURS[1], label="truth")
    axes.set(xlabel="Round", ylabel="Probability of success", ylim=CHANCES, title=f"Bounds, {name}")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="lower right")
