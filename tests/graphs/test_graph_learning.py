"""Algorithm 2, by a test that knows the truth, and from tables."""

import math
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.equivalence import (
    Background,
    NoMemberError,
    TooManyGraphsError,
    all_represented_graphs,
    members,
    represented_graphs,
    signature,
)
from rehearsal_torch.graphs.graph_learning import bootstrap, independence, learn, pattern_from
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from tests.toys.patterns import pattern_of
from tests.toys.random_graphs import drawn, oracle, ordered, random_graph

EXAMPLES = settings(max_examples=60, derandomize=True, deadline=None)


@pytest.mark.slow
@EXAMPLES
@given(st.integers(0, 10**6))
def test_without_errors_the_class_is_the_truth_and_holds_the_true_rehearsal_graph(seed):
    graph = random_graph(seed, size=7, density=0.4)
    names = sorted(graph.names)
    pattern, notes = pattern_from(oracle(graph, names), names)
    assert pattern == pattern_of(graph, names)
    assert notes == ()
    # The class may be too large to be listed; it holds the directed graphs that are compatible with the true
    # one, which stand for it.
    dag = ordered(graph)
    one = RehearsalGraph(tuple((name,) for name in names), tuple(dag.edges))
    assert pattern_of(one, names) == pattern
    assert signature(graph) in {signature(each) for each in represented_graphs(one)}


@pytest.mark.slow
@EXAMPLES
@given(st.integers(0, 10**6))
def test_what_is_known_and_true_keeps_the_truth_in_the_class(seed):
    graph = random_graph(seed, size=5, joining=0.25)
    names, cliques = sorted(graph.names), graph.cliques
    first, last = cliques[0], cliques[-1] if len(cliques) > 1 else ()
    absent = [
        (one, other)
        for one in names
        for other in names
        if one != other and (one, other) not in graph.edges and graph.clique(one) != graph.clique(other)
    ]
    known = Background.roles(names, first, last, forbidden=absent[:2], required=graph.edges[:1])
    pattern, notes = pattern_from(oracle(graph, names), names, background=known)
    assert notes == ()
    found = all_represented_graphs(members(pattern), known)
    assert signature(graph) in {signature(each) for each in found}
    assert len(found) <= len(all_represented_graphs(members(pattern_of(graph))))
    for each in found:
        assert all(known.permits(*edge) for edge in each.edges)
        assert set(known.required) <= set(each.edges)


def signature_of(pattern):
    return set(pattern.directed), set(map(frozenset, pattern.undirected))


def test_the_two_stores_are_found_to_move_together():
    # a cost common to two stores, the prices they set looking at each other, and the customers that come
    graph = RehearsalGraph.mixed(
        ["cost", "p", "q", "customers"],
        [("cost", "p"), ("cost", "q"), ("p", "customers"), ("q", "customers")],
        [("p", "q")],
    )
    found = learn(
        drawn(graph, 3, 4000), graph.names, background=Background.roles(graph.names, ["cost"], ["customers"])
    )
    assert {dag.edges for dag in found.dags} == {dag.edges for dag in found.graphs if not dag.bidirected}
    assert [each.bidirected for each in found.graphs] == [(), (), (("p", "q"),)]
    assert signature(found.graphs[-1]) == signature(graph)
    assert len(learn(drawn(graph, 3, 4000), graph.names, bidirected=False).graphs) == len(
        learn(drawn(graph, 3, 4000), graph.names).dags
    )


def test_tests_that_contradict_each_other_are_told_and_still_give_graphs():
    # Every neighbouring pair of a ring depends, every other pair is independent given the two between: no
    # directed graph says so.
    def ring(one, other, between):
        return float((one - other) % 2 == 0 and len(between) == 2)

    pattern, notes = pattern_from(ring, "abcd")
    assert len(notes) == 1
    assert "is added: without it no directed graph has these edges" in notes[0]
    assert members(pattern)

    # a -> c <- b and b -> d <- c cannot both be, if a and d are joined to c and b alone.
    def torn(one, other, between):
        return float({one, other} in ({0, 1}, {1, 3}, {0, 3}) and not between)

    pattern, notes = pattern_from(torn, "abcd")
    assert members(pattern)
    assert signature_of(pattern)[0] == {("a", "c"), ("b", "c"), ("d", "c")}
    assert notes == ()


def test_what_is_known_overrules_tests():
    def free(one, other, between):
        return float({one, other} == {0, 1} and not between)

    known = Background(forbidden=(("a", "c"),))
    pattern, notes = pattern_from(free, "abc", background=known)
    assert ("c", "a") in pattern.directed
    assert notes == ("a -> c <- b is left out: it contradicts background knowledge",)
    required = Background(required=(("a", "b"),))
    assert ("a", "b") in pattern_from(free, "abc", background=required)[0].directed, (
        "a required edge stays, though a and b were found independent"
    )
    neither = Background(forbidden=(("a", "c"), ("c", "a")))
    assert {frozenset(edge) for edge in (pattern_from(free, "abc", background=neither)[0]).undirected} == {
        frozenset("bc")
    }


