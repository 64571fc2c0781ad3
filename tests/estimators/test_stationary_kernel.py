"""Kernels: those of the textbook, with the slopes that they say, and the one that the data ask for."""

import math

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

from rehearsal_torch.estimators.gaussian_process import SolvedProcesses, TrainedProcesses
from rehearsal_torch.estimators.kernel import (
    KINDS,
    Rows,
    blended,
    correlation,
    factors,
    places,
    slopes,
    steepness,
)
from rehearsal_torch.training.descent import Descent

DOUBLE = torch.float64
PEERS = {0: RBFKernel, 1: lambda: MaternKernel(nu=2.5), 2: lambda: MaternKernel(nu=1.5)}


def draws(*shape, seed=0):
    return torch.rand(*shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_kernels_are_those_of_gpytorch(kind):
    peer = PEERS[kind]().double()
    peer.lengthscale = 1.0
    rows = draws(9, 2)
    own = correlation(torch.cdist(rows, rows).square(), kind)
    torch.testing.assert_close(own, peer(rows).to_dense().detach(), rtol=1e-9, atol=1e-9)
    assert float(torch.linalg.eigvalsh(own).min()) > -1e-12


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_the_steepness_is_minus_twice_the_slope(kind):
    squares = draws(20).mul(5).add(1e-3).requires_grad_()
    (slope,) = torch.autograd.grad(correlation(squares, kind).sum(), squares)
    torch.testing.assert_close(-2 * slope, steepness(squares.detach(), kind), rtol=1e-8, atol=1e-10)


def test_each_regression_has_its_own():
    squares = draws(3, 4, 4)
    mixed = blended(squares, torch.tensor([2, 0, 1]), correlation)
    for place, kind in enumerate((2, 0, 1)):
        torch.testing.assert_close(mixed[place], correlation(squares[place], kind))
    torch.testing.assert_close(blended(squares, None, correlation), correlation(squares, 0))


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_slopes_of_the_evidence_are_those_of_differences(kind):
    yes = torch.ones(1, 15, dtype=torch.bool)
    rows = Rows(
        draws(1, 15, 2), draws(1, 15, seed=1) - 0.5, yes, yes[:, :2], yes.double(), torch.tensor([kind])
    )
    at = (
        torch.tensor([[math.log(0.4), math.log(0.9)]], dtype=DOUBLE),
        torch.tensor([math.log(0.05)], dtype=DOUBLE),
    )
    own = slopes(rows, factors(rows, *at), *at)
    lengths, noises = (each.clone().requires_grad_() for each in at)
    told = torch.autograd.grad(-factors(rows, lengths, noises).log_evidence(rows).sum(), (lengths, noises))
    for one, other in zip(own, told, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)


def examples(function, count=60, noise=0.01):
    inputs = draws(count, 1, 1, seed=3)
    values = function(inputs[:, 0]) + noise * torch.randn(
        count, 1, dtype=DOUBLE, generator=torch.Generator().manual_seed(4)
    )
    return inputs, (values - values.mean()) / values.std(), torch.ones(count, 1, dtype=torch.bool)


@pytest.mark.parametrize(
    ("function", "smooth"), [(lambda w: (w - 0.4).abs(), False), (lambda w: torch.sin(6 * w), True)]
)
def test_the_rows_tell_a_kink_from_a_wave(function, smooth):
    part = SolvedProcesses([1], kernel="learnt")
    part.solve(*examples(function))
    assert (int(part.kinds[0]) == 0) == smooth


def test_both_ways_of_fitting_choose_the_same():
    given = examples(lambda w: (w - 0.4).abs())
    solved, other = SolvedProcesses([1], kernel="learnt"), TrainedProcesses([1], kernel="learnt")
    solved.solve(*given)
    Descent(
        max_epochs=300,
        batch_size=1000,
        learning_rate=0.05,
        patience=None,
        precision="64-true",
        progress=False,
    ).train(other, (*given, torch.full((60,), 60)))
    assert torch.equal(solved.kinds, other.kinds)
    torch.testing.assert_close(solved.log_posterior(), other.log_posterior(), rtol=1e-3, atol=1e-3)


def test_the_kernel_is_kept_in_the_state():
    part = SolvedProcesses([1], kernel="learnt")
    part.solve(*examples(lambda w: (w - 0.4).abs()))
    again = SolvedProcesses([1], kernel="learnt")
    again.load_state_dict(part.state_dict())
    scaled = draws(5, 1, seed=9)
    for one, other in zip(
        part.posteriors()[0].believed(scaled), again.posteriors()[0].believed(scaled), strict=True
    ):
        assert torch.equal(one, other)


def test_an_unknown_kernel_is_refused():
    with pytest.raises(ValueError, match="matern52"):
        places("cubic")
