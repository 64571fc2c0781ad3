"""Markov equivalence: graphs that observations cannot tell apart, restricted by background knowledge.

Two directed acyclic graphs imply the same conditional independences if and only if they have the same
skeleton and the same v-structures a -> c <- b, a and b not adjacent. A class is represented by a partially
directed graph, whose members are its extensions: every undirected edge is given a direction, without creating
a directed cycle or a new v-structure. Whether there is a member is decided by repeatedly removing a variable
x that has no outgoing directed edge and all of whose undirected neighbours are adjacent to all its other
neighbours; there is one if and only if this removes every variable. Checking this before each choice lists
the members without dead ends, and an edge is compelled where one of its directions leaves no member.

Observations do not distinguish a bi-directional clique from any order of its members either (Thm. 16).
Replacing the edges within a set of variables by a clique gives a rehearsal graph if and only if the variables
are pairwise adjacent and have the same parents outside the set. In topological order v1, v2, ..., such
members have v1's parents, and the members before them: each edge v_i -> v_{i+1} is covered, Pa(v_{i+1}) =
Pa(v_i) + {v_i}. A variable is the target of at most one covered edge, whose source is the last of its
parents. Covered edges therefore form a forest, cliques are segments of its paths, and a rehearsal graph is a
choice, for every variable, of at most one covered edge out of it.

Background knowledge consists of tiers, forbidden edges and required edges. Tiers order variables in time:
nothing in a later tier influences anything in an earlier one. Bi-directional edges need both permitted.

Source: Qin et al. (2023), Algorithm 2, steps 3-6, and Sec. 3 (tiers); Verma and Pearl (1990), Thm. 1; Dor and
Tarsi (1992); Chickering (1995) (covered edges); Meek (1995) (required and forbidden edges).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import Any

from rehearsal_torch.files.bounded_yaml import repeated
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, neighbours

Edge = tuple[str, str]
MAX_GRAPHS = 1000


class NoMemberError(ValueError):
    """A partially directed graph that no directed acyclic graph extends."""


class TooManyGraphsError(ValueError):
    """A class with more members than the given maximum."""


@dataclass(frozen=True)
class PartiallyDirected:
    """Variables, directed edges and undirected pairs, at most one between two; else a ValueError."""

    names: tuple[str, ...]
    directed: tuple[Edge, ...]
    undirected: tuple[Edge, ...]

    def __post_init__(self) -> None:
        order = {name: index for index, name in enumerate(self.names)}
        unknown = sorted({end for edge in (*self.directed, *self.undirected) for end in edge} - set(order))
        if unknown:
            raise ValueError(f"unknown variables {unknown}: the variables are {list(self.names)}")
        loose = [(a, b) if order[a] < order[b] else (b, a) for a, b in self.undirected]
        for kind, edges in (("directed", self.directed), ("undirected", loose)):
            in_order = sorted(edges, key=lambda edge: (order[edge[0]], order[edge[1]]))
            object.__setattr__(self, kind, tuple(in_order))
        pairs = [frozenset(edge) for edge in (*self.directed, *self.undirected)]
        if len(set(pairs)) < len(pairs) or any(len(pair) == 1 for pair in pairs):
            raise ValueError(
                "a partially directed graph has at most one edge between two variables, and none from a "
                "variable to itself"
            )

    def adjacent(self) -> dict[str, set[str]]:
        """Variable to its neighbours, regardless of the edges' directions."""
        return neighbours(self.names, (*self.directed, *self.undirected))

    def orienting(self, edges: Sequence[Edge]) -> "PartiallyDirected":
        """The graph with some edges directed as given."""
        oriented = {frozenset(edge) for edge in edges}
        directed, undirected = (
            tuple(edge for edge in edge_set if frozenset(edge) not in oriented)
            for edge_set in (self.directed, self.undirected)
        )
        return PartiallyDirected(self.names, (*directed, *edges), undirected)


