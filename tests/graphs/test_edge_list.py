"""Lists of edges, some of which have no direction."""

import pytest

from rehearsal_torch.graphs.edge_list import EdgeList, listed
from rehearsal_torch.graphs.graph_class import graph_class


def test_a_list_whose_edges_have_directions_is_a_graph():
    found = EdgeList(("a", "b", "c", "d"), (("a", "b"),), (("b", "c"),))
    with pytest.raises(ValueError, match="a -> b reaches only part of the clique"):
        found.graph()
    whole = EdgeList(("a", "b", "c", "d"), (("a", "b"), ("a", "c")), (("b", "c"),))
    assert whole.graph().bidirected == (("b", "c"),)
    assert whole.to_plain() == whole.graph().to_plain()


def test_undirected_edges_make_it_a_class():
    found = EdgeList(("a", "b", "c"), (("b", "c"), ("b", "c")), (), (("a", "b"),))
    assert found.to_plain() == {"parents": {"a": [], "b": [], "c": ["b"]}, "undirected": [["a", "b"]]}
    assert {frozenset(graph.edges) for graph in graph_class(found.to_plain()).graphs} == {
        frozenset({("a", "b"), ("b", "c")}),
        frozenset({("b", "a"), ("b", "c")}),
    }
    with pytest.raises(ValueError, match=r"^a -- b: the direction is unknown, .* choose one, or write <->"):
        found.graph()
    both = EdgeList(("a", "b", "c"), (), (("b", "c"),), (("a", "b"),))
    assert both.to_plain()["bidirected"] == [["b", "c"]]
    with pytest.raises(ValueError, match="expected no `bidirected` beside `undirected`"):
        graph_class(both.to_plain())


def test_long_lists_are_cut():
    assert listed(["a -- b"]) == "a -- b"
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"
