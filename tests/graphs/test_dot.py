"""Graphviz' DOT, as other programs write it."""

import pytest

from rehearsal_torch.graphs.dot import from_dot, to_dot
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
        ("digraph { a -> b; b -> a }", "a"),
    ],
)
def test_what_it_cannot_read_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        from_dot(text)