def closed(pattern: PartiallyDirected) -> PartiallyDirected:
    """The graph with every compelled edge directed (Algorithm 2, step 3), or a NoMemberError."""
    if not has_member(pattern):
        raise NoMemberError(
            "no directed acyclic graph has these edges and only these v-structures: the independences that "
            "were found contradict each other"
        )
    for a, b in pattern.undirected:
        directions = [edge for edge in ((a, b), (b, a)) if _possible(pattern, edge)]
        pattern = pattern.orienting(directions) if len(directions) == 1 else pattern
    return pattern


def has_member(pattern: PartiallyDirected) -> bool:
    """Whether a directed acyclic graph extends the pattern without a new v-structure."""
    order, added = _elimination(pattern, strict=True)
    return len(order) == len(pattern.names) and not added


def relaxed(
    pattern: PartiallyDirected, required: Iterable[Edge] = ()
) -> tuple[PartiallyDirected, tuple[tuple[str, str, str], ...]]:
    """A class with members that keeps the edges, directions and `required` edges of a pattern without any,
    and the v-structures (a, c, b) added greedily for that; a NoMemberError for a directed cycle.
    """
    order, added = _elimination(pattern, strict=False)
    if len(order) < len(pattern.names):
        raise NoMemberError("the directed edges form a cycle: remove one of them")
    # The variables removed first come last.
    rank = {name: -index for index, name in enumerate(order)}
    edges = [(a, b) if rank[a] < rank[b] else (b, a) for a, b in pattern.undirected]
    dag = RehearsalGraph(tuple((name,) for name in pattern.names), (*pattern.directed, *edges))
    fixed = {*_v_structure_edges(dag, pattern.adjacent()), *required}
    loose = tuple(edge for edge in dag.edges if edge not in fixed)
    return PartiallyDirected(pattern.names, tuple(fixed), loose), tuple(added)


def _elimination(pattern: PartiallyDirected, strict: bool) -> tuple[list[str], list[tuple[str, str, str]]]:
    """The order of removal, last effects first, and v-structures added unless `strict`."""
    near, loose = pattern.adjacent(), neighbours(pattern.names, pattern.undirected)
    outgoing = dict.fromkeys(pattern.names, 0)
    sources: dict[str, list[str]] = {name: [] for name in pattern.names}
    for source, target in pattern.directed:
        outgoing[source] += 1
        sources[target].append(source)
    remaining, order, added = list(pattern.names), list[str](), list[tuple[str, str, str]]()
    while remaining:
        sinks = [x for x in remaining if not outgoing[x]]
        sink = next((x for x in sinks if all(near[x] - {y} <= near[y] for y in loose[x])), None)
        if sink is None and not strict and sinks:
            sink = min(sinks, key=lambda x: len(_added_v_structures(x, near, loose)))
            added += [(a, sink, b) for a, b in _added_v_structures(sink, near, loose)]
        if sink is None:
            break
        for y in near.pop(sink):
            near[y].discard(sink)
            loose[y].discard(sink)
        for source in sources[sink]:
            outgoing[source] -= 1
        remaining.remove(sink)
        order.append(sink)
    return order, added


def _added_v_structures(name: str, near: Mapping[str, set[str]], loose: Mapping[str, set[str]]) -> list[Edge]:
    """The v-structures that would be added by removing a variable as an effect of all its neighbours."""
    return [
        (a, b)
        for a, b in combinations(sorted(near[name]), 2)
        if b not in near[a] and (a in loose[name] or b in loose[name])
    ]


def _v_structure_edges(dag: RehearsalGraph, near: Mapping[str, set[str]]) -> set[Edge]:
    colliding = set[Edge]()
    for clique, causes in dag.factors:
        for a, b in combinations(causes, 2):
            if b not in near[a]:
                colliding |= {(a, clique[0]), (b, clique[0])}
    return colliding


