"""Where the variables and edges of a rehearsal graph stand when it is drawn.

Time runs from left to right: the context X, the intermediate variables Z, the outcomes Y. Each tier has as
many columns as its longest chain of directed edges has cliques, and the members of a clique share a column,
one below the other. An edge that passes a column has a place of its own there, which it shares with the other
edges from the same variable, so that no edge runs behind a box. Within a column everything is sorted by the
mean height of what it is joined to, back and forth a few times, so that edges cross less.

Source: Sugiyama, Tagawa and Toda (1981) (layers, places of passing edges, barycentres).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

# The members of a clique, or the variable whose edges pass.
Clique = tuple[str, ...]
Entry = tuple[str, Clique]
PASSING = 0.5
_SWEEPS = 12


@dataclass(frozen=True)
class Layout:
    """Columns and heights; a variable takes a height of one, passing edges take `PASSING`.

    Attributes:
        column: Variable to its column.
        height: Variable to its height, above zero where it is above the middle.
        passing: (variable, column) to the height at which its edges pass that column.
        tiers: (label, first column, last column) of every tier that has variables.
        span: The height of the highest column.
    """

    column: Mapping[str, int]
    height: Mapping[str, float]
    passing: Mapping[tuple[str, int], float]
    tiers: tuple[tuple[str, int, int], ...]
    span: float


def layout(graph: RehearsalGraph, context: Sequence[str] = (), outcomes: Sequence[str] = ()) -> Layout:
    """Places the variables and edges of a graph.

    Args:
        graph: Who influences whom.
        context: X, on the left.
        outcomes: Y, on the right; without these two there is a single tier.

    Raises:
        ValueError: if a part names an unknown variable.
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
    """The tier of a clique; where its members differ, the middle one."""
    return parts[0] if len(set(parts)) == 1 else "Z"


def _size(entry: Entry) -> float:
    return PASSING if entry[0] == "passing" else float(len(entry[1]))


def _sorted(
    columns: list[list[Entry]], near: Mapping[tuple[Entry, int], Sequence[tuple[Entry, int]]]
) -> dict[tuple[Entry, int], float]:
    """Entry and column to the height of its middle, once the columns are sorted."""
    heights = {
        (entry, place): height
        for place, column in enumerate(columns)
        for entry, height in _stacked(column).items()
    }
    for sweep in range(_SWEEPS):
        for place in range(len(columns)) if sweep % 2 == 0 else reversed(range(len(columns))):
            wanted = {}
            for entry in columns[place]:
                joined = [heights[other] for other in near.get((entry, place), ())]
                wanted[entry] = sum(joined) / len(joined) if joined else heights[entry, place]
            columns[place].sort(key=lambda entry: -wanted[entry])
            heights |= {(entry, place): height for entry, height in _stacked(columns[place]).items()}
    return heights


def _stacked(column: Sequence[Entry]) -> dict[Entry, float]:
    """Entries from above, centred."""
    top, found = sum(map(_size, column)) / 2, {}
    for entry in column:
        found[entry] = top - _size(entry) / 2
        top -= _size(entry)
    return found
