"""Figure: observed against counterfactual outcomes of episodes."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.reporting.style import COLOURS, MARKERS, Wording, panels


def draw(groups: Mapping[str, Sequence[Decided]], words: Wording) -> Figure:
    """One point per unit, and the diagonal of no change.

    Args:
        words: Name and unit of the outcome.
    """
    figure, [[axes]] = panels(width=4.8, height=4.2)
    for index, (label, decided) in enumerate(groups.items()):
        observed, found = (
            [words.sign * one["trajectory"][key] for one in decided] for key in ("observed", "value")
        )
        axes.plot(
            observed,
            found,
            MARKERS[index % len(MARKERS)],
            color=COLOURS[index % len(COLOURS)],
            markersize=4,
            alpha=0.7,
            label=label,
        )
    diagonal(axes, "no change")
    side = "below" if words.sign < 0 else "above"
    axes.set(
        xlabel=f"{words.total}, as observed",
        ylabel=f"{words.total},\npredicted under the changes",
        title=f"Better {side} the line",
    )
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center")
    return figure


def diagonal(axes: Axes, label: str) -> None:
    """The line on which both coordinates are equal, over the range shown."""
    low, high = min(axes.get_xlim()[0], axes.get_ylim()[0]), max(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], "-", color="#777777", linewidth=1, label=label)
