"""Lists of edges: without directions, and with unmeasured variables as hidden common causes."""

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.edge_list import (
    EdgeList,
    arrow,
    has_arrow,
    is_mark,
    listed,
    no_arrow,
    projected,
    unjoined,
)
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


def test_a_latent_cause_of_two_is_a_hidden_common_cause():
    names = ("u", "a", "y")
    assert projected(names, [("u", "a"), ("u", "y"), ("a", "y")], [], {"u"}) == (
        ("a", "y"),
        (("a", "y"),),
        (("a", "y"),),
    )


def test_paths_through_latent_variables_are_arrows():
    names = ("a", "l", "m", "y", "z")
    found = projected(names, [("a", "l"), ("l", "m"), ("m", "y"), ("m", "z")], [], {"l", "m"})
    assert found == (("a", "y", "z"), (("a", "y"), ("a", "z")), (("y", "z"),))
    assert projected(names, [("a", "y")], [("l", "z")], {"l"})[2] == ()
    assert projected(names, [("l", "y")], [("l", "z")], {"l"})[2] == (("y", "z"),)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**15 - 1), st.integers(1, 2**6 - 2))
def test_separations_of_the_measured_variables_stay(edges, hidden):
    """Each arc of the projection as a latent variable of its own: the separations must be the same."""
    names = tuple("abcdef")
    pairs = list(combinations(names, 2))
    directed = [pair for place, pair in enumerate(pairs) if edges >> place & 1]
    latent = {name for place, name in enumerate(names) if hidden >> place & 1}
    kept, arrows, arcs = projected(names, directed, [], latent)
    assert kept == tuple(name for name in names if name not in latent)
    before, after = nx.DiGraph(directed), nx.DiGraph(arrows)
    before.add_nodes_from(names)
    after.add_nodes_from(kept)
    for one, other in arcs:
        after.add_edges_from([(f"{one}{other}", one), (f"{one}{other}", other)])
    for one, other in combinations(kept, 2):
        rest = [name for name in kept if name not in (one, other)]
        for size in range(len(rest) + 1):
            for known in combinations(rest, size):
                assert nx.is_d_separator(before, {one}, {other}, set(known)) == nx.is_d_separator(
                    after, {one}, {other}, set(known)
                )


def test_every_notation_is_one_of_four():
    found = {each: arrow(each) for each in ("-->", "\u2192", "<--", "\u2190", "<-->", "\u27f7", "---", "a")}
    assert list(found.values()) == ["->", "->", "<-", "<-", "<->", "<->", "--", "a"]


@pytest.mark.parametrize(
    "text",
    ["a -> b", "a->b", "a \u21d2 b", "a > b", "a ~ b", "a - b", "a o-o b", "a --- b", "a => b", "a = b"],
)
def test_what_was_meant_as_an_edge_is_known(text):
    assert has_arrow(text)


@pytest.mark.parametrize("text", ["a b", "a-b.dagitty", "a=b", "no o-o", "x - ", "a, b"])
def test_names_are_no_edges(text):
    assert has_arrow(text) == (text == "x - ")


def test_marks_alone_are_no_names():
    assert [each for each in ("-", "~", "=", "\u2013", "a-b", "x", "_", "|") if is_mark(each)] == [
        "-",
        "~",
        "=",
        "\u2013",
        "|",
    ]
    assert no_arrow("=> b").startswith("'=>' is no arrow; write -> (cause to effect)")
    assert no_arrow("[a") == ""


def test_circles_are_told_beside_missing_arrows():
    assert "a circle, o, marks" in unjoined("a", "o-o")
    assert "circle" not in unjoined("a", "b")
