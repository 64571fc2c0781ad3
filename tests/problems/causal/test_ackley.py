"""Ackley: the optimum is known exactly."""

import math

import numpy as np
import pytest
import torch

from rehearsal_torch.problems.causal.ackley import Ackley
from rehearsal_torch.problems.causal.noise import ModalNoise


def test_ackley_without_noise_is_the_usual_function():
    from botorch.test_functions.synthetic import Ackley as Usual

    world = Ackley(ModalNoise(0.0, modes=1))
    actions = world.task.box.sobol(20)
    usual = Usual(dim=6, bounds=[(-2.0, 2.0)] * 6)
    torch.testing.assert_close(world.expected(actions), -usual(4 * (actions - 0.5)), rtol=1e-9, atol=1e-9)
    assert world.optimal_value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("modes", [1, 2, 3])
def test_ackley_with_noise(modes):
    world = Ackley(ModalNoise(0.3, modes=modes))
    distribution = world.noise["X0"]
    draws = distribution.draw(1_000_000, np.random.default_rng(0))
    height = 20 * np.exp(-0.2 * np.sqrt(np.maximum(draws, 0)))
    rise = math.e * np.exp(distribution.draw(1_000_000, np.random.default_rng(1)))
    error = (height.var() + rise.var()) ** 0.5 / 1000
    assert world.optimal_value == pytest.approx(height.mean() + rise.mean() - 20 - math.e, abs=4 * error)
    assert float(world.expected(world.task.box.sobol(2000)).max()) < world.optimal_value
