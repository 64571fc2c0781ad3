"""Rows: questions to a graph, beside networkx, causal-learn and pgmpy.

Random directed acyclic graphs with three causes per variable on average, and twenty questions to each:

    ancestors      of one variable
    d-separation   of two variables given a third of the others
    adjustment     the covariates for altering one variable, and whether they block every back-door path; the
                   reference forms the same set from ancestors and descendants, and tests it by d-separation
                   in the graph without the altered variable's outgoing edges

Both sides hold the graph in their own form, made beforehand. The leading term of each question is the number
of edges, which grows as the number of nodes here.

Source: Qin et al. (2023), Def. 12; Shpitser, VanderWeele and Robins (2010); Hagberg et al. (2008) for
networkx; Zheng et al. (2024) for causal-learn; Ankan and Textor (2024) for pgmpy, whose search for covariates
lists all directed paths and is not asked.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import networkx as nx
import numpy as np

from benchmarks.suite.job import Job
from benchmarks.suite.measuring import Contest, Quality
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import adjustment, c_separated

NODES, QUESTIONS = (10, 50, 200), 20
Question = tuple[str, str, frozenset[str]]


def jobs(small: bool = False) -> Iterator[Job]:
    """The rows; small ones for a test."""
    nodes = (6, 12) if small else NODES
    for count in nodes:
        yield Job("ancestors", "networkx", "nodes", count, partial(ancestors, count), "", 1)
        yield Job("d-separation", "networkx", "nodes", count, partial(separation, count), "", 1)
        more = "ours also looks for covariates between alterations"
        yield Job("adjustment", "networkx", "nodes", count, partial(adjusted, count), more, 1)
        group = "d-separation, pgmpy"
        yield Job(group, "pgmpy", "nodes", count, partial(separation_pgmpy, count), "", 1, needs="pgmpy")
    # At fifty nodes a question takes causal-learn minutes.
    yield Job("d-separation, 10 nodes", "causal-learn", "nodes", nodes[0], partial(separation_cl, nodes[0]))


def drawn(nodes: int) -> tuple[RehearsalGraph, nx.DiGraph, list[Question]]:
    """A random graph in both forms, and questions (one variable, another, known ones)."""
    stream, names = np.random.default_rng(nodes), [f"v{index}" for index in range(nodes)]
    share = min(1.0, 6 / (nodes - 1))
    edges = [
        (names[cause], names[effect])
        for effect in range(nodes)
        for cause in range(effect)
        if stream.random() < share
    ]
    graph = RehearsalGraph(tuple((name,) for name in names), tuple(edges))
    dag = nx.DiGraph()
    dag.add_nodes_from(names)
    dag.add_edges_from(edges)
    asked = []
    for _ in range(QUESTIONS):
        mixed = [names[index] for index in stream.permutation(nodes)]
        asked.append((mixed[0], mixed[1], frozenset(mixed[2 : 2 + nodes // 3])))
    return graph, dag, asked


def ancestors(nodes: int) -> Contest:
    """All ancestors of one variable."""
    graph, dag, asked = drawn(nodes)
    return _contest(
        lambda: [graph.ancestors([one]) for one, _, _ in asked],
        lambda: [nx.ancestors(dag, one) | {one} for one, _, _ in asked],
    )


def separation(nodes: int) -> Contest:
    """Whether two variables are d-separated."""
    graph, dag, asked = drawn(nodes)
    return _contest(
        lambda: [c_separated(graph, one, other, known) for one, other, known in asked],
        lambda: [nx.is_d_separator(dag, {one}, {other}, set(known)) for one, other, known in asked],
    )


def separation_cl(nodes: int) -> Contest:
    """The same, beside causal-learn."""
    from causallearn.graph.Dag import Dag
    from causallearn.graph.GraphNode import GraphNode

    graph, _, asked = drawn(nodes)
    places = {name: GraphNode(name) for name in sorted(graph.names, key=lambda name: int(name[1:]))}
    theirs = Dag(list(places.values()))
    for source, target in graph.edges:
        theirs.add_directed_edge(places[source], places[target])
    return _contest(
        lambda: [c_separated(graph, one, other, known) for one, other, known in asked],
        lambda: [
            theirs.is_dseparated_from(places[one], places[other], [places[name] for name in known])
            for one, other, known in asked
        ],
    )


def separation_pgmpy(nodes: int) -> Contest:
    """The same, beside pgmpy."""
    from pgmpy.base import DAG

    graph, dag, asked = drawn(nodes)
    theirs = DAG()
    theirs.add_nodes_from(dag.nodes)
    theirs.add_edges_from(dag.edges)
    known_to_them = [list(known) for _, _, known in asked]
    return _contest(
        lambda: [c_separated(graph, one, other, known) for one, other, known in asked],
        lambda: [
            not theirs.is_dconnected(one, other, observed=known)
            for (one, other, _), known in zip(asked, known_to_them, strict=True)
        ],
    )


def adjusted(nodes: int) -> Contest:
    """Covariates for altering one variable, given no context."""
    graph, dag, asked = drawn(nodes)

    def plain(one: str, other: str) -> tuple[frozenset[str], bool]:
        leading = nx.ancestors(dag, one) | nx.ancestors(dag, other)
        before = leading - nx.descendants(dag, one) - {one, other}
        back = dag.copy()
        back.remove_edges_from(list(dag.out_edges(one)))
        return frozenset(before), bool(nx.is_d_separator(back, {one}, {other}, before))

    def ours() -> list[tuple[frozenset[str], bool]]:
        found = [adjustment(graph, (), (one,), (other,)) for one, other, _ in asked]
        return [(frozenset(each.before), not each.reasons) for each in found]

    return _contest(ours, lambda: [plain(one, other) for one, other, _ in asked])


def _contest(ours: Callable[[], list[Any]], theirs: Callable[[], list[Any]]) -> Contest:
    return Contest(ours, theirs, _agreement)


def _agreement(one: Sequence[Any], other: Sequence[Any]) -> Quality:
    equal = sum(mine == its for mine, its in zip(one, other, strict=True))
    return Quality(
        "equal answers", float(equal), float(len(other)), 0.0, "answers are yes, no, or sets of names"
    )
