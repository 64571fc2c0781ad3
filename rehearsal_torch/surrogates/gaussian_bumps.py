"""Alteration values that are sums of Gaussian bumps over actions.

    J(a; x) = sum_i omega_i(x) exp(-|a_i - a|^2 / (2 s_a^2)),
    grad J  = s_a^-2 sum_i omega_i(x) k_a(a_i, a) (a_i - a).

Contexts decide the weights, actions the bumps; so thousands of contexts and starts are one tensor, and a step costs as
many kernel values as there are centres. An average over models with different action widths is a sum over widths.

Source: Du et al. (2026), Eq. (9) and (10).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.fitted import Sizes
from rehearsal_torch.surrogates.alteration_value import AlterationValue, Prepared

CACHED = 2**18  # So many kernel values at once stay in a processor's cache.


class GaussianBumps(AlterationValue, ABC):
    """J as bumps; `prepare` puts their weights for both targets, (B, g, n) each, first into the pieces.

    Args:
        first: See `AlterationValue`.
    """

    def __init__(self, first: Sequence[int]) -> None:
        super().__init__(first)
        self.register_fitted("centres", "bump_widths")
        self.centres: Tensor
        self.bump_widths: Tensor

    def sizes(self) -> Sizes:
        """n centres of k actions; one width, unless a subclass has several."""
        return {"centres": ("n", "k"), "bump_widths": (1,)}

    @abstractmethod
    def prepare(self, contexts: Tensor) -> Prepared:
        """Pieces: weights (B, g, n) of the smoothed desirability, of the indicator, then the estimator's own."""

    @property
    def widths_of_rows(self) -> tuple[int, int, int]:
        """Those of the rows that the bumps stand at."""
        rows = (self.get_buffer("contexts"), self.get_buffer("covariates"), self.centres)
        return tuple(each.shape[-1] for each in rows)  # type: ignore[return-value]

    def value(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """Eq. (9), (..., B, k) -> (..., B)."""
        weights, shape = prepared.pieces[target], actions.shape[:-1]
        rows = _by_context(actions.to(weights))
        total = sum(superposed(rows, self.centres, width, weights[:, g], False)[..., 0] for g, width in enumerate(self.bump_widths))
        return torch.as_tensor(total).T.reshape(shape)

    def value_and_slope(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. (9) and (10), (..., B, k) -> (..., B), (..., B, k), in the precision of the actions: single precision is good enough for an ascent."""
        weights, centres, rows = prepared.pieces[0].to(actions), self.centres.to(actions), _by_context(actions)
        values, slopes = rows.new_zeros(rows.shape[:2]), torch.zeros_like(rows)
        for g, width in enumerate(self.bump_widths.to(actions)):
            moments = superposed(rows, centres, width, weights[:, g], True)
            values += moments[..., 0]
            slopes += (moments[..., 1:] - rows * moments[..., :1]) / width**2
        return values.T.reshape(actions.shape[:-1]), slopes.transpose(0, 1).reshape(actions.shape)

    def weights(self, prepared: Prepared) -> Tensor:
        """omega, summed over the widths, (B, n).

        Source: Du et al. (2026), Alg. 1, line 13.
        """
        return prepared.pieces[0].sum(1)

    @property
    def actions(self) -> Tensor:
        """The centres, (n, k)."""
        return self.centres


def superposed(actions: Tensor, centres: Tensor, width: Tensor, weights: Tensor, slope: bool) -> Tensor:
    """Moments sum_i omega_i k_a(a_i, a) (1, a_i) at actions (B, S, k), centres (n, k), weights (B, n) -> (B, S, 1) or (B, S, 1 + k).

    Source: Du et al. (2026), Eq. (9) and (10).
    """
    (contexts, starts, _), near, scaled = actions.shape, centres / width, actions / width
    left = torch.cat([scaled, scaled.new_ones(contexts, starts, 1), -0.5 * scaled.square().sum(-1, keepdim=True)], -1)
    right = torch.cat([near, -0.5 * near.square().sum(-1, keepdim=True), near.new_ones(len(near), 1)], -1).T
    step, found = max(1, CACHED // max(starts * len(centres), 1)), []
    for first in range(0, contexts, step):
        some = weights[first : first + step, :, None]
        kernel = (left[first : first + step].flatten(0, 1) @ right).exp_().unflatten(0, (-1, starts))
        found.append(kernel @ (torch.cat([some, some * centres], -1) if slope else some))
    return torch.cat(found)


def kernel_rows(actions: Tensor, centres: Tensor, width: Tensor) -> Tensor:
    """k_a between actions (..., k) and centres (n, k), (..., n)."""
    return (-0.5 * ((actions.unsqueeze(-2) - centres) / width).square().sum(-1)).exp()


def _by_context(actions: Tensor) -> Tensor:
    return actions.reshape(-1, *actions.shape[-2:]).transpose(0, 1)
