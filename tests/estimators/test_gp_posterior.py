"""The posterior and its hyper-parameters, beside BoTorch's, and beside brute force."""

import math

import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood

from rehearsal_torch.estimators.gp_kernel import Rows, factors, log_prior
from rehearsal_torch.estimators.gp_posterior import (
    LONG,
    NOISES,
    SCREENED,
    SHORT,
    HyperParameters,
    Posterior,
    log_posterior,
    maximise,
    standing,
    starts,
)
from tests.estimators.test_gp_kernel import data, rows_of

DOUBLE = torch.float64


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


@pytest.mark.slow
def test_starts_are_compared_by_few_of_many_rows_and_lead_to_the_same_maximum():
    many = rows_of(data(300, 2), data(300, 1, seed=1), data(260, 2, seed=2))
    assert len(starts(many)) == 2
    assert len(starts(many, exact=True)) == 3
    whole = [starts(many.only(torch.tensor([place])))[0] for place in range(3)]
    torch.testing.assert_close(
        torch.cat([each.log_lengths for each in whole]), starts(many)[0].log_lengths, rtol=0, atol=1e-12
    )
    fine = [HyperParameters(at.log_lengths + 0.2 * many.used, at.log_noises - 0.1) for at in starts(many)]
    own, other = maximise(many, starts(many)), maximise(many, fine)
    assert torch.allclose(value(many, own), value(many, other), atol=1e-3)
    few = rows_of(data(SCREENED, 2))
    assert few.thinned(SCREENED) is few


def test_rows_left_out_and_inputs_not_used_change_nothing():
    one, other = data(30, 1), data(18, 2, seed=3)
    alone, batch_size = rows_of(one), rows_of(one, other)
    at = maximise(alone, starts(alone))
    both = maximise(batch_size, starts(batch_size))
    assert torch.allclose(both.log_lengths[0, :1], at.log_lengths[0], atol=1e-3)
    assert torch.allclose(
        factors(batch_size, both.log_lengths, both.log_noises).log_evidence(batch_size)[0],
        factors(alone, at.log_lengths, at.log_noises).log_evidence(alone)[0],
        atol=1e-3,
    )


def value(rows, at, **more):
    return log_posterior(rows, factors(rows, at.log_lengths, at.log_noises), at, **more)


def at_(lengths, noises):
    return HyperParameters(torch.tensor(lengths, dtype=DOUBLE), torch.tensor(noises, dtype=DOUBLE))


def test_a_fit_that_knows_nothing_stands_at_the_modes_of_the_priors():
    rows = rows_of(data(12, 3), data(10, 1, seed=1))
    here = standing(rows)
    for lengths, noises in (
        (here.log_lengths + 0.01, here.log_noises),
        (here.log_lengths - 0.01, here.log_noises),
        (here.log_lengths, here.log_noises + 0.01),
        (here.log_lengths, here.log_noises - 0.01),
    ):
        moved = log_prior(lengths, noises, rows.used)
        assert bool((moved < log_prior(here.log_lengths, here.log_noises, rows.used)).all())


def test_a_fit_begins_at_the_last_one_and_at_the_best_of_parts_of_a_grid():
    rows = rows_of(data(15, 2), data(12, 1, seed=1))
    last = at_([[0.1, 0.2], [0.3, 0.0]], [-1.0, -2.0])
    found = starts(rows, last, exact=True)
    assert found[0] is last
    parts = ((LONG, NOISES), (SHORT, NOISES[:1]), (SHORT, NOISES))
    for begin, (lengths, noises) in zip(found[1:], parts, strict=True):
        for place, width in enumerate((2, 1)):
            options = {}
            for length in lengths:
                for noise in noises:
                    log_length = math.log(length) + 0.5 * math.log(width)
                    here = at_([[log_length] * 2] * 2, [math.log(noise)] * 2)
                    options[log_length, math.log(noise)] = float(value(rows, here)[place])
            best = max(options, key=options.get)
            assert float(begin.log_lengths[place, 0]) == pytest.approx(best[0])
            assert float(begin.log_noises[place]) == pytest.approx(best[1])


def test_a_noise_that_is_given_stays_and_its_prior_counts_for_nothing():
    rows = rows_of(data(20, 2))
    begin = [HyperParameters(each.log_lengths, torch.full((1,), -1.5, dtype=DOUBLE)) for each in starts(rows)]
    at = maximise(rows, begin, free_noise=False)
    assert float(at.log_noises) == -1.5
    other = HyperParameters(at.log_lengths + 0.05, at.log_noises)
    assert float(value(rows, at, free_noise=False)) > float(value(rows, other, free_noise=False))
    # Whatever the noise is, the same is added to the evidence and to the prior of the lengths.
    added = []
    for noise in (-1.5, -3.0):
        here = HyperParameters(at.log_lengths, torch.full((1,), noise, dtype=DOUBLE))
        evidence = factors(rows, here.log_lengths, here.log_noises).log_evidence(rows)
        added.append(float(value(rows, here, free_noise=False) - evidence))
        whole = log_prior(here.log_lengths, here.log_noises, rows.used)
        assert float(value(rows, here) - evidence) == pytest.approx(float(whole))
    assert added[0] == pytest.approx(added[1])


def test_the_posterior_is_the_textbook_formula_for_every_kernel():
    inputs, targets = data(14, 2)
    rows = rows_of((inputs, targets))
    where = torch.rand(6, 2, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    at = at_([[-0.5, 0.2]], [-2.0])
    scale = np.exp([-0.5, 0.2])
    for kind in range(3):
        each = Rows(rows.inputs, rows.targets, rows.kept, rows.used, rows.ratios, torch.tensor([kind]))
        found = factors(each, at.log_lengths, at.log_noises)
        posterior = Posterior.of(each, found, at, 0, 2)
        mean, std = posterior.belief(where)

        def kernel(one, other, kind=kind):
            squares = ((one[:, None] - other[None]) / scale) ** 2
            r = np.sqrt(squares.sum(-1))
            if kind == 0:
                return np.exp(-0.5 * r**2)
            s = np.sqrt(5 if kind == 1 else 3) * r
            return (1 + s + (s**2 / 3 if kind == 1 else 0)) * np.exp(-s)

        noisy = kernel(inputs.numpy(), inputs.numpy()) + math.exp(-2.0) * np.eye(14)
        one = np.linalg.solve(noisy, np.ones(14))
        centre = one @ targets.numpy() / one.sum()
        cross = kernel(where.numpy(), inputs.numpy())
        wanted = centre + cross @ np.linalg.solve(noisy, targets.numpy() - centre)
        left = 1 - np.einsum("ij,ji->i", cross, np.linalg.solve(noisy, cross.T))
        assert mean.tolist() == pytest.approx(wanted.tolist(), abs=1e-8)
        assert (std**2).tolist() == pytest.approx(left.tolist(), abs=1e-8)
        assert torch.equal(mean, posterior.posterior_mean(where))
