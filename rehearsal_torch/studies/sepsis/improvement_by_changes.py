"""What more changes buy: the average improvement against k.

Source: Tsirtsis and Gomez-Rodriguez (2023), Fig. 3a.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.reporting.style import panels
from rehearsal_torch.studies.sepsis.efficiency import series
from rehearsal_torch.studies.sepsis.episode_rows import Point


def draw(lines: Mapping[str, Sequence[Point]]) -> Figure:
    """A line a search; bars are 95% intervals of the mean over episodes, open markers lower bounds.

    Args:
        lines: Name of a search to its points along k.
    """
    figure, [[axes]] = panels()
    for index, (label, line) in enumerate(lines.items()):
        series(axes, line, [point.improvement.times(100) for point in line], label, index)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="Changed actions at most, k", ylabel="Average counterfactual improvement (%)")
    axes.legend()
    return figure
