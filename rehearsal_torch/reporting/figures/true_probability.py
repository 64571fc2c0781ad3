"""Figure: true probability of a desired outcome, context by context, between no action and the best possible.

Contexts are ordered by the largest possible probability. Filled points are alterations, open ones decisions
without an alteration; where they coincide with the crosses, the decision made no difference.

Source: Du et al. (2026), Tab. 1 (AUF probability, no action); the oracle is the world's.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.reporting.style import BLACK, COLOURS, MARKERS, panels


def draw(groups: Mapping[str, Sequence[Decided]]) -> Figure:
    """One panel per method; to be called within `drawing`.

    Args:
        groups: Method to its decisions that a world scored.
    """
    figure, [line] = panels(1, len(groups), width=5.2, height=3.9)
    for index, (axes, (name, decided)) in enumerate(zip(line, groups.items(), strict=True)):
        ordered = sorted(decided, key=lambda one: (one["score"]["oracle"], one["score"]["no_action"]))
        place = np.arange(1, len(ordered) + 1)
        true, best, no_action = (
            np.array([one["score"][key] for one in ordered], dtype=float)
            for key in ("probability", "oracle", "no_action")
        )
        acted = np.array([one.get("alteration") is not None for one in ordered])
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        axes.vlines(place, no_action, best, color="#BBBBBB", linewidth=1.0)
        axes.plot(place, best, "_", color=BLACK, markersize=9, markeredgewidth=1.6, label="best possible")
        axes.plot(place, no_action, "x", color=BLACK, markersize=5, label="no action")
        axes.plot(
            place[acted], true[acted], marker, color=colour, markersize=5, linestyle="", label="decision"
        )
        if not acted.all():
            axes.plot(
                place[~acted],
                true[~acted],
                marker,
                markerfacecolor="white",
                markeredgecolor=colour,
                markersize=6,
                linestyle="",
                label="decision without alteration",
            )
        axes.set(
            xlabel="Case, ordered by the best possible probability",
            ylabel="True probability of a desired outcome",
            ylim=(-0.02, 1.02),
        )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title(
            f"{name}\nmean {true.mean():.3f}, best {best.mean():.3f}, no action {no_action.mean():.3f}"
        )
    handles = {
        label: handle
        for axes in line
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=2)
    return figure