def members(pattern: PartiallyDirected, max_graphs: int = MAX_GRAPHS) -> tuple[RehearsalGraph, ...]:
    """All directed acyclic graphs of a class; NoMemberError for none, TooManyGraphsError for too many."""
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


@dataclass(frozen=True)
class Background:
    """Background knowledge: tiers of variables, earliest first (variables in no tier are unrestricted), and
    forbidden and required edges (from, to). A ValueError for a variable in two tiers, and for required edges
    that are forbidden, contradict the tiers or form a cycle.
    """

    tiers: tuple[tuple[str, ...], ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()
    required: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tiers", tuple(_tier(tier) for tier in self.tiers))
        for kind in ("forbidden", "required"):
            object.__setattr__(self, kind, _edges(getattr(self, kind), kind))
        if twice := sorted(repeated(name for tier in self.tiers for name in tier)):
            raise ValueError(f"{twice} are in two tiers: keep each variable in one")
        # Raises if required edges form a cycle.
        RehearsalGraph.mixed((), self.required)
        for source, target in self.required:
            if not self.permits(source, target):
                reason = "forbidden as well" if (source, target) in self.forbidden else "against the tiers"
                raise ValueError(f"the required edge {source} -> {target} is {reason}: remove one of the two")

    @classmethod
    def roles(
        cls,
        names: Sequence[str],
        context: Iterable[str] = (),
        outcomes: Iterable[str] = (),
        forbidden: Iterable[tuple[str, str]] = (),
        required: Iterable[tuple[str, str]] = (),
    ) -> "Background":
        """Tiers X before Z before Y, where Z is every variable that is neither context nor outcome."""
        first, last = tuple(context), tuple(outcomes)
        tiers = (first, tuple(name for name in names if name not in (*first, *last)), last)
        background = cls(tuple(tier for tier in tiers if tier), tuple(forbidden), tuple(required))
        background.check(names)
        return background

    def check(self, names: Sequence[str]) -> None:
        """Refuses background knowledge of a variable that is not in `names`."""
        mentioned = {name for group in (*self.tiers, *self.forbidden, *self.required) for name in group}
        if unknown := sorted(mentioned - set(names)):
            raise ValueError(f"background knowledge names {unknown}: the variables are {list(names)}")

    def permits(self, source: str, target: str) -> bool:
        """Whether a directed edge from `source` to `target` is permitted."""
        earlier, later = self._tier.get(source), self._tier.get(target)
        early = earlier is None or later is None or earlier <= later
        return early and (source, target) not in self.forbidden and (target, source) not in self.required

    def adjacent(self, one: str, other: str) -> bool:
        """Whether an edge in either direction is required."""
        return (one, other) in self.required or (other, one) in self.required

    def permits_both(self, one: str, other: str) -> bool:
        """Whether a bi-directional edge is permitted."""
        return self.permits(one, other) and self.permits(other, one)

    def later(self, name: str, others: Iterable[str]) -> bool:
        """Whether a variable is in a later tier than all others, so that it cannot cause any of them."""
        tier = self._tier.get(name)
        tiers = [self._tier.get(cause) for cause in others]
        return tier is not None and all(t is not None and t < tier for t in tiers)

    @cached_property
    def _tier(self) -> dict[str, int]:
        return {name: index for index, tier in enumerate(self.tiers) for name in tier}


def _tier(names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    if isinstance(names, Mapping) or not isinstance(names, Iterable):
        raise ValueError(f"tiers: expected lists of variables; got {names!r}")
    return tuple(str(name) for name in names)


def _edges(pairs: Iterable[Sequence[str]], kind: str) -> tuple[tuple[str, str], ...]:
    edges = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"{kind}: expected pairs [from, to] of different variables; got {pair!r}")
        edges.append((str(pair[0]), str(pair[1])))
    return tuple(dict.fromkeys(edges))


def equivalent(graph: RehearsalGraph, background: Background, max_graphs: int) -> tuple[RehearsalGraph, ...]:
    """A directed graph and the permitted ones that are Markov equivalent; errors as of `members`."""
    graph.require_cliques("an equivalence class")
    if graph.bidirected:
        raise ValueError("expected a directed graph; got bi-directional edges")
    fixed = _v_structure_edges(graph, neighbours(graph.names, graph.edges))
    fixed |= {edge for edge in graph.edges if not background.permits(*edge[::-1])}
    loose = tuple(edge for edge in graph.edges if edge not in fixed)
    graphs = members(PartiallyDirected(graph.names, tuple(fixed), loose), max_graphs)
    alternatives = [member for member in graphs if set(member.edges) != set(graph.edges)]
    return (graph, *alternatives)


def covered(dag: RehearsalGraph) -> dict[str, tuple[str, ...]]:
    """The covered edges of a directed graph, source to targets; ValueError if it has bi-directional edges."""
    if dag.bidirected:
        raise ValueError(f"expected a directed graph; got bi-directional edges {list(dag.bidirected)}")
    causes = {clique[0]: set(parents) for clique, parents in dag.factors}
    targets_of: dict[str, list[str]] = {}
    for source, target in dag.edges:
        if causes[target] == causes[source] | {source}:
            targets_of.setdefault(source, []).append(target)
    return {source: tuple(targets) for source, targets in targets_of.items()}


def represented_graphs(
    dag: RehearsalGraph, background: Background | None = None, max_graphs: int = MAX_GRAPHS
) -> tuple[RehearsalGraph, ...]:
    """Every rehearsal graph that a directed one represents, itself first, or a TooManyGraphsError."""
    knowledge = background or Background()
    choices = {
        source: [None, *(target for target in targets if knowledge.permits_both(source, target))]
        for source, targets in covered(dag).items()
    }
    if (count := prod(map(len, choices.values()))) > max_graphs:
        raise TooManyGraphsError(
            f"a directed graph represents {count} rehearsal graphs, more than {max_graphs}: add background "
            "knowledge, or raise `max_graphs`"
        )
    graphs = []
    for choice in product(*choices.values()):
        following = {source: target for source, target in zip(choices, choice, strict=True) if target}
        cliques = _segments(dag.names, following)
        if all(knowledge.permits_both(*pair) for clique in cliques for pair in combinations(clique, 2)):
            clique_of = {name: clique for clique in cliques for name in clique}
            edges = [(cause, effect) for cause, effect in dag.edges if clique_of[cause] != clique_of[effect]]
            graphs.append(RehearsalGraph(tuple(cliques), tuple(edges)))
    return tuple(graphs)


def all_represented_graphs(
    dags: Iterable[RehearsalGraph], background: Background | None = None, max_graphs: int = MAX_GRAPHS
) -> tuple[RehearsalGraph, ...]:
    """The distinct graphs that directed graphs represent, by their number of bi-directional edges."""
    distinct: dict[tuple, RehearsalGraph] = {}
    for dag in dags:
        for graph in represented_graphs(dag, background, max_graphs):
            distinct.setdefault(signature(graph), graph)
        if len(distinct) > max_graphs:
            raise TooManyGraphsError(
                f"more than {max_graphs} rehearsal graphs cannot be told apart: add background knowledge, or "
                "raise `max_graphs`"
            )
    return tuple(sorted(distinct.values(), key=lambda graph: len(graph.bidirected)))


def signature(graph: RehearsalGraph) -> tuple[frozenset, frozenset, frozenset]:
    """Variables and edges as sets: equal for graphs that differ only in the order of these."""
    hidden = frozenset(frozenset(pair) for pair in graph.bidirected)
    return frozenset(graph.names), frozenset(graph.edges), hidden


def _segments(names: Iterable[str], following: dict[str, str]) -> list[tuple[str, ...]]:
    cliques = []
    for name in names:
        if name not in following.values():
            clique = [name]
            while clique[-1] in following:
                clique.append(following[clique[-1]])
            cliques.append(tuple(clique))
    return cliques
