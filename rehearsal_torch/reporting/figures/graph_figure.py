"""Figure of a rehearsal graph: context, intermediate variables and outcomes from left to right.

Directed edges are black; bi-directional ones are coloured and dashed, with two heads. Alterable variables
have a thick frame. With probabilities of edges, the width of a line grows with its probability (content: Qin
et al., 2023, Fig. 2 and 6).

The layout has layers, positions of passing edges and barycentres (Sugiyama, Tagawa and Toda, 1981). From left
to right stand the tiers: the context X, the intermediate variables Z, the outcomes Y. Each tier has as many
columns as its longest chain of directed edges has cliques, and the members of a clique share a column, one
below the other. An edge that passes a column has a position of its own there, shared with the other edges
from the same variable, so that no edge runs behind a box. Within a column, entries are sorted by the mean
height of their neighbours, in a few sweeps back and forth, to reduce crossings.
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
TITLES = {"X": "known before", "Z": "set, or in between", "Y": "outcomes", "": ""}
# The members of a clique, or the variable whose edges pass a column.
Clique = tuple[str, ...]
Entry = tuple[str, Clique]
PASSING = 0.5
_SWEEPS = 12


@dataclass(frozen=True)
class Layout:
    """Columns and heights; a variable has height 1, passing edges have height `PASSING`.

    Attributes:
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
    """Positions of the variables and edges of a graph: the context X on the left, the outcomes Y on the
    right; without both there is a single tier. ValueError if a role names no variable.
    """
    role_of = {**dict.fromkeys(context, "X"), **dict.fromkeys(outcomes, "Y")}
    if unknown := sorted(set(role_of) - set(graph.names)):
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    clique_of = {name: clique for clique in graph.cliques for name in clique}
    roles = {clique: {role_of.get(name, "Z") for name in clique} for clique in graph.cliques}
    # A clique whose members belong to several tiers stands in the middle one.
    tier_of = {clique: min(members) if len(members) == 1 else "Z" for clique, members in roles.items()}
    columns: list[list[Entry]] = []
    column: dict[str, int] = {}
    tiers = []
    for tier in ("X", "Z", "Y"):
        depth: dict[Clique, int] = {}
        for clique in graph.cliques:
            if tier_of[clique] == tier:
                parents = [clique_of[name] for name in graph.parents(clique)]
                depth[clique] = max((depth[parent] + 1 for parent in parents if parent in depth), default=0)
        if depth:
            first = len(columns)
            columns += [
                [("clique", clique) for clique in depth if depth[clique] == number]
                for number in range(max(depth.values()) + 1)
            ]
            column |= {name: first + number for clique, number in depth.items() for name in clique}
            tiers.append((tier if role_of else "", first, len(columns) - 1))
    neighbours: dict[tuple[Entry, int], list[tuple[Entry, int]]] = {}
    for source, target in graph.edges:
        steps: list[tuple[Entry, int]] = [(("clique", clique_of[source]), column[source])]
        steps += [(("passing", (source,)), number) for number in range(column[source] + 1, column[target])]
        steps.append((("clique", clique_of[target]), column[target]))
        for entry, number in steps[1:-1]:
            if entry not in columns[number]:
                columns[number].append(entry)
        for step, following in pairwise(steps):
            neighbours.setdefault(step, []).append(following)
            neighbours.setdefault(following, []).append(step)
    heights = _sort_columns(columns, neighbours)
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


def _sort_columns(
    columns: list[list[Entry]], neighbours: Mapping[tuple[Entry, int], Sequence[tuple[Entry, int]]]
) -> dict[tuple[Entry, int], float]:
    """Sorts the columns in place; returns (entry, column) to the height of its middle."""
    heights = {
        (entry, number): height
        for number, column in enumerate(columns)
        for entry, height in _stack(column).items()
    }
    for sweep in range(_SWEEPS):
        for number in range(len(columns)) if sweep % 2 == 0 else reversed(range(len(columns))):
            target = {}
            for entry in columns[number]:
                values = [heights[neighbour] for neighbour in neighbours.get((entry, number), ())]
                target[entry] = sum(values) / len(values) if values else heights[entry, number]
            columns[number].sort(key=lambda entry: -target[entry])
            heights |= {(entry, number): height for entry, height in _stack(columns[number]).items()}
    return heights


