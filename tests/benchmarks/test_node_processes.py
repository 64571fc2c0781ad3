"""The peer of BoTorch's parts: processes of nodes, composed by sampling."""

import pytest
import torch

from benchmarks.suite.plain.node_processes import NodeProcesses, improvement
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box


def test_processes_of_nodes_are_composed_from_the_roots_on():
    """With next to no noise and many rows, a composition of smooth functions is recovered."""
    graph = RehearsalGraph.of({"X": ["a"], "Y": ["X", "a"]})
    task = CausalTask(graph, Box.of({"a": (0.0, 1.0)}), WeightedSum({"Y": 2.0}))
    a = torch.linspace(0, 1, 25, dtype=torch.float64)
    x = (3 * a).sin()
    table = Table.observed(("a", "X", "Y"), torch.stack([a, x, x.square() - a], -1))
    torch.manual_seed(0)
    network = NodeProcesses(task, table)
    asked = torch.tensor([[0.12], [0.55], [0.9]], dtype=torch.float64)
    wanted = torch.cat([(3 * asked).sin(), (3 * asked).sin().square() - asked], -1)
    found = network.posterior(asked).rsample(torch.Size([200])).detach()
    assert found.shape == (200, 3, 2)
    torch.testing.assert_close(found.mean(0), wanted, atol=0.03, rtol=0)
    torch.testing.assert_close(network.reward()(found), 2 * found[..., 1])
    # The best action of all is near 0.47; the tried ones are far from it.
    value = improvement(network, asked[[0, 2]])
    better, worse = value(torch.tensor([[[0.47]], [[0.95]]], dtype=torch.float64))
    assert better > worse + 5


def test_the_noise_of_a_node_with_children_is_common_to_the_actions_of_a_sample():
    """X = a + noise, Y = X: nodes of a sample differ by the same noise, of the learnt size."""
    graph = RehearsalGraph.of({"X": ["a"], "Y": ["X"]})
    task = CausalTask(graph, Box.of({"a": (0.0, 1.0)}), WeightedSum({"Y": 1.0}))
    torch.manual_seed(0)
    a = torch.linspace(0, 1, 60, dtype=torch.float64)
    x = a + 0.2 * torch.randn(60, dtype=torch.float64)
    network = NodeProcesses(task, Table.observed(("a", "X", "Y"), torch.stack([a, x, x], -1)))
    assert float(network.noise(0)) == pytest.approx(0.2, rel=0.2)
    actions = torch.tensor([[0.2], [0.8]], dtype=torch.float64)
    found = network.posterior(actions).rsample(torch.Size([2000])).detach()
    spread, apart = found[:, 0, 0].std(), (found[:, 1, 0] - found[:, 0, 0]).std()
    assert float(spread) == pytest.approx(0.2, rel=0.25)
    assert float(apart) < 0.5 * float(spread)
