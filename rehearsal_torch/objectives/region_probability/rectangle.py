"""Probability of a convex region under a normal distribution: the interface, and canonical rectangles.

Whitened, the outcome is w ~ N(nu, I) and the region a polytope Q. For

    P(nu) = P(w in Q),

a `RegionProbability` computes log P with its gradient and curvature in nu. Both derivatives are moments of
the truncated normal distribution,

    grad log P = E[w | Q] - nu,       Hess log P = Cov[w | Q] - I,

and log P is concave (Prekopa: P is the convolution of two log-concave functions), so that the eigenvalues of
the curvature lie in [-1, 0]. No condition on the shape of the region is needed for that.

For the canonical rectangles of CARE, P is a product over intervals. Let the faces of Q come along q <= m
orthonormal directions a_i, l_i <= a_i' w <= u_i (a side may be open). Then

    P(nu) = prod_i [ Phi(u_i - a_i' nu) - Phi(l_i - a_i' nu) ].

A single outcome is the case q = m = 1. In the outcomes' own units these are the regions M y <= d with
M Sigma M' = I on one face of each pair, CARE's condition. Differences of Phi are computed in logarithms: far
from the region, where both terms underflow, log P and its derivatives remain finite and accurate.

Source: Qin et al. (2025b), Def. 3.1, Thm. 3.2, Eq. 9-10 and App. C (canonical rectangles); Prekopa (1971);
for general convex regions: ours.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Expansion:
    """A concave function to second order at n points of k coordinates.

    Attributes:
        value: (...,).
        gradient: (..., k).
        curvature: (..., k, k), with no positive eigenvalue.
    """

    value: Tensor
    gradient: Tensor
    curvature: Tensor


class RegionProbability(ABC):
    """P(w in Q) for w ~ N(nu, I)."""

    @abstractmethod
    def expansion(self, centres: Tensor) -> Expansion:
        """log P, gradient and curvature at centres nu, (..., m)."""

    @abstractmethod
    def log_probability(self, centres: Tensor) -> Tensor:
        """log P at centres nu, (..., m) -> (...), differentiable in them."""


def concave(curvature: Tensor) -> Tensor:
    """The nearest curvature with eigenvalues in [-1, 0], which corrects for rounding, (..., m, m)."""
    if curvature.shape[-1] == 1:
        return curvature.clamp(-1.0, 0.0)
    if curvature.shape[-1] == 2:
        # In closed form: LAPACK would be called once per matrix.
        a, b, c = curvature[..., 0, 0], curvature[..., 0, 1], curvature[..., 1, 1]
        middle, radius = (a + c) / 2, torch.hypot((a - c) / 2, b)
        low, high = (middle - radius).clamp(-1.0, 0.0), (middle + radius).clamp(-1.0, 0.0)
        # H = mean I + (high - low) / 2 * (traceless direction of unit size).
        safe = radius.clamp_min(1e-300)
        along, across = (a - c) / 2 / safe, b / safe
        mean, half = (low + high) / 2, (high - low) / 2
        return torch.stack(
            [
                torch.stack([mean + half * along, half * across], -1),
                torch.stack([half * across, mean - half * along], -1),
            ],
            -2,
        )
    values, vectors = torch.linalg.eigh((curvature + curvature.mT) / 2)
    return vectors * values.clamp(-1.0, 0.0).unsqueeze(-2) @ vectors.mT


OPEN = 1e8


def log_interval(lower: Tensor, upper: Tensor) -> Tensor:
    """log(Phi(upper) - Phi(lower)) for lower < upper, (...); minus infinity where lower >= upper."""
    # To the left of zero Phi keeps its relative precision.
    right = lower + upper > 0
    low, high = torch.where(right, -upper, lower), torch.where(right, -lower, upper)
    empty = lower >= upper
    high = torch.where(empty, low + 1.0, high)
    far, near = torch.special.log_ndtr(low), torch.special.log_ndtr(high)
    ratio = (far - near).clamp_max(-1e-300)
    value = near + torch.where(
        ratio > -math.log(2), torch.log(-torch.expm1(ratio)), torch.log1p(-torch.exp(ratio))
    )
    return torch.where(empty, torch.full_like(value, -torch.inf), value)


def log_density(values: Tensor) -> Tensor:
    """log phi, (...) -> (...)."""
    return -0.5 * values.square() - 0.5 * math.log(2 * math.pi)


class RectangleProbability(RegionProbability):
    """A rectangle with orthogonal edges in whitened coordinates.

    Args:
        directions: a_i, (q, m), orthonormal.
        lower: l_i, (q,); minus infinity for an open side.
        upper: u_i, (q,); infinity for an open side.

    Raises:
        ValueError: if the directions are not orthonormal.
    """

    def __init__(self, directions: Tensor, lower: Tensor, upper: Tensor) -> None:
        gram = directions @ directions.mT
        if not torch.allclose(
            gram, torch.eye(len(directions), dtype=gram.dtype, device=gram.device), atol=1e-6
        ):
            raise ValueError(
                "expected orthonormal directions: this region is not a canonical rectangle; use "
                "PolygonProbability or PolytopeProbability"
            )
        self.directions = directions
        self.lower, self.upper = lower.clamp(-OPEN, OPEN), upper.clamp(-OPEN, OPEN)

    def log_probability(self, centres: Tensor) -> Tensor:
        """sum_i log(Phi(u_i - a_i' nu) - Phi(l_i - a_i' nu)), (..., m) -> (...)."""
        along = centres @ self.directions.mT
        return log_interval(self.lower - along, self.upper - along).sum(-1)

    def expansion(self, centres: Tensor) -> Expansion:
        """In closed form.

        Source: Qin et al. (2025b), Eq. 10 and App. C (gradient and Hessian; the Hessian's k'k there is a
            printing error for k k').
        """
        along = centres @ self.directions.mT
        low, high = self.lower - along, self.upper - along
        each = log_interval(low, high)
        at_low, at_high = (log_density(low) - each).exp(), (log_density(high) - each).exp()
        first = at_low - at_high
        second = (low * at_low - high * at_high - first.square()).clamp(-1.0, 0.0)
        return Expansion(
            each.sum(-1),
            first @ self.directions,
            (self.directions.mT * second.unsqueeze(-2)) @ self.directions,
        )


def rectangle_of(normals: Tensor, offsets: Tensor) -> RectangleProbability | None:
    """The rectangle {w : N w <= s}, or None if its faces are not pairwise parallel or orthogonal: normals
    (l, m), offsets (l,).
    """
    length = normals.norm(dim=-1)
    unit, reach = normals / length.unsqueeze(-1), offsets / length
    directions: list[Tensor] = []
    lower: list[float] = []
    upper: list[float] = []
    for normal, limit in zip(unit, reach.tolist(), strict=True):
        cosines = [float(normal @ direction) for direction in directions]
        same = [index for index, cosine in enumerate(cosines) if abs(cosine) > 1 - 1e-12]
        if not same:
            if any(abs(cosine) > 1e-9 for cosine in cosines):
                return None
            directions.append(normal)
            lower.append(-math.inf)
            upper.append(limit)
        elif cosines[same[0]] > 0:
            upper[same[0]] = min(upper[same[0]], limit)
        else:
            lower[same[0]] = max(lower[same[0]], -limit)
    like = normals.new_tensor
    return RectangleProbability(torch.stack(directions), like(lower), like(upper))
