"""The probability that a normal outcome falls into a convex region.

Whitened, the outcome is w ~ N(nu, I) and the region a polytope Q of w. Of

    P(nu) = P(w in Q)

a law says log P, its slope and its curvature in nu. Both are moments of the truncated normal,

    grad log P = E[w | Q] - nu,       Hess log P = Cov[w | Q] - I,

and log P is concave (Prekopa: P is the convolution of two log-concave functions), so that the curvature's eigenvalues lie
in [-1, 0]. No condition on the region's shape is needed for that; the canonical rectangles of CARE are the case in which P
is a product.

Source: Prekopa (1971); Qin et al. (2025b), Thm. 3.2 (canonical rectangles); for convex regions at large: ours.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Expansion:
    """A concave function to second order at n points of k coordinates.

    Attributes:
        value: (...,).
        slope: (..., k).
        curvature: (..., k, k), with no positive eigenvalue.
    """

    value: Tensor
    slope: Tensor
    curvature: Tensor


class SuccessLaw(nn.Module, ABC):
    """P(w in Q) for w ~ N(nu, I)."""

    @abstractmethod
    def expansion(self, centres: Tensor) -> Expansion:
        """log P, slope and curvature at centres nu, (..., m)."""

    @abstractmethod
    def log_probability(self, centres: Tensor) -> Tensor:
        """log P at centres nu, (..., m) -> (...), differentiable in them."""


def concave(curvature: Tensor) -> Tensor:
    """The nearest curvature with eigenvalues in [-1, 0]: what rounding pushed out of its bounds is brought back, (..., m, m)."""
    if curvature.shape[-1] == 1:
        return curvature.clamp(-1.0, 0.0)
    if curvature.shape[-1] == 2:
        # In closed form: LAPACK would be called once a matrix.
        a, b, c = curvature[..., 0, 0], curvature[..., 0, 1], curvature[..., 1, 1]
        middle, radius = (a + c) / 2, torch.hypot((a - c) / 2, b)
        low, high = (middle - radius).clamp(-1.0, 0.0), (middle + radius).clamp(-1.0, 0.0)
        # H = mean I + (high - low) / 2 * (traceless direction of unit size).
        safe = radius.clamp_min(1e-300)
        along, across = (a - c) / 2 / safe, b / safe
        mean, half = (low + high) / 2, (high - low) / 2
        return torch.stack([torch.stack([mean + half * along, half * across], -1), torch.stack([half * across, mean - half * along], -1)], -2)
    values, vectors = torch.linalg.eigh((curvature + curvature.mT) / 2)
    return vectors * values.clamp(-1.0, 0.0).unsqueeze(-2) @ vectors.mT
