"""Figure: nominal against actual coverage of intervals (calibration of intervals).

One line per method through the levels of its intervals. On the diagonal, as many intervals hold the truth as
they say; below it they are too narrow, above it too wide.

Source: Dawid (1982) (calibration).
"""

from collections.abc import Mapping

from matplotlib.figure import Figure

from rehearsal_torch.reporting.figure_style import COLOURS, MARKERS, diagonal, panels


def draw(groups: Mapping[str, Mapping[int, float]]) -> Figure:
    """One line per label; to be called within `drawing`.

    Args:
        groups: Label to nominal level in percent to the share of the intervals that hold the truth.
    """
    figure, [[axes]] = panels(width=5.2, height=4.8)
    for index, (label, shares) in enumerate(groups.items()):
        levels = sorted(shares)
        axes.plot(
            levels,
            [100 * shares[level] for level in levels],
            f"-{MARKERS[index % len(MARKERS)]}",
            color=COLOURS[index % len(COLOURS)],
            markersize=5,
            label=label,
        )
    axes.set(
        xlabel="Nominal coverage (%)",
        ylabel="Intervals that hold the truth (%)",
        xlim=(0, 102),
        ylim=(0, 102),
    )
    diagonal(axes, "as stated")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
