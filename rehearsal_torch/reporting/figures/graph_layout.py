"""Layout of a rehearsal graph: columns, heights and the routes of its edges.

Time runs from left to right: the context X, the intermediate variables Z, the outcomes Y. Each tier has as
many columns as its longest chain of directed edges has cliques, and the members of a clique share a column,
one below the other. An edge that passes a column has a position of its own there, shared with the other edges
from the same variable, so that no edge runs behind a box. Within a column, entries are sorted by the mean
height of their neighbours, in a few sweeps back and forth, to reduce crossings.

Source: Sugiyama, Tagawa and Toda (1981) (layers, positions of passing edges, barycentres).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

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
    """Computes the positions of the variables and edges of a graph.

    Args:
        context: X, on the left.
        outcomes: Y, on the right; without context and outcomes there is a single tier.

    Raises:
        ValueError: if a role names an unknown variable.
    """
    parts = {**dict.fromkeys(context, "X"), **dict.fromkeys(outcomes, "Y")}
    if unknown := sorted(set(parts) - set(graph.names)):
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    clique_of = {name: clique for clique in graph.cliques for name in clique}
    part_of = {clique: _part([parts.get(name, "Z") for name in clique]) for clique in graph.cliques}
    columns: list[list[Entry]] = []
    column: dict[str, int] = {}
    tiers = []
    for part in ("X", "Z", "Y"):
        depth: dict[Clique, int] = {}
        for clique, parents in ((each, graph.parents(each)) for each in graph.cliques):
            if part_of[clique] == part:
                depth[clique] = max(
                    (depth[clique_of[name]] + 1 for name in parents if clique_of[name] in depth), default=0
                )
        if depth:
            first = len(columns)
            columns += [
                [("clique", clique) for clique in depth if depth[clique] == place]
                for place in range(max(depth.values()) + 1)
            ]
            column |= {name: first + place for clique, place in depth.items() for name in clique}
            tiers.append((part if parts else "", first, len(columns) - 1))
    near: dict[tuple[Entry, int], list[tuple[Entry, int]]] = {}
    for source, target in graph.edges:
        steps: list[tuple[Entry, int]] = [(("clique", clique_of[source]), column[source])]
        steps += [(("passing", (source,)), place) for place in range(column[source] + 1, column[target])]
        steps.append((("clique", clique_of[target]), column[target]))
        for entry, place in steps[1:-1]:
            if entry not in columns[place]:
                columns[place].append(entry)
        for one, other in pairwise(steps):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
    heights = _sorted(columns, near)
    passing = {
        (entry[1][0], place): height for (entry, place), height in heights.items() if entry[0] == "passing"
    }
    height: dict[str, float] = {}
    for clique in graph.cliques:
        middle = heights[("clique", clique), column[clique[0]]]
        height |= {name: middle + (len(clique) - 1) / 2 - index for index, name in enumerate(clique)}
    return Layout(column, height, passing, tuple(tiers), max(sum(map(_size, each)) for each in columns))


def _part(parts: Sequence[str]) -> str:
    """The tier of a clique; the middle one if its members belong to several."""
    return parts[0] if len(set(parts)) == 1 else "Z"


def _size(entry: Entry) -> float:
    return PASSING if entry[0] == "passing" else float(len(entry[1]))


def _sorted(
    columns: list[list[Entry]], near: Mapping[tuple[Entry, int], Sequence[tuple[Entry, int]]]
) -> dict[tuple[Entry, int], float]:
    """Sorts the columns in place; returns (entry, column) to the height of its middle."""
    heights = {
        (entry, place): height
        for place, column in enumerate(columns)
        for entry, height in _stacked(column).items()
    }
    for sweep in range(_SWEEPS):
        for place in range(len(columns)) if sweep % 2 == 0 else reversed(range(len(columns))):
            target = {}
            for entry in columns[place]:
                joined = [heights[other] for other in near.get((entry, place), ())]
                target[entry] = sum(joined) / len(joined) if joined else heights[entry, place]
            columns[place].sort(key=lambda entry: -target[entry])
            heights |= {(entry, place): height for entry, height in _stacked(columns[place]).items()}
    return heights


def _stacked(column: Sequence[Entry]) -> dict[Entry, float]:
    """Heights of the entries of a column, from the top, centred at zero."""
    top, found = sum(map(_size, column)) / 2, {}
    for entry in column:
        found[entry] = top - _size(entry) / 2
        top -= _size(entry)
    return found
