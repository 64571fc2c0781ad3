"""Counterparts: the hypotheses that are left without bi-directional edges, and a regression in place of a
graph."""

import pytest

from rehearsal_torch.problems.cases.bermuda import Bermuda
from rehearsal_torch.problems.cases.linear_examples import RideHailing, ride_hailing_graphs
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from reproduction.online.counterparts import associative, causal


def test_without_bi_directional_edges_either_variable_is_the_cause():
    left = causal(ride_hailing_graphs())
    assert [
        ("recommend" in graph.parents("congestion"), "congestion" in graph.parents("recommend"))
        for graph in left
    ] == [(True, False), (False, True)]
    assert causal(Bermuda("qwz23").hypotheses) == Bermuda("qwz23").hypotheses, "there are none to leave out"
    with pytest.raises(ValueError, match="without bi-directional edges"):
        causal(ride_hailing_graphs()[-1:])


@pytest.mark.parametrize(
    "world",
    [
        RideHailing(size=SampleSize(rows=20, contexts=1)),
        Bermuda("qwz23", size=SampleSize(rows=20, contexts=1)),
    ],
)
def test_a_regression_sees_what_may_be_set_and_nothing_between(world):
    task = world.task
    graph = associative(task.graph.names, task.context, task.box.names, task.outcomes)
    assert set(graph.names) == set(task.graph.names)
    (outcome,) = task.outcomes
    assert set(graph.parents(outcome)) == {*task.context, *task.box.names}
    assert all(set(graph.parents(name)) == set(task.context) for name in task.box.names)
    # Altering one variable moves no other that may be set.
    assert graph.descendants(task.box.names[:1]) - set(task.box.names[:1]) == {outcome}
    assert StructuralPosterior(task, [graph]).hypotheses[0].graph == graph
