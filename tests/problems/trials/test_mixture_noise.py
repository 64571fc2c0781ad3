"""Modes of the noise, Gauss rules, and evenly spread draws."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.problems.trials.mixture_noise import (
    STANDARD,
    MixtureNoise,
    ModalNoise,
    gauss_rule,
    product_rule,
    quantiles,
    sobol_draws,
)

LAWS = [
    STANDARD,
    ModalNoise(0.2).mixture(),
    ModalNoise(0.3, 3, "std").mixture(),
    ModalNoise(0.1, 2, means=(-0.2, 0.4), factors=(1.4, 1.0)).mixture(),
    ModalNoise(0.1, 2, weights=(0.8, 0.2)).mixture(),
]


def test_modes_and_readings():
    assert ModalNoise(0.2, 1).mixture() == MixtureNoise((1.0,), (0.0,), (0.2,))
    two = ModalNoise(0.2).mixture()
    assert two.means == (-0.5, 0.5)
    assert two.stds == pytest.approx((0.2, 0.5**0.5 * 0.2))
    assert ModalNoise(0.2, 2, "std").mixture().stds == pytest.approx((0.2, 0.1))
    assert ModalNoise(0.2, 3).mixture().weights == pytest.approx((1 / 3,) * 3)
    assert [ModalNoise(0.7, modes).mixture().mean for modes in (1, 2, 3)] == pytest.approx([0, 0, 0])
    assert ModalNoise(0.1, means=(-0.2, 0.4)).mixture().mean == pytest.approx(0.1)


def test_a_world_has_modes_of_its_own_unless_others_are_given():
    own = {2: ((-1.0, 1.0), (2.0, 3.0))}
    assert ModalNoise(0.1, 2, "std").mixture(own) == MixtureNoise((0.5, 0.5), (-1.0, 1.0), (0.2, 0.1 * 3))
    assert ModalNoise(0.1, 2, "std", factors=[1, 1]).mixture(own).stds == (0.1, 0.1)
    with pytest.raises(ValueError, match=r"noise\.modes: expected one of \[2\]; got 3"):
        ModalNoise(0.1, 3).mixture(own)


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.integers(1, 6), st.sampled_from(range(len(LAWS))))
def test_gauss_rules_are_exact_for_polynomials(order, which):
    distribution = LAWS[which]
    points, weights = gauss_rule(distribution, order)
    fine, heavy = distribution.nodes(64)
    assert weights.sum() == pytest.approx(1)
    for degree in range(2 * order):
        assert weights @ points**degree == pytest.approx(heavy @ fine**degree, rel=1e-9, abs=1e-9)
    assert abs(weights @ points ** (2 * order) - heavy @ fine ** (2 * order)) > 1e-12


def test_gauss_rules_of_few_values_and_products():
    points, weights = gauss_rule(MixtureNoise((1.0,), (0.0,), (0.0,)), 3)
    assert points.tolist() == [0.0]
    assert weights.tolist() == pytest.approx([1.0])
    coin = MixtureNoise((0.25, 0.75), (-1.0, 1.0), (0.0, 0.0))
    points, weights = gauss_rule(coin, 4)
    assert sorted(points) == pytest.approx([-1, 1])
    both, heavy = product_rule([LAWS[1], LAWS[2]], (3, 2))
    assert both.shape == (6, 2)
    assert float(heavy.sum()) == pytest.approx(1)
    assert float((both[:, 0] ** 4 * both[:, 1] ** 2) @ heavy) == pytest.approx(
        float(LAWS[1].nodes(32)[1] @ LAWS[1].nodes(32)[0] ** 4) * LAWS[2].variance, rel=1e-9
    )


@pytest.mark.parametrize("distribution", LAWS)
def test_quantiles_invert_the_distribution(distribution):
    levels = torch.linspace(0.001, 0.999, 101, dtype=torch.float64)
    np.testing.assert_allclose(
        distribution.cdf(quantiles(distribution, levels).numpy()), levels.numpy(), atol=1e-5
    )


def test_quantiles_of_a_law_with_few_values():
    coin = MixtureNoise((0.25, 0.75), (1.0, -1.0), (0.0, 0.0))
    assert quantiles(coin, torch.tensor([0.1, 0.7, 0.8])).tolist() == [-1.0, -1.0, 1.0]


def test_even_draws_have_the_moments():
    draws = sobol_draws(LAWS, 12)
    assert draws.shape == (4096, len(LAWS))
    assert torch.equal(draws, sobol_draws(LAWS, 12))
    assert draws.mean(0).tolist() == pytest.approx([distribution.mean for distribution in LAWS], abs=2e-4)
    assert draws.var(0).tolist() == pytest.approx([distribution.variance for distribution in LAWS], rel=2e-3)
    assert float((draws[:, 0] * draws[:, 1]).mean()) == pytest.approx(0, abs=2e-3)