def _stack(column: Sequence[Entry]) -> dict[Entry, float]:
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
    """The figure of a graph with its context X and outcomes Y; ValueError if a role names no variable.
    `probabilities` maps (one, "->" or "<->", other) to that of the edge, for the widths of lines.
    """
    if unknown := sorted(set(alterable) - set(graph.names)):
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    plan = layout(graph, context, outcomes)
    spots = _to_inches(plan)
    figure = Figure(figsize=(spots.wide, spots.high))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, spots.wide), ylim=(0, spots.high))
    axes.axis("off")
    _draw_tiers(axes, plan, spots)
    ends = _end_offsets(plan, graph)
    for line, edges in (("->", graph.edges), ("<->", graph.bidirected)):
        for source, target in edges:
            tail, head = (source, target) if line == "->" else (min(source, target), max(source, target))
            share = 1.0 if probabilities is None else probabilities.get((tail, line, head), 0.0)
            # Directed edges may join the ends of a hidden cause as well: it is drawn beside them.
            geometry: dict[str, Any] = {"posA": spots.centres[source], "posB": spots.centres[target]}
            geometry |= {"connectionstyle": "arc3,rad=0.35", "shrinkA": 12, "shrinkB": 12}
            if line == "->" or (source, target) not in graph.hidden:
                if plan.column[source] >= plan.column[target]:
                    path = _path_within(plan, spots, source, target)
                else:
                    path = _path_across(plan, spots, source, target, ends[source, target])
                geometry = {"path": path}
            axes.add_patch(
                FancyArrowPatch(
                    **geometry,
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
        _draw_box(axes, name, spots.centres[name], spots.widths[name], thick=name in alterable)
    return figure


@dataclass(frozen=True)
class _Inches:
    """Positions in inches: centres and widths of boxes, ends of columns, and the figure's size."""

    centres: dict[str, tuple[float, float]]
    widths: dict[str, float]
    columns: list[tuple[float, float]]
    wide: float
    high: float

    def level(self, height: float) -> float:
        """A height of the layout in inches."""
        return (self.high - TITLE) / 2 + ROW * height


def _to_inches(plan: Layout) -> _Inches:
    widths = {name: LETTER * len(name) + 0.28 for name in plan.column}
    columns, left = [], 0.4
    for column in range(max(plan.column.values()) + 1):
        wide = max(widths[name] for name in plan.column if plan.column[name] == column)
        columns.append((left, left + wide))
        left += wide + GAP
    spots = _Inches({}, widths, columns, left - GAP + 0.4, ROW * plan.span + 0.25 + TITLE)
    for name, column in plan.column.items():
        spots.centres[name] = (sum(columns[column]) / 2, spots.level(plan.height[name]))
    return spots


def _end_offsets(plan: Layout, graph: RehearsalGraph) -> dict[tuple[str, str], float]:
    """Vertical offset of the end of each edge at its target, in inches, in the order of their heights."""
    offsets = {}
    for target in graph.names:
        column = plan.column[target] - 1
        heights = {
            source: plan.height[source] if plan.column[source] == column else plan.passing[source, column]
            for source, head in graph.edges
            if head == target and plan.column[source] <= column
        }
        step = min(0.08, 0.22 / max(len(heights) - 1, 1))
        for index, source in enumerate(sorted(heights, key=heights.__getitem__)):
            offsets[source, target] = step * (index - (len(heights) - 1) / 2)
    return offsets


def _path_across(plan: Layout, spots: _Inches, source: str, target: str, end: float) -> Path:
    """A smooth path to the right, horizontal where it passes a column."""
    (x, y), points, codes = spots.centres[source], [], [Path.MOVETO]
    points.append((x + spots.widths[source] / 2, y))
    goals = [
        (*spots.columns[column], spots.level(plan.passing[source, column]))
        for column in range(plan.column[source] + 1, plan.column[target])
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


def _path_within(plan: Layout, spots: _Inches, source: str, target: str) -> Path:
    """A path within a column, or back to an earlier one: straight between neighbours, else around boxes."""
    (x, y), (right, level) = spots.centres[source], spots.centres[target]
    distance = abs(plan.height[source] - plan.height[target])
    if plan.column[source] == plan.column[target] and abs(distance - 1) < 1e-6:
        half = HEIGHT / 2 if level > y else -HEIGHT / 2
        return Path([(x, y + half), (right, level - half)], [Path.MOVETO, Path.LINETO])
    start, end = (x + spots.widths[source] / 2, y), (right + spots.widths[target] / 2, level)
    bend = max(start[0], end[0]) + 0.35
    return Path([start, (bend, y), (bend, level), end], [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])


def _draw_tiers(axes: Axes, plan: Layout, spots: _Inches) -> None:
    """A shaded band and a title for each tier."""
    for label, first, last in plan.tiers:
        if label:
            left, right = spots.columns[first][0] - 0.25, spots.columns[last][1] + 0.25
            size = (right - left, spots.high - 0.16)
            axes.add_patch(Rectangle((left, 0.08), *size, facecolor="#F2F2F2", edgecolor="none", zorder=0))
            title = TITLES[label] if right - left > 1.4 else label
            middle = ((left + right) / 2, spots.high - TITLE / 2 - 0.05)
            axes.text(*middle, title, ha="center", va="center", fontsize=10, color="#555555")


def _draw_box(axes: Axes, name: str, centre: tuple[float, float], width: float, thick: bool) -> None:
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
