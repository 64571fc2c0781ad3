"""The composite kernel: its gradient, and what the evidence finds."""

import numpy as np
import pytest
import torch

from rehearsal_torch.estimators.feature_regression import _Evidence, most_probable, products


def rows(count, width, seed=0):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def standardised(values):
    return (values - values.mean()) / values.std()


@pytest.mark.parametrize("width", [0, 3])
def test_the_gradient_is_that_of_the_evidence(width):
    inputs, output = rows(40, width), standardised(rows(40, 1, 1)[:, 0])
    evidence = _Evidence(inputs, output)
    size = width + 4
    point = np.random.default_rng(0).normal(size=size) - 1
    _, gradient = evidence.with_prior(point)
    step = 1e-5 * np.eye(size)
    numeric = [
        (evidence.with_prior(point + each)[0] - evidence.with_prior(point - each)[0]) / 2e-5 for each in step
    ]
    assert np.allclose(gradient, numeric, atol=1e-6)


def test_the_features_of_products_are_centred_and_of_equal_size():
    shown = products(rows(20_000, 3))
    assert shown.shape == (20_000, 6)
    assert torch.allclose(shown.mean(0), torch.zeros(6, dtype=torch.float64), atol=0.05)
    assert torch.allclose(shown.var(0), torch.ones(6, dtype=torch.float64), atol=0.1)


def test_a_line_a_product_and_a_wave_are_told_apart():
    inputs = rows(150, 2)
    noise = 0.1 * rows(150, 1, 2)[:, 0]
    line, product, wave = (
        most_probable(inputs, standardised(values + noise), 30)
        for values in (inputs[:, 0], inputs[:, 0] * inputs[:, 1], (3 * inputs[:, 1]).sin())
    )
    assert line[1][1] > 10 * line[1][2]
    assert product[1][2] > 10 * product[1][1]
    assert float(wave[0][1]) > 1.2
    assert float(wave[0][0]) < 0.5
    assert line[1][3] == pytest.approx(0.01, abs=0.005)
