"""Test functions as networks: noise-free, they are the functions; their optima are the known ones."""

import math
from itertools import product
from math import comb

import numpy as np
import pytest
import torch
import yaml

from rehearsal_torch.problems.trials.benchmark_functions import (
    CURVATURE,
    EXTREMES,
    GRID,
    Ackley,
    Alpine2,
    Dropwave,
    Rosenbrock,
    hill,
    wave,
)
from rehearsal_torch.problems.trials.mixture_noise import ModalNoise
from tests.places import CONF


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
            Rosenbrock(scale=wrong)


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


UNIT = Alpine2("anm", ModalNoise(1.0, modes=1), scale=1.0)
FIRST, SECOND = {"means": (-0.5, 0.5), "factors": (1.0, 0.5)}, {"means": (-1.0, 0.5), "factors": (0.5, 1.5)}


def test_the_hill():
    places = torch.linspace(0, 10, 1_000_001, dtype=torch.float64)
    values = hill(places)
    assert float(values.max()) == pytest.approx(2.80813, abs=1e-5)
    assert float(values.min()) == pytest.approx(-2.18277, abs=1e-5)
    assert [float(places[values.argmin()]) / 10, float(places[values.argmax()]) / 10] == pytest.approx(
        EXTREMES[:2], abs=1e-5
    )
    assert hill(torch.tensor([-0.3, 0.0])).tolist() == [0, 0]
    inside = torch.tensor([0.0, 2.0], requires_grad=True)
    assert torch.autograd.grad(hill(inside).sum(), inside)[0].isfinite().all()


def test_standard_normal_noise():
    world = UNIT
    assert world.optimal_value == pytest.approx(381.149, abs=1e-3)
    low, high = EXTREMES[:2]
    # Six best actions: the low place stands anywhere.
    for place in range(6):
        action = torch.full((6,), high, dtype=torch.float64)
        action[place] = low
        assert float(world.expected(action)) == pytest.approx(381.149, abs=1e-3)
    assert float(world.expected(torch.full((6,), high, dtype=torch.float64))) < -400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("distribution", "sigma", "optimum", "most", "least"),
    [
        (FIRST, 0.05, 171.23, 0.790, 0.479),
        (FIRST, 0.1, 168.41, 0.790, 0.479),
        (FIRST, 0.2, 157.63, 0.790, 0.479),
        (SECOND, 0.05, 56.70, 0.812, 0.500),
        (SECOND, 0.1, 55.33, 0.812, 0.500),
        (SECOND, 0.2, 50.22, 0.812, 0.500),
    ],
)
def test_noise_inside_the_sine(distribution, sigma, optimum, most, least):
    world = Alpine2("non_dgm", ModalNoise(sigma, **distribution), scale=1.0)
    assert world.optimal_value == pytest.approx(optimum, abs=1e-2)
    action = world.optimal_action.sort().values
    assert action.tolist() == pytest.approx([least, *[most] * 5], abs=1.5e-3)


# lambda, sigma, law, the best mean that a long search by simulation reached, and its standard error.
SIMULATED = [
    (0.3, 0.05, FIRST, 447.54, 0.02),
    (0.3, 0.2, FIRST, 501.6, 0.2),
    (0.3, 0.4, FIRST, 879, 6),
    (1.0, 0.05, FIRST, 661.6, 0.1),
    (0.3, 0.2, {"means": (-1.0, 1.0), "factors": (1.0, 0.5)}, 1.9e4, 257),
]


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "sigma", "distribution", "simulated", "error"), SIMULATED)
def test_decomposable_noise(scale, sigma, distribution, simulated, error):
    world = Alpine2("dgm", ModalNoise(sigma, **distribution), scale=scale)
    assert world.optimal_value == pytest.approx(simulated, abs=3 * error)
    assert sorted(round(each, 1) for each in world.optimal_action.tolist()) == [0.5, 0.8, 0.8, 0.8, 0.8, 0.8]


@pytest.mark.slow
def test_where_the_low_place_stands_matters():
    # 843 +- 1.2 at lambda = 1, sigma = .2 is a local optimum: the low place stands second. First it gives
    # 1044.
    world = Alpine2("dgm", ModalNoise(0.2), scale=1.0)
    second = torch.tensor([0.79, 0.48, 0.79, 0.79, 0.79, 0.79], dtype=torch.float64)
    assert float(world.expected(second)) == pytest.approx(843, abs=3)
    draws = world.noise_rows(400_000, np.random.default_rng(0))
    rewards = world.rewards(world.simulate(world.optimal_action, draws))
    assert world.optimal_value == pytest.approx(1044.7, abs=0.5)
    assert float(rewards.mean()) == pytest.approx(
        world.optimal_value, abs=4 * float(rewards.std()) / 400_000**0.5
    )


