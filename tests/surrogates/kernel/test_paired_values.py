"""Differences of two values: against the joint posterior of both, and its bound where both vary."""

import pytest
import torch

from rehearsal_torch.surrogates.kernel.paired_values import difference_and_variance
from tests.surrogates.kernel.test_spectral_ridge import CASES, case_of, every


def both(name, target):
    estimator, prepared, actions = case_of(name)
    first, second = actions[0], actions[1]
    return (
        estimator,
        prepared,
        first,
        second,
        difference_and_variance(estimator, prepared, first, second, target),
    )


@pytest.mark.parametrize("case", [name for name, (_, _, first) in CASES.items() if not first])
def test_it_is_the_difference_under_the_joint_posterior(case):
    estimator, prepared, first, second, (value, variance) = both(case, 0)
    values, covariance = estimator.value_and_covariance(prepared, torch.stack((first, second)))
    assert torch.allclose(value, values[0] - values[1])
    wanted = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
    assert torch.allclose(variance, wanted, atol=1e-12)
    apart = estimator.std(prepared, first).square() + estimator.std(prepared, second).square()
    # Near actions share what is unknown: apart, their variances would add up.
    near = difference_and_variance(estimator, prepared, first, first + 0.05, 0)[1]
    assert (near < 0.05 * apart).all()


@every
@pytest.mark.parametrize("target", [0, 1])
def test_it_never_exceeds_the_sum_of_both_and_vanishes_for_equal_actions(case, target):
    estimator, prepared, first, second, (value, variance) = both(case, target)
    stds = [estimator.std(prepared, each, target) for each in (first, second)]
    assert (variance <= (stds[0] + stds[1]).square() + 1e-12).all()
    assert (variance > 0).all()
    back, same = difference_and_variance(estimator, prepared, second, first, target)
    assert torch.allclose(back, -value)
    assert torch.allclose(same, variance)
    value, variance = difference_and_variance(estimator, prepared, first, first, target)
    assert value.tolist() == variance.tolist() == [0.0] * len(first)


def test_where_the_second_stage_sees_only_equal_actions_it_is_exact():
    estimator, prepared, first, second, (_, bound) = both("between", 1)
    second = torch.cat((first[:, :1], second[:, 1:]), -1)
    _, variance = difference_and_variance(estimator, prepared, first, second, 1)
    shares = [estimator.unknown(prepared, each, 1).sqrt() for each in (first, second)]
    features = estimator.expected(prepared, first) - estimator.expected(prepared, second)
    solved = torch.linalg.solve_triangular(estimator.factor, features.mT, upper=False)
    noise = estimator.noise[1] * solved.square().sum(0)
    # Between the two extremes of correlation, and below the upper bound.
    assert (variance >= noise + (shares[0] - shares[1]).square() - 1e-12).all()
    assert (variance < noise + (shares[0] + shares[1]).square()).all()
    assert (bound > 0).all()
