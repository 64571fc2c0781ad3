"""Graphviz' DOT, as other programs write it."""

import pytest
from causallearn.graph.Edges import Edges
from causallearn.graph.GeneralGraph import GeneralGraph
from causallearn.graph.GraphNode import GraphNode
from causallearn.utils.GraphUtils import GraphUtils
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.bidirection import signature
from rehearsal_torch.graphs.dot import edges_in_dot, to_dot
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
    graph = edges_in_dot(text).graph()
    assert set(graph.names) == {"age", "body mass; index", "progression", "3"}
    assert set(graph.edges) == {
        ("age", "body mass; index"),
        ("body mass; index", "progression"),
        ("age", "progression"),
    }


def test_edges_may_run_both_ways_backwards_and_in_chains():
    graph = edges_in_dot("digraph { a -> {b c} -> d\n b -> c [dir=both]\n e -> d [dir=back]; }").graph()
    assert set(graph.edges) == {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")}
    assert graph.bidirected == (("b", "c"),)
    assert edges_in_dot(to_dot(graph)).graph().edges == graph.edges


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.lists(st.text("ab0 []{}=<>;,#/-\\n", min_size=1, max_size=9), min_size=3, max_size=3, unique=True))
def test_names_of_any_kind_are_read_back(names):
    """Of a name `a[0]`, `[0]` was taken for attributes."""
    first, second, third = names
    graph = RehearsalGraph.of({second: (first,), third: (first,)}, [(second, third)])
    assert signature(edges_in_dot(to_dot(graph)).graph()) == signature(graph)


@pytest.mark.parametrize("name", ["a[0]", "subgraph", "node [x]", "edge[dir=none]", "a =<b>", "rankdir=LR"])
def test_names_that_are_words_of_dot_are_names(name):
    assert edges_in_dot(to_dot(RehearsalGraph.of({"y": (name,)}))).graph().edges == ((name, "y"),)


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
        edges_in_dot(text).graph()


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph { a -- b }", "expected `digraph"),
        ("a -> b", "expected `digraph"),
        ("digraph { subgraph x { a -> b } }", "a subgraph is read by no rule"),
        ("digraph { a [label=<b>]; a -> c }", "a label in HTML"),
        ("digraph { a [label=x]; b [label=x]; a -> b }", "several nodes have the same label"),
        ("digraph { a -> }", "leads nowhere"),
        ("digraph { a -> b c -> d [dir=both] }", "no arrow joins 'b' and 'c'"),
        ("digraph { edge [color=red, dir=none]; a -> b }", "the default dir of all edges is read by no rule"),
        ("digraph { edge [arrowhead=odot]\n a -> b }", "the default arrowhead of all edges"),
        (
            "digraph { a -> b [dir=both, arrowtail=odot] }",
            r"a -> b \[arrowtail=odot\]: a circle marks an end",
        ),
        ("digraph { a -> b [dir=up] }", r"a -> b \[dir=up\]: expected dir among forward, back, both, none"),
        ("digraph { a -> b; b -> a }", "a"),
        ('digraph { a -> "b }', "a quotation mark or a bracket is opened and not closed"),
        ("digraph { a [x }", "a quotation mark or a bracket is opened and not closed"),
        (
            f"digraph {{ {'; '.join(f'a{i} -> b{i}' for i in range(501))} }}",
            "expected at most 1000 variables; got 1002",
        ),
    ],
)
def test_what_it_cannot_read_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        edges_in_dot(text).graph()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("digraph { a:n -> b }", "'a:n' has a port, which is read by no rule here"),
        ("digraph { rankdir=LR a -> b }", "write ; behind the setting 'rankdir=LR'"),
        ("digraph { a -> b:se }", "'b:se' has a port"),
    ],
)
def test_ports_and_settings_are_no_names(text, said):
    with pytest.raises(ValueError, match=said):
        edges_in_dot(text).graph()


def test_colons_and_equal_signs_in_quotation_marks_are_part_of_a_name():
    assert edges_in_dot('digraph { rankdir=LR; "a:n" -> "b=1" }').graph().names == ("a:n", "b=1")
