"""Averages of joint metrics: the mean of the members, and a deviation that holds their disagreement.

The joint metric's estimator: against an explicit double sum, autograd, and a truth that is simulated.
"""

from functools import cache

import pytest
import torch

from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble, SpectralRidge, misplaced
from tests.toys.confounded import fitted, points, rows
from tests.toys.rehearsal_toys import sequential_table, sequential_truth


def between(count=200, seed=0):
    """Rows with a covariate between two actions, as of `sequential`, with |y| < 1 desired."""
    x, a, v, b, y = (column.unsqueeze(-1) for column in sequential_table(count, seed).values.T)
    smooth = torch.special.ndtr(5 * (y + 1)) * torch.special.ndtr(5 * (1 - y))
    targets = torch.cat([smooth, (y.abs() < 1).double()], -1)
    return x, x.new_empty(count, 0), v, torch.cat([a, b], -1), targets, y


def made(members=3, examples=None, first=(), seed=0):
    return fitted(SpectralEnsemble(first, members=members, seed=seed, **QUICK), *(examples or rows(200)))


def test_one_member_is_the_member():
    one = made(1)
    (member,) = one.members
    contexts, actions = points()
    answers = [part.value_and_std(part.prepare(contexts), actions) for part in (one, member)]
    assert all(torch.equal(*pair) for pair in zip(*answers, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("target", [0, 1])
def test_the_value_is_the_mean_and_the_variance_that_of_a_mixture(target):
    whole = made()
    contexts, actions = points()
    prepared = whole.prepare(contexts)
    values = torch.stack(
        [member.value(member.prepare(contexts), actions, target) for member in whole.members]
    )
    inner = torch.stack(
        [
            member.value_and_std(member.prepare(contexts), actions, target)[1].square()
            for member in whole.members
        ]
    )
    assert float(values.std(0).mean()) > 1e-4, "members differ"
    assert torch.allclose(whole.value(prepared, actions, target), values.mean(0))
    assert torch.allclose(
        whole.value_and_std(prepared, actions, target)[1].square(), inner.mean(0) + 4 / 3 * values.var(0)
    )
    assert torch.allclose(
        whole.support(prepared, actions[0]),
        torch.stack([m.support(m.prepare(contexts), actions[0]) for m in whole.members]).mean(0),
    )


@pytest.mark.parametrize(("examples", "first", "width"), [(None, (), (2, 1)), (between(), (0,), (1, 2))])
def test_the_slope_is_that_of_autograd(examples, first, width):
    whole = made(2, examples, first)
    contexts, actions = points(*width)
    prepared, at = whole.prepare(contexts), actions.clone().requires_grad_(True)
    (wanted,) = torch.autograd.grad(whole.value(prepared, at).sum(), at)
    value, gradient = whole.value_and_gradient(prepared, actions)
    assert torch.allclose(value, whole.value(prepared, actions), atol=1e-9)
    assert torch.allclose(gradient, wanted, atol=1e-8)


@pytest.mark.parametrize("target", [0, 1])
def test_differences_are_those_of_the_members_and_their_variance_that_of_a_mixture(target):
    whole = made()
    contexts, actions = points()
    first, second = actions[0], actions[1]
    found = [
        member.difference_and_variance(member.prepare(contexts), first, second, target)
        for member in whole.members
    ]
    values, variances = (torch.stack(each) for each in zip(*found, strict=True))
    value, std = whole.difference_and_std(whole.prepare(contexts), first, second, target)
    assert torch.allclose(value, values.mean(0))
    assert torch.allclose(std.square(), variances.mean(0) + 4 / 3 * values.var(0))
    one = made(1)
    assert torch.equal(
        one.difference_and_std(one.prepare(contexts), first, first)[1], torch.zeros(5).double()
    )


QUICK = {"features": 150, "direction_rows": 100, "width_rows": 120, "iterations": 8}


def quick(first=(), **settings):
    return SpectralRidge(first, **{**QUICK, **settings})


def between(count=200, seed=0):
    """Rows with a covariate between two actions, as of `sequential`, with |y| < 1 desired."""
    x, a, v, b, y = (column.unsqueeze(-1) for column in sequential_table(count, seed).values.T)
    smooth = torch.special.ndtr(5 * (y + 1)) * torch.special.ndtr(5 * (1 - y))
    targets = torch.cat([smooth, (y.abs() < 1).double()], -1)
    return x, x.new_empty(count, 0), v, torch.cat([a, b], -1), targets, y


CASES = {
    "one covariate": (rows(200), (2, 1), ()),
    "no covariate": (rows(200, covariates=0), (2, 1), ()),
    "two of each": (rows(200, covariates=2, actions=2), (2, 2), ()),
    "between": (between(), (1, 2), (0,)),
}
x, *others = rows(200, contexts=1)
CASES["no context"] = ((x[:, :0], *others), (0, 1), ())
every = pytest.mark.parametrize("case", CASES)


@cache
def case_of(name, **settings):
    """Not to be changed."""
    examples, (contexts, actions), first = CASES[name]
    estimator = fitted(quick(first, **settings), *examples)
    return estimator, estimator.prepare(points(contexts, actions)[0]), points(contexts, actions)[1]


@every
def test_value_and_slope_are_those_of_autograd(case):
    estimator, prepared, actions = case_of(case)
    at = actions.clone().requires_grad_(True)
    values = estimator.value(prepared, at)
    (wanted,) = torch.autograd.grad(values.sum(), at)
    value, gradient = estimator.value_and_gradient(prepared, actions)
    assert value.shape == actions.shape[:-1]
    assert torch.allclose(value, values.detach(), atol=1e-9)
    assert torch.allclose(gradient, wanted, atol=1e-8)
    rough, steep = estimator.value_and_gradient(prepared, actions.float())
    assert rough.dtype == steep.dtype == torch.float32
    assert torch.allclose(rough.double(), value, atol=2e-3)
    assert torch.allclose(steep.double(), gradient, atol=2e-2)


@pytest.mark.slow
def test_a_confounded_effect_is_recovered():
    # y = a + u + noise with u independent of x: P(|y| < 1 | a altered) in closed form.
    estimator = fitted(SpectralRidge(features=300, iterations=20), *rows(800))
    contexts, actions = points(batch=30, starts=1)
    contexts, actions = 0.5 * contexts, 1.2 * actions
    spread = (1 + 0.09) ** 0.5
    truth = torch.special.ndtr((1 - actions[0, :, 0]) / spread) - torch.special.ndtr(
        (-1 - actions[0, :, 0]) / spread
    )
    found = estimator.value(estimator.prepare(contexts), actions[0], 1)
    assert float((found - truth).abs().mean()) < 0.08
    # What rows with such actions looked like is something else.
    x, u, _, a, targets, scores = rows(800)
    naive = fitted(SpectralRidge(features=300, iterations=20), x, u[:, :0], u[:, :0], a, targets, scores)
    assert float((naive.value(naive.prepare(contexts), actions[0], 1) - truth).abs().mean()) > 0.1


def test_the_sequential_value_agrees_with_simulation():
    estimator = fitted(SpectralRidge((0,), features=300, iterations=20), *between(1000))
    contexts = torch.tensor([[-0.8], [0.0], [0.8]], dtype=torch.float64)
    actions = torch.tensor(
        [[[-0.8, -1.5], [0.0, 0.0], [0.5, -1.0]], [[0.5, 1.2], [-1.0, -1.0], [0.3, 1.0]]], dtype=torch.float64
    )
    truth = torch.stack(
        [
            torch.stack([sequential_truth(x, pair) for x, pair in zip(contexts, row, strict=True)])
            for row in actions
        ]
    )
    found = estimator.value(estimator.prepare(contexts), actions, 1)
    assert float((found - truth).abs().max()) < 0.12
    assert float((found - truth).abs().mean()) < 0.06
    assert float(truth.max() - truth.min()) > 0.4


def both(name, target):
    estimator, prepared, actions = case_of(name)
    first, second = actions[0], actions[1]
    return (
        estimator,
        prepared,
        first,
        second,
        estimator.difference_and_variance(prepared, first, second, target),
    )


def joint(estimator, prepared, actions):
    """J at actions (n, B, k), (n, B), and its posterior covariance, (B, n, n), by dense algebra."""
    features = estimator.expected(prepared, actions).transpose(0, 1)
    inverse = torch.cholesky_inverse(estimator.factor)
    covariance = estimator.noise[0] * features @ inverse @ features.mT
    if estimator.on_covariates.shape[1]:
        mixture = estimator.mixture(prepared, actions, 0).transpose(0, 1)
        between = (
            estimator.embedding.centred.mT @ estimator.embedding.weights / len(estimator.embedding.centred)
        )
        covariance = covariance + prepared.pieces[1][:, None, None] * (mixture @ between @ mixture.mT)
    return estimator.value(prepared, actions), covariance


@pytest.mark.parametrize("case", [name for name, (_, _, first) in CASES.items() if not first])
def test_a_difference_is_that_under_the_joint_posterior(case):
    estimator, prepared, first, second, (value, variance) = both(case, 0)
    values, covariance = joint(estimator, prepared, torch.stack((first, second)))
    assert torch.allclose(value, values[0] - values[1])
    wanted = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
    assert torch.allclose(variance, wanted, atol=1e-12)
    apart = (
        estimator.value_and_std(prepared, first)[1].square()
        + estimator.value_and_std(prepared, second)[1].square()
    )
    # Near actions share what is unknown: apart, their variances would add up.
    near = estimator.difference_and_variance(prepared, first, first + 0.05, 0)[1]
    assert (near < 0.05 * apart).all()


@every
@pytest.mark.parametrize("target", [0, 1])
def test_its_variance_never_exceeds_the_sum_of_both_and_vanishes_for_equal_actions(case, target):
    estimator, prepared, first, second, (value, variance) = both(case, target)
    stds = [estimator.value_and_std(prepared, each, target)[1] for each in (first, second)]
    assert (variance <= (stds[0] + stds[1]).square() + 1e-12).all()
    assert (variance > 0).all()
    back, same = estimator.difference_and_variance(prepared, second, first, target)
    assert torch.allclose(back, -value)
    assert torch.allclose(same, variance)
    value, variance = estimator.difference_and_variance(prepared, first, first, target)
    assert value.tolist() == variance.tolist() == [0.0] * len(first)


@pytest.mark.parametrize("places", [[0.0, 2.0], [0.0, 1.0, 3.0], [0.0, 1.0, -1.0], [0.0, 1.0, 0.5]])
def test_places_are_whole_numbers_of_rows(places):
    assert misplaced(torch.tensor([2.0, 0.0, 1.0]), 3, 3) == ""
    assert misplaced(torch.tensor(places), 3, 3).startswith("places: expected 3 whole numbers from 0 to 2;")
