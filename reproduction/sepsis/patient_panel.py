"""Figure: one unit's observed trajectory, and the counterfactual one under the changed actions.

The observed trajectory is solid, the counterfactual one dashed, within the range of the predictions of an
ensemble's models. At each changed step an arrow for each dose
that differs points up (a higher dose, or a later level) or down.

Source: Tsirtsis and Gomez-Rodriguez (2023), Fig. 3c.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.evaluation.run_record import Decided
from rehearsal_torch.reporting.figure_style import BLACK, BLUE, PURPLE, VERMILION, panels
from rehearsal_torch.reporting.labels import Wording

_COLOURS = (VERMILION, BLUE, PURPLE)


def changed(decided: Decided) -> list[tuple[int, int, bool]]:
    """(time, dose number, raised) for every dose that differs from the observed one."""
    found: list[tuple[int, int, bool]] = []
    for time, (new, old) in enumerate(
        zip(decided["trajectory"]["doses"], decided["trajectory"]["observed_doses"], strict=True)
    ):
        found.extend(
            (time, index, after > before)
            for index, (after, before) in enumerate(zip(new, old, strict=True))
            if after != before
        )
    return found


def _band(decided: Decided, words: Wording) -> list[list[float]]:
    """The smallest and the largest prediction of an ensemble's models at each step; empty for one model."""
    ends = [decided["trajectory"].get(key) for key in ("rewards_lower", "rewards_upper")]
    return [[words.sign * value for value in end] for end in ends if end is not None]


def draw(decided: Decided, words: Wording) -> Figure:
    """The observed and the counterfactual trajectory of one sequence decision."""
    figure, [[axes]] = panels(width=6.2, height=4.0)
    draw_into(axes, decided, words)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def draw_into(axes: Axes, decided: Decided, words: Wording) -> None:
    """Draws into given axes, without a legend; to be called within `drawing`.

    Args:
        axes: Where to draw.
        decided: The ``identity`` of the unit and the ``trajectory`` of its decision.
        words: Names and units.
    """
    observed, replayed = (
        [words.sign * value for value in decided["trajectory"][key]]
        for key in ("observed_rewards", "rewards")
    )
    times = range(len(observed))
    axes.plot(times, observed, "-o", color=BLACK, markersize=4, label="observed")
    axes.plot(times, replayed, "--s", color=BLUE, markersize=4, label="counterfactual")
    band = _band(decided, words)
    if band:
        axes.fill_between(
            times, band[0], band[1], color=BLUE, alpha=0.15, linewidth=0, label="range of the models"
        )
    every = [value for line in (observed, replayed, *band) for value in line]
    low, high = min(every), max(every)
    height = max(high - low, 1e-9)
    stacked: dict[int, int] = {}
    for time, index, raised in changed(decided):
        row = stacked[time] = stacked.get(time, 0) + 1
        base, colour = low - height * 0.17 * row, _COLOURS[index % len(_COLOURS)]
        tail, head = (
            (base - 0.06 * height, base + 0.06 * height)
            if raised
            else (base + 0.06 * height, base - 0.06 * height)
        )
        axes.annotate(
            "",
            (time, head),
            (time, tail),
            arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.6},
        )
        axes.annotate(
            words.dose(index).letter,
            (time, base),
            (6, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            weight="bold",
        )
    axes.set_ylim(low - height * (0.1 + 0.17 * max(stacked.values(), default=0)), high + height * 0.1)
    for index in sorted({index for _, index, _ in changed(decided)}):
        dose = words.dose(index)
        axes.plot([], [], " ", label=f"{dose.letter}: {dose.name} changed (arrow up: {dose.upwards})")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    name, percent = (
        decided.get("identity", decided.get("index", "")),
        100 * decided["trajectory"]["improvement"],
    )
    axes.set(
        xlabel=words.time,
        ylabel=words.level,
        title=f"{words.subject.capitalize()} {name}: {percent:.1f}% better with at most "
        f"{decided['trajectory']['changes']} changed actions",
    )
