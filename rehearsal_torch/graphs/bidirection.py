"""The rehearsal graphs that a directed graph stands for.

Observations do not tell a bi-directional clique from any order of its members (Thm. 16), so a directed graph stands for
every rehearsal graph with which it is compatible. Replacing edges within a set of variables gives a rehearsal graph if and
only if the set is a clique whose members have the same parents outside it. Put in their order v1, v2, ..., such members
have v1's parents, and v1, v2, ... before them: each edge v_i -> v_{i+1} is covered, Pa(v_{i+1}) = Pa(v_i) + {v_i}.

A variable is the target of at most one covered edge, its source being the last of its parents. Covered edges are thus a
forest, cliques are stretches of its paths, and a rehearsal graph is a choice, for every variable, of at most one covered
edge out of it. There are prod_v (1 + covered edges out of v), and no candidate has to be drawn and rejected.

Source: Qin et al. (2023), Algorithm 2, steps 5-6; Chickering (1995) (covered edges); the forest is ours.
"""

from collections.abc import Iterable
from itertools import product
from math import prod

from rehearsal_torch.graphs.background import Background
from rehearsal_torch.graphs.equivalence import MOST, TooManyError
from rehearsal_torch.graphs.rehearsal import RehearsalGraph


def covered(dag: RehearsalGraph) -> dict[str, tuple[str, ...]]:
    """The covered edges of a directed graph, source to targets.

    Raises:
        ValueError: if the graph has bi-directional edges.
    """
    if dag.bidirected:
        raise ValueError(f"expected a directed graph; got bi-directional edges {list(dag.bidirected)}")
    causes = {clique[0]: set(parents) for clique, parents in dag.factors}
    found: dict[str, list[str]] = {}
    for source, target in dag.edges:
        if causes[target] == causes[source] | {source}:
            found.setdefault(source, []).append(target)
    return {source: tuple(targets) for source, targets in found.items()}


def standing_for(dag: RehearsalGraph, background: Background | None = None, most: int = MOST) -> tuple[RehearsalGraph, ...]:
    """Every rehearsal graph with which a directed graph is compatible, itself first.

    Args:
        dag: Directed and acyclic.
        background: Bi-directional edges join only pairs of which it permits both directions; None permits all.
        most: Largest number of graphs.

    Raises:
        TooManyError: if there are more.
    """
    known = background or Background()
    choices = {source: [target for target in targets if known.permits_both(source, target)] for source, targets in covered(dag).items()}
    if (count := prod(1 + len(targets) for targets in choices.values())) > most:
        raise TooManyError(f"a directed graph stands for {count} rehearsal graphs, more than {most}: tell more of what is known, or raise `most`")
    found = []
    for picked in product(*([None, *targets] for targets in choices.values())):
        following = {source: target for source, target in zip(choices, picked, strict=True) if target is not None}
        cliques = _stretches(dag.names, following)
        if all(known.permits_both(one, other) for clique in cliques for one in clique for other in clique if one != other):
            found.append(_replaced(dag, cliques))
    return tuple(found)


def all_standing_for(dags: Iterable[RehearsalGraph], background: Background | None = None, most: int = MOST) -> tuple[RehearsalGraph, ...]:
    """The distinct rehearsal graphs of several directed graphs: these first, then those with bi-directional edges, fewest first.

    Raises:
        TooManyError: if there are more than `most`.
    """
    found: dict[tuple, RehearsalGraph] = {}
    for dag in dags:
        for graph in standing_for(dag, background, most):
            found.setdefault(signature(graph), graph)
        if len(found) > most:
            raise TooManyError(f"more than {most} rehearsal graphs cannot be told apart: tell more of what is known, or raise `most`")
    return tuple(sorted(found.values(), key=lambda graph: len(graph.bidirected)))


def signature(graph: RehearsalGraph) -> tuple[frozenset, frozenset, frozenset]:
    """Variables, directed and bi-directional edges: equal for graphs that differ only in the order in which these were named."""
    return frozenset(graph.names), frozenset(graph.edges), frozenset(frozenset(pair) for pair in graph.bidirected)


def _stretches(names: Iterable[str], following: dict[str, str]) -> list[tuple[str, ...]]:
    """The variables strung together along the chosen edges."""
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
    return RehearsalGraph(tuple(cliques), tuple((source, target) for source, target in dag.edges if clique_of[source] != clique_of[target]))
