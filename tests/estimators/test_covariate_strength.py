"""Strengths of covariates against refitted regressions and against a density that is known."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from rehearsal_torch.estimators.covariate_strength import Assignment, strengths


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


def test_no_unit_changes_them():
    actions, covariates = rows(300, np.array([[1.0], [0.2], [0.0]]))
    plain = strengths([Assignment(actions, covariates, names(3))])
    other = strengths([Assignment(1e4 * actions - 7, 1e-3 * covariates + 1e3, names(3))])
    assert other == pytest.approx(plain, rel=1e-4)


def test_covariates_without_influence_are_weak_however_many_there_are():
    actions, covariates = rows(200, np.zeros((20, 1)), width=20)
    found = strengths([Assignment(actions, covariates, names(20))])
    assert max(found.values()) < 1.5
    assert min(found.values()) < 1.02


def test_a_covariate_that_repeats_another_adds_nothing():
    actions, covariates = rows(300, np.array([[1.0], [0.0], [0.0]]))
    twice = torch.cat([covariates, covariates[:, :1]], 1)
    found = strengths([Assignment(actions, twice, names(4))])
    assert found["X0"] == pytest.approx(1.0, abs=0.02)
    assert found["X3"] == pytest.approx(1.0, abs=0.02)


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


def test_without_covariates_there_is_none():
    assert strengths([Assignment(torch.randn(50, 2), torch.zeros(50, 0), ())]) == {}


def test_too_few_rows_and_wrong_shapes_are_refused():
    actions, covariates = rows(6, np.zeros((3, 1)))
    with pytest.raises(ValueError, match="at least 7 rows for 3 covariates; got 6"):
        strengths([Assignment(actions, covariates, names(3))])
