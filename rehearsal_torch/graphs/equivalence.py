"""Markov equivalence classes: the directed acyclic graphs that observations cannot tell apart.

Two such graphs imply the same conditional independences if and only if they have the same skeleton and the
same v-structures a -> c <- b, a and b not adjacent. A class is represented by a partially directed graph,
whose members are its extensions: every undirected edge is given a direction, without creating a directed
cycle or a new v-structure.

Whether a partially directed graph has a member is decided by repeatedly removing a variable x that has no
outgoing directed edge and all of whose undirected neighbours are adjacent to all its other neighbours; there
is a member if and only if this removes every variable. Checking this before each choice lists the members
without dead ends, and an edge is compelled where one of its directions leaves no member: steps 3 and 4 of
Algorithm 2.

Source: Verma and Pearl (1990), Thm. 1; Dor and Tarsi (1992); Qin et al. (2023), Algorithm 2, steps 3-4.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, neighbours

Edge = tuple[str, str]
MAX_GRAPHS = 1000


class NoMemberError(ValueError):
    """A partially directed graph that no directed acyclic graph extends."""


class TooManyGraphsError(ValueError):
    """A class with more members than the given maximum."""


@dataclass(frozen=True)
class PartiallyDirected:
    """A partially directed graph: variables, pairs (from, to), and undirected pairs in the order of the
    names.

    Raises:
        ValueError: if an edge names an unknown variable, or two edges join the same variables.
    """

    names: tuple[str, ...]
    directed: tuple[Edge, ...]
    undirected: tuple[Edge, ...]

    def __post_init__(self) -> None:
        order = {name: index for index, name in enumerate(self.names)}
        unknown = sorted({end for edge in (*self.directed, *self.undirected) for end in edge} - set(order))
        if unknown:
            raise ValueError(f"unknown variables {unknown}: the variables are {list(self.names)}")
        loose = [(a, b) if order[a] < order[b] else (b, a) for a, b in self.undirected]
        object.__setattr__(
            self, "directed", tuple(sorted(self.directed, key=lambda edge: (order[edge[0]], order[edge[1]])))
        )
        object.__setattr__(
            self, "undirected", tuple(sorted(loose, key=lambda edge: (order[edge[0]], order[edge[1]])))
        )
        pairs = [frozenset(edge) for edge in (*self.directed, *self.undirected)]
        if len(set(pairs)) < len(pairs) or any(len(pair) == 1 for pair in pairs):
            raise ValueError(
                "a partially directed graph has at most one edge between two variables, and none from a "
                "variable to itself"
            )

    def adjacent(self) -> dict[str, set[str]]:
        """Variable to its neighbours, regardless of the edges' directions."""
        return neighbours(self.names, (*self.directed, *self.undirected))

    def orienting(self, edges: Iterable[Edge]) -> "PartiallyDirected":
        """The graph with some undirected edges directed as given."""
        required = tuple(edges)
        pairs = {frozenset(edge) for edge in required}
        rest = tuple(edge for edge in self.undirected if frozenset(edge) not in pairs)
        kept = tuple(edge for edge in self.directed if frozenset(edge) not in pairs)
        return PartiallyDirected(self.names, (*kept, *required), rest)


def pattern_of(graph: RehearsalGraph, names: Sequence[str] | None = None) -> PartiallyDirected:
    """The Markov equivalence class of a graph, in the order of `names` if given; the edges that all members
    share are directed. Of a rehearsal graph it is that of the directed graphs that are compatible with it
    (Thm. 16).
    """
    graph.require_cliques("a class of directed graphs")
    inner = [(a, b) for clique in graph.cliques for a, b in combinations(clique, 2)]
    dag = RehearsalGraph(tuple((name,) for name in graph.names), (*graph.edges, *inner))
    named = graph.names if names is None else tuple(names)
    kept = _colliding(dag, PartiallyDirected(named, dag.edges, ()).adjacent())
    return closed(
        PartiallyDirected(named, tuple(kept), tuple(edge for edge in dag.edges if edge not in kept))
    )


def closed(pattern: PartiallyDirected) -> PartiallyDirected:
    """The graph with every compelled edge directed (Qin et al. (2023), Algorithm 2, step 3); Meek's rules
    (1995) reach the same graph.

    Raises:
        NoMemberError: if the class is empty.
    """
    if not has_member(pattern):
        raise NoMemberError(
            "no directed acyclic graph has these edges and only these v-structures: the independences that "
            "were found contradict each other"
        )
    for a, b in pattern.undirected:
        ways = [edge for edge in ((a, b), (b, a)) if _possible(pattern, edge)]
        if len(ways) == 1:
            pattern = pattern.orienting(ways)
    return pattern


