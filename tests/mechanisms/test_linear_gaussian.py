"""Least squares with intercept and residual covariance, and what it leaves open."""

from itertools import permutations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from rehearsal_torch.mechanisms.linear_gaussian import LinearGaussian


def data(rows=200, seed=0):
    stream = np.random.default_rng(seed)
    parents = stream.normal(size=(rows, 3)) * [1.0, 100.0, 0.01] + [5.0, 1000.0, 0.0]
    noise = stream.multivariate_normal([0, 0], [[0.5, 0.3], [0.3, 0.4]], rows)
    values = 7 + parents @ np.array([[1.0, -1.0], [0.02, 0.0], [30.0, 50.0]]) + noise
    return torch.from_numpy(parents), torch.from_numpy(values)


def fitted(parents, values):
    made = LinearGaussian(parents.shape[1], values.shape[1])
    made.solve(parents, values)
    return made


def test_weights_and_intercept_are_the_least_squares_ones():
    parents, values = data()
    made, reference = fitted(parents, values), LinearRegression().fit(parents, values)
    assert np.allclose(made.weights.mT, reference.coef_, rtol=1e-8)
    assert np.allclose(made.intercept, reference.intercept_, rtol=1e-8)
    residual = values.numpy() - reference.predict(parents)
    assert np.allclose(made.covariance, residual.T @ residual / (200 - 4), rtol=1e-6)


def test_noise_and_values_are_an_inverse_pair():
    parents, values = data()
    made = fitted(parents, values)
    assert torch.allclose(made(parents, made.abduct(parents, values)), values, rtol=1e-12)


def test_collinear_parents_share_their_weight_and_predict_alike():
    parents, values = data()
    double = torch.cat([parents, parents[:, :1] * 2], -1)
    once, twice = fitted(parents, values), fitted(double, values)
    assert torch.allclose(
        once(parents, torch.zeros_like(values)), twice(double, torch.zeros_like(values)), rtol=1e-7
    )
    assert int(twice.counts[1]) == 3


@pytest.mark.parametrize("units", [*permutations((1e6, 1e-6, 1.0)), (1.0, 1.0, 1.0)])
def test_the_posterior_is_that_of_the_textbook_in_any_units(units):
    stream = torch.Generator().manual_seed(3)
    parents = torch.randn(200, 3, generator=stream, dtype=torch.float64)
    parents[:, 1] += 0.7 * parents[:, 0]
    values = parents @ torch.tensor([[1.0], [-2.0], [0.5]]).double()
    values = values + 0.5 * torch.randn(200, 1, generator=stream, dtype=torch.float64)
    scale = torch.tensor(units, dtype=torch.float64)
    made = LinearGaussian(3, 1)
    made.solve(parents * scale, values)
    drawn = made.posterior(20_000, torch.Generator().manual_seed(0)).weights[..., 0] * scale
    shown = parents - parents.mean(0)
    expected = torch.linalg.inv(shown.mT @ shown) * made.covariance * made.counts[2] / (made.counts[2] - 2)
    assert torch.allclose(drawn.mean(0), made.weights[:, 0] * scale, atol=2e-3)
    deviations = expected.diagonal().sqrt()
    assert torch.allclose(drawn.T.cov(), expected, atol=0.03 * float(deviations.max() ** 2))


def test_a_root_is_a_mean_and_a_covariance():
    _, values = data()
    made = fitted(values[:, :0], values)
    assert torch.allclose(made.intercept, values.mean(0))
    assert torch.allclose(made.covariance, values.T.cov(), rtol=1e-6)
