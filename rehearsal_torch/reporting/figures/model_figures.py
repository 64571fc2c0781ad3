"""Figures of what was learnt: training, Lipschitz constants, recovered noise, surrogates; call in `drawing`.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 and Fig. 6 (Lipschitz constants); Ren et al. (2025),
Thm. 4.1 (recovered noise); Ren et al. (2024, version 4), Fig. 13 (nodes along an input).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.data.trainable_part import in_words
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.surrogate_curves import CHOSEN, FAR, LEARNT, NEAR, NODE, NOISE, REWARD, TRUE
from rehearsal_torch.reporting.figure_style import (
    BLACK,
    BLUE,
    GREEN,
    VERMILION,
    legend_below,
    panel_list,
    panels,
)
from rehearsal_torch.reporting.trial_report import PARTS
from rehearsal_torch.spaces.box import setting_text

Rows = Sequence[Mapping[str, str]]
Draw = Callable[[Axes], None]
TRAIN, HELD_OUT = "train_loss", "held_out_loss"
# Parts of a model whose training is drawn, at most.
MOST_PARTS = 12


def trained_parts(metrics: Mapping[str, Sequence[tuple[float, float]]]) -> list[str]:
    """The parts of a model with training losses among the metrics, named by the prefix of the loss."""
    losses = [name for name in metrics if name == TRAIN or name.endswith(f"/{TRAIN}")]
    return [name.removesuffix(TRAIN).rstrip("/") for name in losses]


def draw_training(
    metrics: Mapping[str, Sequence[tuple[float, float]]], parts: Sequence[str], subjects: str = "patients"
) -> Figure:
    """The loss of each epoch on the training and the held-out rows, a panel for each of the first
    `MOST_PARTS` parts (`trained_parts`); `metrics` holds (epoch, value) by name.
    """
    shown = parts[:MOST_PARTS]
    figure, panel_axes = panel_list(len(shown), 2)
    for axes, part in zip(panel_axes, shown, strict=True):
        prefix = f"{part}/" if part else ""
        held_out = list(metrics.get(prefix + HELD_OUT, ()))
        for points, label, colour, dash in (
            (list(metrics.get(prefix + TRAIN, ())), f"training {subjects}", BLUE, "-"),
            (held_out, f"held-out {subjects}", VERMILION, "--"),
        ):
            if points:
                epochs, values = [step + 1 for step, _ in points], [value for _, value in points]
                axes.plot(epochs, values, dash, color=colour, label=label)
        if held_out:
            step, value = min(held_out, key=lambda point: point[1])
            label = f"best: {value:.3f} (epoch {step + 1:.0f})"
            axes.plot([step + 1], [value], "o", color=VERMILION, label=label)
        ylabel = "Loss: negative log-likelihood\nfor each row"
        axes.set(xlabel="Epoch", ylabel=ylabel, title=f"Training of {in_words(part)}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend()
    return figure


def draw_lipschitz(decrease: Mapping[tuple[float, float], float]) -> Figure:
    """Heat map of the decrease of the held-out log-likelihood under Lipschitz constraints, by (L_h, L_phi): a
    cell is 100 (l_0 - l) / |l_0|, for the mean l of a constrained model and l_0 of the unconstrained one.
    """
    l_h, l_phi = sorted({cell[0] for cell in decrease}), sorted({cell[1] for cell in decrease})
    values = np.array([[decrease.get((x, y), np.nan) for x in l_h] for y in l_phi])
    figure, [[axes]] = panels(width=max(5.0, 1.5 + 0.62 * len(l_h)), height=max(3.4, 1.2 + 0.5 * len(l_phi)))
    image = axes.imshow(values, origin="lower", cmap="cividis_r", aspect="auto")
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    for row, column in np.argwhere(np.isfinite(values)):
        value = values[row, column]
        text = f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"
        colour = "white" if value > middle else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(range(len(l_h)), [f"{x:g}" for x in l_h])
    axes.set_yticks(range(len(l_phi)), [f"{y:g}" for y in l_phi])
    axes.grid(visible=False)
    axes.set(
        xlabel="Lipschitz constant of the location, $L_h$",
        ylabel="Lipschitz constant of the scale, $L_\\phi$",
    )
    figure.colorbar(image, label="Decrease of held-out log-likelihood (%)")
    return figure


def draw_recovered(rows: Rows) -> dict[str, Figure]:
    """Recovered noise against the identifiable part f_c(u) of the true noise, standardised and up to sign,
    one panel per node: on the rows that the model was fitted to, and on held-out ones. Empty without points.
    """
    points = [row for row in rows if row.get("quantity") == "noise"]
    nodes = list(dict.fromkeys(row["node"] for row in points))
    if not nodes:
        return {}
    figure, panel_axes = panel_list(len(nodes), 3, width=3.6, height=3.4)
    for axes, node in zip(panel_axes, nodes, strict=True):
        for part, colour, marker in (("fitted", BLUE, "o"), ("held out", VERMILION, "^")):
            part_points = [row for row in points if (row["node"], row["part"]) == (node, part)]
            true, recovered = ([number(row[key]) for row in part_points] for key in ("true", "value"))
            axes.plot(true, recovered, marker, color=colour, markersize=3, label=PARTS[part])
        axes.axline((0, 0), slope=1, color=BLACK, linewidth=0.8, label="recovered exactly")
        axes.set(xlabel="True noise (standardised)", ylabel="Noise recovered by the model", title=node)
    legend_below(figure)
    return {"recovered": figure}


MOST_ACTIONS = 12
# Inches of a panel; panels of a line, at most.
WIDTH, HEIGHT, GRID = 3.4, 3.0, 4
# Points of a curve of levels, at most.
FEW = 20
# Characters of a label's line, and of the heading for each panel of a line; entries of the legend, at most.
BROAD, HEADING, LABELS = 30, 36, 10
# Larger numbers are not drawn: squares of them overflow.
LARGEST = 1e150


def draw_surrogate(rows: Rows) -> dict[str, Figure]:
    """A learnt surrogate (rows of ``surrogate.csv``): the reward along each action, nodes along an input,
    noise; empty without curves.

    The first panels show the expected reward along each action, the other actions as recommended, of the
    `MOST_ACTIONS` along which it changes most; the others each node's mean along one input, and beside it the
    learnt density of the node's noise with the noise that was recovered from the trials. Bands are two
    epistemic standard deviations to either side: what is not known of the mean, not the scatter of single
    trials. The true curves of a simulated world are dashed, the recommendation is a vertical line. Trials
    whose other settings are far from the curve's are pale; where they lie beyond the panel, whose range is
    that of the curves and of the near ones, triangles at its edge stand for them. All panels are of one size,
    with few empty places.
    """
    by_panel: dict[tuple[str, str, str], list[Mapping[str, str]]] = {}
    for row in rows:
        by_panel.setdefault((row["panel"], row["name"], row["along"]), []).append(row)
    drawable = {key: panel_rows for key, panel_rows in by_panel.items() if _is_drawable(panel_rows)}
    actions = {key[2]: panel_rows for key, panel_rows in drawable.items() if key[0] == REWARD}
    if not actions:
        return {}
    shown = sorted(actions, key=lambda name: -np.ptp(_columns(actions[name], LEARNT)[1]))[:MOST_ACTIONS]
    names = [name for name in actions if name in shown]
    rewards = [
        partial(_curve, rows=actions[name], along=name, label="Expected reward", title=f"Reward along {name}")
        for name in names
    ]
    nodes: dict[str, list[Draw]] = {key[1]: [] for key in drawable if key[0] in (NODE, NOISE)}
    for (panel, node, along), panel_rows in drawable.items():
        if panel == NODE:
            title = f"{node} along {along}"
            nodes[node].insert(
                0, partial(_curve, rows=panel_rows, along=along, label=f"Mean of {node}", title=title)
            )
        elif panel == NOISE:
            nodes[node].append(partial(_density_panel, rows=panel_rows, node=node))
    lines = _lines([*([reward] for reward in rewards), *nodes.values()])
    across = max(map(len, lines))
    legend_height = 0.3 + 0.2 * -(-LABELS // across)
    figure = Figure(figsize=(WIDTH * across, HEIGHT * len(lines) + legend_height), layout="constrained")
    grid = figure.add_gridspec(len(lines), across)
    for level, line in enumerate(lines):
        for position, draw in enumerate(line):
            draw(figure.add_subplot(grid[level, position]))
    legend_below(figure, across)
    figure.suptitle(_heading(actions, names, min(HEADING * across, 120)), fontsize=11)
    return {"surrogate": figure}


def _lines(groups: Sequence[Sequence[Draw]]) -> list[list[Draw]]:
    """The panels line by line, those of a group together, with few empty places in a broad figure."""
    best = _fill_lines(groups, GRID)
    for across in range(GRID - 1, max(map(len, groups)) - 1, -1):
        lines = _fill_lines(groups, across)
        if len(lines) <= across + 1 and _empty_places(lines) < _empty_places(best):
            best = lines
    return best


def _fill_lines(groups: Sequence[Sequence[Draw]], across: int) -> list[list[Draw]]:
    lines: list[list[Draw]] = [[]]
    for group in groups:
        if len(lines[-1]) + len(group) > across:
            lines.append([])
        lines[-1] += group
    return lines


def _empty_places(lines: Sequence[Sequence[Draw]]) -> int:
    widest = max(map(len, lines))
    return sum(widest - len(line) for line in lines)


def _is_drawable(rows: Rows) -> bool:
    """Whether there is something to draw: a finite number that was learnt, or noise from trials."""
    trials = any(row["panel"] == NOISE for row in rows) and len(_columns(rows, NEAR)[0]) > 0
    return trials or bool(np.isfinite(_columns(rows, LEARNT)[1]).any())


def _curve(axes: Axes, rows: Rows, along: str, label: str, title: str) -> None:
    """A learnt mean with its band, the true one, the recommendation and the trials."""
    x, mean, std = _columns(rows, LEARNT)
    low, high = mean - 2 * std, mean + 2 * std
    text = "two standard deviations of the mean"
    # Levels are points: between them nothing can be set.
    has_levels = len(x) <= FEW
    if has_levels:
        axes.vlines(x, low, high, color=BLUE, alpha=0.3, linewidth=5, label=text)
    else:
        axes.fill_between(x, low, high, color=BLUE, alpha=0.2, linewidth=0, label=text)
    line, marker = ("none", "o") if has_levels else ("-", None)
    axes.plot(x, mean, color=BLUE, linestyle=line, marker=marker, label="learnt mean")
    true_x, true, _ = _columns(rows, TRUE)
    if len(true_x):
        style: dict[str, Any] = (
            {"linestyle": "none", "marker": "x"} if has_levels else {"linestyle": "--", "linewidth": 1.1}
        )
        axes.plot(true_x, true, color=BLACK, label="true mean", **style)
    near, far = _columns(rows, NEAR), _columns(rows, FAR)
    heights = np.concatenate([low, high, true, near[1]])
    heights = heights[np.isfinite(heights)] if np.isfinite(heights).any() else np.zeros(1)
    margin = 0.05 * max(float(np.ptp(heights)), 1e-12)
    bottom, top = float(heights.min()) - margin, float(heights.max()) + margin
    points: dict[str, Any] = {"linestyle": "none", "color": VERMILION}
    if len(far[0]):
        inside = (bottom <= far[1]) & (far[1] <= top)
        axes.plot(far[0][inside], far[1][inside], ".", alpha=0.3, label="trial elsewhere", **points)
        for beyond, edge, sign in ((far[1] > top, top, "^"), (far[1] < bottom, bottom, "v")):
            if beyond.any():
                edges, text = np.full(beyond.sum(), edge), "beyond this range"
                axes.plot(far[0][beyond], edges, sign, markersize=4, label=text, **points)
    if len(near[0]):
        axes.plot(
            near[0], near[1], ".", markersize=7, zorder=2.5, label="trial near these settings", **points
        )
    for action in _columns(rows, CHOSEN)[0]:
        axes.axvline(action, color=GREEN, linestyle=":", linewidth=1.6, label="recommended")
    axes.set_ylim(bottom, top)
    axes.set(xlabel=_label(along), ylabel=_label(label), title=_label(title))


def _density_panel(axes: Axes, rows: Rows, node: str) -> None:
    """The learnt density of the noise over the noise recovered from the trials, and the true density."""
    recovered = _columns(rows, NEAR)[0]
    if len(recovered):
        bins = int(np.clip(2 * len(recovered) ** 0.5, 5, 30))
        axes.hist(recovered, bins, density=True, color=VERMILION, alpha=0.35, label="recovered from trials")
    for series, colour, dash, width, label in (
        (LEARNT, BLUE, "-", 1.6, "learnt density"),
        (TRUE, BLACK, "--", 1.1, "true density"),
    ):
        x, density, _ = _columns(rows, series)
        if len(x):
            axes.plot(x, density, color=colour, linestyle=dash, linewidth=width, label=label)
    axes.set(xlabel="Noise (standard deviations)", ylabel="Density", title=_label(f"Noise of {node}"))


def _columns(rows: Rows, series: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, value and std of a series, (n,) each; NaN where empty, or too large to draw."""
    numbers = [[number(row[key]) for key in ("x", "value", "std")] for row in rows if row["series"] == series]
    cells = np.array(numbers, dtype=float).reshape(-1, 3)
    x, value, std = np.where(np.abs(cells) < LARGEST, cells, np.nan).T
    mask = np.isfinite(x)
    return x[mask], value[mask], std[mask]


def _label(text: str) -> str:
    """A label in lines that fit a panel; dollar signs are escaped, which start a formula."""
    return fill(text, BROAD).replace("$", r"\$")


def _heading(actions: Mapping[str, Rows], names: Sequence[str], width: int) -> str:
    recommended = {name: _columns(rows, CHOSEN)[0] for name, rows in actions.items()}
    text = ", ".join(f"{name} {setting_text(float(x[0]))}" for name, x in recommended.items() if len(x))
    more = f" ({len(names)} of {len(actions)} actions shown)" if len(names) < len(actions) else ""
    return fill(f"What was learnt, at the recommended settings{more}: {text}", width).replace("$", r"\$")
