"""Affine mechanisms with normal noise, as records of parameters.

    v = b + W' pa + eps,        eps ~ N(0, Sigma).

The parameters may come from any source: a least-squares fit, an ensemble, or samples of a posterior, one set
for each leading dimension.

Source: Qin et al. (2023), Eq. 5; Qin et al. (2025b), Sec. 4.2.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.mechanism import GenerativeMechanism, standard_normal


@dataclass(frozen=True)
class AffineMechanism(GenerativeMechanism):
    """c values as an affine function of p parents; leading dimensions (...) run over sets of parameters.

    Attributes:
        weights: W, (..., p, c).
        intercept: b, (..., c).
        covariance: Sigma, (..., c, c), positive definite.
    """

    weights: Tensor
    intercept: Tensor
    covariance: Tensor

    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c); leading dimensions broadcast with those of the parameters."""
        return self.mean(parents) + noise

    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        return values - self.mean(parents)

    def mean(self, parents: Tensor) -> Tensor:
        """b + W' pa, (..., p) -> (..., c)."""
        return self.intercept + (parents.unsqueeze(-2) @ self.weights).squeeze(-2)

    def noise(self, shape: tuple[int, ...]) -> Tensor:
        """Samples of N(0, Sigma), (*shape, ..., c)."""
        normal = standard_normal((*shape, *self.intercept.shape), self.intercept)
        root = torch.linalg.cholesky(self.covariance)
        return (root @ normal.unsqueeze(-1)).squeeze(-1)
