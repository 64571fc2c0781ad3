"""Rosenbrock and Ackley: optima that are known exactly."""

import math

import numpy as np
import pytest
import torch

from rehearsal_torch.problems.causal.ackley import Ackley
from rehearsal_torch.problems.causal.rosenbrock import Rosenbrock


def test_rosenbrock():
    world = Rosenbrock()
    assert world.optimal_value == 0.0
    assert Rosenbrock(means=(-0.2, 0.4)).optimal_value == pytest.approx(0.4)
    assert set(world.task.inputs("X2")) == {"X1", "a2", "a3"}
    random = world.expected(
        torch.rand(20_000, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    )
    assert float(random.median()) == pytest.approx(-1525, abs=25)
    assert float(random.quantile(0.99)) == pytest.approx(-104, abs=8)
    nodes = world.simulate(torch.tensor([0.5, 0.75, 0.75, 0.75, 0.75]), torch.zeros(4, dtype=torch.float64))
    # x = (0, 1, 1, 1, 1): the first stretch costs 100 + 1.
    assert nodes.tolist() == [-101, -101, -101, -101]


def test_ackley_without_noise_is_the_usual_function():
    from botorch.test_functions.synthetic import Ackley as Usual

    world = Ackley(sigma=0.0, modes=1)
    actions = world.task.box.sobol(20)
    usual = Usual(dim=6, bounds=[(-2.0, 2.0)] * 6)
    torch.testing.assert_close(world.expected(actions), -usual(4 * (actions - 0.5)), rtol=1e-9, atol=1e-9)
    assert world.optimal_value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("modes", [1, 2, 3])
def test_ackley_with_noise(modes):
    world = Ackley(sigma=0.3, modes=modes)
    law = world.noise["X0"]
    draws = law.draw(1_000_000, np.random.default_rng(0))
    height = 20 * np.exp(-0.2 * np.sqrt(np.maximum(draws, 0)))
    rise = math.e * np.exp(law.draw(1_000_000, np.random.default_rng(1)))
    error = (height.var() + rise.var()) ** 0.5 / 1000
    assert world.optimal_value == pytest.approx(height.mean() + rise.mean() - 20 - math.e, abs=4 * error)
    assert float(world.expected(world.task.box.sobol(2000)).max()) < world.optimal_value
