"""The posterior of a Gaussian-process regression after further rows, many sets of rows in one batch.

The hyper-parameters are kept. With K = L L' of the n rows that the posterior knows, m further rows (w, y)
with noise variances R, and

    C = k(w, W) L^-T,        D D' = k(w, w) + R - C C',

the Cholesky factor of all n + m rows is [[L, 0], [C, D]]. The posterior given all of them costs O(n^2 m) to
form and stores O(n m) numbers per set of rows; L is shared by all sets. The mean m = 1'K^-1 y / 1'K^-1 1 of
the regression is estimated anew: with z_1 = D^-1 (1 - k(w, W) K^-1 1), z_y = D^-1 (y - mu(w)) and mu the mean
of the posterior before,

    m_new - m = z_1'z_y / (1'K^-1 1 + z_1'z_1),

because the residuals of the old rows satisfy 1'K^-1 (y - m) = 0. This is what a regression on all rows gives,
up to rounding, and it is differentiable in the rows and their targets.

Source: Golub and Van Loan (2013), Sec. 4.2.9 (block Cholesky); Rasmussen and Williams (2006), Eq. 2.25-2.26.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.estimators.gp_posterior import MIN_VARIANCE, Posterior
from rehearsal_torch.estimators.kernel import correlation, lower_root


@dataclass(frozen=True)
class ConditionedPosterior:
    """The posterior of one regression after m further rows; b stands for the leading dimensions of sets of
    rows.

    Attributes:
        before: The posterior before.
        inputs: The further rows, (b, m, p).
        targets: (b, m).
        variances: Their noise variances, (b, m).
        gains: K^-1 k(W, w), (b, n, m).
        root: D, (b, m, m).
        mean: The mean of the regression, (b).
        old_weights: What the posterior mean takes of k(., W), (b, n).
        weights: What it takes of k(., w), (b, m).
    """

    before: Posterior
    inputs: Tensor
    targets: Tensor
    variances: Tensor
    gains: Tensor
    root: Tensor
    mean: Tensor
    old_weights: Tensor
    weights: Tensor

    def posterior_mean(self, scaled: Tensor) -> Tensor:
        """mu(w), (..., s, p) -> (..., s); leading dimensions broadcast against b."""
        if not scaled.shape[-1]:
            return self.mean.unsqueeze(-1).expand(self._shape(scaled))
        return self._mean(self.before.products(scaled), self._near(scaled))

    def belief(self, scaled: Tensor) -> tuple[Tensor, Tensor]:
        """mu(w) and tau(w), (..., s, p) -> (..., s), (..., s)."""
        if not scaled.shape[-1]:
            shape, rows = self._shape(scaled), len(self.before.halves)
            share = rows / (rows + self.targets.shape[-1])
            return self.posterior_mean(scaled), (self.before.vague * share**0.5).expand(shape)
        products, near = self.before.products(scaled), self._near(scaled)
        known = (products @ self.before.inverse).square().sum(-1) + self._added(products, near).square().sum(
            -1
        )
        return self._mean(products, near), (1 - known).clamp_min(MIN_VARIANCE).sqrt()

    def _shape(self, scaled: Tensor) -> torch.Size:
        return torch.broadcast_shapes(scaled.shape[:-1], (*self.mean.shape, 1))

    def _near(self, scaled: Tensor) -> Tensor:
        """k(., w) of the further rows, (..., s, p) -> (..., s, m)."""
        return kernel_between(self.before, scaled, self.inputs)

    def _mean(self, products: Tensor, near: Tensor) -> Tensor:
        old, new = (products @ self.old_weights.unsqueeze(-1), near @ self.weights.unsqueeze(-1))
        return (old + new).squeeze(-1) + self.mean.unsqueeze(-1)

    def _added(self, products: Tensor, near: Tensor) -> Tensor:
        """(k(., w) - k(., W) K^-1 k(W, w)) D^-T, (..., s, m)."""
        return torch.linalg.solve_triangular(self.root, (near - products @ self.gains).mT, upper=False).mT


def conditioned(
    posterior: Posterior | ConditionedPosterior, inputs: Tensor, targets: Tensor, variances: Tensor
) -> ConditionedPosterior:
    """The posterior after further rows: inputs (..., m, p) in the unit cube, standardised targets (..., m)
    and noise variances. Leading dimensions broadcast; a posterior that was conditioned already keeps its
    further rows.

    Raises:
        ValueError: if a covariance matrix remains indefinite.
    """
    variances = variances.expand(torch.broadcast_shapes(variances.shape, inputs.shape[:-1]))
    if isinstance(posterior, ConditionedPosterior):
        inputs = _joined(posterior.inputs, inputs, -2)
        targets = _joined(posterior.targets, targets, -1)
        variances = _joined(posterior.variances, variances, -1)
        posterior = posterior.before
    if not inputs.shape[-1]:
        return _without_inputs(posterior, inputs, targets, variances)
    products = posterior.products(inputs)
    known = products @ posterior.inverse
    gains = (known @ posterior.inverse.mT).mT
    own = kernel_between(posterior, inputs, inputs) + torch.diag_embed(variances)
    root = lower_root(own - known @ known.mT)
    ones = posterior.inverse @ posterior.inverse.sum(0)  # K^-1 1
    deviation = targets - posterior.mean - products @ posterior.weights
    unlike = (1 - products @ ones).expand_as(deviation)
    residual, unit = torch.linalg.solve_triangular(
        root, torch.stack([deviation, unlike], -1), upper=False
    ).unbind(-1)
    shift = (residual * unit).sum(-1) / (ones.sum() + unit.square().sum(-1))
    weights = torch.linalg.solve_triangular(
        root.mT, (residual - shift.unsqueeze(-1) * unit).unsqueeze(-1), upper=True
    )
    old = posterior.weights - shift.unsqueeze(-1) * ones - (gains @ weights).squeeze(-1)
    return ConditionedPosterior(
        posterior, inputs, targets, variances, gains, root, posterior.mean + shift, old, weights.squeeze(-1)
    )


def covariance(posterior: Posterior | ConditionedPosterior, scaled: Tensor) -> Tensor:
    """The posterior covariance of the function at s inputs, (..., s, p) -> (..., s, s)."""
    first = posterior.before if isinstance(posterior, ConditionedPosterior) else posterior
    if not scaled.shape[-1]:
        std = posterior.belief(scaled)[1]
        return std.unsqueeze(-1) * std.unsqueeze(-2)
    products = first.products(scaled)
    known = products @ first.inverse
    posterior_covariance = kernel_between(first, scaled, scaled) - known @ known.mT
    if isinstance(posterior, ConditionedPosterior):
        added = posterior._added(products, posterior._near(scaled))
        posterior_covariance = posterior_covariance - added @ added.mT
    return posterior_covariance


def kernel_between(posterior: Posterior, left: Tensor, right: Tensor) -> Tensor:
    """k of a posterior's regression, (..., s, p), (..., m, p) -> (..., s, m)."""
    left, right = left * posterior.scales, right * posterior.scales
    squares = left.square().sum(-1, keepdim=True) + right.square().sum(-1).unsqueeze(-2) - 2 * left @ right.mT
    return correlation(squares.clamp_min(0), posterior.kind)


def _joined(old: Tensor, new: Tensor, dim: int) -> Tensor:
    lead = torch.broadcast_shapes(old.shape[:dim], new.shape[:dim])
    return torch.cat([old.expand(*lead, *old.shape[dim:]), new.expand(*lead, *new.shape[dim:])], dim)


def _without_inputs(
    posterior: Posterior, inputs: Tensor, targets: Tensor, variances: Tensor
) -> ConditionedPosterior:
    """The posterior of a regression without inputs: an average, whose rows have equal noise."""
    rows, more = len(posterior.halves), targets.shape[-1]
    mean = (rows * posterior.mean + targets.sum(-1)) / (rows + more)
    blank = targets.new_zeros(0)
    return ConditionedPosterior(posterior, inputs, targets, variances, blank, blank, mean, blank, blank)
