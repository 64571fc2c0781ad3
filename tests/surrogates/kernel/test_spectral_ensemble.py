"""Averages of joint metrics: the mean of the members, and a deviation that holds their disagreement."""

import pytest
import torch

from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
from tests.surrogates.kernel.test_spectral_ridge import QUICK, between
from tests.toys.confounded import fitted, points, rows


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


def test_no_member_is_refused():
    with pytest.raises(ValueError, match="at least 1 member"):
        SpectralEnsemble(members=0)


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


LOWER = torch.tensor([[-1.0], [0.2], [-3.0], [0.5], [-2.0]], dtype=torch.float64)
UPPER = torch.tensor([[2.0], [0.3], [3.0], [0.5], [1.0]], dtype=torch.float64)


@pytest.mark.parametrize(("covariates", "members"), [(1, 3), (0, 3), (2, 1)])
def test_a_table_says_what_the_estimator_says(covariates, members):
    whole = made(members, rows(200, covariates=covariates))
    prepared = whole.prepare(points()[0])
    table = whole.tabulated(prepared, LOWER, UPPER)
    unit = torch.rand(4, 7, 5, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    actions = LOWER + unit * (UPPER - LOWER)
    for found, wanted in zip(
        table.value_and_std(actions), whole.value_and_std(prepared, actions), strict=True
    ):
        assert found.shape == (4, 7, 5)
        assert torch.allclose(found, wanted, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_what_has_no_cheaper_form_has_no_table():
    several = made(2, rows(200, actions=2))
    bounds = LOWER.expand(-1, 2), UPPER.expand(-1, 2)
    assert several.tabulated(several.prepare(points()[0]), *bounds) is None, "two actions"
    one = made(2)
    assert one.tabulated(one.prepare(points()[0]), LOWER, 1e4 * UPPER) is None, "too many waves"
    sequential = made(2, between(), (0,))
    contexts, _ = points(1, 2)
    assert sequential.tabulated(sequential.prepare(contexts), LOWER, UPPER) is None, "v follows the action"
