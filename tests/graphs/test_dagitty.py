"""Dagitty's model code: written, read, and what it cannot say here."""

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.dagitty import EdgeList, edges_of, model_of, projected, to_dagitty
from rehearsal_torch.graphs.equivalence import signature
from rehearsal_torch.graphs.graph_notation import graph_class
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph


def test_dagitty_text_is_as_dagitty_writes_it():
    graph = RehearsalGraph.mixed(
        ["x", "two words"], [("x", "z"), ("x", "two words"), ("z", "y")], [("z", "two words")]
    )
    assert to_dagitty(graph, ["x"], ["z"], ["y"]) == (
        'dag {\n  x [adjusted]\n  "two words"\n  z [exposure]\n  y [outcome]\n  x -> z\n  x -> "two words"\n '
        ' z -> y\n  "two words" <-> z\n}\n'
    )
    read = model_of(to_dagitty(graph, ["x"], ["z"], ["y"]))
    assert read.parts == {"adjusted": ["x"], "exposure": ["z"], "outcome": ["y"]}


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.lists(st.text("ab0 []{}=<>;,#/-\n", min_size=1, max_size=9), min_size=3, max_size=3, unique=True))
def test_names_of_any_kind_are_read_back(names):
    """A name `;` was a separator."""
    first, second, third = names
    graph = RehearsalGraph.of({second: (first,), third: (first,)}, [(second, third)])
    assert signature(model_of(to_dagitty(graph, [first])).graph()) == signature(graph)


def test_dagitty_text_by_hand_is_read():
    read = model_of("""
        dag "model code" {
        bb="0,0,1,1"
        "a b" [adjusted,pos="-1.2,0.300"]   // seen
        x [exposure]; z; y [outcome,pos="0,1"]
        # groups and chains
        {x} <-> z
        "a b" -> {x z} -> y <- lonely /* more
        than one line */
        }""")
    assert signature(read.graph()) == signature(
        RehearsalGraph.mixed(
            [], [("a b", "x"), ("a b", "z"), ("x", "y"), ("z", "y"), ("lonely", "y")], [("x", "z")]
        )
    )
    assert read.parts == {"adjusted": ["a b"], "exposure": ["x"], "outcome": ["y"]}
    assert model_of('dag { "latent" [pos="outcome"] }').parts == {}, "quoted texts are no marks"


def test_a_partially_directed_model_has_its_edges_apart():
    found = model_of("pdag { x [exposure] x -- a -> y; a <-> z }")
    assert (found.names, found.directed, found.bidirected) == (
        ("x", "a", "y", "z"),
        (("a", "y"),),
        (("a", "z"),),
    )
    assert found.undirected == (("x", "a"),)
    assert model_of("pdag { a -> b }").graph().edges == (("a", "b"),)


def test_latent_variables_are_projected_out():
    found = model_of("dag { U [latent] U -> a U -> y a [exposure] y [outcome] x -> a -> y }")
    assert found.graph() == RehearsalGraph.mixed(("a", "y", "x"), [("a", "y"), ("x", "a")], [("a", "y")])
    assert found.parts == {"exposure": ["a"], "outcome": ["y"]}


def test_statements_are_apart_by_lines_semicolons_roles_and_in_other_programs_by_blanks():
    text = "a -> b\nb -> c; c\nd [outcome] e -> d\n{f,\n g} -> e ->\na"
    assert edges_of(text).directed == tuple(zip("abefge", "bcdeea", strict=True))
    assert edges_of("a b a -> b", apart=False).directed == (("a", "b"),)
    assert model_of("dag { a b a -> b b -> c }").graph().edges == (("a", "b"), ("b", "c"))
    assert edges_of('"a, b" -> {"c d", e}').directed == (("a, b", "c d"), ("a, b", "e"))


def test_undirected_edges_make_it_a_class():
    found = EdgeList(("a", "b", "c"), (("b", "c"), ("b", "c")), (), (("a", "b"),))
    assert found.to_plain() == {"parents": {"a": [], "b": [], "c": ["b"]}, "undirected": [["a", "b"]]}
    assert {frozenset(graph.edges) for graph in graph_class(found.to_plain()).graphs} == {
        frozenset({("a", "b"), ("b", "c")}),
        frozenset({("b", "a"), ("b", "c")}),
    }
    both = EdgeList(("a", "b", "c"), (), (("b", "c"),), (("a", "b"),))
    assert both.to_plain()["bidirected"] == [["b", "c"]]


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


@pytest.mark.parametrize(
    ("written", "meant"),
    [("-->", "->"), ("\u2192", "->"), ("<--", "<-"), ("\u2190", "<-"), ("<-->", "<->"), ("\u27f7", "<->")],
)
def test_arrows_of_other_notations_are_read(written, meant):
    assert edges_of(f"a {written} b") == edges_of(f"a {meant} b")
