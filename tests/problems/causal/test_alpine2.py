"""Alpine2: optima of the four mechanisms, and means that nobody sees."""

from itertools import product

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


@pytest.mark.slow
def test_even_draws_give_the_exact_mean_where_it_can_be_seen():
    world = Alpine2()
    actions = torch.cat([world.task.box.sobol(30), world.optimal_action[None]])
    exact = world.exact_mean(actions)
    assert ((world.expected(actions) - exact).abs() <= 1e-3 * exact.abs() + 2e-3).all()
    assert world.optimal_value == pytest.approx(502.04, abs=0.05)
    # The moments know no rare draws from others: at lambda = .3, sigma = .4 they make the mean of actions
    # whose reward is usually small.
    strange = Alpine2("dgm", ModalNoise(0.4))
    action = torch.tensor([0.6267, 0.7913, 0.7917, 0.7268, 0.4663, 0.5759], dtype=torch.float64)
    assert float(strange.exact_mean(action)) > 1e37
    assert abs(float(strange.median(action))) < 10
    assert float(strange.expected(action)) < strange.optimal_value


def test_moments_agree_with_quadrature():
    # Two links by brute force: E X_5 under fixed other links is a polynomial of low degree when lambda is
    # small and actions are zero.
    world = Alpine2("dgm", ModalNoise(0.3), scale=0.5)
    action = torch.tensor([0.3, 0.6, 0.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    points, weights = (torch.from_numpy(each) for each in world.distribution.nodes(40))
    fourth = float(weights @ (0.5 * points**4))
    first = -hill(10 * action[0]) + (torch.cos(10 * action[0]) + 1.2) * 0.5 * points**4
    second = (
        hill(10 * action[1]) * first[:, None]
        + 0.1 * (torch.cos(10 * action[1]) + first[:, None] ** 2 + 1.2) * 0.5 * points**4
    )
    # With a = 0 the hill vanishes and X_2 = .1 (2.2 + X_1^2) W_2, whose fifth moment follows; stop at the
    # mean of X_2.
    mean = float((weights @ (0.1 * (2.2 + second**2) * fourth)) @ weights)
    terms, moments = world._moments._terms, torch.ones(1, dtype=torch.float64)
    slopes, levels = hill(10 * action), torch.cos(10 * action) + 1.2
    for place in range(3):
        moments = terms[place].sum(slopes[place] if place else -slopes[0], levels[place], moments)
    assert float(moments[1]) == pytest.approx(mean, rel=1e-9)


@pytest.mark.slow
def test_the_bounded_variant():
    world = Alpine2("dgm_bounded", ModalNoise(0.4), scale=1.0)
    # Draws of their own: no mean of rare ones.
    rewards = world.rewards(
        world.simulate(world.optimal_action, world.noise_rows(400_000, np.random.default_rng(1)))
    )
    assert float(rewards.mean()) == pytest.approx(world.optimal_value, rel=3e-3)
    assert float(rewards.std()) < 2 * world.optimal_value
    with pytest.raises(ValueError, match="no closed form"):
        world.exact_mean(world.optimal_action)


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
