"""Bounds under a hidden common cause, against the linear programme that they solve.

Strengths of covariates against refitted regressions and against a density that is known.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import multivariate_normal

from rehearsal_torch.estimators.marginal_sensitivity import (
    Assignment,
    interval_bounds,
    strengths,
    tipping_between,
    tipping_strength,
)

share = st.floats(0.001, 0.999)
strength = st.floats(1.0, 50.0)


def bounds(probability, strength):
    return interval_bounds(probability, probability, strength)


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


@settings(max_examples=25)
@given(share, strength)
def test_both_ends_are_those_of_the_linear_programme(p, gamma):
    low, high = bounds(numbers(p), gamma)
    ends = [
        linprog([sign * p, 0], A_eq=[[p, 1 - p]], b_eq=[1], bounds=[(1 / gamma, gamma)] * 2).fun
        for sign in (1, -1)
    ]
    assert float(low) == pytest.approx(ends[0], abs=1e-7)
    assert float(high) == pytest.approx(-ends[1], abs=1e-7)


@settings(max_examples=25)
@given(
    st.lists(share, min_size=1, max_size=5), st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5), strength
)
def test_every_hidden_cause_of_that_strength_lies_within(success, mix, gamma):
    # h takes as many values as there are success probabilities; the ratios have mean one under f(h | a).
    weights = np.array(mix[: len(success)]) + 1e-3
    weights /= weights.sum()
    ratios = np.linspace(1 / gamma, gamma, len(success))
    ratios = 1 + (ratios - weights @ ratios) * min(
        (1 - 1 / gamma) / max(weights @ ratios - ratios.min(), 1e-12),
        (gamma - 1) / max(ratios.max() - weights @ ratios, 1e-12),
    )
    assert ratios.min() >= 1 / gamma - 1e-9
    assert ratios.max() <= gamma + 1e-9
    low, high = bounds(numbers(float(weights @ success)), gamma)
    true = float((weights * ratios) @ success)
    assert float(low) - 1e-9 <= true <= float(high) + 1e-9


@settings(max_examples=25)
@given(share, share, strength)
def test_an_average_is_bounded_less_tightly_than_its_terms(one, other, gamma):
    low, high = (each.mean() for each in bounds(numbers(one, other), gamma))
    loose = bounds(numbers((one + other) / 2), gamma)
    assert float(loose[0]) <= float(low) + 1e-12
    assert float(loose[1]) >= float(high) - 1e-12


@settings(max_examples=25)
@given(share, share, strength)
def test_an_interval_widens_with_the_strength_and_starts_as_itself(one, other, gamma):
    lower, upper = numbers(min(one, other)), numbers(max(one, other))
    none, some, more = (interval_bounds(lower, upper, each) for each in (1.0, gamma, gamma + 0.5))
    assert [float(each) for each in none] == pytest.approx([float(lower), float(upper)], abs=1e-12)
    assert 0 <= float(more[0]) <= float(some[0]) + 1e-12
    assert float(some[1]) - 1e-12 <= float(more[1]) <= 1


@settings(max_examples=25)
@given(share, share)
def test_at_the_tipping_strength_the_lower_end_meets_the_baseline(lower, baseline):
    found = tipping_strength(numbers(lower), numbers(baseline))
    if lower <= baseline:
        assert float(found) == 1.0
    else:
        assert float(bounds(numbers(lower), found)[0]) == pytest.approx(baseline, rel=1e-9)


@settings(max_examples=40)
@given(share, share, st.floats(0.0, 0.9))
def test_where_an_action_has_to_be_better_by_something_the_bounds_meet_that_far_apart(better, other, less):
    found = tipping_between(numbers(better), numbers(other), less)
    if better - less <= other:
        assert float(found) == 1.0
    else:
        low, high = bounds(numbers(better), found)[0], bounds(numbers(other), found)[1]
        assert float(low - high) == pytest.approx(less, abs=1e-9)
        assert float(found) <= float(tipping_between(numbers(better), numbers(other))) + 1e-12


def rows(count, effect, seed=0, width=3):
    stream = np.random.default_rng(seed)
    covariates = stream.normal(size=(count, width))
    covariates[:, 1] += 0.5 * covariates[:, 0]
    actions = covariates @ effect + stream.normal(size=(count, np.shape(effect)[1]))
    return torch.from_numpy(actions), torch.from_numpy(covariates)


def names(width):
    return tuple(f"X{index}" for index in range(width))


def test_they_are_those_of_regressions_fitted_without_each_covariate():
    actions, covariates = rows(2000, np.array([[1.0, 0.5], [0.0, -1.0], [0.7, 0.0]]))
    found = strengths([Assignment(actions, covariates, names(3))])

    def log_density(kept):
        design = np.column_stack([np.ones(2000), covariates.numpy()[:, kept]])
        residuals = actions.numpy() - design @ np.linalg.lstsq(design, actions.numpy(), rcond=None)[0]
        covariance = residuals.T @ residuals / (2000 - design.shape[1])
        return multivariate_normal(np.zeros(2), covariance).logpdf(residuals)

    for place in range(3):
        ratio = log_density([0, 1, 2]) - log_density([each for each in range(3) if each != place])
        expected = math.exp(np.quantile(np.abs(ratio), 0.95))
        assert found[f"X{place}"] == pytest.approx(expected, rel=0.01), "but for the shrinkage"
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_an_action_that_a_covariate_determines_is_very_strong_and_finite_arithmetic():
    _, covariates = rows(300, np.zeros((3, 1)))
    found = strengths([Assignment(covariates[:, :1], covariates, names(3))])
    assert next(iter(found)) == "X0"
    assert found["X0"] > 1e3


def test_of_actions_one_after_the_other_the_log_ratios_add():
    actions, covariates = rows(1000, np.array([[1.0], [0.0], [0.0]]))
    one = Assignment(actions, covariates, names(3))
    assert strengths([one, one])["X0"] == pytest.approx(strengths([one])["X0"] ** 2, rel=1e-9)
    assert set(strengths([one, Assignment(actions, covariates[:, :1], ("V",))])) == {*names(3), "V"}


@pytest.mark.parametrize(("lower", "baseline"), [(0.4, 0.0), (1.0, 0.4)])
def test_where_nothing_can_overturn_it_the_strength_is_infinite(lower, baseline):
    assert float(tipping_strength(numbers(lower), numbers(baseline))) == math.inf


def test_of_two_actions_only_certainty_against_impossibility_cannot_be_overturned():
    assert float(tipping_between(numbers(1.0), numbers(0.0))) == math.inf
    assert float(tipping_between(numbers(1.0), numbers(1.0))) == 1.0
    # 1 - G (1 - p) = 1 for p = 1, and G q = 1.
    assert float(tipping_between(numbers(1.0), numbers(0.25))) == math.inf


def test_a_covariate_that_repeats_another_adds_nothing():
    actions, covariates = rows(300, np.array([[1.0], [0.0], [0.0]]))
    twice = torch.cat([covariates, covariates[:, :1]], 1)
    found = strengths([Assignment(actions, twice, names(4))])
    assert found["X0"] == pytest.approx(1.0, abs=0.02)
    assert found["X3"] == pytest.approx(1.0, abs=0.02)