def has_member(pattern: PartiallyDirected) -> bool:
    """Whether a directed acyclic graph extends the pattern without a new v-structure."""
    order, added = _taken(pattern, strict=True)
    return len(order) == len(pattern.names) and not added


def relaxed(
    pattern: PartiallyDirected, required: Iterable[Edge] = ()
) -> tuple[PartiallyDirected, tuple[tuple[str, str, str], ...]]:
    """A class with members that keeps the edges and directions of a pattern without members, by adding
    v-structures, and these: triples (a, c, b) of a -> c <- b, chosen greedily one variable at a time.
    `required` edges are kept in any case, as background knowledge.

    Raises:
        NoMemberError: if directed edges form a cycle.
    """
    order, added = _taken(pattern, strict=False)
    if len(order) < len(pattern.names):
        raise NoMemberError("the directed edges form a cycle: remove one of them")
    # The variables removed first come last.
    rank = {name: -index for index, name in enumerate(order)}
    edges = [(a, b) if rank[a] < rank[b] else (b, a) for a, b in pattern.undirected]
    dag = RehearsalGraph(tuple((name,) for name in pattern.names), (*pattern.directed, *edges))
    kept = {*_colliding(dag, pattern.adjacent()), *required}
    loose = tuple(edge for edge in dag.edges if edge not in kept)
    return PartiallyDirected(pattern.names, tuple(kept), loose), tuple(added)


def _taken(pattern: PartiallyDirected, strict: bool) -> tuple[list[str], list[tuple[str, str, str]]]:
    """The variables in the order in which they can be removed, last effects first; if not `strict`, a
    variable is removed even where that adds new v-structures.
    """
    near, loose = pattern.adjacent(), neighbours(pattern.names, pattern.undirected)
    leaving = dict.fromkeys(pattern.names, 0)
    into: dict[str, list[str]] = {name: [] for name in pattern.names}
    for source, target in pattern.directed:
        leaving[source] += 1
        into[target].append(source)
    left, order, added = list(pattern.names), list[str](), list[tuple[str, str, str]]()
    while left:
        ends = [x for x in left if not leaving[x]]
        sink = next((x for x in ends if all(near[x] - {y} <= near[y] for y in loose[x])), None)
        if sink is None and not strict and ends:
            sink = min(ends, key=lambda x: len(_opened(x, near, loose)))
            added += [(a, sink, b) for a, b in _opened(sink, near, loose)]
        if sink is None:
            break
        for y in near.pop(sink):
            near[y].discard(sink)
            loose[y].discard(sink)
        for source in into[sink]:
            leaving[source] -= 1
        left.remove(sink)
        order.append(sink)
    return order, added


def _opened(name: str, near: Mapping[str, set[str]], loose: Mapping[str, set[str]]) -> list[Edge]:
    """The v-structures that would be added by removing a variable as an effect of all its neighbours."""
    return [
        (a, b)
        for a, b in combinations(sorted(near[name]), 2)
        if b not in near[a] and (a in loose[name] or b in loose[name])
    ]


def _colliding(dag: RehearsalGraph, near: Mapping[str, set[str]]) -> set[Edge]:
    """The edges that are part of a v-structure."""
    colliding = set[Edge]()
    for clique, causes in dag.factors:
        for a, b in combinations(causes, 2):
            if b not in near[a]:
                colliding |= {(a, clique[0]), (b, clique[0])}
    return colliding


def members(pattern: PartiallyDirected, max_graphs: int = MAX_GRAPHS) -> tuple[RehearsalGraph, ...]:
    """All directed acyclic graphs of a class, in which background knowledge may have directed further edges.

    Raises:
        NoMemberError: if the class is empty.
        TooManyGraphsError: if there are more than `max_graphs`.
    """
    graphs: list[RehearsalGraph] = []
    for edges in _extensions(closed(pattern)):
        if len(graphs) == max_graphs:
            raise TooManyGraphsError(
                f"more than {max_graphs} directed graphs are Markov equivalent: add background knowledge "
                "(tiers, required edges), or raise `max_graphs`"
            )
        graphs.append(RehearsalGraph(tuple((name,) for name in pattern.names), edges))
    return tuple(graphs)


def _extensions(pattern: PartiallyDirected) -> Iterator[tuple[Edge, ...]]:
    if not pattern.undirected:
        yield pattern.directed
        return
    a, b = pattern.undirected[0]
    for edge in ((a, b), (b, a)):
        if _possible(pattern, edge):
            yield from _extensions(pattern.orienting([edge]))


def _possible(pattern: PartiallyDirected, edge: Edge) -> bool:
    """Whether this direction adds no v-structure and leaves the class a member."""
    source, target = edge
    near = pattern.adjacent()
    if any(
        end == target and start != source and start not in near[source] for start, end in pattern.directed
    ):
        return False
    return has_member(pattern.orienting([edge]))
