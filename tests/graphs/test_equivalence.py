"""Classes of directed graphs against listing all orientations."""

from itertools import combinations, product

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.equivalence import (
    NoMemberError,
    PartiallyDirected,
    TooManyGraphsError,
    closed,
    has_member,
    members,
    pattern_of,
    relaxed,
)
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from tests.toys.random_graphs import ordered, random_graph

EXAMPLES = settings(max_examples=20, derandomize=True, deadline=None)


def v_structures(edges):
    near = {frozenset(edge) for edge in edges}
    into = {}
    for source, target in edges:
        into.setdefault(target, set()).add(source)
    return {
        (target, frozenset(pair))
        for target, causes in into.items()
        for pair in combinations(causes, 2)
        if frozenset(pair) not in near
    }


def by_listing(edges):
    """All acyclic orientations of the same skeleton with the same v-structures."""
    wanted, found = v_structures(edges), set()
    for turned in product(*((edge, edge[::-1]) for edge in edges)):
        if v_structures(turned) == wanted and nx.is_directed_acyclic_graph(nx.DiGraph(turned)):
            found.add(frozenset(turned))
    return found


@pytest.mark.slow
@EXAMPLES
@given(st.integers(0, 10**6))
def test_the_members_are_all_orientations_with_the_same_v_structures(seed):
    graph = random_graph(seed, size=5)
    pattern = pattern_of(graph)
    edges = tuple(ordered(graph).edges)
    expected = by_listing(edges)
    assert {frozenset(dag.edges) for dag in members(pattern)} == expected
    assert len(members(pattern)) == len(expected), "each once"
    assert set(pattern.directed) == set.intersection(*map(set, expected)) if edges else pattern.directed == ()
    assert all(pattern_of(dag, graph.names) == pattern for dag in members(pattern))


def test_compelled_edges_are_directed():
    chain = PartiallyDirected(("a", "b", "c", "d"), (("a", "c"), ("b", "c")), (("c", "d"),))
    assert closed(chain).directed == (("a", "c"), ("b", "c"), ("c", "d")), (
        "the other direction would add a v-structure"
    )
    square = PartiallyDirected(("a", "b", "c"), (("a", "b"), ("b", "c")), (("c", "a"),))
    assert ("a", "c") in closed(square).directed, "the other direction would close a circle"


def test_known_directions_shrink_a_class():
    pattern = pattern_of(RehearsalGraph.of({"b": ("a",), "c": ("b",)}))
    assert len(members(pattern)) == 3
    assert len(members(pattern.orienting([("b", "a")]))) == 2
    assert [dag.edges for dag in members(pattern.orienting([("a", "b")]))] == [(("a", "b"), ("b", "c"))], (
        "else b would be a new collider"
    )


def test_a_pattern_without_members_is_told_and_gets_some():
    # A circle of four without a v-structure belongs to no directed graph.
    ring = PartiallyDirected(tuple("abcd"), (), (("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")))
    assert not has_member(ring)
    with pytest.raises(NoMemberError, match="contradict each other"):
        closed(ring)
    pattern, added = relaxed(ring)
    assert len(added) == 1
    assert {frozenset(edge) for dag in members(pattern) for edge in dag.edges} == {
        frozenset(edge) for edge in ring.undirected
    }
    with pytest.raises(NoMemberError, match="cycle"):
        relaxed(PartiallyDirected(tuple("abc"), (("a", "b"), ("b", "c"), ("c", "a")), ()))


@EXAMPLES
@given(st.integers(0, 10**6))
def test_directions_that_are_told_are_kept_whatever_it_costs(seed):
    graph = random_graph(seed, size=6)
    skeleton = sorted(tuple(sorted(edge)) for edge in ordered(graph).edges)
    required = tuple(skeleton[::2])
    pattern = PartiallyDirected(tuple(sorted(graph.names)), required, tuple(skeleton[1::2]))
    found = pattern if has_member(pattern) else relaxed(pattern, required)[0]
    for dag in members(found):
        assert set(required) <= set(dag.edges)
        assert {frozenset(edge) for edge in dag.edges} == {frozenset(edge) for edge in skeleton}


def test_too_many_members_and_bad_edges_are_refused():
    whole = PartiallyDirected(tuple("abcd"), (), tuple(combinations("abcd", 2)))
    assert len(members(whole)) == 24
    with pytest.raises(TooManyGraphsError, match="more than 23"):
        members(whole, max_graphs=23)
    with pytest.raises(ValueError, match="unknown variables"):
        PartiallyDirected(("a",), (("a", "b"),), ())
    with pytest.raises(ValueError, match="at most one edge"):
        PartiallyDirected(("a", "b"), (("a", "b"),), (("b", "a"),))