def exact(world, action):
    """E[X_5 | a] of "dgm" by a recursion of moments, however rare the draws that dominate it.

    With W_i = lambda U_i^4, X_0 = -s_0 + c_0 W_0 and X_i = s_i X_{i-1} + .1 (c_i + X_{i-1}^2) W_i, X_i^k is a
    polynomial in X_{i-1} of degree 2 k, whose coefficients are moments of W_i.
    """
    points, weights = world.distribution.nodes(80)  # exact to degree 159
    noise = [float(weights @ (world.scale * points**4) ** power) for power in range(33)]
    slopes, levels = hill(10 * action).tolist(), (torch.cos(10 * action) + 1.2).tolist()
    moments = [
        sum(comb(k, j) * noise[j] * (-slopes[0]) ** (k - j) * levels[0] ** j for j in range(k + 1))
        for k in range(33)
    ]
    for s, c, top in zip(slopes[1:], levels[1:], (16, 8, 4, 2, 1), strict=True):
        moments = [
            sum(
                comb(k, j) * comb(j, low) * 0.1**j * noise[j]
                * s ** (k - j) * c ** (j - low) * moments[k - j + 2 * low]
                for j in range(k + 1)
                for low in range(j + 1)
            )
            for k in range(top + 1)
        ]  # fmt: skip
    return moments[1]


@pytest.mark.slow
def test_even_draws_give_the_exact_mean_where_it_can_be_seen():
    world = Alpine2()
    actions = torch.cat([world.task.box.sobol(30), world.optimal_action[None]])
    known = torch.tensor([exact(world, action) for action in actions], dtype=torch.float64)
    assert ((world.expected(actions) - known).abs() <= 1e-3 * known.abs() + 2e-3).all()
    assert world.optimal_value == pytest.approx(502.04, abs=0.05)
    # The moments know no rare draws from others: at lambda = .3, sigma = .4 they make the mean of actions
    # whose reward is usually small.
    strange = Alpine2("dgm", ModalNoise(0.4))
    action = torch.tensor([0.6267, 0.7913, 0.7917, 0.7268, 0.4663, 0.5759], dtype=torch.float64)
    assert exact(strange, action) > 1e37
    assert abs(float(strange.median(action))) < 10
    assert float(strange.expected(action)) < strange.optimal_value


@pytest.mark.slow
def test_the_bounded_variant():
    world = Alpine2("dgm_bounded", ModalNoise(0.4), scale=1.0)
    # Draws of their own: no mean of rare ones.
    rewards = world.rewards(
        world.simulate(world.optimal_action, world.noise_rows(400_000, np.random.default_rng(1)))
    )
    assert float(rewards.mean()) == pytest.approx(world.optimal_value, rel=3e-3)
    assert float(rewards.std()) < 2 * world.optimal_value


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["dgm", "dgm_bounded"])
def test_no_corner_is_better(mechanism):
    world = Alpine2(mechanism)
    corners = torch.tensor(list(product(EXTREMES[:2], repeat=6)), dtype=torch.float64)
    assert float(world.expected(corners).max()) <= world.optimal_value


@pytest.mark.parametrize("option", ["alpine2", "alpine2_unit", "alpine2_non_dgm"])
def test_a_configured_alpine2_has_the_scale_of_python(option):
    config = yaml.safe_load((CONF / "dataset" / f"{option}.yaml").read_text(encoding="utf-8"))
    assert config["scale"] == Alpine2(config["mechanism"]).scale


@pytest.mark.parametrize("mechanism", ["dgm", "dgm_bounded", "anm", "non_dgm"])
def test_the_identifiable_part_of_noise_that_enters_to_the_fourth_power(mechanism):
    noise = torch.tensor([-0.5, 0.2, 1.0], dtype=torch.float64)
    expected = [0.0625, 0.0016, 1.0] if mechanism.startswith("dgm") else noise.tolist()
    assert Alpine2(mechanism).recoverable("X3", noise).tolist() == pytest.approx(expected)
