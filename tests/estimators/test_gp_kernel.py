from dataclasses import replace
from functools import partial

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

from rehearsal_torch.estimators.gaussian_process import SolvedProcesses
from rehearsal_torch.estimators.gp_kernel import KINDS, Rows, blended, correlation, evidence_gradient, factors
from rehearsal_torch.estimators.gp_posterior import HyperParameters

DOUBLE = torch.float64


def data(count=40, width=2, seed=0):
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.rand(count, width, generator=stream, dtype=DOUBLE)
    values = (6 * inputs[:, 0]).sin() * inputs[:, -1] + 0.2 * torch.randn(
        count, generator=stream, dtype=DOUBLE
    )
    return inputs, (values - values.mean()) / values.std()


def rows_of(*each):
    """Several regressions, padded to one batch."""
    count, width = max(len(y) for _, y in each), max(x.shape[1] for x, _ in each)
    inputs, targets = (
        torch.zeros(len(each), count, width, dtype=DOUBLE),
        torch.zeros(len(each), count, dtype=DOUBLE),
    )
    kept, used = (
        torch.zeros(len(each), count, dtype=torch.bool),
        torch.zeros(len(each), width, dtype=torch.bool),
    )
    for place, (x, y) in enumerate(each):
        inputs[place, : len(y), : x.shape[1]], targets[place, : len(y)] = x, y
        kept[place, : len(y)], used[place, : x.shape[1]] = True, True
    return Rows(inputs, targets, kept, used, torch.ones_like(targets))


def test_slopes_are_those_of_automatic_differentiation():
    rows = rows_of(data(30, 2), data(20, 1, seed=1))
    ratios = 0.5 + torch.rand(2, 30, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    rows = replace(rows, ratios=ratios)
    lengths = torch.tensor([[-1.0, 0.2], [-0.7, 0.0]], dtype=DOUBLE, requires_grad=True)
    noises = torch.tensor([-2.0, -1.0], dtype=DOUBLE, requires_grad=True)
    (-factors(rows, lengths, noises).log_evidence(rows)).sum().backward()
    with torch.no_grad():
        own = evidence_gradient(rows, factors(rows, lengths, noises), lengths, noises)
    assert torch.allclose(own[0] * rows.used, lengths.grad * rows.used, atol=1e-9)
    assert torch.allclose(own[1], noises.grad, atol=1e-9)


def test_leave_one_out_is_what_leaving_one_out_gives():
    inputs, targets = data(12, 2)
    rows = rows_of((inputs, targets))
    at = HyperParameters(torch.tensor([[-1.0, -0.5]], dtype=DOUBLE), torch.tensor([-2.0], dtype=DOUBLE))
    found = factors(rows, at.log_lengths, at.log_noises)
    # The closed form keeps the mean that all rows gave.
    residual, variance = found.left_out()
    for place in range(12):
        others = [each for each in range(12) if each != place]
        kernel = found.kernel[0] + at.log_noises.exp() * torch.eye(12, dtype=DOUBLE)
        weights = torch.linalg.solve(kernel[others][:, others], kernel[others, place])
        assert float(residual[0, place]) == pytest.approx(
            float(targets[place] - found.mean[0] - weights @ (targets[others] - found.mean[0])), abs=1e-9
        )
        assert float(variance[0, place]) == pytest.approx(
            float(kernel[place, place] - weights @ kernel[others, place]), abs=1e-9
        )


DOUBLE_STATIONARY = torch.float64
PEERS = {0: RBFKernel, 1: lambda: MaternKernel(nu=2.5), 2: lambda: MaternKernel(nu=1.5)}


def draws(*shape, seed=0):
    return torch.rand(*shape, dtype=DOUBLE_STATIONARY, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_kernels_are_those_of_gpytorch(kind):
    peer = PEERS[kind]().double()
    peer.lengthscale = 1.0
    rows = draws(9, 2)
    own = correlation(torch.cdist(rows, rows).square(), kind)
    torch.testing.assert_close(own, peer(rows).to_dense().detach(), rtol=1e-9, atol=1e-9)
    assert float(torch.linalg.eigvalsh(own).min()) > -1e-12


def test_fewer_rows_are_spread_out_and_no_regression_is_left_without():
    rows = rows_of(data(200, 2), data(200, 1, seed=1))
    few = rows.thinned(50)
    assert few.inputs.shape == (2, 50, 2)
    assert few.counts.tolist() == [50, 50]
    assert torch.equal(few.inputs[:, [0, -1]], rows.inputs[:, [0, -1]])
    assert rows.thinned(200) is rows
    late = replace(rows, kept=rows.kept.clone())
    late.kept[1, 5:195] = False
    assert late.thinned(50) is late
    chosen = late.few(50)
    assert chosen.counts.tolist() == [50, 10]
    assert torch.equal(chosen.targets[0], few.targets[0])
    assert torch.equal(chosen.inputs[1, :10], late.inputs[1][late.kept[1]])
    assert late.few(200) is late


def examples(function, count=60, noise=0.01):
    inputs = draws(count, 1, 1, seed=3)
    values = function(inputs[:, 0]) + noise * torch.randn(
        count, 1, dtype=DOUBLE_STATIONARY, generator=torch.Generator().manual_seed(4)
    )
    return inputs, (values - values.mean()) / values.std(), torch.ones(count, 1, dtype=torch.bool)


@pytest.mark.parametrize(
    ("function", "smooth"), [(lambda w: (w - 0.4).abs(), False), (lambda w: torch.sin(6 * w), True)]
)
def test_the_rows_tell_a_kink_from_a_wave(function, smooth):
    part = SolvedProcesses([1], kernel="learnt")
    part.solve(*examples(function))
    assert (int(part.kinds[0]) == 0) == smooth


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_the_steepness_is_minus_twice_the_slope(kind):
    squares = draws(20).mul(5).add(1e-3).requires_grad_()
    assert torch.autograd.gradcheck(partial(correlation, kind=kind), squares)


def test_kernels_are_those_of_tensors_with_gradients():
    squares = draws(2, 5, 5).mul(3)
    for kinds in (None, torch.tensor([1, 1]), torch.tensor([2, 0])):
        tracked = blended(squares.clone().requires_grad_(), kinds)
        for one, other in zip(blended(squares, kinds), tracked, strict=True):
            torch.testing.assert_close(one, other.detach(), rtol=1e-12, atol=1e-12)
