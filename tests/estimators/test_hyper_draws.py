"""Draws of hyper-parameters beside fine quadrature of the same formula."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, logsumexp

from rehearsal_torch.estimators.gp_kernel import LENGTH_FLOOR, LENGTH_SPREAD, NOISE_FLOOR, Rows
from rehearsal_torch.estimators.gp_posterior import HyperParameters, maximise, starts
from rehearsal_torch.estimators.hyper_draws import NOISE_LOG, NOISE_WIDTH, SHORTER, SIGNAL, hyper_draws
from tests.estimators.test_gp_kernel import data, rows_of

DOUBLE = torch.float64


def quadrature(inputs, targets):
    """Means and standard deviations of log l and log v, and the mean of log s^2, on a grid."""
    lengths = np.linspace(math.log(LENGTH_FLOOR), 6.0, 120)
    noises = np.linspace(math.log(NOISE_FLOOR), 2.0, 90)
    squares, n = (inputs - inputs.T) ** 2, len(targets)
    logs, scales = np.empty((120, 90)), np.empty((120, 90))
    for i, length in enumerate(lengths):
        kernel = np.exp(-0.5 * squares * np.exp(-2 * length))
        for j, noise in enumerate(noises):
            matrix = kernel + np.exp(noise) * np.eye(n)
            inverse = np.linalg.inv(matrix)
            total = inverse.sum()
            residual = targets - inverse.sum(0) @ targets / total
            rate, degrees = SIGNAL + residual @ inverse @ residual / 2, SIGNAL + (n - 1) / 2
            prior = ((length - math.sqrt(2) + SHORTER) / LENGTH_SPREAD) ** 2
            prior += ((noise - NOISE_LOG) / NOISE_WIDTH) ** 2
            volume = np.linalg.slogdet(matrix)[1] + math.log(total)
            logs[i, j] = -volume / 2 - degrees * math.log(rate) - prior / 2
            scales[i, j] = math.log(rate) - digamma(degrees)
    weights = np.exp(logs - logsumexp(logs))
    return [
        (weights.sum(1) @ lengths, weights.sum(1) @ lengths**2),
        (weights.sum(0) @ noises, weights.sum(0) @ noises**2),
        ((weights * scales).sum(), None),
    ]


@pytest.mark.parametrize("count", [6, 14])
def test_means_and_the_conjugate_variance_are_those_of_fine_quadrature(count):
    inputs, targets = data(count, 1, seed=2)
    rows = rows_of((inputs, targets))
    best, seeds = maximise(rows, starts(rows)), 60
    found = [hyper_draws(rows, best, 64, seed) for seed in range(seeds)]
    told = zip(
        *((each.log_lengths[0, :, 0], each.log_noises[0], 2 * each.scales[0].log()) for each in found),
        strict=True,
    )
    for draws, (mean, square) in zip(told, quadrature(inputs.numpy(), targets.numpy()), strict=True):
        for power, wanted in ((1, mean), (2, square)):
            if wanted is not None:
                means = torch.stack([(each**power).mean() for each in draws])
                # Four standard errors.
                near = 4 * float(means.std()) / math.sqrt(seeds)
                assert float(means.mean()) == pytest.approx(wanted, abs=near)


def test_a_noise_that_is_given_stays_and_regressions_without_inputs_keep_their_optimum():
    rows = rows_of(data(10, 2))
    best = HyperParameters(torch.tensor([[-0.5, 0.2]]).double(), torch.tensor([-1.7]).double())
    draws = hyper_draws(rows, best, 16, 3, free_noise=False)
    torch.testing.assert_close(draws.log_noises, torch.full((1, 16), -1.7, dtype=DOUBLE))
    assert float(draws.log_lengths.std(1).min()) > 0
    none = replace(rows, used=torch.zeros_like(rows.used), inputs=torch.zeros_like(rows.inputs))
    at = HyperParameters(torch.zeros(1, 2).double(), torch.zeros(1).double())
    kept = hyper_draws(none, at, 16, 3)
    assert bool((kept.log_lengths == 0).all())
    assert bool((kept.log_noises == 0).all())


def test_rows_that_are_left_out_count_for_nothing():
    one, other = data(9, 1), data(14, 1, seed=1)
    both, alone = rows_of(one, other), rows_of(one)
    at = HyperParameters(torch.tensor([[-0.5], [0.3]]).double(), torch.tensor([-2.0, -3.0]).double())
    spoilt = replace(both, targets=both.targets.where(both.kept, 1e3))
    draws = hyper_draws(spoilt, at, 8, 5)
    whole = hyper_draws(both, at, 8, 5)
    for name, values in vars(draws).items():
        torch.testing.assert_close(values, getattr(whole, name))
    # Their number counts, which the padding does not change.
    assert int(both.counts[0]) == int(alone.counts[0]) == 9


@settings(max_examples=15, deadline=None, derandomize=True)
@given(rows=st.integers(2, 12), width=st.integers(1, 3), seed=st.integers(0, 99), count=st.integers(1, 9))
def test_draws_are_finite_within_bounds_and_follow_from_the_seed(rows, width, seed, count):
    inputs, targets = data(rows, width, seed=seed)
    made = rows_of((inputs, targets))
    at = HyperParameters(torch.zeros(1, width).double(), torch.full((1,), -3.0).double())
    first, again = (hyper_draws(made, at, count, seed) for _ in range(2))
    assert first.log_lengths.shape == (1, count, width)
    assert first.log_noises.shape == first.scales.shape == (1, count)
    for name, values in vars(first).items():
        assert torch.equal(values, getattr(again, name))
        assert bool(values.isfinite().all())
    assert float(first.log_lengths.min()) >= math.log(LENGTH_FLOOR) - 1e-6
    assert float(first.log_noises.min()) >= math.log(NOISE_FLOOR) - 1e-6


def test_points_beyond_the_bounds_stop_nothing():
    """Long lengths beside next to no noise: such a covariance has no root."""
    inputs = torch.linspace(0, 1, 60, dtype=DOUBLE)[None, :, None]
    every, ones = torch.ones(1, 60, dtype=torch.bool), torch.ones(1, 60, dtype=DOUBLE)
    rows = Rows(inputs, 2 * inputs[..., 0] - 1, every, every[:, :1], ones)
    at = HyperParameters(torch.full((1, 1), 8.0, dtype=DOUBLE), torch.full((1,), -9.2, dtype=DOUBLE))
    for seed in range(20):
        assert bool(hyper_draws(rows, at, 8, seed).scales.isfinite().all())
