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
from rehearsal_torch.reporting.style import BLACK, legend_below, panels, point_style


def draw(groups: Mapping[str, Sequence[Decided]]) -> Figure:
    """One panel per method; to be called within `drawing`.

    Args:
        groups: Method to its decisions that a world scored.
    """
    figure, [line] = panels(1, len(groups), width=5.2, height=3.9)
    for index, (axes, (name, decisions)) in enumerate(zip(line, groups.items(), strict=True)):
        ordered = sorted(
            decisions, key=lambda decision: (decision["score"]["oracle"], decision["score"]["no_action"])
        )
        rank = np.arange(1, len(ordered) + 1)
        true, best, no_action = (
            np.array([decision["score"][key] for decision in ordered], dtype=float)
            for key in ("probability", "oracle", "no_action")
        )
        acted = np.array([decision.get("alteration") is not None for decision in ordered])
        style = point_style(index)
        axes.vlines(rank, no_action, best, color="#BBBBBB", linewidth=1.0)
        axes.plot(rank, best, "_", color=BLACK, markersize=9, markeredgewidth=1.6, label="best possible")
        axes.plot(rank, no_action, "x", color=BLACK, markersize=5, label="no action")
        axes.plot(rank[acted], true[acted], **style, markersize=5, label="decision")
        if not acted.all():
            label = "decision without alteration"
            axes.plot(rank[~acted], true[~acted], **style, markersize=6, markerfacecolor="white", label=label)
        axes.set(
            xlabel="Case, ordered by the best possible probability",
            ylabel="True probability of a desired outcome",
            ylim=(-0.02, 1.02),
        )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title(
            f"{name}\nmean {true.mean():.3f}, best {best.mean():.3f}, no action {no_action.mean():.3f}"
        )
    legend_below(figure, 2)
    return figure
