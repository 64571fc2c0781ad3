"""Figure: distribution of the counterfactual improvement over units.

The counterfactual improvement of an episode is the relative gain of its outcome, (o' - o) / |o|; for
cumulative SOFA it is the relative decrease.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 and Fig. 3b.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.reporting.style import COLOURS, legend_below, line_style, panels
from rehearsal_torch.reporting.wording import Wording


def draw(groups: Mapping[str, Sequence[float]], words: Wording | None = None) -> Figure:
    """Histograms with dashed lines at the medians.

    Args:
        groups: Label to improvements, as fractions, (n,); a single group is filled, several are outlined.
        words: What the units of the episodes are called; None for patients.
    """
    figure, [[axes]] = panels()
    shown = {
        label: 100 * np.asarray(values, dtype=np.float64) for label, values in groups.items() if len(values)
    }
    edges = np.histogram_bin_edges(np.concatenate(list(shown.values())), bins=24).tolist()
    for index, (label, percent) in enumerate(shown.items()):
        colour, median = COLOURS[index % len(COLOURS)], float(np.median(percent))
        if len(shown) == 1:
            axes.hist(percent, edges, color=colour, alpha=0.75, edgecolor="white")
        else:
            axes.hist(percent, edges, histtype="step", linewidth=1.6, **line_style(index))
        axes.axvline(
            median,
            color=colour if len(shown) > 1 else "black",
            linestyle="--",
            label=f"{label}: median {median:.1f}% (n = {len(percent)})",
        )
    axes.set(
        xlabel="Improvement predicted by the model (%)", ylabel=(words or Wording()).subjects.capitalize()
    )
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(figure)
    return figure
