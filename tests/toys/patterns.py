"""The class of directed graphs that cannot be told from a graph, from the graph itself."""

from collections.abc import Sequence
from itertools import combinations

from rehearsal_torch.graphs.equivalence import PartiallyDirected, closed
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph


def pattern_of(graph: RehearsalGraph, names: Sequence[str] | None = None) -> PartiallyDirected:
    """The class in the order of `names`; the edges that all members share are directed. Of a rehearsal graph
    it is that of the directed graphs that are compatible with it (Thm. 16).
    """
    graph.require_cliques("a class of directed graphs")
    inner = [(a, b) for clique in graph.cliques for a, b in combinations(clique, 2)]
    dag = RehearsalGraph(tuple((name,) for name in graph.names), (*graph.edges, *inner))
    named = graph.names if names is None else tuple(names)
    near = PartiallyDirected(named, dag.edges, ()).adjacent()
    kept = {
        edge
        for (effect,), causes in dag.factors
        for a, b in combinations(causes, 2)
        if b not in near[a]
        for edge in ((a, effect), (b, effect))
    }
    return closed(
        PartiallyDirected(named, tuple(kept), tuple(edge for edge in dag.edges if edge not in kept))
    )
