"""Rosenbrock: the optimum is known exactly."""

import pytest
import torch

from rehearsal_torch.problems.causal.noise import ModalNoise
from rehearsal_torch.problems.causal.rosenbrock import Rosenbrock


def test_rosenbrock():
    world = Rosenbrock()
    assert world.optimal_value == 0.0
    assert Rosenbrock(ModalNoise(0.1, means=(-0.2, 0.4))).optimal_value == pytest.approx(0.4)
    assert set(world.task.inputs("X2")) == {"X1", "a2", "a3"}
    random = world.expected(
        torch.rand(20_000, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    )
    assert float(random.median()) == pytest.approx(-1525, abs=25)
    assert float(random.quantile(0.99)) == pytest.approx(-104, abs=8)
    nodes = world.simulate(torch.tensor([0.5, 0.75, 0.75, 0.75, 0.75]), torch.zeros(4, dtype=torch.float64))
    # x = (0, 1, 1, 1, 1): the first stretch costs 100 + 1.
    assert nodes.tolist() == [-101, -101, -101, -101]
