"""The rehearsal graphs that a directed graph represents, and the background knowledge that restricts them.

Observations do not distinguish a bi-directional clique from any order of its members (Thm. 16), so a directed
graph represents every rehearsal graph with which it is compatible. Replacing the edges within a set of
variables by a clique gives a rehearsal graph if and only if the variables are pairwise adjacent and have the
same parents outside the set. In topological order v1, v2, ..., such members have v1's parents, and the
members before them: each edge v_i -> v_{i+1} is covered, Pa(v_{i+1}) = Pa(v_i) + {v_i}.

A variable is the target of at most one covered edge, whose source is the last of its parents. Covered edges
therefore form a forest, cliques are segments of its paths, and a rehearsal graph is a choice, for every
variable, of at most one covered edge out of it. There are prod_v (1 + covered edges out of v) such choices,
which are enumerated directly, without generating and rejecting candidates.

Background knowledge consists of tiers, forbidden edges and required edges. Tiers order variables in time:
nothing in a later tier influences anything in an earlier one. For avoiding an undesired future there are
three, the context X before the intermediate variables Z before the outcomes Y. A bi-directional edge needs
both directions to be permitted and neither to be required.

Source: Qin et al. (2023), Algorithm 2, steps 5-6, and Sec. 3 (X before Z before Y); Chickering (1995)
(covered edges); Meek (1995) (required and forbidden edges).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from rehearsal_torch.files.plain import repeated
from rehearsal_torch.graphs.equivalence import MAX_GRAPHS, TooManyGraphsError
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph


@dataclass(frozen=True)
class Background:
    """Background knowledge about the graph.

    Attributes:
        tiers: Sets of variables, earliest first; a string is a set of one, and variables in no tier are
            unrestricted.
        forbidden: Pairs (from, to) that are not edges.
        required: Pairs (from, to) that are edges.

    Raises:
        ValueError: if a variable is in two tiers, or required edges are forbidden, contradict the tiers or
            form a cycle.
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
        known = {
            name for pairs in (self.tiers, self.forbidden, self.required) for pair in pairs for name in pair
        }
        if unknown := sorted(known - set(names)):
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
        own_tier = self._tier.get(name)
        other_tiers = [self._tier.get(other) for other in others]
        return own_tier is not None and all(tier is not None and tier < own_tier for tier in other_tiers)

    @cached_property
    def _tier(self) -> dict[str, int]:
        return {name: index for index, tier in enumerate(self.tiers) for name in tier}


def _tier(names: Any) -> tuple[str, ...]:
    """A set of variables; a string is a set of one."""
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
    """Every rehearsal graph with which a directed graph is compatible, the directed graph first;
    bi-directional edges join only pairs of which background knowledge permits both directions.

    Raises:
        TooManyGraphsError: if there are more than `max_graphs`.
    """
    known = background or Background()
    choices = {
        source: [target for target in targets if known.permits_both(source, target)]
        for source, targets in covered(dag).items()
    }
    if (count := prod(1 + len(targets) for targets in choices.values())) > max_graphs:
        raise TooManyGraphsError(
            f"a directed graph represents {count} rehearsal graphs, more than {max_graphs}: add background "
            "knowledge, or raise `max_graphs`"
        )
    graphs = []
    for picked in product(*([None, *targets] for targets in choices.values())):
        following = {
            source: target for source, target in zip(choices, picked, strict=True) if target is not None
        }
        cliques = _segments(dag.names, following)
        if all(
            known.permits_both(first, second)
            for clique in cliques
            for first in clique
            for second in clique
            if first != second
        ):
            graphs.append(_replaced(dag, cliques))
    return tuple(graphs)


def all_represented_graphs(
    dags: Iterable[RehearsalGraph], background: Background | None = None, max_graphs: int = MAX_GRAPHS
) -> tuple[RehearsalGraph, ...]:
    """The distinct rehearsal graphs that several directed graphs represent: the directed ones first, then in
    increasing number of bi-directional edges.

    Raises:
        TooManyGraphsError: if there are more than `max_graphs`.
    """
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
    """The variables grouped into paths along the chosen edges."""
    inner, cliques = set(following.values()), []
    for name in names:
        if name not in inner:
            clique = [name]
            while clique[-1] in following:
                clique.append(following[clique[-1]])
            cliques.append(tuple(clique))
    return cliques


def _replaced(dag: RehearsalGraph, cliques: list[tuple[str, ...]]) -> RehearsalGraph:
    clique_of = {name: clique for clique in cliques for name in clique}
    return RehearsalGraph(
        tuple(cliques),
        tuple((source, target) for source, target in dag.edges if clique_of[source] != clique_of[target]),
    )
