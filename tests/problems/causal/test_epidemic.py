"""Calibrating an epidemic: targets, exact expectations, and a best action that is not the truth."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from rehearsal_torch.problems.causal.epidemic import Epidemic
from rehearsal_torch.problems.causal.noise import ModalNoise

TARGETS = {"I11": 0.8465, "I21": 1.2920, "I12": 0.9909, "I22": 1.7498, "I13": 0.7783, "I23": 1.3161}


def test_targets_are_what_the_true_rates_give():
    world = Epidemic()
    reward = world.task.reward.to_plain()
    assert reward["mean"] is True
    assert reward["targets"] == pytest.approx(TARGETS, abs=1e-4)
    nodes = world.simulate(world.true_action, torch.zeros(6, dtype=torch.float64))
    assert dict(zip(world.task.nodes, nodes.tolist(), strict=True)) == pytest.approx(reward["targets"])
    assert float(world.rewards(nodes)) == pytest.approx(0, abs=1e-20)
    more = Epidemic(actions=13)
    torch.testing.assert_close(more.simulate(more.true_action, torch.zeros(6, dtype=torch.float64)), nodes)
    assert more.true_action[-1] == 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "optimum", "truth"), [(0.1, -0.376, -0.481), (0.3, -0.460, -0.593)])
def test_optima(sigma, optimum, truth):
    world = Epidemic(ModalNoise(sigma))
    assert world.optimal_value == pytest.approx(optimum, abs=1.5e-3)
    assert float(world.expected(world.true_action)) == pytest.approx(truth, abs=2e-3)
    assert world.optimal_value < world.ceiling
    random = world.expected(world.task.box.sobol(4096))
    assert float(random.median()) == pytest.approx({0.1: -2.93, 0.3: -3.25}[sigma], abs=0.3)


@pytest.mark.slow
def test_expectations_are_exact():
    world = Epidemic(ModalNoise(0.3))
    actions = torch.stack([world.true_action, world.optimal_action, torch.ones(12, dtype=torch.float64)])
    noise = world.noise_rows(400_000, np.random.default_rng(0))
    for action in actions:
        rewards = world.rewards(world.simulate(action, noise))
        assert float(world.expected(action)) == pytest.approx(
            float(rewards.mean()), abs=4 * float(rewards.std()) / 400_000**0.5
        )


@pytest.mark.slow
def test_another_search_finds_no_more():
    world, stream = Epidemic(), np.random.default_rng(3)

    def loss(unit):
        point = torch.tensor(unit, dtype=torch.float64, requires_grad=True)
        value = -world.expected(point)
        (derivative,) = torch.autograd.grad(value, point)
        return float(value.detach()), derivative.numpy()

    found = [
        -minimize(loss, stream.uniform(size=12), jac=True, method="L-BFGS-B", bounds=[(0, 1)] * 12).fun
        for _ in range(15)
    ]
    assert max(found) <= world.optimal_value + 1e-5
    assert max(found) >= world.optimal_value - 1e-3


def test_inputs_and_the_number_of_actions():
    block, row = Epidemic(), Epidemic(inputs="row")
    assert set(block.task.inputs("I12")) == {"I11", "I21", "b112", "b122", "b212", "b222"}
    assert set(row.task.inputs("I12")) == {"I11", "I21", "b112", "b122"}
    torch.testing.assert_close(block.expected(block.true_action), row.expected(row.true_action))
    assert len(Epidemic(actions=13).task.actions) == 13
    assert (block.initial, Epidemic(actions=13).initial) == (26, 28)
    with pytest.raises(ValueError, match="12 or 13 actions"):
        Epidemic(actions=14)
