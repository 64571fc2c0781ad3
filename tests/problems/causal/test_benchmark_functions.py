"""Test functions as networks: noise-free, they are the functions; their optima are the known ones."""

import math

import numpy as np
import pytest
import torch
from botorch.test_functions import Branin as BraninFunction
from botorch.test_functions import Hartmann as HartmannFunction
from botorch.test_functions import Levy as LevyFunction

from rehearsal_torch.problems.causal.benchmark_functions import (
    CURVATURE,
    GRID,
    Ackley,
    Branin,
    Dropwave,
    Hartmann,
    Levy,
    Rosenbrock,
    wave,
)
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


# lambda, sigma, optimum, radius, value at the centre, mean and 99 % of random actions.
TABLE = [
    (1, 0.1, 0.6408, 0.156, 0.4034, 0.104, 0.477),
    (2, 0.1, 0.4014, 0.257, 0.3897, 0.077, 0.354),
    (3, 0.1, 0.3340, 0.0, 0.3340, 0.051, 0.309),
    (1, 0.3, 0.4517, 0.0, 0.4517, 0.105, 0.411),
]


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "sigma", "optimum", "radius", "centre", "mean", "high"), TABLE)
def test_optima(scale, sigma, optimum, radius, centre, mean, high):
    world = Dropwave(ModalNoise(sigma), scale=scale)
    assert world.optimal_value == pytest.approx(optimum, abs=1e-4)
    assert world.best_radius == pytest.approx(radius, abs=1e-3)
    assert float(world.expected(torch.tensor([0.5, 0.5]))) == pytest.approx(centre, abs=1e-4)
    random = world.expected(
        torch.rand(20_000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    )
    assert float(random.mean()) == pytest.approx(mean, abs=0.002)
    assert float(random.quantile(0.99)) == pytest.approx(high, abs=0.012)


def test_quadrature_agrees_with_a_fine_sum():
    world = Dropwave(ModalNoise(0.3), scale=3)
    distribution, shift = world.noise["X"], 3 * world.noise["Y"].mean
    fine = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    parts = zip(distribution.weights, distribution.means, distribution.stds, strict=True)
    density = sum(
        weight * torch.distributions.Normal(mean, std).log_prob(fine).exp() for weight, mean, std in parts
    )
    for action in world.task.box.sobol(5):
        radius = float(((10.24 * action - 5.12) ** 2).sum() ** 0.5)
        summed = float((wave(radius + 3 * fine) * density).sum() * (fine[1] - fine[0])) + shift
        assert float(world.expected(action)) == pytest.approx(summed, abs=1e-7)


def test_given_means_factors_and_weights_hold_for_both_nodes():
    world = Dropwave(ModalNoise(0.2, means=(0.0, 0.3), factors=(1.0, 4.0), weights=(0.25, 0.75)), scale=2.0)
    for node in ("X", "Y"):
        found = world.noise[node]
        assert (found.weights, found.means) == ((0.25, 0.75), (0.0, 0.3))
        assert found.stds == pytest.approx((0.2, 0.4))
    # Far from the centre the wave is flat: what remains is the mean of Y's noise.
    assert float(world.expected(torch.tensor([0.0, 0.0]))) == pytest.approx(2 * 0.225 + 0.035, abs=0.01)
    weighted = Dropwave(ModalNoise(0.1, weights=(0.9, 0.1)))
    assert weighted.noise["X"].means == (-0.2, 0.4), "each node's own, unless others are given"
    assert weighted.noise["Y"].means == (-0.1, 0.05)


def test_the_certificate_holds():
    # The bound on the second derivative that the certificate rests on.
    points = torch.linspace(-20, 20, 400_001, dtype=torch.float64, requires_grad=True)
    (derivative,) = torch.autograd.grad(wave(points).sum(), points, create_graph=True)
    (second,) = torch.autograd.grad(derivative.sum(), points)
    assert float(second.abs().max()) < CURVATURE
    world = Dropwave()
    assert world.gap == pytest.approx(CURVATURE * GRID**2 / 8)
    assert world.gap < 1.1e-5
    finer = torch.arange(0, 1, GRID / 7, dtype=torch.float64)
    assert float(world._at(finer).max()) <= world.optimal_value + 1e-9


def test_local_maxima_without_noise():
    tops = torch.tensor([0.0, 0.520, 1.042, 1.564, 2.087], dtype=torch.float64)
    assert wave(tops).tolist() == pytest.approx([1, 0.9362, 0.7858, 0.6195, 0.4778], abs=2e-4)


def test_noise_that_is_not_fed_on():
    world = Dropwave(ModalNoise(0.1, modes=1), propagate_noise=False)
    assert world.optimal_value == 1.0
    assert world.optimal_action.tolist() == [0.5, 0.5]
    noise = world.noise_rows(5000, np.random.default_rng(0))
    nodes = world.simulate(torch.tensor([0.6, 0.5], dtype=torch.float64), noise)
    # Y does not move with the error of X.
    assert abs(float(torch.corrcoef(nodes.T)[0, 1])) < 0.05
    assert nodes.std(0).tolist() == pytest.approx([0.1, 0.1], rel=0.05)
    fed = Dropwave(ModalNoise(0.1, modes=1)).simulate(torch.tensor([0.6, 0.5], dtype=torch.float64), noise)
    assert abs(float(torch.corrcoef(fed.T)[0, 1])) > 0.15


def test_readings_and_bad_values():
    assert Dropwave(ModalNoise(0.1, reading="std")).noise["X"].stds == pytest.approx((0.14, 0.1))
    assert Dropwave(ModalNoise(0.1, reading="std")).noise["Y"].stds == pytest.approx((0.032, 0.032))
    assert Dropwave().noise["X"].stds == pytest.approx((1.4**0.5 * 0.1, 0.1))
    with pytest.raises(ValueError, match="scale"):
        Dropwave(scale=-1)
    with pytest.raises(ValueError, match="modes"):
        Dropwave(ModalNoise(0.1, modes=5))
