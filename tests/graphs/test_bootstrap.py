"""The bootstrap posterior of graphs, Eq. 7."""

import math

import pytest
import torch

from rehearsal_torch.graphs.bidirection import Background, signature
from rehearsal_torch.graphs.bootstrap import bootstrap
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from tests.toys.random_graphs import drawn

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


@pytest.mark.slow
def test_it_settles_on_the_true_class_as_rows_grow():
    truth = signature(GRAPH)
    mass = []
    for rows in (30, 3000):
        found = bootstrap(
            drawn(GRAPH, 0, rows), GRAPH.names, 40, background=KNOWN, weights="frequency", level=0.01
        )
        mass.append(
            sum(
                weight
                for graph, weight in zip(found.graphs, found.weights, strict=True)
                if signature(graph) == truth
            )
        )
    assert mass[1] > 0.3, "a third at best: two directed graphs and this one cannot be told apart"
    assert mass[1] > mass[0]


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
def test_the_same_seed_gives_the_same_and_another_another():
    values = drawn(GRAPH, 0, 40)
    one, again, other = (bootstrap(values, GRAPH.names, 15, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.votes != other.votes


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
