"""Differences of the values of two actions under one fitted joint-metric estimator.

With z(a) the expected features at an action, J(a) - J(b) = (z(a) - z(b))'c is linear in the coefficients c,
so that its posterior variance is that of one linear combination,

    noise |L^-1 (z(a) - z(b))|^2 + left A(q(a) - q(b)),

with L the factor of the features' precision, q(a) the value as a linear combination of the covariates'
features (`spectral_ridge`), A(q) its maximum-evidence amplitude, and left what is unknown of the second stage
at its inputs. The two values are strongly correlated where the actions are near: the variance is far smaller
than the sum of both, and zero for equal actions. Where the second stage depends on actions and these differ,
the standard deviations of its two shares are added, which is an upper bound.

Source: Rasmussen and Williams (2006), Eq. 2.8 (the posterior of a linear combination); ours for the second
stage.
"""

import torch
from torch import Tensor
from torch.linalg import solve_triangular

from rehearsal_torch.surrogates.kernel.nested_ridge import Prepared
from rehearsal_torch.surrogates.kernel.spectral_ridge import SpectralRidge


def difference_and_variance(
    estimator: SpectralRidge, prepared: Prepared, first: Tensor, second: Tensor, target: int
) -> tuple[Tensor, Tensor]:
    """J(a) - J(b) and its posterior variance.

    Args:
        estimator: The fitted estimator.
        prepared: That of B contexts.
        first: a, standardised, (B, k).
        second: b, likewise.
        target: 0 for the smoothed desirability, 1 for the indicator.

    Returns:
        Differences and variances, (B,) each.
    """
    apart = estimator.expected(prepared, first) - estimator.expected(prepared, second)
    value = apart @ estimator.coefficients[:, target]
    variance = estimator.noise[target] * solve_triangular(
        estimator.factor, apart.mT, upper=False
    ).square().sum(0)
    if not estimator.on_covariates.shape[1]:
        return value, variance
    mixtures = [estimator.mixture(prepared, each, target) for each in (first, second)]
    left = estimator.left_of(prepared, first)
    unknown = left * estimator.embedding.amplitude(mixtures[0] - mixtures[1])
    if estimator.first:
        same = (first == second)[..., list(estimator.first)].all(-1)
        apart_most = sum(estimator.unknown(prepared, each, target).sqrt() for each in (first, second))
        unknown = torch.where(same, unknown, torch.as_tensor(apart_most).square())
    return value, variance + unknown
