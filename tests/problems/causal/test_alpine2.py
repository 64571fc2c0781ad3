"""Alpine2: optima of the four mechanisms, and means that nobody sees."""

from itertools import product
from math import comb

import numpy as np
import pytest
import torch
import yaml

from rehearsal_torch.problems.causal.alpine2 import EXTREMES, Alpine2, hill
from rehearsal_torch.problems.causal.noise import ModalNoise
from tests.places import CONF

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
