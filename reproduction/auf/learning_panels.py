"""Learning curves: the true probability of a desired outcome against the number of observations N.

One panel per world, with the mean over contexts and seeds, error bars of one standard deviation over seeds,
and the probabilities of the best possible alteration and of no action as references.
"""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from rehearsal_torch.evaluation.method_summaries import MethodSummary
from rehearsal_torch.reporting.figure_style import COLOURS, DASHES, MARKERS, panels

COLUMNS = 3


def draw(curves: Mapping[str, Mapping[int, MethodSummary]]) -> Figure:
    """One panel per world; to be called within `drawing`.

    Args:
        curves: World to N to summary.
    """
    columns = min(COLUMNS, len(curves))
    drawn, grid = panels(-(-len(curves) // columns), columns, width=4.0, height=3.0)
    places = [axes for line in grid for axes in line]
    for axes in places[len(curves) :]:
        axes.set_visible(False)
    for place, (axes, (world, curve)) in enumerate(zip(places, curves.items(), strict=False)):
        sizes = sorted(curve)
        some = [curve[size] for size in sizes]
        axes.errorbar(
            sizes,
            [one.auf.mean for one in some],
            np.nan_to_num([one.std for one in some]),
            color=COLOURS[0],
            marker=MARKERS[0],
            linestyle=DASHES[0],
            capsize=3,
            label="cme",
        )
        for values, dash, label in (
            ([one.oracle for one in some], "-", "best possible"),
            ([one.no_action for one in some], ":", "no action"),
        ):
            axes.plot(sizes, values, dash, color="black", linewidth=1.2, label=label)
        axes.set(title=world, xscale="log", xlabel="Rows, N", ylim=(0, 1.02))
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xticks([], minor=True)
        if place % columns == 0:
            axes.set_ylabel("True probability")
    drawn.legend(*places[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawn
