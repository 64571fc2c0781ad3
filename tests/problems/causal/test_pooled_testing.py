"""Pooled testing: the best protocols."""

import pytest
import torch

from rehearsal_torch.problems.causal.noise import ModalNoise
from rehearsal_torch.problems.causal.pooled_testing import BETA, PooledTesting, period


def number(value):
    return torch.tensor(float(value), dtype=torch.float64)


@pytest.mark.slow
def test_the_best_protocol_without_noise():
    world = PooledTesting(noise_scale=0.0)
    assert world.optimal_value == pytest.approx(-8.591, abs=1e-3)
    assert (199 * world.optimal_action + 1).tolist() == pytest.approx([23.4, 200, 200], abs=0.1)
    assert "R1" not in world.task.nodes
    nodes = dict(
        zip(
            world.task.nodes,
            world.simulate(world.optimal_action, torch.zeros(6, dtype=torch.float64)).tolist(),
            strict=True,
        )
    )
    assert [nodes[name] for name in ("L1", "L2", "L3")] == pytest.approx([4.13, 1.86, 2.60], abs=5e-3)
    random = world.expected(
        torch.rand(5000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    )
    assert float(random.mean()) == pytest.approx(-15.9, abs=0.3)
    assert float(random.median()) == pytest.approx(-14.0, abs=0.2)
    assert float(random.quantile(0.99)) == pytest.approx(-9.09, abs=0.15)


def test_whole_households_are_certified():
    world = PooledTesting(noise_scale=0.0, whole=True)
    rewards = world.protocols()
    assert world.optimal_value == pytest.approx(float(rewards.max()), abs=1e-12)
    assert world.optimal_value == pytest.approx(-8.5615, abs=1e-4)
    assert world.groups(world.optimal_action).tolist() == [10, 82, 82]
    # Protocols are what the equations say of them.
    for action in world.task.box.sobol(10):
        places = world.groups(action).long() - 1
        assert float(rewards[tuple(places)]) == pytest.approx(float(world.expected(action)), abs=1e-12)


@pytest.mark.slow
def test_noise_changes_little():
    silent = PooledTesting(noise_scale=0.0).optimal_value
    assert PooledTesting(ModalNoise(0.4)).optimal_value == pytest.approx(silent, abs=0.02)
    world = PooledTesting(ModalNoise(0.2, means=(-0.2, 0.4)))
    # Each loss has noise of mean .1 times the scale.
    assert world.optimal_value == pytest.approx(silent - 3 * 0.1 * 0.1, abs=0.02)


def test_states_stay_within_the_population():
    new, loss = period(number(99.5), number(40.0), number(80.0))
    assert 0 <= float(new) <= 0.5
    new, loss = period(number(-0.3), number(0.0), number(10.0))
    assert float(new) == 0
    assert float(loss) > 0
    assert pytest.approx(3.2347, abs=1e-4) == BETA
    poor = PooledTesting(noise_scale=0.0)
    nodes = dict(
        zip(
            poor.task.nodes,
            poor.simulate(torch.ones(3), torch.zeros(6, dtype=torch.float64)).tolist(),
            strict=True,
        )
    )
    assert nodes["I1"] + nodes["I2"] <= 100


def test_what_reaches_nothing_is_no_node():
    world = PooledTesting()
    assert set(world.task.nodes) == {"I1", "R1", "L1", "I2", "R2", "L2", "L3"}
    assert world.task.inputs("R1") == ()
    assert set(world.task.inputs("L3")) == {"I2", "R2", "a3"}
    with pytest.raises(ValueError, match="noise_scale"):
        PooledTesting(noise_scale=-1)
