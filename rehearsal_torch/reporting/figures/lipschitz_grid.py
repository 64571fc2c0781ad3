"""Figure: decrease of the held-out log-likelihood under Lipschitz constraints, over a grid of constants.

Each cell is the percentage by which the mean held-out log-likelihood l of a constrained model lies below that
of the unconstrained one, l_0: 100 (l_0 - l) / |l_0|.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 and Fig. 6.
"""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from rehearsal_torch.reporting.style import panels


def draw(decrease: Mapping[tuple[float, float], float]) -> Figure:
    """A heat map with the numbers in its cells.

    Args:
        decrease: (L_h, L_phi) to the decrease in percent; cells may be missing.
    """
    across, up = sorted({cell[0] for cell in decrease}), sorted({cell[1] for cell in decrease})
    values = np.array([[decrease.get((x, y), np.nan) for x in across] for y in up])
    figure, [[axes]] = panels(width=max(5.0, 1.5 + 0.62 * len(across)), height=max(3.4, 1.2 + 0.5 * len(up)))
    image = axes.imshow(values, origin="lower", cmap="cividis_r", aspect="auto")
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    for row, column in np.argwhere(np.isfinite(values)):
        number = values[row, column]
        colour = "white" if number > middle else "black"
        axes.text(
            column,
            row,
            f"{number:.1f}" if abs(number) < 100 else f"{number:.0f}",
            ha="center",
            va="center",
            fontsize=8,
            color=colour,
        )
    axes.set_xticks(range(len(across)), [f"{x:g}" for x in across])
    axes.set_yticks(range(len(up)), [f"{y:g}" for y in up])
    axes.grid(visible=False)
    axes.set(
        xlabel="Lipschitz constant of the location, $L_h$",
        ylabel="Lipschitz constant of the scale, $L_\\phi$",
    )
    figure.colorbar(image, label="Decrease of held-out log-likelihood (%)")
    return figure
