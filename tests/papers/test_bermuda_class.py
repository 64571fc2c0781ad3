"""Bermuda's Markov equivalence class: five directed graphs, which "X before Z" makes three."""

from rehearsal_torch.graphs.equivalence import Background, all_represented_graphs, members, signature
from rehearsal_torch.graphs.graph_learning import pattern_from
from rehearsal_torch.problems.cases.bermuda import CONTEXT, Bermuda
from tests.toys.patterns import pattern_of
from tests.toys.random_graphs import oracle


def test_bermuda_has_five_directed_graphs_and_three_with_context_first():
    graph = Bermuda().task.graph
    pattern = pattern_of(graph)
    assert len(graph.edges) == 26
    assert set(map(frozenset, pattern.undirected)) == {
        frozenset(pair) for pair in (("Light", "Temp"), ("Temp", "Sal"), ("Sal", "DIC"), ("Sal", "TA"))
    }
    dags = members(pattern)
    assert len(dags) == 5, "any of the five variables of the tree may be its root"
    assert signature(graph) in {signature(dag) for dag in dags}
    # Each of the tree's four edges may besides be bi-directional, in the graph rooted at either end.
    assert len(all_represented_graphs(dags)) == 5 + 4
    known = Background.roles(graph.names, CONTEXT, ("NEC",))
    learnt, notes = pattern_from(oracle(graph, graph.names), graph.names, background=known)
    assert notes == ()
    assert len(members(learnt)) == 3
    without, _ = pattern_from(oracle(graph, graph.names), graph.names)
    assert without == pattern
    inside = [[edge for edge in dag.edges if edge[1] not in CONTEXT] for dag in members(learnt)]
    assert all(set(edges) == set(inside[0]) for edges in inside), "on (Z, Y) all three are the same"
