"""Figure: improvements claimed by the model against the true ones.

For simulated data, the true mechanism gives the outcome of each recommended sequence. A point on the diagonal
is a claim that holds; below it, the claim is larger than the true improvement.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from rehearsal_torch.reporting.figures.outcomes import diagonal
from rehearsal_torch.reporting.style import COLOURS, MARKERS, panels


def draw(groups: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """One point per patient.

    Args:
        groups: Label to the claimed and the true relative improvements, as fractions, (n,) each.
    """
    figure, [[axes]] = panels(width=4.8, height=4.4)
    for index, (label, (claimed, true)) in enumerate(groups.items()):
        x, y = 100 * np.asarray(claimed), 100 * np.asarray(true)
        shown = f"{label}: mean claimed {x.mean():.2f}%, true {y.mean():.2f}%"
        axes.plot(
            x,
            y,
            MARKERS[index % len(MARKERS)],
            color=COLOURS[index % len(COLOURS)],
            markersize=4,
            alpha=0.7,
            label=shown,
        )
    diagonal(axes, "claim = truth")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(
        xlabel="Improvement claimed by the learnt model (%)",
        ylabel="Improvement under the true mechanism (%)",
    )
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center")
    return figure
