"""Figure of a rehearsal graph: context, intermediate variables and outcomes from left to right.

Directed edges are black; bi-directional ones are coloured and dashed, with two heads. Alterable variables
have a thick frame. With probabilities of edges, the width of a line grows with its probability.

Time runs from left to right: the context X, the intermediate variables Z, the outcomes Y. Each tier has as
many columns as its longest chain of directed edges has cliques, and the members of a clique share a column,
one below the other. An edge that passes a column has a position of its own there, shared with the other edges
from the same variable, so that no edge runs behind a box. Within a column, entries are sorted by the mean
height of their neighbours, in a few sweeps back and forth, to reduce crossings.

Source: Qin et al. (2023), Fig. 2 and 6, for the content; Sugiyama, Tagawa and Toda (1981) for the layout
(layers, positions of passing edges, barycentres).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.reporting.figure_style import BLACK, VERMILION, drawing, save

# In inches, like the axes.
LETTER, HEIGHT, GAP, ROW, TITLE = 0.095, 0.34, 0.85, 0.6, 0.36
TITLES = {"X": "X: context", "Z": "Z: intermediate", "Y": "Y: outcomes", "": ""}
# The members of a clique, or the variable whose edges pass a column.
Clique = tuple[str, ...]
Entry = tuple[str, Clique]
PASSING = 0.5
_SWEEPS = 12


@dataclass(frozen=True)
class Layout:
    """Columns and heights; a variable has height 1, passing edges have height `PASSING`.

    Attributes:
        column: Variable to its column.
        height: Variable to its vertical position; positive above the middle.
        passing: (variable, column) to the height at which its edges pass that column.
        tiers: (label, first column, last column) of each tier with variables.
        span: Height of the tallest column.
    """

    column: Mapping[str, int]
    height: Mapping[str, float]
    passing: Mapping[tuple[str, int], float]
    tiers: tuple[tuple[str, int, int], ...]
    span: float


def layout(graph: RehearsalGraph, context: Sequence[str] = (), outcomes: Sequence[str] = ()) -> Layout:
    """Computes the positions of the variables and edges of a graph: the context X on the left, the outcomes Y
    on the right; without both there is a single tier.

    Raises:
        ValueError: if a role names an unknown variable.
    """
    parts = {**dict.fromkeys(context, "X"), **dict.fromkeys(outcomes, "Y")}
    if unknown := sorted(set(parts) - set(graph.names)):
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    clique_of = {name: clique for clique in graph.cliques for name in clique}
    roles = {clique: {parts.get(name, "Z") for name in clique} for clique in graph.cliques}
    # A clique whose members belong to several tiers stands in the middle one.
    part_of = {clique: min(named) if len(named) == 1 else "Z" for clique, named in roles.items()}
    columns: list[list[Entry]] = []
    column: dict[str, int] = {}
    tiers = []
    for part in ("X", "Z", "Y"):
        depth: dict[Clique, int] = {}
        for clique in graph.cliques:
            if part_of[clique] == part:
                above = [clique_of[name] for name in graph.parents(clique)]
                depth[clique] = max((depth[parent] + 1 for parent in above if parent in depth), default=0)
        if depth:
            first = len(columns)
            columns += [
                [("clique", clique) for clique in depth if depth[clique] == number]
                for number in range(max(depth.values()) + 1)
            ]
            column |= {name: first + number for clique, number in depth.items() for name in clique}
            tiers.append((part if parts else "", first, len(columns) - 1))
    near: dict[tuple[Entry, int], list[tuple[Entry, int]]] = {}
    for source, target in graph.edges:
        steps: list[tuple[Entry, int]] = [(("clique", clique_of[source]), column[source])]
        steps += [(("passing", (source,)), number) for number in range(column[source] + 1, column[target])]
        steps.append((("clique", clique_of[target]), column[target]))
        for entry, number in steps[1:-1]:
            if entry not in columns[number]:
                columns[number].append(entry)
        for step, following in pairwise(steps):
            near.setdefault(step, []).append(following)
            near.setdefault(following, []).append(step)
    heights = _sorted(columns, near)
    passing = {
        (entry[1][0], number): height for (entry, number), height in heights.items() if entry[0] == "passing"
    }
    height: dict[str, float] = {}
    for clique in graph.cliques:
        middle = heights[("clique", clique), column[clique[0]]]
        height |= {name: middle + (len(clique) - 1) / 2 - index for index, name in enumerate(clique)}
    return Layout(column, height, passing, tuple(tiers), max(sum(map(_size, clique)) for clique in columns))


def _size(entry: Entry) -> float:
    return PASSING if entry[0] == "passing" else float(len(entry[1]))


def _sorted(
    columns: list[list[Entry]], near: Mapping[tuple[Entry, int], Sequence[tuple[Entry, int]]]
) -> dict[tuple[Entry, int], float]:
    """Sorts the columns in place; returns (entry, column) to the height of its middle."""
    heights = {
        (entry, number): height
        for number, column in enumerate(columns)
        for entry, height in _stacked(column).items()
    }
    for sweep in range(_SWEEPS):
        for number in range(len(columns)) if sweep % 2 == 0 else reversed(range(len(columns))):
            target = {}
            for entry in columns[number]:
                joined = [heights[other] for other in near.get((entry, number), ())]
                target[entry] = sum(joined) / len(joined) if joined else heights[entry, number]
            columns[number].sort(key=lambda entry: -target[entry])
            heights |= {(entry, number): height for entry, height in _stacked(columns[number]).items()}
    return heights


def _stacked(column: Sequence[Entry]) -> dict[Entry, float]:
    """Heights of the entries of a column, from the top, centred at zero."""
    top, heights = sum(map(_size, column)) / 2, {}
    for entry in column:
        heights[entry] = top - _size(entry) / 2
        top -= _size(entry)
    return heights


def draw_graph(
    graph: RehearsalGraph,
    folder: str | FilePath,
    context: Sequence[str] = (),
    alterable: Sequence[str] = (),
    outcomes: Sequence[str] = (),
    probabilities: Mapping[tuple[str, str, str], float] | None = None,
) -> list[FilePath]:
    """Writes ``graph.png`` and ``graph.svg`` of the `graph_figure` into a folder, created if missing."""
    with drawing():
        figure = graph_figure(graph, context, alterable, outcomes, probabilities)
        return save(figure, FilePath(folder), "graph")


def graph_figure(
    graph: RehearsalGraph,
    context: Sequence[str] = (),
    alterable: Sequence[str] = (),
    outcomes: Sequence[str] = (),
    probabilities: Mapping[tuple[str, str, str], float] | None = None,
) -> Figure:
    """The figure of a graph with its context X and its outcomes Y.

    Args:
        probabilities: (one, "->" or "<->", other) to the probability of the edge; None draws all lines with
            the same width.

    Raises:
        ValueError: if a role names an unknown variable.
    """
    if unknown := sorted(set(alterable) - set(graph.names)):
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    placed = layout(graph, context, outcomes)
    spots = _spots(placed)
    figure = Figure(figsize=(spots.wide, spots.high))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, spots.wide), ylim=(0, spots.high))
    axes.axis("off")
    _bands(axes, placed, spots)
    ends = _ends(placed, graph)
    for line, edges in (("->", graph.edges), ("<->", graph.bidirected)):
        for source, target in edges:
            tail, head = (source, target) if line == "->" else (min(source, target), max(source, target))
            share = 1.0 if probabilities is None else probabilities.get((tail, line, head), 0.0)
            # Directed edges may join the ends of a hidden cause as well: it is drawn beside them.
            course: dict[str, Any] = {"posA": spots.centres[source], "posB": spots.centres[target]}
            course |= {"connectionstyle": "arc3,rad=0.35", "shrinkA": 12, "shrinkB": 12}
            if line == "->" or (source, target) not in graph.hidden:
                inner = placed.column[source] >= placed.column[target]
                course = {
                    "path": _within(placed, spots, source, target)
                    if inner
                    else _across(placed, spots, source, target, ends[source, target])
                }
            axes.add_patch(
                FancyArrowPatch(
                    **course,
                    arrowstyle="-|>" if line == "->" else "<|-|>",
                    mutation_scale=10,
                    linewidth=0.4 + 0.8 * share,
                    linestyle="-" if line == "->" else (0, (4, 2)),
                    color=BLACK if line == "->" else VERMILION,
                    alpha=0.3 + 0.55 * share,
                    capstyle="butt",
                    zorder=2,
                )
            )
    for name in graph.names:
        _box(axes, name, spots.centres[name], spots.widths[name], thick=name in alterable)
    return figure


@dataclass(frozen=True)
class _Spots:
    """Positions in inches: centres and widths of boxes, left and right ends of columns, and the figure's
    size.
    """

    centres: dict[str, tuple[float, float]]
    widths: dict[str, float]
    columns: list[tuple[float, float]]
    wide: float
    high: float

    def level(self, height: float) -> float:
        """A height of the layout in inches."""
        return (self.high - TITLE) / 2 + ROW * height


def _spots(placed: Layout) -> _Spots:
    widths = {name: LETTER * len(name) + 0.28 for name in placed.column}
    columns, left = [], 0.4
    for column in range(max(placed.column.values()) + 1):
        wide = max(widths[name] for name in placed.column if placed.column[name] == column)
        columns.append((left, left + wide))
        left += wide + GAP
    spots = _Spots({}, widths, columns, left - GAP + 0.4, ROW * placed.span + 0.25 + TITLE)
    for name, column in placed.column.items():
        spots.centres[name] = (sum(columns[column]) / 2, spots.level(placed.height[name]))
    return spots


def _ends(placed: Layout, graph: RehearsalGraph) -> dict[tuple[str, str], float]:
    """Offset of the end of each edge from the middle of its target, in inches: edges end apart, in the order
    of the heights that they come from.
    """
    offsets = {}
    for target in graph.names:
        sources = [
            source
            for source, other in graph.edges
            if other == target and placed.column[source] < placed.column[target]
        ]
        before = placed.column[target] - 1
        heights = {
            name: placed.height[name] if placed.column[name] == before else placed.passing[name, before]
            for name in sources
        }
        sources.sort(key=heights.__getitem__)
        step = min(0.08, 0.22 / max(len(sources) - 1, 1))
        offsets.update(
            {(name, target): step * (index - (len(sources) - 1) / 2) for index, name in enumerate(sources)}
        )
    return offsets


def _across(placed: Layout, spots: _Spots, source: str, target: str, end: float) -> Path:
    """A smooth path to the right, horizontal where it passes a column."""
    (x, y), points, codes = spots.centres[source], [], [Path.MOVETO]
    points.append((x + spots.widths[source] / 2, y))
    goals = [
        (*spots.columns[column], spots.level(placed.passing[source, column]))
        for column in range(placed.column[source] + 1, placed.column[target])
    ]
    x, y = spots.centres[target]
    goals.append((x - spots.widths[target] / 2, x - spots.widths[target] / 2, y + end))
    for left, right, level in goals:
        x, y = points[-1]
        middle = (x + left) / 2
        points += [(middle, y), (middle, level), (left, level)]
        codes += [Path.CURVE4] * 3
        if right > left:
            points.append((right, level))
            codes.append(Path.LINETO)
    return Path(points, codes)


def _within(placed: Layout, spots: _Spots, source: str, target: str) -> Path:
    """A path between boxes of one column, or back to an earlier one: straight between neighbours, else around
    the boxes between them.
    """
    (x, y), (right, level) = spots.centres[source], spots.centres[target]
    apart = abs(placed.height[source] - placed.height[target])
    if placed.column[source] == placed.column[target] and abs(apart - 1) < 1e-6:
        half = HEIGHT / 2 if level > y else -HEIGHT / 2
        return Path([(x, y + half), (right, level - half)], [Path.MOVETO, Path.LINETO])
    start, end = (x + spots.widths[source] / 2, y), (right + spots.widths[target] / 2, level)
    out = max(start[0], end[0]) + 0.35
    return Path([start, (out, y), (out, level), end], [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])


def _bands(axes: Axes, placed: Layout, spots: _Spots) -> None:
    """A shaded band and a title for each tier."""
    for label, first, last in placed.tiers:
        if label:
            left, right = spots.columns[first][0] - 0.25, spots.columns[last][1] + 0.25
            size = (right - left, spots.high - 0.16)
            axes.add_patch(Rectangle((left, 0.08), *size, facecolor="#F2F2F2", edgecolor="none", zorder=0))
            title = TITLES[label] if right - left > 1.4 else label
            middle = ((left + right) / 2, spots.high - TITLE / 2 - 0.05)
            axes.text(*middle, title, ha="center", va="center", fontsize=10, color="#555555")


def _box(axes: Axes, name: str, centre: tuple[float, float], width: float, thick: bool) -> None:
    box = FancyBboxPatch(
        (centre[0] - width / 2, centre[1] - HEIGHT / 2),
        width,
        HEIGHT,
        boxstyle="round,pad=0,rounding_size=0.12",
        facecolor="white",
        edgecolor=BLACK,
        linewidth=2.0 if thick else 0.9,
        zorder=3,
    )
    axes.add_patch(box)
    # A name is no formula, even if it holds a dollar sign.
    axes.text(*centre, name, ha="center", va="center_baseline", fontsize=10.5, zorder=4, parse_math=False)
