"""Figure: search effort, as the share of episodes solved within a number of nodes or seconds.

Steps rise at episodes whose optimum is proven; a curve that ends below 100% belongs to a search that left
episodes unproven (its time or node limit ended it, or it gives no proof).
"""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rehearsal_torch.evaluation.recorded_run import Decided, effort
from rehearsal_torch.reporting.style import COLOURS, DASHES, Wording, logarithmic, panels

_PANELS = (("expanded", "Steps of the search"), ("seconds", "Time (s)"))


def draw(groups: Mapping[str, Sequence[Decided]], words: Wording | None = None) -> Figure:
    """Two panels, nodes and seconds; one curve per group.

    Args:
        words: What the units of the episodes are called; None for patients.
    """
    units = (words or Wording()).subjects.capitalize()
    figure, [line] = panels(1, 2, width=4.6)
    for axes, (key, label) in zip(line, _PANELS, strict=True):
        for index, (name, decided) in enumerate(groups.items()):
            spent = [
                one.get(key) if key == "seconds" else effort(one, key)
                for one in decided
                if effort(one, "proven")
            ]
            done = sorted(max(float(each), 1e-4) for each in spent if each is not None)
            share = 100 * len(done) / len(decided)
            _steps(axes, done, len(decided), f"{name} ({share:.0f}% proven)", index)
        axes.set(xlabel=label, ylabel=f"{units} for which the best\nchanges are proven (%)", ylim=(0, 103))
        logarithmic(axes.xaxis)
    figure.legend(*line[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _steps(axes: Axes, done: Sequence[float], count: int, label: str, index: int) -> None:
    heights = [100 * (rank + 1) / count for rank in range(len(done))]
    colour, dash = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
    axes.plot(
        done,
        heights,
        drawstyle="steps-post",
        color=colour,
        linestyle=dash,
        marker="o" if len(done) == 1 else None,
        label=label,
    )
