"""Figure of a rehearsal graph in one column: as wide as a phone, whatever the number of variables.

The variables stand one below the other, the context X first, then the intermediate variables Z, then the
outcomes Y, causes above their effects. An arrow between neighbours is straight; others are arcs on the right,
the wider the farther apart their ends are. Hidden common causes are dashed arcs with two heads on the left.
Arcs begin and end apart, in an order in which arcs of one box do not cross. Long names take several lines.

Source: Wattenberg (2002), Arc diagrams: visualizing structure in strings, for the form; the order is that of
`figures.graph_layout`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.reporting.figures.graph import HEIGHT, LETTER, TITLES
from rehearsal_torch.reporting.figures.graph_layout import Layout, layout
from rehearsal_torch.reporting.style import BLACK, VERMILION

# Inches: of the figure, of the strip with the tiers' names, of the arcs on either side, between two boxes,
# between two tiers, of a further line, and of the edge.
WIDTH, STRIP, RIGHT, LEFT, BETWEEN, TIER, LINE, EDGE = 3.75, 0.3, 1.15, 0.65, 0.26, 0.06, 0.17, 0.08
# Inches that a tier needs to be named in full; lines of a name.
NAMED, LINES = 1.4, 3
# Inches between the ends of arcs on one side of a box, at most, and of all of them.
STEP, ENDS = 0.09, 0.27

Edge = tuple[str, str]


@dataclass(frozen=True)
class _Spots:
    """Positions in inches from the bottom left: sides of boxes, the middle of each, lines of its name, the
    height of boxes, and that of the figure.
    """

    left: float
    right: float
    middle: dict[str, float]
    lines: dict[str, list[str]]
    tall: float
    high: float


def column_figure(
    graph: RehearsalGraph,
    context: Sequence[str] = (),
    alterable: Sequence[str] = (),
    outcomes: Sequence[str] = (),
) -> Figure:
    """The figure; to be called within `style.drawing`.

    Args:
        graph: The rehearsal graph.
        context: X.
        alterable: The variables that may be altered.
        outcomes: Y.

    Raises:
        ValueError: if a role names an unknown variable.
    """
    if unknown := sorted(set(alterable) - set(graph.names)):
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    placed = layout(graph, context, outcomes)
    order = sorted(placed.column, key=lambda name: (placed.column[name], -placed.height[name]))
    spots = _spots(placed, order, bool(graph.bidirected))
    figure = Figure(figsize=(WIDTH, spots.high))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(0, spots.high))
    axes.axis("off")
    _tiers(axes, placed, order, spots)
    below = set(pairwise(order))
    straight = [edge for edge in graph.edges if edge in below]
    for one, other in straight:
        x, half = (spots.left + spots.right) / 2, spots.tall / 2
        ends = [(x, spots.middle[one] - half), (x, spots.middle[other] + half)]
        _arrow(axes, Path(ends, [Path.MOVETO, Path.LINETO]))
    _arcs(axes, [edge for edge in graph.edges if edge not in below], order, spots, hidden=False)
    _arcs(axes, list(graph.bidirected), order, spots, hidden=True)
    for name in order:
        _box(axes, name, spots, thick=name in alterable)
    return figure


def _spots(placed: Layout, order: Sequence[str], hidden: bool) -> _Spots:
    left = STRIP + (LEFT if hidden else 0.12)
    most = int((WIDTH - left - RIGHT - 0.28) / LETTER)
    lines = {name: _lines(name, most) for name in order}
    broad = max(LETTER * len(line) for each in lines.values() for line in each) + 0.28
    tall = HEIGHT + LINE * (max(map(len, lines.values())) - 1)
    first = {place for _, place, _ in placed.tiers}
    middle, depth, before = {}, EDGE, -1
    for name in order:
        begins = placed.column[name] != before and placed.column[name] in first
        depth += (TIER if begins and before >= 0 else 0.0) + BETWEEN / 2 + tall / 2
        middle[name], before = depth, placed.column[name]
        depth += tall / 2 + BETWEEN / 2
    high = depth + EDGE
    return _Spots(left, left + broad, {name: high - at for name, at in middle.items()}, lines, tall, high)


def _lines(name: str, most: int) -> list[str]:
    """A name in lines, which also end after an underscore."""
    text = " ".join(name.split()).replace("_", "_\t")
    found = wrap(text, most, max_lines=LINES, placeholder="...", expand_tabs=False, replace_whitespace=False)
    return [line.replace("\t", "") for line in found] or [name]


def _arcs(axes: Axes, edges: Sequence[Edge], order: Sequence[str], spots: _Spots, hidden: bool) -> None:
    """Arcs on one side of the boxes."""
    row = {name: place for place, name in enumerate(order)}
    most = max((abs(row[one] - row[other]) for one, other in edges), default=1)
    side, room = (
        (spots.left, STRIP + EDGE - spots.left) if hidden else (spots.right, WIDTH - EDGE - spots.right)
    )
    for (one, other), (start, end) in _ends(edges, row).items():
        # The middle of a cubic curve is three quarters as far out as its two inner points.
        out = side + room / 0.75 * max(0.3, (abs(row[one] - row[other]) / most) ** 0.75)
        y, goal = spots.middle[one] + start, spots.middle[other] + end
        path = Path(
            [(side, y), (out, y), (out, goal), (side, goal)],
            [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
        )
        _arrow(axes, path, hidden)


def _ends(edges: Sequence[Edge], row: dict[str, int]) -> dict[Edge, tuple[float, float]]:
    """Edge to how far above the middle of its boxes it begins and ends, in inches.

    From the top of a box: arcs to boxes above it, the nearest first, then those to boxes below, the farthest
    first. An arc that reaches farther is wider, so that it lies around the others.
    """
    found: dict[tuple[Edge, str], float] = {}
    for name in row:
        mine = [edge for edge in edges if name in edge]
        ways = {edge: row[edge[0] if edge[1] == name else edge[1]] - row[name] for edge in mine}
        mine.sort(key=lambda edge: (ways[edge] > 0, -ways[edge]))
        step = min(STEP, ENDS / max(len(mine) - 1, 1))
        for place, edge in enumerate(mine):
            found[edge, name] = step * ((len(mine) - 1) / 2 - place)
    return {edge: (found[edge, edge[0]], found[edge, edge[1]]) for edge in edges}


def _arrow(axes: Axes, path: Path, hidden: bool = False) -> None:
    axes.add_patch(
        FancyArrowPatch(
            path=path,
            arrowstyle="<|-|>" if hidden else "-|>",
            mutation_scale=10,
            linewidth=1.2,
            linestyle=(0, (4, 2)) if hidden else "-",
            color=VERMILION if hidden else BLACK,
            alpha=0.85,
            capstyle="butt",
            zorder=2,
        )
    )


def _tiers(axes: Axes, placed: Layout, order: Sequence[str], spots: _Spots) -> None:
    """A shaded band for each tier, with its name on the left."""
    for label, first, last in placed.tiers:
        inside = [spots.middle[name] for name in order if first <= placed.column[name] <= last]
        if not label:
            continue
        half = spots.tall / 2 + BETWEEN / 2
        low, high = min(inside) - half, max(inside) + half
        axes.add_patch(
            Rectangle((0, low), WIDTH, high - low, facecolor="#F2F2F2", edgecolor="none", zorder=0)
        )
        words = TITLES[label] if high - low > NAMED else label
        axes.text(
            STRIP / 2,
            (low + high) / 2,
            words,
            rotation=90,
            ha="center",
            va="center",
            fontsize=10,
            color="#555555",
        )


def _box(axes: Axes, name: str, spots: _Spots, thick: bool) -> None:
    middle, high = (spots.left + spots.right) / 2, spots.middle[name]
    axes.add_patch(
        FancyBboxPatch(
            (spots.left, high - spots.tall / 2),
            spots.right - spots.left,
            spots.tall,
            boxstyle="round,pad=0,rounding_size=0.12",
            facecolor="white",
            edgecolor=BLACK,
            linewidth=2.0 if thick else 0.9,
            zorder=3,
        )
    )
    # A name is no formula, even if it holds a dollar sign.
    words = "\n".join(spots.lines[name])
    axes.text(middle, high, words, ha="center", va="center", fontsize=10.5, zorder=4, parse_math=False)
