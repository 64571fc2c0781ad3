"""Figure of trials, round by round: best so far, average, and regret of the recommended action.

A line is the mean over seeds, its band one standard error to either side; the horizontal line is the exact
optimum. The regret has a logarithmic scale, with a lower limit of a thousandth of the distance between the
optimum and the start design.

Source: Ren et al. (2025), Fig. 4-7, 10, 12-14 (best expected reward by round); the regret is ours.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.evaluation.trial_rows import Row, by_seed
from rehearsal_torch.reporting.style import BLACK, legend_below, line_style, logarithmic, panels

Groups = Mapping[str, Sequence[Row]]
FLOOR = 1e-3


def draw(problems: Mapping[str, Groups]) -> Figure:
    """One row of three panels per problem; to be called within `drawing`.

    Args:
        problems: Problem to method to rows.
    """
    figure, grid = panels(len(problems), 3, width=4.4, height=3.1)
    # A method has the same colour and dash on every problem.
    methods = list(dict.fromkeys(method for groups in problems.values() for method in groups))
    for line, (problem, groups) in zip(grid, problems.items(), strict=True):
        _problem(line, problem, groups, methods)
    legend_below(figure, 8)
    return figure


def by_round(
    rows: Sequence[Row], key: str, *, running: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and standard error over seeds, for each of the rounds that all seeds have.

    Args:
        rows: The rows of one method on one problem.
        key: Name of the column.
        running: Whether to take the running mean over rounds first.

    Returns:
        Rounds, means, standard errors (0 for one seed), (n,) each.
    """
    runs = list(by_seed(rows).values())
    length = min(len(run) for run in runs)
    values = np.array([[row[key] for row in run[:length]] for run in runs], dtype=float)
    values = values.cumsum(-1) / np.arange(1, length + 1) if running else values
    errors = values.std(0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.zeros(length)
    return np.arange(1, length + 1), values.mean(0), errors


def _problem(line: Sequence[Axes], problem: str, groups: Groups, methods: Sequence[str]) -> None:
    best, average, regret = line
    some = next(iter(groups.values()))[0]
    optimum, start = some["optimum"], np.mean([row["start"] for rows in groups.values() for row in rows])
    smallest = FLOOR * max(optimum - start, 1e-12)
    for name, rows in groups.items():
        style = line_style(methods.index(name))
        for axes, key, running in ((best, "best_expected", False), (average, "expected", True)):
            rounds, means, errors = by_round(rows, key, running=running)
            axes.plot(rounds, means, label=name, **style)
            band = (means - errors, means + errors)
            axes.fill_between(rounds, *band, color=style["color"], alpha=0.15, linewidth=0)
        rounds, means, _ = by_round(rows, "recommended_expected")
        regret.plot(rounds, np.maximum(optimum - means, smallest), **style)
    for axes, label in ((best, "Best expected reward so far"), (average, "Average expected reward")):
        axes.axhline(optimum, color=BLACK, linewidth=1.0, label="best possible" if axes is best else None)
        axes.set(xlabel="Round", ylabel=label, title=problem)
    regret.set(xlabel="Round", ylabel="Expected reward that the\nrecommendation misses", title=problem)
    logarithmic(regret.yaxis)
    for axes in line:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
