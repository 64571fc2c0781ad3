"""Figure: the courses of a few units, as observed and as predicted under the changed actions.

One column for each unit: above, the outcome at each time step, observed, predicted, and within the range of
the predictions of an ensemble's models; below, what was done and what should have been done, a panel for each
coordinate of an action, with its levels or its unit. Time steps with a changed action are shaded. `chosen`
takes the units with the largest, the median and the smallest predicted improvement, and says so.

Source: Tsirtsis and Gomez-Rodriguez (2023), Fig. 3c, for the observed and the predicted course of one unit.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.reporting.style import BLACK, BLUE, ORANGE, legend_below
from rehearsal_torch.reporting.wording import Dose, Wording

WIDTH, OUTCOME, ACTION, MOST_ACTIONS, LONG = 4.6, 2.4, 1.3, 4, 40


def chosen(decided: Sequence[Decided]) -> list[tuple[str, Decided]]:
    """Why a unit is shown, and its decision: the largest predicted improvement, the lower median, and the
    smallest; each unit once. Equal improvements are in the order of the run.
    """
    ordered = sorted(decided, key=lambda decision: -float(decision["trajectory"]["improvement"]))
    ranks = {0: "largest", len(ordered) // 2: "median", len(ordered) - 1: "smallest"}
    names = {0: "largest"} if len(ordered) == 1 else {**ranks, 0: "largest"}
    if len(ordered) == 2:
        names = {0: "largest", 1: "smallest"}
    return [(why, ordered[rank]) for rank, why in sorted(names.items())]


def draw(shown: Sequence[tuple[str, Decided]], count: int, words: Wording) -> Figure:
    """The courses of some units; to be called within `drawing`.

    Args:
        shown: Why a unit is shown (`chosen`), and its sequence decision.
        count: The number of units that these were chosen from.
    """
    actions = min(max(len(_row(decision, "doses")) for _, decision in shown), MOST_ACTIONS)
    figure = Figure(figsize=(WIDTH * len(shown), OUTCOME + ACTION * actions + 1.1), layout="constrained")
    grid = figure.subplots(
        1 + actions, len(shown), squeeze=False, sharex="col", height_ratios=[OUTCOME, *[ACTION] * actions]
    )
    for column, (why, decision) in enumerate(shown):
        _outcome(grid[0, column], decision, words)
        for coordinate in range(actions):
            _action(grid[1 + coordinate, column], decision, coordinate, words.dose(coordinate), words.start)
        for axes in grid[:, column]:
            _shaded(axes, decision, words.start)
        grid[0, column].set_title(_title(why, decision, count, words))
        grid[-1, column].set_xlabel(words.time)
        grid[-1, column].xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(figure, min(len(shown), 2) + 1)
    return figure


def draw_into(axes: Axes, decision: Decided, words: Wording) -> None:
    """Draws the course of the outcome of one unit, with the changed steps shaded, into given axes; to be
    called within `drawing`.

    Args:
        decision: The ``identity`` of the unit and the ``trajectory`` of its decision.
    """
    _outcome(axes, decision, words)
    _shaded(axes, decision, words.start)
    axes.set(xlabel=words.time, title=_title("", decision, 1, words))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def changed(decision: Decided) -> list[int]:
    """The time steps at which an action differs from the observed one."""
    trajectory = decision["trajectory"]
    both = zip(trajectory["doses"], trajectory["observed_doses"], strict=True)
    return [time for time, (new, old) in enumerate(both) if new != old]


def _title(why: str, decision: Decided, count: int, words: Wording) -> str:
    percent = 100 * float(decision["trajectory"]["improvement"])
    how = "no change" if not changed(decision) else f"{percent:.1f}% better by the model"
    of = f"({why} improvement of {count} {words.episodes})" if count > 1 else ""
    name = words.titled(str(decision.get("identity", decision.get("index", ""))))
    # A long name has a line of its own: headings of columns stand beside each other.
    between = ": " if len(name) + len(how) < LONG else "\n"
    return f"{name}{between}{how}\n{of}".rstrip()


def _outcome(axes: Axes, decision: Decided, words: Wording) -> None:
    observed, predicted = (
        [words.sign * value for value in _list(decision, key)] for key in ("observed_rewards", "rewards")
    )
    times = range(words.start, words.start + len(observed))
    axes.plot(times, observed, "-o", color=BLACK, markersize=4, label="as observed")
    axes.plot(times, predicted, "--s", color=BLUE, markersize=4, label="predicted under the changes")
    ends = [
        [words.sign * value for value in _list(decision, key)] for key in ("rewards_lower", "rewards_upper")
    ]
    if all(ends):
        label = "range of the models' predictions"
        axes.fill_between(times, ends[0], ends[1], color=BLUE, alpha=0.2, linewidth=0, label=label)
    axes.set_ylabel(words.level)


def _action(axes: Axes, decision: Decided, coordinate: int, dose: Dose, start: int = 0) -> None:
    """One coordinate of the actions, observed and recommended, as steps."""
    for key, style, marker, colour in (("observed_doses", "-", "o", BLACK), ("doses", "--", "s", BLUE)):
        values = [row[coordinate] for row in _list(decision, key) if coordinate < len(row)]
        times = range(start, start + len(values))
        axes.plot(times, values, style, marker=marker, color=colour, markersize=3, drawstyle="steps-post")
    if dose.levels:
        axes.set_yticks(range(len(dose.levels)), dose.levels)
        axes.set_ylim(-0.3, len(dose.levels) - 0.7)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.set_ylabel(f"{dose.name}\n({dose.unit})" if dose.unit else dose.name)


def _shaded(axes: Axes, decision: Decided, start: int = 0) -> None:
    for number, time in enumerate(changed(decision)):
        label = None if number else "changed action"
        axes.axvspan(
            start + time - 0.35, start + time + 0.35, color=ORANGE, alpha=0.25, linewidth=0, label=label
        )


def _list(decision: Decided, key: str) -> list[Any]:
    return list(decision["trajectory"].get(key) or ())


def _row(decision: Decided, key: str) -> list[Any]:
    rows = _list(decision, key)
    return list(rows[0]) if rows else []
