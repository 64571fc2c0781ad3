import pytest
import torch

from rehearsal_torch.estimators.gaussian_process import GaussianProcesses
from rehearsal_torch.estimators.gp_conditioning import conditioned, covariance
from rehearsal_torch.estimators.gp_posterior import HyperParameters
from tests.estimators.test_gp_posterior import DOUBLE

STREAM = torch.Generator().manual_seed(3)
INPUTS = torch.rand(20, 2, generator=STREAM, dtype=DOUBLE)
TARGETS = (5 * INPUTS[:, 0]).sin() + INPUTS[:, 1] + 0.1 * torch.randn(20, generator=STREAM, dtype=DOUBLE)
VARIANCES = 0.02 + 0.1 * torch.rand(20, generator=STREAM, dtype=DOUBLE)
AT = torch.rand(3, 7, 2, generator=STREAM, dtype=DOUBLE)
KINDS = pytest.mark.parametrize("kind", [0, 1, 2])


def posterior(rows, kind=0, width=2, variances=VARIANCES):
    """The posterior of one regression on the first rows, with known noise variances."""
    made = GaussianProcesses([width])
    made.kinds = torch.tensor([kind])
    made.adopt(HyperParameters(torch.full((1, width), -0.5, dtype=DOUBLE), torch.zeros(1, dtype=DOUBLE)))
    made.hold(
        INPUTS[:rows, None, :width],
        TARGETS[:rows, None],
        torch.ones(rows, 1, dtype=torch.bool),
        variances[:rows, None],
    )
    return made.posteriors()[0]


def close(left, right):
    for one, other in zip(left, right, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@KINDS
@pytest.mark.parametrize("more", [1, 5])
def test_further_rows_give_what_a_regression_on_all_rows_gives(kind, more):
    rows = slice(20 - more, 20)
    after = conditioned(posterior(20 - more, kind), INPUTS[rows], TARGETS[rows], VARIANCES[rows])
    whole = posterior(20, kind)
    close(after.belief(AT), whole.belief(AT))
    close(
        [after.posterior_mean(AT), covariance(after, AT)], [whole.posterior_mean(AT), covariance(whole, AT)]
    )


def test_many_sets_of_rows_are_conditioned_on_at_once():
    inputs = torch.rand(3, 1, 2, 2, generator=STREAM, dtype=DOUBLE)
    targets = torch.randn(4, 3, 1, 2, generator=STREAM, dtype=DOUBLE)
    first, level = posterior(15), torch.tensor(0.05, dtype=DOUBLE)
    values, stds = conditioned(first, inputs, targets, level).belief(AT.unsqueeze(1))
    assert values.shape == (4, 3, 1, 7)
    for fantasy in range(4):
        for place in range(3):
            alone = conditioned(first, inputs[place, 0], targets[fantasy, place, 0], level)
            close(
                (values[fantasy, place, 0], stds.expand(values.shape)[fantasy, place, 0]),
                alone.belief(AT[place]),
            )
    twice = conditioned(
        conditioned(first, inputs[..., :1, :], targets[..., :1], level),
        inputs[..., 1:, :],
        targets[..., 1:],
        level,
    )
    close(twice.belief(AT.unsqueeze(1)), (values, stds.expand(twice.belief(AT.unsqueeze(1))[1].shape)))


def test_a_mean_without_inputs_is_an_average():
    even = torch.full((20,), 0.3, dtype=DOUBLE)
    first, whole = (posterior(rows, width=0, variances=even) for rows in (17, 20))
    after = conditioned(first, INPUTS[17:, :0], TARGETS[17:], even[17:])
    nothing = torch.zeros(6, 0, dtype=DOUBLE)
    close(after.belief(nothing), whole.belief(nothing))
    close([covariance(after, nothing)], [after.belief(nothing)[1][0].square().expand(6, 6)])


def test_the_diagonal_of_the_covariance_is_the_variance():
    first = posterior(20)
    torch.testing.assert_close(
        covariance(first, AT).diagonal(dim1=-2, dim2=-1), first.belief(AT)[1].square(), rtol=0, atol=1e-10
    )


@KINDS
def test_rows_and_targets_have_gradients(kind):
    first = posterior(10, kind)

    def both(inputs, targets):
        mean, std = conditioned(first, inputs, targets, torch.tensor(0.05, dtype=DOUBLE)).belief(AT[0])
        return torch.cat([mean, std])

    assert torch.autograd.gradcheck(
        both, (INPUTS[10:12].clone().requires_grad_(), TARGETS[10:12].clone().requires_grad_())
    )


def test_a_row_that_comes_twice_is_no_failure():
    first = posterior(10)
    after = conditioned(first, INPUTS[[9, 9]], TARGETS[[9, 9]], VARIANCES[[9, 9]])
    # The same as one row with half its variance.
    once = conditioned(first, INPUTS[9:10], TARGETS[9:10], VARIANCES[9:10] / 2)
    close(after.belief(AT), once.belief(AT))
