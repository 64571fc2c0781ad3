import math

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.mlls import ExactMarginalLogLikelihood

from rehearsal_torch.estimators.gaussian_process import SolvedProcesses, TrainedProcesses
from rehearsal_torch.estimators.gp_posterior import (
    HyperParameters,
    Posterior,
    log_posterior,
    maximise,
    starts,
)
from rehearsal_torch.estimators.kernel import (
    KINDS,
    Rows,
    blended,
    correlation,
    evidence_gradient,
    factors,
    lower_root,
    places,
    squared_distance_derivative,
)
from rehearsal_torch.training.descent import Descent

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


def gpytorch_model(inputs, targets, at=None, mean=None, place=0):
    made = SingleTaskGP(inputs, targets.unsqueeze(-1), outcome_transform=None)
    if at is not None:
        made.covar_module.lengthscale = at.log_lengths[place, : inputs.shape[1]].exp()
        made.likelihood.noise = at.log_noises[place].exp()
        made.mean_module.constant = mean
    return made, ExactMarginalLogLikelihood(made.likelihood, made)


@pytest.mark.filterwarnings("ignore:Data")
def test_evidence_and_priors_are_those_of_botorchs_single_task_gp():
    cases = [data(40, 2), data(25, 1, seed=1), data(40, 3, seed=2)]
    rows = rows_of(*cases)
    at = HyperParameters(
        torch.tensor([[-1.0, 0.3, 0.0], [-0.5, 0.0, 0.0], [0.2, -0.4, 1.0]], dtype=DOUBLE),
        torch.tensor([-2.0, -3.0, -1.0], dtype=DOUBLE),
    )
    found = factors(rows, at.log_lengths, at.log_noises)
    for place, (inputs, targets) in enumerate(cases):
        made, objective = gpytorch_model(inputs, targets, at, found.mean[place], place)
        with torch.no_grad():
            told = objective(made.train()(*made.train_inputs), made.train_targets) * len(targets)
        assert float(log_posterior(rows, found, at)[place] - told) == pytest.approx(0, abs=1e-6)


@pytest.mark.filterwarnings("ignore:Data")
def test_the_maximum_is_no_worse_than_botorchs():
    cases = [data(40, 2), data(25, 1, seed=1)]
    rows = rows_of(*cases)
    at = maximise(rows, starts(rows))
    own = log_posterior(rows, factors(rows, at.log_lengths, at.log_noises), at)
    for place, (inputs, targets) in enumerate(cases):
        made, objective = gpytorch_model(inputs, targets)
        fit_gpytorch_mll(objective)
        with torch.no_grad():
            told = objective(made.train()(*made.train_inputs), made.train_targets) * len(targets)
        assert float(own[place]) >= float(told) - 1e-4


def test_slopes_are_those_of_automatic_differentiation():
    rows = rows_of(data(30, 2), data(20, 1, seed=1))
    rows = rows.aimed(
        rows.targets, 0.5 + torch.rand(2, 30, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    )
    lengths = torch.tensor([[-1.0, 0.2], [-0.7, 0.0]], dtype=DOUBLE, requires_grad=True)
    noises = torch.tensor([-2.0, -1.0], dtype=DOUBLE, requires_grad=True)
    (-factors(rows, lengths, noises).log_evidence(rows)).sum().backward()
    with torch.no_grad():
        own = evidence_gradient(rows, factors(rows, lengths, noises), lengths, noises)
    assert torch.allclose(own[0] * rows.used, lengths.grad * rows.used, atol=1e-9)
    assert torch.allclose(own[1], noises.grad, atol=1e-9)


def test_rows_left_out_and_inputs_not_used_change_nothing():
    one, other = data(30, 1), data(18, 2, seed=3)
    alone, joined = rows_of(one), rows_of(one, other)
    at = maximise(alone, starts(alone))
    both = maximise(joined, starts(joined))
    assert torch.allclose(both.log_lengths[0, :1], at.log_lengths[0], atol=1e-3)
    assert torch.allclose(
        factors(joined, both.log_lengths, both.log_noises).log_evidence(joined)[0],
        factors(alone, at.log_lengths, at.log_noises).log_evidence(alone)[0],
        atol=1e-3,
    )


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


@pytest.mark.filterwarnings("ignore:Data")
def test_the_posterior_is_gpytorchs():
    inputs, targets = data(30, 2)
    rows = rows_of((inputs, targets), data(20, 1))
    at = maximise(rows, starts(rows))
    found = factors(rows, at.log_lengths, at.log_noises)
    posterior = Posterior.of(rows, found, at, 0, 2)
    made, _ = gpytorch_model(inputs, targets, at, found.mean[0])
    where = torch.rand(5, 7, 2, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    with torch.no_grad():
        told = made.eval().posterior(where.reshape(-1, 2))
    mean, std = posterior.belief(where)
    assert torch.allclose(mean.flatten(), told.mean.flatten(), atol=1e-8)
    assert torch.allclose(std.flatten() ** 2, told.variance.flatten(), atol=1e-8)
    assert torch.equal(mean, posterior.posterior_mean(where))


def test_a_regression_without_inputs_is_a_mean_and_a_variance():
    _, targets = data(30, 1)
    rows = Rows(
        torch.zeros(1, 30, 1, dtype=DOUBLE),
        targets.unsqueeze(0),
        torch.ones(1, 30, dtype=torch.bool),
        torch.zeros(1, 1, dtype=torch.bool),
        torch.ones(1, 30, dtype=DOUBLE),
    )
    at = maximise(rows, starts(rows))
    found = factors(rows, at.log_lengths, at.log_noises)
    mean, std = Posterior.of(rows, found, at, 0, 0).belief(torch.zeros(4, 0, dtype=DOUBLE))
    assert float(at.log_noises) == 0
    assert torch.allclose(mean, targets.mean().expand(4), atol=1e-12)
    assert torch.allclose(std, torch.full((4,), 30**-0.5, dtype=DOUBLE))


def test_jitter_helps_a_singular_matrix_and_a_hopeless_one_is_refused():
    singular = torch.ones(1, 3, 3, dtype=DOUBLE)
    assert bool(lower_root(singular).isfinite().all())
    with pytest.raises(ValueError, match=r"those of regressions \[\[1\]\] are not"):
        lower_root(torch.stack([torch.eye(2, dtype=DOUBLE), -torch.eye(2, dtype=DOUBLE)]))


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


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_the_steepness_is_minus_twice_the_slope(kind):
    squares = draws(20).mul(5).add(1e-3).requires_grad_()
    (gradient,) = torch.autograd.grad(correlation(squares, kind).sum(), squares)
    torch.testing.assert_close(
        -2 * gradient, squared_distance_derivative(squares.detach(), kind), rtol=1e-8, atol=1e-10
    )


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
        torch.tensor([[math.log(0.4), math.log(0.9)]], dtype=DOUBLE_STATIONARY),
        torch.tensor([math.log(0.05)], dtype=DOUBLE_STATIONARY),
    )
    own = evidence_gradient(rows, factors(rows, *at), *at)
    lengths, noises = (each.clone().requires_grad_() for each in at)
    told = torch.autograd.grad(-factors(rows, lengths, noises).log_evidence(rows).sum(), (lengths, noises))
    for one, other in zip(own, told, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)


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


@pytest.mark.slow
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
        part.posteriors()[0].belief(scaled), again.posteriors()[0].belief(scaled), strict=True
    ):
        assert torch.equal(one, other)


def test_an_unknown_kernel_is_refused():
    with pytest.raises(ValueError, match="matern52"):
        places("cubic")
