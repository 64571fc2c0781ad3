"""Graphviz' DOT, as other programs write it."""

import pytest
from causallearn.graph.Edges import Edges
from causallearn.graph.GeneralGraph import GeneralGraph
from causallearn.graph.GraphNode import GraphNode
from causallearn.utils.GraphUtils import GraphUtils
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.bidirection import signature
from rehearsal_torch.graphs.dot import edges_in_dot, from_dot, to_dot
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

PYDOT = """
strict digraph "G" {
fontsize=12;
graph [rankdir=LR]; node [shape=box, label="every"];
0 [label=age];
1 [label="body mass; index", pos="0,1!"];
2 [label="progression"];  // the outcome
3;
/* edges */
0 -> 1 [dir=both, arrowtail=none];
1 -> 2  [weight=2];
0 -> 2; # a comment is not one here
}
"""


def test_labels_are_names_and_attributes_of_other_kinds_are_ignored():
    text = PYDOT.replace("; # a comment is not one here", ";").replace("[dir=both, arrowtail=none]", "")
    graph = from_dot(text)
    assert set(graph.names) == {"age", "body mass; index", "progression", "3"}
    assert set(graph.edges) == {
        ("age", "body mass; index"),
        ("body mass; index", "progression"),
        ("age", "progression"),
    }


def test_edges_may_run_both_ways_backwards_and_in_chains():
    graph = from_dot("digraph { a -> {b c} -> d\n b -> c [dir=both]\n e -> d [dir=back]; }")
    assert set(graph.edges) == {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")}
    assert graph.bidirected == (("b", "c"),)
    assert from_dot(to_dot(graph)).edges == graph.edges


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.lists(st.text("ab0 []{}=<>;,#/-\\n", min_size=1, max_size=9), min_size=3, max_size=3, unique=True))
def test_names_of_any_kind_are_read_back(names):
    """Of a name `a[0]`, `[0]` was taken for attributes."""
    first, second, third = names
    graph = RehearsalGraph.of({second: (first,), third: (first,)}, [(second, third)])
    assert signature(from_dot(to_dot(graph))) == signature(graph)


@pytest.mark.parametrize("name", ["a[0]", "subgraph", "node [x]", "edge[dir=none]", "a =<b>", "rankdir=LR"])
def test_names_that_are_words_of_dot_are_names(name):
    assert from_dot(to_dot(RehearsalGraph.of({"y": (name,)}))).edges == ((name, "y"),)


def test_the_ends_that_are_drawn_are_the_arrow():
    """Every edge of causal-learn's DOT, dir=both with `arrowtail=none`, was a hidden common cause, and an
    edge of `dir=none` was directed."""
    text = """digraph { edge [dir = forward]; a -> b [dir=both, arrowtail=none, arrowhead=normal]
    a -> c [dir=both, arrowtail=normal, arrowhead=none]; c -> d [dir="none"]; d -> e [arrowhead=none]
    e -> f [dir=both, arrowhead=vee]
    f -> g [arrowtail=none, color=red]; }"""
    found = edges_in_dot(text)
    assert found.directed == (("a", "b"), ("c", "a"), ("f", "g"))
    assert found.bidirected == (("e", "f"),)
    assert found.undirected == (("c", "d"), ("d", "e"))
    with pytest.raises(ValueError, match="c -- d, d -- e: the direction is unknown"):
        from_dot(text)


def test_what_causal_learn_draws_is_read():
    nodes = [GraphNode(name) for name in ("a", "b", "c", "d")]
    graph = GeneralGraph(nodes)
    graph.add_edge(Edges().directed_edge(nodes[0], nodes[1]))
    graph.add_edge(Edges().directed_edge(nodes[2], nodes[1]))
    graph.add_edge(Edges().bidirected_edge(nodes[0], nodes[2]))
    graph.add_edge(Edges().undirected_edge(nodes[2], nodes[3]))
    found = edges_in_dot(GraphUtils.to_pydot(graph).to_string())
    assert found.names == ("a", "b", "c", "d")
    assert set(found.directed) == {("a", "b"), ("c", "b")}
    assert [set(each) for each in (*found.bidirected, *found.undirected)] == [{"a", "c"}, {"c", "d"}]


def test_what_it_writes_has_quoted_names():
    text = to_dot(RehearsalGraph.of({"b": ("a b",)}, [("b", "c")]))
    assert '"a b" -> "b";' in text
    assert '"b" -> "c" [dir=both];' in text
    with pytest.raises(ValueError, match="has a quotation mark"):
        to_dot(RehearsalGraph.of({'a"': ("b",)}))


def test_colons_and_equal_signs_in_quotation_marks_are_part_of_a_name():
    assert from_dot('digraph { rankdir=LR; "a:n" -> "b=1" }').names == ("a:n", "b=1")
