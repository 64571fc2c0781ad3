"""Test functions as networks: noise-free, they are the functions; their optima are the known ones."""

import math

import numpy as np
import pytest
import torch
from botorch.test_functions import Branin as BraninFunction
from botorch.test_functions import Hartmann as HartmannFunction
from botorch.test_functions import Levy as LevyFunction

from rehearsal_torch.problems.causal.benchmark_functions import Ackley, Branin, Hartmann, Levy, Rosenbrock
from rehearsal_torch.problems.causal.noise import ModalNoise

FUNCTIONS = {
    "branin": (Branin, BraninFunction(dtype=torch.float64), 50.0, -0.397887 / 50),
    "hartmann": (Hartmann, HartmannFunction(6, dtype=torch.float64), 1.0, 3.32237),
    "levy": (
        Levy,
        LevyFunction(4, bounds=[(-10, 10)] * 4, dtype=torch.float64),
        1.0,
        0.0,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_noise_the_network_is_the_function(name):
    made, function, unit, optimum = FUNCTIONS[name]
    world = made(scale=0.0)
    actions = world.task.box.sobol(64, seed=2)
    points = function.bounds[0] + actions * (function.bounds[1] - function.bounds[0])
    torch.testing.assert_close(world.expected(actions), -function(points) / unit, rtol=1e-6, atol=1e-8)
    silent = torch.zeros(len(world.task.nodes), dtype=torch.float64)
    torch.testing.assert_close(
        world.rewards(world.simulate(actions, silent)), world.expected(actions), rtol=1e-10, atol=1e-10
    )
    assert world.optimal_value == pytest.approx(optimum, abs=2e-5)


def test_the_noise_moves_expectations_by_its_mean():
    skewed = ModalNoise(0.1, means=(-0.1, 0.3))
    assert Hartmann(skewed).optimal_value == pytest.approx(3.32237 + 0.1 * 8.4, abs=2e-5)
    assert Levy(skewed, scale=2.0).optimal_value == pytest.approx(0.8)
    variance = 0.1**2 + 0.25 * 0.01
    assert Branin().optimal_value == pytest.approx(-(0.397887 + 100 * variance) / 50, abs=1e-6)


def test_the_trap_of_branin_is_the_edge():
    """The best action with a_0 = 1 is a little worse than the best one inside."""
    world, line = Branin(), torch.linspace(0, 1, 2001, dtype=torch.float64)
    edge = world.expected(torch.stack([torch.ones_like(line), line], -1)).max()
    assert world.optimal_value - float(edge) == pytest.approx(0.031, abs=0.001)


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


def test_a_scale_below_nothing_is_refused():
    for wrong in (-0.1, math.nan):
        with pytest.raises(ValueError, match=f"scale: expected a number of at least 0.*; got {wrong}"):
            Levy(scale=wrong)
