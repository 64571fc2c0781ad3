"""Figure: search effort, as the share of episodes solved within a number of nodes or seconds.

Steps rise at episodes whose optimum is proven; a curve that ends below 100% belongs to a search that left
episodes unproven (its time or node limit ended it, or it gives no proof).
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from rehearsal_torch.evaluation.recorded_run import Decided, effort
from rehearsal_torch.reporting.style import legend_below, line_style, logarithmic, panels
from rehearsal_torch.reporting.wording import Wording

_PANELS = (("expanded", "Steps of the search"), ("seconds", "Time (s)"))


def draw(groups: Mapping[str, Sequence[Decided]], words: Wording | None = None) -> Figure:
    """Two panels, nodes and seconds; one curve per group.

    Args:
        words: What the units of the episodes are called; None for patients.
    """
    units = (words or Wording()).subjects.capitalize()
    figure, [line] = panels(1, 2, width=4.6)
    for axes, (key, label) in zip(line, _PANELS, strict=True):
        for index, (name, decisions) in enumerate(groups.items()):
            spent = [
                decision.get(key) if key == "seconds" else effort(decision, key)
                for decision in decisions
                if effort(decision, "proven")
            ]
            done = sorted(max(float(value), 1e-4) for value in spent if value is not None)
            shares = [100 * (rank + 1) / len(decisions) for rank in range(len(done))]
            axes.plot(
                done,
                shares,
                **line_style(index),
                drawstyle="steps-post",
                marker="o" if len(done) == 1 else None,
                label=f"{name} ({100 * len(done) / len(decisions):.0f}% proven)",
            )
        axes.set(xlabel=label, ylabel=f"{units} for which the best\nchanges are proven (%)", ylim=(0, 103))
        logarithmic(axes.xaxis)
    legend_below(figure, 2)
    return figure