def test_more_graphs_than_asked_for_and_circles_in_what_is_known_are_told():
    names = tuple("abcd")
    with pytest.raises(TooManyGraphsError, match="more than 5"):
        learn(drawn(RehearsalGraph((names,), ()), 0, 500), names, max_graphs=5)
    circle = Background(forbidden=(("a", "c"), ("b", "a"), ("c", "b")))
    with pytest.raises(NoMemberError, match="into a cycle: check tiers"):
        pattern_from(lambda one, other, between: 0.0, "abc", background=circle)


def chain(rows, seed=0):
    """a -> b -> c."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    b = noise[:, 0] + noise[:, 1]
    return torch.stack([noise[:, 0], b, b + noise[:, 2]], 1)


@pytest.mark.parametrize(
    ("test", "values"),
    [
        ("fisherz", chain(500)),
        ("kci", chain(120)),
        ("chisq", (chain(2000) > 0).double()),
        ("gsq", chain(2000).sign()),
    ],
)
def test_a_chain_is_dependent_until_its_middle_is_known(test, values):
    p_value = independence(values, "abc", test)
    assert p_value(0, 2, ()) < 0.01
    if test in ("fisherz", "kci"):
        # Signs of b do not tell all of b, so the tests of codes rightly go on to see dependence.
        assert p_value(0, 2, (1,)) > 0.01


def test_too_few_different_rows_are_no_evidence_of_independence():
    values = chain(8)
    repeated = values[torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3, 4])]
    assert independence(values, "abc")(0, 2, (1,)) > 0
    assert independence(repeated, "abc")(0, 2, (1,)) == 0, "five different rows, whatever their number"


def test_without_the_library_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "causallearn.utils.cit", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'rehearsal-torch\[graphs\]'"):
        independence(chain(50), "abc")


GRAPH = RehearsalGraph.mixed("xpqy", [("x", "p"), ("x", "q"), ("p", "y"), ("q", "y")], [("p", "q")])
KNOWN = Background.roles(GRAPH.names, "x", "y")


def test_graphs_that_came_out_are_equally_probable():
    values = drawn(GRAPH, 0, 20)
    found = bootstrap(values, GRAPH.names, 30, background=KNOWN)
    assert len({signature(graph) for graph in found.graphs}) == len(found.graphs) > 3
    assert set(found.weights) == {1 / len(found.graphs)}
    assert math.isclose(sum(found.votes), 30)
    assert list(found.votes) == sorted(found.votes, reverse=True)
    often = bootstrap(values, GRAPH.names, 30, background=KNOWN, weights="frequency")
    assert often.graphs == found.graphs
    assert often.weights == pytest.approx([votes / 30 for votes in found.votes])


def test_edges_have_the_probability_of_their_graphs():
    found = bootstrap(drawn(GRAPH, 0, 3000), GRAPH.names, 10, background=KNOWN, weights="frequency")
    edges = found.edges()
    assert edges["x", "->", "p"] == pytest.approx(1)
    directions = edges.get(("p", "->", "q"), 0) + edges.get(("q", "->", "p"), 0) + edges["p", "<->", "q"]
    assert directions == pytest.approx(1)
    assert list(edges.values()) == sorted(edges.values(), reverse=True)
    assert not any(
        line == "<->"
        for _, line, _ in bootstrap(drawn(GRAPH, 0, 300), GRAPH.names, 5, bidirected=False).edges()
    )


@pytest.mark.slow
def test_resamples_of_no_use_are_counted():
    values = drawn(GRAPH, 0, 12)
    values[1:, 0] = 1.0
    done = []
    found = bootstrap(values, GRAPH.names, 40, progress=done.append)
    assert done == list(range(1, 41))
    assert found.failures["a constant column"] > 5
    assert math.isclose(sum(found.votes), 40 - sum(found.failures.values()))
    whole = bootstrap(torch.cat([values[:2], drawn(GRAPH, 1, 30)]), GRAPH.names, 20, max_graphs=3)
    assert set(whole.failures) == {"more than 3 graphs"}
    with pytest.raises(ValueError, match="all 3 resamples are unusable"):
        bootstrap(drawn(RehearsalGraph((tuple("abcd"),), ()), 0, 400), "abcd", 3, max_graphs=2)


def test_conflicting_v_structures_are_settled_by_strength():
    # a - b - c - d in a row; both a -> b <- c and b -> c <- d are claimed, the second one more strongly.
    def claims(one, other, between):
        if abs(one - other) == 1:
            return 0.0
        strength = {frozenset((0, 2)): 0.04, frozenset((1, 3)): 0.001, frozenset((0, 3)): 0.03}
        return strength[frozenset((one, other))] if between else 0.9

    pattern, notes = pattern_from(claims, "abcd")
    assert set(pattern.directed) >= {("b", "c"), ("d", "c")}
    assert notes == ("a -> b <- c is left out: it contradicts a stronger v-structure",)
