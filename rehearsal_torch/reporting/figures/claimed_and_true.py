"""Figure: improvements claimed by the model against the true ones.

For simulated data, the true mechanism gives the outcome of each recommended sequence. A point on the diagonal
is a claim that holds; below it, the claim is larger than the true improvement.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from rehearsal_torch.reporting.style import diagonal, legend_below, panels, point_style

LONG = 20


def draw(groups: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """One point per unit.

    Args:
        groups: Label to the claimed and the true relative improvements, as fractions, (n,) each.
    """
    figure, [[axes]] = panels(width=4.8, height=4.8)
    for index, (label, (claimed, true)) in enumerate(groups.items()):
        x, y = 100 * np.asarray(claimed), 100 * np.asarray(true)
        # A long name has a line of its own: the legend is as wide as the figure.
        end = "\n" if len(label) > LONG else " "
        shown = f"{label}:{end}mean predicted {x.mean():.1f}%, true {y.mean():.1f}%"
        axes.plot(x, y, **point_style(index), markersize=4, alpha=0.7, label=shown)
    diagonal(axes, "prediction = truth")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="Improvement predicted by the model (%)", ylabel="True improvement (%)")
    legend_below(figure)
    return figure
