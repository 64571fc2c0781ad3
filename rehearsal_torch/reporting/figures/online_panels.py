"""Figure of online runs, round by round: successes, true probability, information gain and bounds.

A line is the mean over repeats, its band one standard deviation to either side. A single repeat has no band.
The last panel shows the mean ends of the bounds: that of the posterior mean and, if the certificate has it,
the wider one of the truth.

Source: Qin et al. (2023), Fig. 4.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rehearsal_torch.evaluation.online_rows import Row, by_repeat
from rehearsal_torch.reporting.style import BLACK, COLOURS, legend_below, line_style, panels

Groups = Mapping[str, Sequence[Row]]


def draw(worlds: Mapping[str, Groups], bounded: Mapping[str, str] | None = None) -> Figure:
    """One row of four panels per world; to be called within `drawing`.

    Args:
        worlds: World to label (a method or a tau) to rows.
        bounded: World to the label whose bounds are shown; None for the first label that has bounds.
    """
    figure, grid = panels(len(worlds), 4, width=4.0, height=3.2)
    # A label has the same colour and dash in every world.
    labels = list(dict.fromkeys(label for groups in worlds.values() for label in groups))
    for line, (world, groups) in zip(grid, worlds.items(), strict=True):
        _world(line, world, groups, (bounded or {}).get(world), labels)
    legend_below(figure, len(labels) + 1, [axes for line in grid for axes in line[:2]])
    return figure


def by_round(
    rows: Sequence[Row], key: str, *, summed: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and standard deviation over repeats, for each of the rounds that all repeats have.

    Args:
        rows: The rows of one label.
        key: Name of the column.
        summed: Whether to sum cumulatively over rounds first.

    Returns:
        Rounds, means, standard deviations (0 for one repeat), (n,) each.
    """
    repeats = list(by_repeat(rows).values())
    length = min(len(repeat) for repeat in repeats)
    values = np.array([[row[key] for row in repeat[:length]] for repeat in repeats], dtype=float)
    values = values.cumsum(-1) if summed else values
    return (
        np.arange(1, length + 1),
        values.mean(0),
        values.std(0, ddof=1) if len(values) > 1 else np.zeros(length),
    )


def _world(
    line: Sequence[Axes], world: str, groups: Groups, bounded: str | None, labels: Sequence[str]
) -> None:
    panels_ = (
        ("success", "Successes so far", True),
        ("p_true", "True probability of success", False),
        ("information", "Expected information gain", False),
    )
    for axes, (key, label, summed) in zip(line, panels_, strict=False):
        for name, rows in groups.items():
            rounds, means, stds = by_round(rows, key, summed=summed)
            if np.isnan(means).all():
                continue
            style = line_style(labels.index(name))
            axes.plot(rounds, means, **style, label=name)
            axes.fill_between(
                rounds, means - stds, means + stds, color=style["color"], alpha=0.15, linewidth=0
            )
        axes.set(xlabel="Round", ylabel=label, title=world.replace("_", " "))
    every = [row for rows in groups.values() for row in rows]
    rounds, best, _ = by_round(next(iter(groups.values())), "oracle")
    line[0].plot(rounds, best.cumsum(), color=BLACK, linewidth=1.0, label="best possible")
    line[1].plot(rounds, best, color=BLACK, linewidth=1.0)
    line[1].set_ylim(-0.02, 1.02)
    if all(np.isnan(row["information"]) for row in every):
        line[2].set_visible(False)
    _bounds(line[3], groups, bounded)


def _bounds(axes: Axes, groups: Groups, bounded: str | None) -> None:
    known = [name for name, rows in groups.items() if not np.isnan(by_round(rows, "lower")[1]).all()]
    name = bounded if bounded in known else next(iter(known), None)
    if name is None:
        axes.set_visible(False)
        return
    rows = groups[name]
    rounds, true, _ = by_round(rows, "p_true")
    bands = {("lower", "upper"): ("bound", COLOURS[0])}
    if all("truth_lower" in row for row in rows):
        bands = {
            ("truth_lower", "truth_upper"): ("bound of the truth", COLOURS[2]),
            ("lower", "upper"): ("bound of the posterior mean", COLOURS[0]),
        }
    for ends, (label, colour) in bands.items():
        lower, upper = (by_round(rows, end)[1] for end in ends)
        axes.fill_between(rounds, lower, upper, color=colour, alpha=0.25, linewidth=0, label=label)
    axes.plot(rounds, true, color=COLOURS[1], label="truth")
    axes.set(xlabel="Round", ylabel="Probability of success", ylim=(-0.02, 1.02), title=f"Bounds, {name}")
    axes.legend(loc="lower right")
