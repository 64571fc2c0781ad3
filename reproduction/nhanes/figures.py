"""Figures: marginal distributions and correlations of a generator and of the data it was fitted to.

Source: Du et al. (2026), Fig. 10.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rehearsal_torch.reporting.figure_style import BLUE, ORANGE, panels

Array = NDArray[np.float64]
_COLUMNS = 4
_BINS = 30


def marginals(names: Sequence[str], real: Array, generated: Array, bounds: Mapping[str, float]) -> Figure:
    """One histogram per variable, real data filled and generated data outlined; to be called within
    `drawing`.

    Args:
        names: The d variables.
        real: (n, d), the real data.
        generated: (m, d), the generated data.
        bounds: Variable to the bound that is marked.
    """
    rows = -(-len(names) // _COLUMNS)
    figure, grid = panels(rows, _COLUMNS, width=3.2, height=2.3)
    for place, axes in enumerate(axes for line in grid for axes in line):
        if place >= len(names):
            axes.set_visible(False)
            continue
        name, both = names[place], (real[:, place], generated[:, place])
        # The largest 0.5% are left out: they would compress the rest.
        lower, upper = np.quantile(np.concatenate(both), [0.0, 0.995])
        kinds = np.unique(real[:, place])
        edges = (
            np.append(kinds, kinds[-1] + 1) - 0.5
            if len(kinds) < _BINS // 2
            else np.linspace(lower, upper, _BINS + 1)
        )
        axes.hist(both[0], edges.tolist(), density=True, color=BLUE, alpha=0.5, label="participants")
        axes.hist(
            both[1],
            edges.tolist(),
            density=True,
            histtype="step",
            color=ORANGE,
            linewidth=1.8,
            label="generated",
        )
        if name in bounds:
            axes.axvline(bounds[name], color="black", linestyle="--", label="desired below")
        axes.set(title=name, yticks=[])
    shown = next((axes for line in grid for axes in line if axes.get_title() in bounds), grid[0][0])
    figure.legend(*shown.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def correlations(names: Sequence[str], real: Array, generated: Array) -> Figure:
    """Three heat maps of correlations, (d, d) each: participants, generated, and their difference; to be
    called within `drawing`.
    """
    figure, [line] = panels(1, 3, width=5.4, height=4.8)
    error = np.abs(generated - real).mean()
    titles = ("participants", "generated", f"generated minus participants (mean absolute error {error:.4f})")
    for place, (axes, title, matrix) in enumerate(
        zip(line, titles, (real, generated, generated - real), strict=True)
    ):
        image = axes.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
        axes.set(title=title, xticks=range(len(names)), yticks=range(len(names)))
        axes.set_xticklabels(names, rotation=90, fontsize=8)
        axes.set_yticklabels(names if place == 0 else [], fontsize=8)
        axes.grid(visible=False)
    figure.colorbar(image, ax=line, shrink=0.8, label="correlation")
    return figure
