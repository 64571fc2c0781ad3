"""Classes of directed graphs against listing all orientations."""

from itertools import combinations, product

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.equivalence import (
    Background,
    NoMemberError,
    PartiallyDirected,
    all_represented_graphs,
    closed,
    equivalent,
    has_member,
    members,
    relaxed,
    represented_graphs,
    signature,
)
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import c_separated
from tests.toys.patterns import pattern_of
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


def all_graphs(names):
    """Every rehearsal graph over some variables: each pair gets no edge, one of either direction, or a
    bi-directional one."""
    pairs = list(combinations(names, 2))
    for kinds in product(range(4), repeat=len(pairs)):
        directed = [
            pair if kind == 1 else pair[::-1]
            for pair, kind in zip(pairs, kinds, strict=True)
            if kind in (1, 2)
        ]
        bidirected = [pair for pair, kind in zip(pairs, kinds, strict=True) if kind == 3]
        try:
            graph = RehearsalGraph.mixed(names, directed, bidirected)
        except ValueError:
            continue
        if not graph.hidden:
            yield graph


def says(graph, names):
    """All that a graph says of separation, pair by pair."""
    return tuple(
        c_separated(graph, one, other, given)
        for one, other in combinations(names, 2)
        for size in range(len(names) - 1)
        for given in combinations([name for name in names if name not in (one, other)], size)
    )


@pytest.mark.slow
def test_a_class_is_exactly_the_graphs_that_say_the_same_of_separation():
    names = tuple("abcd")
    classes = {}
    for graph in all_graphs(names):
        classes.setdefault(says(graph, names), []).append(graph)
    assert sum(map(len, classes.values())) > 1000
    for found in classes.values():
        listed = all_represented_graphs(members(pattern_of(found[0])))
        assert {signature(graph) for graph in listed} == {signature(graph) for graph in found}
        assert len(listed) == len(found)
        # Those without bi-directional edges come first, and are as many as directed graphs.
        assert sum(not graph.bidirected for graph in listed) == len(members(pattern_of(found[0])))
        assert [len(graph.bidirected) for graph in listed] == sorted(
            len(graph.bidirected) for graph in listed
        )


def test_bidirectional_edges_need_both_directions():
    chain = RehearsalGraph.of({"b": ("a",), "c": ("a", "b")})
    assert len(represented_graphs(chain)) == 4
    tiers = Background((("a",), ("b", "c")))
    assert [graph.bidirected for graph in represented_graphs(chain, tiers)] == [(), (("b", "c"),)]
    assert len(represented_graphs(chain, Background(required=(("a", "c"),)))) == 3, (
        "not all three in one clique"
    )


def test_roles_are_tiers():
    known = Background.roles("xabzy", "x", "y")
    assert known.tiers == (("x",), ("a", "b", "z"), ("y",))
    assert known.permits("x", "a")
    assert known.permits("x", "y")
    assert not known.permits("a", "x")
    assert not known.permits("y", "a")
    assert known.permits_both("a", "b")
    assert not known.permits_both("x", "a")
    assert known.later("y", ("x", "a"))
    assert not known.later("a", ("x", "b"))
    assert Background.roles("ab").tiers == (("a", "b"),)


def test_single_edges_are_forbidden_and_required():
    known = Background(forbidden=(("a", "b"),), required=(("c", "a"),))
    assert not known.permits("a", "b")
    assert known.permits("b", "a")
    assert known.permits("c", "a")
    assert not known.permits("a", "c"), "the other direction of what is required"
    assert not known.permits_both("a", "c")
    assert known.adjacent("a", "c")
    assert not known.adjacent("a", "b")
    assert not known.later("a", ("b",)), "what stands in no tier is not later"


def test_a_text_is_a_tier_of_one_and_never_letters():
    assert Background(("season", ["price", "rival"])).tiers == (("season",), ("price", "rival"))


@pytest.mark.slow
@EXAMPLES
@given(st.integers(0, 10**6))
def test_graphs_that_cannot_be_told_apart_say_the_same_and_keep_the_order(seed):
    graph = random_graph(seed, size=5, joining=0.0)
    order = Background.roles(graph.names, graph.names[:1], graph.names[-1:])
    found = equivalent(graph, order, 1000)
    assert found[0] == graph
    expected = (
        {
            signature(each)
            for each in all_graphs(graph.names)
            if not each.bidirected
            and all(order.permits(*edge) for edge in each.edges)
            and pattern_of(each, graph.names) == pattern_of(graph, graph.names)
        }
        if len(graph.names) < 5
        else {signature(each) for each in found}
    )
    assert {signature(each) for each in found} == expected
    assert len({says(each, graph.names) for each in found}) == 1
    with pytest.raises(ValueError, match="bi-directional"):
        equivalent(RehearsalGraph.of({}, [["a", "b"]]), Background(), 8)
