"""Figure: observed against counterfactual outcomes of episodes."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.reporting.style import diagonal, legend_below, panels, point_style
from rehearsal_torch.reporting.wording import Wording


def draw(groups: Mapping[str, Sequence[Decided]], words: Wording) -> Figure:
    """One point per unit, and the diagonal of no change.

    Args:
        words: Name and unit of the outcome.
    """
    figure, [[axes]] = panels(width=4.8, height=4.2)
    for index, (label, decisions) in enumerate(groups.items()):
        trajectories = [decision["trajectory"] for decision in decisions]
        observed = [words.sign * trajectory["observed"] for trajectory in trajectories]
        predicted = [words.sign * trajectory["value"] for trajectory in trajectories]
        axes.plot(observed, predicted, **point_style(index), markersize=4, alpha=0.7, label=label)
    diagonal(axes, "no change")
    side = "below" if words.sign < 0 else "above"
    axes.set(
        xlabel=f"{words.total}, as observed",
        ylabel=f"{words.total},\npredicted under the changes",
        title=f"Better {side} the line",
    )
    legend_below(figure)
    return figure
