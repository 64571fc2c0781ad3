"""Figure of a learnt surrogate: the reward along each action, nodes along an input, and the learnt noise.

The first panels show the expected reward along each action, the other actions as recommended; the others each
node's mean along one input, and beside it the learnt density of the node's noise with the noise that was
recovered from the trials. Bands are two epistemic standard deviations to either side: what is not known of
the mean, not the scatter of single trials. The true curves of a simulated world are dashed, the
recommendation is a vertical line. Trials whose other settings are far from the curve's are pale, and may lie
outside the panel, whose range is that of the curves and of the near ones.

With more than 12 actions, those along which the learnt reward changes most are shown.

Source: Ren et al. (2024, version 4), Fig. 13; the panels along actions and of the noise are ours.
"""

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rehearsal_torch.evaluation.rehearsal_rows import number
from rehearsal_torch.evaluation.surrogate_curves import (
    CHOSEN,
    FAR,
    LEARNT,
    NEAR,
    NODE,
    NOISE,
    REWARD,
    TRUE,
)
from rehearsal_torch.reporting.style import BLACK, BLUE, GREEN, VERMILION
from rehearsal_torch.spaces.box import setting_text

Rows = Sequence[Mapping[str, str]]
MOST_ACTIONS = 12
# Inches of a panel; columns of the grid.
WIDTH, HEIGHT, GRID = 3.4, 3.0, 4
# Curves of at most so many points are levels, shown as points.
FEW = 20
# Characters of a label's line.
BROAD = 30
# Larger numbers are not drawn: squares of them overflow.
LARGEST = 1e150


def figures(rows: Rows) -> dict[str, Figure]:
    """The figure; empty if a run has no curves. To be called within `drawing`.

    Args:
        rows: Rows of ``surrogate.csv``: panel, name, along, series, x, value, std.
    """
    panels: dict[tuple[str, str, str], list[Mapping[str, str]]] = {}
    for row in rows:
        panels.setdefault((row["panel"], row["name"], row["along"]), []).append(row)
    actions = {
        key[2]: found for key, found in panels.items() if key[0] == REWARD and len(_columns(found, LEARNT)[0])
    }
    if not actions:
        return {}
    shown = sorted(actions, key=lambda name: -_change(actions[name]))[:MOST_ACTIONS]
    names = [name for name in actions if name in shown]
    curves = {key[1]: (key[2], found) for key, found in panels.items() if key[0] == NODE}
    noises = {key[1]: found for key, found in panels.items() if key[0] == NOISE}
    nodes = list(dict.fromkeys(key[1] for key in panels if key[0] in (NODE, NOISE)))
    # Actions have lines of their own; a node's curve and its noise stand beside each other.
    cells = len(curves) + len(noises)
    above, below = -(-len(names) // GRID), -(-cells // GRID)
    across = min(GRID, max(len(names), cells))
    figure = Figure(figsize=(WIDTH * across, HEIGHT * (above + below) + 0.9), layout="constrained")
    grid = figure.add_gridspec(above + below, across)
    for place, name in enumerate(names):
        axes = figure.add_subplot(grid[place // GRID, place % GRID])
        _mean(axes, actions[name], name, "Expected reward", f"Reward along {name}")
    place = above * GRID
    for node in nodes:
        if node in curves:
            along, found = curves[node]
            axes = figure.add_subplot(grid[place // GRID, place % GRID])
            _mean(axes, found, along, f"Mean of {node}", f"{node} along {along}")
            place += 1
        if node in noises:
            axes = figure.add_subplot(grid[place // GRID, place % GRID])
            _density(axes, noises[node], node)
            place += 1
    handles: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=across)
    figure.suptitle(_heading(actions, names), fontsize=11)
    return {"surrogate": figure}


def _mean(axes: Axes, rows: Rows, along: str, label: str, title: str) -> None:
    """A learnt mean with its band, the true one, the recommendation and the trials."""
    x, mean, std = _columns(rows, LEARNT)
    low, high = mean - 2 * std, mean + 2 * std
    axes.fill_between(
        x, low, high, color=BLUE, alpha=0.2, linewidth=0, label="two standard deviations of the mean"
    )
    # Levels are points: between them nothing can be set.
    axes.plot(x, mean, color=BLUE, marker="o" if len(x) <= FEW else None, label="learnt mean")
    where, true, _ = _columns(rows, TRUE)
    if len(where):
        axes.plot(where, true, color=BLACK, linestyle="--", linewidth=1.1, label="true mean")
    near, far = _columns(rows, NEAR), _columns(rows, FAR)
    for (at, value, _), size, alpha, words in (
        (far, 6, 0.3, "trial elsewhere"),
        (near, 7, 1.0, "trial near these settings"),
    ):
        if len(at):
            axes.plot(
                at, value, ".", color=VERMILION, alpha=alpha, markersize=size, zorder=1.5 + alpha, label=words
            )
    for place in _columns(rows, CHOSEN)[0]:
        axes.axvline(place, color=GREEN, linestyle=":", linewidth=1.6, label="recommended")
    seen = np.concatenate([low, high, true, near[1]])
    seen = seen[np.isfinite(seen)] if np.isfinite(seen).any() else np.zeros(1)
    room = 0.05 * max(float(np.ptp(seen)), 1e-12)
    axes.set_ylim(float(seen.min()) - room, float(seen.max()) + room)
    axes.set(xlabel=_words(along), ylabel=_words(label), title=_words(title))


def _density(axes: Axes, rows: Rows, node: str) -> None:
    """The learnt density of the noise over the noise recovered from the trials, and the true density."""
    recovered = _columns(rows, NEAR)[0]
    if len(recovered):
        bins = int(np.clip(2 * len(recovered) ** 0.5, 5, 30))
        axes.hist(recovered, bins, density=True, color=VERMILION, alpha=0.35, label="recovered from trials")
    for series, colour, dash, label in (
        (LEARNT, BLUE, "-", "learnt density"),
        (TRUE, BLACK, "--", "true density"),
    ):
        x, density, _ = _columns(rows, series)
        if len(x):
            axes.plot(
                x, density, color=colour, linestyle=dash, linewidth=1.1 if dash == "--" else 1.6, label=label
            )
    axes.set(xlabel="Noise (standard deviations)", ylabel="Density", title=_words(f"Noise of {node}"))


def _columns(rows: Rows, series: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, value and std of a series, (n,) each; NaN where empty, or too large to draw."""
    numbers = [[number(row[key]) for key in ("x", "value", "std")] for row in rows if row["series"] == series]
    cells = np.array(numbers, dtype=float).reshape(-1, 3)
    x, value, std = np.where(np.abs(cells) < LARGEST, cells, np.nan).T
    kept = np.isfinite(x)
    return x[kept], value[kept], std[kept]


def _words(text: str) -> str:
    """A label in lines that fit a panel; a dollar sign is one, not the start of a formula."""
    return fill(text, BROAD).replace("$", r"\$")


def _change(rows: Rows) -> float:
    """How much the learnt mean changes along an action."""
    return float(np.ptp(_columns(rows, LEARNT)[1]))


def _heading(actions: Mapping[str, Rows], names: Sequence[str]) -> str:
    chosen = {name: _columns(found, CHOSEN)[0] for name, found in actions.items()}
    text = ", ".join(
        f"{name} {setting_text(float(place[0]))}" for name, place in chosen.items() if len(place)
    )
    more = f" ({len(names)} of {len(actions)} actions shown)" if len(names) < len(actions) else ""
    return fill(f"What was learnt, at the recommended settings{more}: {text}", 120).replace("$", r"\$")
