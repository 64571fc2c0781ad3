"""Decisions graph by graph: by hand, and for a posterior whose slopes differ between graphs."""

import pytest
import torch

from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.surrogates.structural.graph_belief import LEAST, GraphBelief
from tests.toys.toy_posteriors import Toy, toy_cases

FEW = {"search_scenarios": 50, "validation_scenarios": 50, "information_models": 5, "entropy": "sampled"}


def belief(lengths, unaltered):
    graphs = torch.cat([torch.full((length,), index) for index, length in enumerate(lengths)])
    weights = torch.tensor(lengths, dtype=torch.float64) / sum(lengths)
    return GraphBelief(graphs, weights, unaltered)


def test_gains_are_those_of_each_graphs_own_scenarios():
    lengths = (60, 40, 5)
    unaltered = torch.zeros(105, 2, dtype=torch.bool)
    unaltered[60:70] = True
    desired = torch.zeros(105, 2, dtype=torch.bool)
    # Case 0: helps under both graphs. Case 1: helps under the first, hurts under the second.
    desired[:30], desired[60:90, 0], desired[60:64, 1] = True, True, True
    first, second = belief(lengths, unaltered).judged(desired)
    assert first == {
        "stand": pytest.approx(100 / 105, abs=1e-6),
        "worst": 0.5,
        "worst_graph": 0,
        "worst_weight": pytest.approx(60 / 105, abs=1e-6),
        "judged": pytest.approx(100 / 105, abs=1e-6),
        "graphs": 3,
    }
    assert second["stand"] == pytest.approx(60 / 105, abs=1e-6)
    assert (second["worst"], second["worst_graph"]) == (pytest.approx(-0.15), 1)


def test_graphs_with_few_scenarios_are_not_judged():
    lengths = (LEAST - 1, LEAST - 1)
    none = torch.zeros(sum(lengths), 1, dtype=torch.bool)
    assert belief(lengths, none).judged(none) == [{"judged": 0.0, "graphs": 2}]


def test_an_action_that_only_one_graph_supports_is_recorded_as_such():
    # Under the second graph y falls with a: what helps under the first hurts there.
    toy = Toy((0.7, 0.3), (1.0, -1.0), (0.1, 0.1))
    (one,) = SuccessProbability.for_cases(toy, toy_cases(1), test_scenarios=2000, **FEW).sets
    (found,) = one.appraise(torch.tensor([[1.5]], dtype=torch.float64))
    graphs = found.trace["graphs"]
    assert graphs["stand"] == pytest.approx(0.7)
    assert (graphs["worst_graph"], graphs["worst_weight"]) == (1, pytest.approx(0.3))
    assert graphs["worst"] < -0.1
    assert found.estimate.point > found.baseline.point, "on average it helps"


def test_a_single_graph_is_not_compared():
    (one,) = SuccessProbability.for_cases(Toy(), toy_cases(1), **FEW).sets
    assert one.appraise(torch.tensor([[1.5]], dtype=torch.float64))[0].trace == {}
