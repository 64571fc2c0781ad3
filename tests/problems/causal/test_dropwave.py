"""Dropwave: the optima, and where they lie."""

import numpy as np
import pytest
import torch

from rehearsal_torch.problems.causal.dropwave import CURVATURE, GRID, Dropwave, wave
from rehearsal_torch.problems.causal.noise import ModalNoise

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
