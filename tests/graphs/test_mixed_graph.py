"""Rehearsal graphs: order, cliques, alterations, and what is no rehearsal graph."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.graphs.equivalence import covered
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import c_separated
from tests.toys.patterns import pattern_of
from tests.toys.random_graphs import random_graph

DIAMOND = {"b": ("a",), "c": ("a",), "d": ("b", "c")}


def test_variables_stand_behind_their_causes_whatever_order_they_were_named_in():
    graph = RehearsalGraph((("d",), ("b",), ("c",), ("a",)), (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")))
    assert graph.names == ("a", "b", "c", "d"), (
        "among those that could come next, the first named comes first"
    )
    assert RehearsalGraph.of(DIAMOND).names == ("a", "b", "c", "d")
    assert graph.parents("d") == ("b", "c")
    assert graph.parents("a") == ()
    assert graph.descendants(["b"]) == {"b", "d"}
    assert graph.ancestors(["b"]) == {"a", "b"}
    assert graph.ancestors(["d", "c"]) == {"a", "b", "c", "d"}
    assert graph.clique("c") == ("c",)


def test_altered_members_of_a_clique_become_parents_of_the_rest():
    graph = RehearsalGraph.of({"b": ("a",), "e": ("d",)}, [("b", "c", "d")])
    cut = graph.altered(["b"])
    assert set(cut.cliques) == {("a",), ("b",), ("c", "d"), ("e",)}
    assert set(cut.edges) == {("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("d", "e")}
    assert cut.parents(("c", "d")) == ("a", "b")
    whole = graph.altered(["b", "c", "d"])
    assert set(whole.edges) == {("d", "e")}
    assert all(len(clique) == 1 for clique in whole.cliques)
    assert set(cut.altered(["c"]).edges) == {("a", "d"), ("b", "d"), ("c", "d"), ("d", "e")}


@pytest.mark.parametrize("seed", range(15))
def test_descendants_of_what_is_set_are_those_in_the_altered_graph(seed):
    graph, stream = random_graph(seed), np.random.default_rng(seed)
    for _ in range(5):
        cut, names = (
            [str(each) for each in stream.permutation(graph.names)[: int(stream.integers(0, 4))]]
            for _ in range(2)
        )
        assert graph.descendants(names, cut) == graph.altered(cut).descendants(names)


def test_single_edges_make_the_cliques():
    graph = RehearsalGraph.mixed(
        ["a", "lonely"], [("a", "b"), ("a", "c"), ("b", "d"), ("a", "b")], [("c", "b"), ("b", "c")]
    )
    assert graph == RehearsalGraph(
        (("a",), ("lonely",), ("b", "c"), ("d",)), (("a", "b"), ("a", "c"), ("b", "d"))
    )
    assert graph.bidirected == (("b", "c"),)
    triangle = RehearsalGraph.mixed("abc", [], [("a", "b"), ("b", "c"), ("c", "a")])
    assert triangle.cliques == (("a", "b", "c"),)


def test_the_joint_law_is_the_product_over_cliques():
    graph = RehearsalGraph.of({"b": ("a",), "d": ("b", "c")}, [("b", "c")])
    assert graph.factors == ((("a",), ()), (("b", "c"), ("a",)), (("d",), ("b", "c")))
    assert graph.factorisation() == "P(a) P(b, c | a) P(d | b, c)"
    assert graph.altered(["b"]).factorisation() == "P(a) P(b) P(c | a, b) P(d | b, c)"


def test_an_arrow_beside_a_hidden_common_cause_is_kept():
    graph = RehearsalGraph.of({"a": ("x",), "y": ("a",)}, [("y", "a")])
    assert graph == RehearsalGraph.mixed([], [("x", "a"), ("a", "y")], [("y", "a")])
    assert graph.hidden == (("a", "y"),)
    assert graph.bidirected == (("a", "y"),)
    assert all(len(clique) == 1 for clique in graph.cliques)
    assert RehearsalGraph(**graph.to_plain()) == graph
    assert graph.altered(["a"]).hidden == ()
    assert graph.altered(["x"]).hidden == (("a", "y"),)
    assert graph.descendants(["a"]) == {"a", "y"}
    assert c_separated(graph, "x", "y", "a") is False, "y tells of the hidden cause, and a of both"
    assert "hidden" not in RehearsalGraph.of(DIAMOND).to_plain()


def test_what_goes_by_cliques_refuses_the_bow_by_its_two_edges():
    graph = RehearsalGraph.of({"a": ("x",), "y": ("a",)}, [("y", "a")])
    for use in (
        lambda: graph.factors,
        graph.factorisation,
        lambda: pattern_of(graph),
        lambda: covered(graph),
    ):
        with pytest.raises(
            ValueError, match=r"a -> y beside a <-> y|got bi-directional edges \[\('a', 'y'\)\]"
        ):
            use()


@given(seed=st.integers(0, 10_000), size=st.integers(2, 6), held=st.sampled_from(["", "a"]))
def test_minimal_sets_are_ancestors_of_the_outcome_once_they_are_set(seed, size, held):
    stream, names = np.random.default_rng(seed), "abcdef"[:size]
    edges = [pair for pair in combinations(names, 2) if stream.uniform() < 0.5]

    def minimal(chosen):
        cut = nx.DiGraph([(cause, effect) for cause, effect in edges if effect not in chosen])
        cut.add_nodes_from(names)
        return {*held} <= {*chosen} <= nx.ancestors(cut, names[-1]) | {*held}

    subsets = [chosen for count in range(size) for chosen in combinations(names[:-1], count)]
    graph = RehearsalGraph.mixed(names, edges)
    assert graph.minimal_sets(names[:-1], names[-1], held) == tuple(filter(minimal, subsets))
