"""What a careful look at a figure finds: text that is cut off, and labels that lie on each other."""

from itertools import combinations

from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

TOLERANCE = 1.5


def faults(figure: Figure) -> list[str]:
    """Text outside the figure, tick labels of one axis that overlap, and headings or axis labels that lie on
    another one; empty if there is none. To be called within `drawing`.
    """
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    frame = figure.bbox
    found = []
    axes = [each for each in figure.axes if each.get_visible()]
    ticks = {(place, axis.axis_name): _ticks(axis) for place, each in enumerate(axes) for axis in _axes(each)}
    heads = [text for each in axes for text in (each.title, each.xaxis.label, each.yaxis.label)]
    others = [text for each in axes for text in each.texts]
    legends = [*figure.legends, *(each.get_legend() for each in axes if each.get_legend())]
    others += [text for legend in legends for text in legend.get_texts()]
    others += [figure._suptitle] if figure._suptitle is not None else []
    for text in (*heads, *others, *(label for labels in ticks.values() for label in labels)):
        if not _shown(text):
            continue
        box = text.get_window_extent(renderer)
        beyond = max(frame.x0 - box.x0, box.x1 - frame.x1, frame.y0 - box.y0, box.y1 - frame.y1)
        if beyond > TOLERANCE:
            found.append(f"{text.get_text()!r} is {beyond:.0f} pixels outside of the figure")
    for (place, name), labels in ticks.items():
        for one, other in combinations(filter(_shown, labels), 2):
            if _overlap(one, other, renderer):
                texts = f"{one.get_text()!r} and {other.get_text()!r}"
                found.append(f"panel {place}: labels {texts} of the {name} axis overlap")
    for one, other in combinations(filter(_shown, heads), 2):
        if _overlap(one, other, renderer):
            found.append(f"{one.get_text()!r} and {other.get_text()!r} overlap")
    return found


def _axes(axes) -> tuple[Axis, Axis]:
    return axes.xaxis, axes.yaxis


def _ticks(axis: Axis) -> list[Text]:
    """The labels of the ticks that are within the axis."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * max(high - low, 1e-300)
    every = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    inside = [tick for tick in every if low - slack <= tick.get_loc() <= high + slack]
    return [tick.label1 for tick in inside if tick.label1.get_visible() and axis.get_visible()]


def _shown(text: Text) -> bool:
    return text.get_visible() and bool(text.get_text().strip())


def _overlap(one: Text, other: Text, renderer) -> bool:
    first, second = one.get_window_extent(renderer), other.get_window_extent(renderer)
    wide = min(first.x1, second.x1) - max(first.x0, second.x0)
    high = min(first.y1, second.y1) - max(first.y0, second.y0)
    return wide > TOLERANCE and high > TOLERANCE
