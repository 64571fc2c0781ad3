"""Where the parts of a figure of several panels lie: its panels, the signs of its legends, and its heading.

A figure of many panels is as wide as a desk. A page cuts it at these places, and lays the panels out as its
reader's screen allows. Axes with a common horizontal axis belong to one panel. Panels of one row of the grid
are cut at equal heights, and those of one column at equal sides. A figure of one panel has no such record.

The record is plain data: the dots per inch; the heading; for each panel and each sign of a legend its box
(left, top, right, bottom, in dots from the top left) and what it says.

Source: ours.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.transforms import Bbox

# White dots around a panel.
MARGIN = 3
POINTS = 72.0


def regions(figure: Figure, dots: int) -> dict[str, Any]:
    """The record of a figure; empty for one panel, and for one with colour bars. To be called within
    `style.drawing`.

    Args:
        figure: The figure, complete.
        dots: Dots per inch of the picture that is to be cut.
    """
    shown = [axes for axes in figure.axes if axes.get_visible()]
    groups = _grouped(shown)
    if len(groups) < 2 or any(axes.get_label() == "<colorbar>" for axes in shown):
        return {}
    figure.draw_without_rendering()
    scale, (wide, high) = dots / figure.dpi, figure.bbox.size

    def box(found: Bbox, margin: float = 0.0) -> list[int]:
        """In dots from the top left, within the picture."""
        left, right = (found.x0 * scale - margin, found.x1 * scale + margin)
        top, bottom = ((high - found.y1) * scale - margin, (high - found.y0) * scale + margin)
        return [
            max(0, int(left)),
            max(0, int(top)),
            min(int(wide * scale), int(right) + 1),
            min(int(high * scale), int(bottom) + 1),
        ]

    return {
        "dots": dots,
        "heading": _plain(figure.get_suptitle()),
        "panels": [
            {"box": box(found, MARGIN), "says": _said(group)}
            for group, found in zip(groups, _aligned(groups), strict=True)
        ],
        "signs": [
            {"box": box(found), "says": words} for legend in figure.legends for found, words in _signs(legend)
        ],
    }


def _grouped(every: Sequence[Axes]) -> list[list[Axes]]:
    """Axes with a common horizontal axis together, in the order of the figure."""
    found: list[list[Axes]] = []
    for axes in every:
        joined = axes.get_shared_x_axes()
        same = next((group for group in found if joined.joined(axes, group[0])), None)
        if same is None:
            found.append([axes])
        else:
            same.append(axes)
    return found


def _aligned(groups: Sequence[Sequence[Axes]]) -> list[Bbox]:
    """The boxes of panels, with equal heights in a row of the grid and equal sides in a column."""
    own = [
        Bbox.union([box for axes in group if (box := axes.get_tightbbox()) is not None]) for group in groups
    ]
    spans = [_spans(group) for group in groups]
    found = []
    for box, (rows, columns) in zip(own, spans, strict=True):
        beside = [each for each, span in zip(own, spans, strict=True) if rows and span[0] == rows]
        below = [each for each, span in zip(own, spans, strict=True) if columns and span[1] == columns]
        tall, broad = Bbox.union([box, *beside]), Bbox.union([box, *below])
        found.append(Bbox.from_extents(broad.x0, tall.y0, broad.x1, tall.y1))
    return found


def _spans(group: Iterable[Axes]) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """The rows and the columns of the grid that a panel takes; None where it is in no grid."""
    cells = [axes.get_subplotspec() for axes in group]
    rows = [each.rowspan for each in cells if each is not None]
    columns = [each.colspan for each in cells if each is not None]
    if not rows:
        return None, None
    return (
        (min(each.start for each in rows), max(each.stop for each in rows)),
        (min(each.start for each in columns), max(each.stop for each in columns)),
    )


def _signs(legend: Legend) -> list[tuple[Bbox, str]]:
    """The boxes of a legend's signs, which stand to the left of its texts, and these."""
    found = []
    for text in legend.get_texts():
        figure = legend.get_figure(root=True)
        size = float(text.get_fontsize()) * (POINTS if figure is None else figure.dpi) / POINTS
        box = text.get_window_extent()
        middle, right = (box.y0 + box.y1) / 2, box.x0 - legend.handletextpad * size
        half = 0.5 * size
        left = right - legend.handlelength * size
        # Lines end with their width, and markers stand on their ends.
        edge = 0.1 * size
        sign = Bbox.from_extents(left - edge, middle - half - edge, right + edge, middle + half + edge)
        found.append((sign, _plain(text.get_text())))
    return found


def _said(group: Sequence[Axes]) -> str:
    """What a panel shows, in words: its title, and its axes."""
    title = next((axes.get_title() for axes in group if axes.get_title()), "")
    upright = ", ".join(dict.fromkeys(axes.get_ylabel() for axes in group if axes.get_ylabel()))
    across = next((axes.get_xlabel() for axes in reversed(group) if axes.get_xlabel()), "")
    axis = " over ".join(part for part in (upright, across) if part)
    return _plain(": ".join(part for part in (title, axis) if part))


def _plain(text: str) -> str:
    """A text of a figure on one line, without the signs that keep it from being a formula."""
    return re.sub(r"\s+", " ", text.replace(r"\$", "$")).strip()
