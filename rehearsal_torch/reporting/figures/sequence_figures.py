"""Figures of action sequences of episodes, and of what a simulation knows of them; to be called in `drawing`.

The counterfactual improvement of an episode is the relative gain of its outcome, (o' - o) / |o|; for
cumulative SOFA it is the relative decrease. Where data are simulated, the true mechanism gives the outcome of
each recommended sequence: a claim below the diagonal is larger than the true improvement.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5, Fig. 3b (improvements) and 3c (the course of one unit).
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.evaluation.bootstrap import Interval
from rehearsal_torch.evaluation.run_record import Decided
from rehearsal_torch.reporting.figure_style import (
    BLACK,
    BLUE,
    COLOURS,
    ORANGE,
    VERMILION,
    diagonal,
    legend_below,
    line_style,
    panels,
    point_style,
)
from rehearsal_torch.reporting.labels import Dose, Wording, with_unit
from rehearsal_torch.reporting.sequence_report import TruthKey, truth_means

# Characters from which on a label, or a heading, has a line of its own.
LONG_LABEL, LONG_TITLE, LABEL = 20, 40, 16
# Inches of a column of courses, of its outcome and of a variable or an action; the most of these in a column.
WIDTH, OUTCOME, ACTION, MOST_ACTIONS, MOST_VARIABLES = 4.6, 2.2, 1.3, 4, 2


def draw_improvements(groups: Mapping[str, Sequence[float]], subjects: str = "patients") -> Figure:
    """Histograms of improvements over units, fractions (n,) by label, with dashed lines at the medians; a
    single group is filled, several are outlined. `subjects` is the word for units.
    """
    figure, [[axes]] = panels()
    shares = {label: 100 * np.asarray(values, np.float64) for label, values in groups.items() if len(values)}
    edges = np.histogram_bin_edges(np.concatenate(list(shares.values())), bins=24).tolist()
    for index, (label, percent) in enumerate(shares.items()):
        colour, median = COLOURS[index % len(COLOURS)], float(np.median(percent))
        if len(shares) == 1:
            axes.hist(percent, edges, color=colour, alpha=0.75, edgecolor="white")
            colour = "black"
        else:
            axes.hist(percent, edges, histtype="step", linewidth=1.6, **line_style(index))
        label = f"{label}: median {median:.1f}% (n = {len(percent)})"
        axes.axvline(median, color=colour, linestyle="--", label=label)
    axes.set(xlabel="Improvement predicted by the model (%)", ylabel=subjects.capitalize())
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(figure)
    return figure


def draw_true_improvements(groups: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """Improvements by the model against the true ones, fractions (n,) each by label; one point per unit."""
    figure, [[axes]] = panels(width=4.8, height=4.8)
    for index, (label, (claimed, true)) in enumerate(groups.items()):
        x, y = 100 * np.asarray(claimed), 100 * np.asarray(true)
        separator = "\n" if len(label) > LONG_LABEL else " "
        text = f"{label}:{separator}mean predicted {x.mean():.1f}%, true {y.mean():.1f}%"
        axes.plot(x, y, **point_style(index), markersize=4, alpha=0.7, label=text)
    diagonal(axes, "prediction = truth")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="Improvement predicted by the model (%)", ylabel="True improvement (%)")
    legend_below(figure)
    return figure


def draw_errors(rows: Sequence[Mapping[str, str]]) -> Figure:
    """Root-mean-square errors of learnt counterfactual courses, feature by feature, a panel for each
    sequence: shares of the error of the same model without abduction (fresh noise), beside the error of
    taking the observed course.
    """
    rmse = {key: mean for key, mean in truth_means(rows).items() if key[1] == "rmse"}
    sequences = list(dict.fromkeys(key[0] for key in rmse))
    figure, [line] = panels(1, len(sequences), width=4.8, height=3.8)
    for axes, sequence in zip(line, sequences, strict=True):
        features = list(dict.fromkeys(key[2] for key in rmse if key[0] == sequence))
        for estimator, colour, marker, label in (
            ("learnt", BLUE, "o", "predicted by the model"),
            ("observed trajectory", VERMILION, "s", "taken as observed, as if actions had no effect"),
        ):
            share = [_relative_error(rmse, sequence, feature, estimator) for feature in features]
            axes.plot(share, range(len(features)), marker, color=colour, label=label)
        axes.set_yticks(range(len(features)), features)
        label = "the same model with chance drawn anew"
        axes.axvline(100, color=BLACK, linestyle=":", linewidth=1.2, label=label)
        xlabel = "Error of the course (% of the error\nwith chance drawn anew)"
        axes.set(xlabel=xlabel, title=f"Under the {sequence} actions")
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    legend_below(figure)
    return figure


def _relative_error(rmse: Mapping[TruthKey, Interval], sequence: str, feature: str, estimator: str) -> float:
    """Mean error in percent of that with fresh noise; NaN without one of the two."""
    error, reference = (rmse.get((sequence, "rmse", feature, name)) for name in (estimator, "fresh noise"))
    if error is None or reference is None or reference.mean <= 0:
        return math.nan
    return 100 * error.mean / reference.mean


def chosen(decided: Sequence[Decided]) -> list[tuple[str, Decided]]:
    """The decisions with the largest, lower median and smallest predicted improvement, each once, and why."""
    ordered = sorted(decided, key=lambda decision: -float(decision["trajectory"]["improvement"]))
    # A unit with several ranks has the last of these names.
    ranks = {len(ordered) // 2: "median", len(ordered) - 1: "smallest", 0: "largest"}
    return [(why, ordered[rank]) for rank, why in sorted(ranks.items())]


def draw_courses(shown: Sequence[tuple[str, Decided]], count: int, words: Wording) -> Figure:
    """The courses of a few units (`chosen` from `count` ones), observed and predicted, a column each.

    Above, the outcome at each time step, observed, predicted, and within the range of the predictions of an
    ensemble's models, and the first variables that it is made of; below, the actions as observed and as
    recommended, a panel for each coordinate, with its levels or its unit. Time steps with a changed action
    are shaded.
    """
    variables = [name for name in _variables(shown[0][1]) if name != words.variable][:MOST_VARIABLES]
    widths = [len((_trajectory_list(decision, "doses") or [()])[0]) for _, decision in shown]
    actions = min(max(widths), MOST_ACTIONS)
    below = len(variables) + actions
    figure = Figure(figsize=(WIDTH * len(shown), OUTCOME + ACTION * below + 1.1), layout="constrained")
    heights = [OUTCOME, *[ACTION] * below]
    grid = figure.subplots(1 + below, len(shown), squeeze=False, sharex="col", height_ratios=heights)
    for column, (why, decision) in enumerate(shown):
        _draw_outcome(grid[0, column], decision, words)
        for row, name in enumerate(variables, 1):
            _draw_variable(grid[row, column], decision, name, words)
        for coordinate in range(actions):
            axes = grid[1 + len(variables) + coordinate, column]
            _doses(axes, decision, coordinate, words.dose(coordinate), words.start)
        for axes in grid[:, column]:
            _shade_changes(axes, decision, words.start)
        grid[0, column].set_title(_title(why, decision, count, words))
        grid[-1, column].set_xlabel(words.time)
        grid[-1, column].xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(figure, min(len(shown), 2) + 1)
    return figure


def draw_course(axes: Axes, decision: Decided, words: Wording) -> None:
    """Draws the course of the outcome of one unit, with the changed steps shaded, into given axes."""
    _draw_outcome(axes, decision, words)
    _shade_changes(axes, decision, words.start)
    axes.set(xlabel=words.time, title=_title("", decision, 1, words))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def changed(decision: Decided) -> list[int]:
    """The time steps at which an action differs from the observed one."""
    trajectory = decision["trajectory"]
    pairs = zip(trajectory["doses"], trajectory["observed_doses"], strict=True)
    return [time for time, (new, old) in enumerate(pairs) if new != old]


def _title(why: str, decision: Decided, count: int, words: Wording) -> str:
    percent = 100 * float(decision["trajectory"]["improvement"])
    gain = "no change" if not changed(decision) else f"{percent:.1f}% better by the model"
    scope = f"({why} improvement of {count} {words.episodes})" if count > 1 else ""
    name = words.titled(str(decision.get("identity", decision.get("index", ""))))
    separator = ": " if len(name) + len(gain) < LONG_TITLE else "\n"
    return f"{name}{separator}{gain}\n{scope}".rstrip()


def _draw_outcome(axes: Axes, decision: Decided, words: Wording) -> None:
    observed, predicted, low, high = (
        [words.sign * value for value in _trajectory_list(decision, key)]
        for key in ("observed_rewards", "rewards", "rewards_lower", "rewards_upper")
    )
    times = range(words.start, words.start + len(observed))
    axes.plot(times, observed, "-o", color=BLACK, markersize=4, label="as observed")
    axes.plot(times, predicted, "--s", color=BLUE, markersize=4, label="predicted under the changes")
    if low and high:
        label = "range of the models' predictions"
        axes.fill_between(times, low, high, color=BLUE, alpha=0.2, linewidth=0, label=label)
    axes.set_ylabel(words.level)


def _draw_variable(axes: Axes, decision: Decided, name: str, words: Wording) -> None:
    """A variable that the outcome is made of, as observed and as predicted."""
    course = _variables(decision).get(name) or {}
    for key, style, marker, colour in (("observed", "-", "o", BLACK), ("predicted", "--", "s", BLUE)):
        values = course.get(key) or ()
        axes.plot(
            range(words.start, words.start + len(values)),
            values,
            style,
            marker=marker,
            color=colour,
            markersize=3,
        )
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.set_ylabel(_wrapped(with_unit(name, words.units.get(name, ""))))


def _variables(decision: Decided) -> Mapping[str, Any]:
    return decision["trajectory"].get("variables") or {}


def _doses(axes: Axes, decision: Decided, coordinate: int, dose: Dose, start: int) -> None:
    """One coordinate of the actions, observed and recommended, as steps."""
    for key, style, marker, colour in (("observed_doses", "-", "o", BLACK), ("doses", "--", "s", BLUE)):
        values = [row[coordinate] for row in _trajectory_list(decision, key) if coordinate < len(row)]
        times = range(start, start + len(values))
        axes.plot(times, values, style, marker=marker, color=colour, markersize=3, drawstyle="steps-post")
    if dose.levels:
        axes.set_yticks(range(len(dose.levels)), dose.levels)
        axes.set_ylim(-0.3, len(dose.levels) - 0.7)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.set_ylabel(_wrapped(with_unit(dose.name, dose.unit)))


def _wrapped(label: str) -> str:
    return textwrap.fill(label, LABEL, break_long_words=False)


def _shade_changes(axes: Axes, decision: Decided, start: int) -> None:
    for number, time in enumerate(changed(decision)):
        ends, label = (start + time - 0.35, start + time + 0.35), None if number else "changed action"
        axes.axvspan(*ends, color=ORANGE, alpha=0.25, linewidth=0, label=label)


def _trajectory_list(decision: Decided, key: str) -> list[Any]:
    return list(decision["trajectory"].get(key) or ())
