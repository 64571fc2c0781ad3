"""Probability that a normal outcome lies in a region, by Gauss-Legendre quadrature.

For one outcome it is a difference of two normal distribution functions. For two, (Y_1, Y_2) ~ N(mu, Sigma), a
region is cut into slices: at y_1 it extends from lo(y_1) to hi(y_1), and Y_2 given y_1 is normal again, so
that

    P = int phi(t) { Phi[(hi(y_1) - m(t)) / s] - Phi[(lo(y_1) - m(t)) / s] } dt,    y_1 = mu_1 + s_1 t,

with m(t) = mu_2 + (Sigma_12 / s_1) t and s^2 = Sigma_22 - Sigma_12^2 / Sigma_11. The integrand is smooth
between corners of a polygon, and panels end there and around steep faces; on a disc the substitution
y_1 = o_1 + r sin(theta) removes the square-root singularities at both ends.

Source: textbook conditioning. It shares no code with the probabilities that methods maximise, so that it is
an independent check of them.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.spaces.polytope import Polytope

REACH = 7.0  # Standard deviations integrated over: the mass beyond is below 1e-11.
NODES = 40
# Standard deviations of Y_2 given y_1 that a face moves per standard deviation of Y_1, above which a single
# panel loses digits.
MAX_STEEPNESS = 1.5
ROWS = 1024  # Batch size of means that fits in a processor's cache.


@dataclass(frozen=True)
class Disc:
    """The region of two outcomes {y : |y - centre| <= radius}, with a positive radius."""

    names: tuple[str, str]
    centre: tuple[float, float]
    radius: float

    def __post_init__(self) -> None:
        if not self.radius > 0:
            raise ValueError(f"expected a positive radius; got {self.radius}")

    def contains(self, outcomes: Tensor) -> Tensor:
        """Whether outcomes lie in the disc, (..., 2) -> (...) bool."""
        return (outcomes - outcomes.new_tensor(self.centre)).norm(dim=-1) <= self.radius

    def polygon(self, faces: int) -> Polytope:
        """The inscribed regular polygon, with corners on the circle."""
        angle = torch.arange(faces, dtype=torch.float64) * (2 * math.pi / faces)
        normals = torch.stack([angle.cos(), angle.sin()], -1)
        offsets = self.radius * math.cos(math.pi / faces) + normals @ normals.new_tensor(self.centre)
        return Polytope(self.names, normals, offsets)


@lru_cache(maxsize=16)
def legendre(count: int) -> tuple[Tensor, Tensor]:
    """Gauss-Legendre nodes and weights on [0, 1], (count,) each."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return torch.from_numpy((points + 1) / 2), torch.from_numpy(weights / 2)


def between(lower: Tensor, upper: Tensor) -> Tensor:
    """Phi(upper) - Phi(lower), zero where lower > upper, accurate in both tails, (...) -> (...)."""
    right = lower + upper > 0
    low, high = torch.where(right, -upper, lower), torch.where(right, -lower, upper)
    return (torch.special.ndtr(high) - torch.special.ndtr(low)).clamp_min(0.0)


def interval(region: Polytope, outcome: int = 0) -> tuple[float, float]:
    """The interval of an outcome where each face bounds one outcome; infinite for an open side."""
    coefficients = region.normals[:, outcome]
    ends = region.offsets / coefficients
    lower, upper = ends[coefficients < 0].tolist(), ends[coefficients > 0].tolist()
    return max(lower, default=-math.inf), min(upper, default=math.inf)


def probability_in(region: Polytope | Disc, mean: Tensor, covariance: Tensor) -> Tensor:
    """P(Y in S) for Y ~ N(mean (..., |Y|), covariance), (...), to 1e-8; ValueError for over two outcomes."""
    if mean.shape[-1] == 1 and isinstance(region, Polytope):
        ends, scale = interval(region), covariance[0, 0].sqrt()
        return between((ends[0] - mean[..., 0]) / scale, (ends[1] - mean[..., 0]) / scale)
    if mean.shape[-1] != 2:
        limitation = "exact probabilities of more are not built"
        raise ValueError(f"expected one or two outcomes; got {mean.shape[-1]}: {limitation}")
    rows = mean.reshape(-1, 2)
    chances = [_integrate(region, part, covariance) for part in rows.split(ROWS)]
    return torch.cat(chances).reshape(mean.shape[:-1])


def _integrate(region: Polytope | Disc, mean: Tensor, covariance: Tensor) -> Tensor:
    """The integral over slices: means (n, 2) -> (n,)."""
    first, second = mean[:, :1, None], mean[:, 1:, None]
    scale = covariance[0, 0].sqrt()
    tilt = covariance[0, 1] / scale
    spread = (covariance[1, 1] - covariance[0, 1].square() / covariance[0, 0]).sqrt()
    nodes, weights = legendre(NODES)
    if isinstance(region, Disc):
        centre, radius = region.centre, region.radius
        start, end = (
            torch.asin(((first + side * scale - centre[0]) / radius).clamp(-1.0, 1.0))
            for side in (-REACH, REACH)
        )
        angle = start + (end - start) * nodes
        half = radius * angle.cos()
        t = (centre[0] + radius * angle.sin() - first) / scale
        low, high = centre[1] - half, centre[1] + half
        share = (end - start) * half / scale
    else:
        ends = ((_breaks(region) - mean[:, :1]) / scale).clamp(-REACH, REACH)
        support = ends[:, :1], ends[:, -1:]
        # A steep face is crossed within a small step of t: panels end around it.
        for a, b, limit in zip(*(values.tolist() for values in _unit_faces(region)), strict=True):
            ratio = float((-a / b * scale - tilt) / spread) if b else 0.0
            if abs(ratio) > MAX_STEEPNESS:
                crossing = -((limit - a * mean[:, :1]) / b - mean[:, 1:]) / spread / ratio
                nearby = crossing + crossing.new_tensor([-4.0, 0.0, 4.0]) / ratio
                ends = torch.cat([ends, torch.minimum(torch.maximum(nearby, support[0]), support[1])], -1)
        ends = ends.sort(-1).values.unsqueeze(-1)
        share = ends[:, 1:] - ends[:, :-1]
        t = ends[:, :-1] + share * nodes
        low, high = _slice_range(region, first + scale * t)
    middle = second + tilt * t
    mass = (-0.5 * t.square()).exp() * between((low - middle) / spread, (high - middle) / spread)
    return ((mass * share) @ weights).sum(-1) / math.sqrt(2 * math.pi)


def _slice_range(region: Polytope, first: Tensor) -> tuple[Tensor, Tensor]:
    """The range of y_2 in the region at y_1 = place, (...) each; empty where the first exceeds the second."""
    low, high = torch.full_like(first, -1e300), torch.full_like(first, 1e300)
    for a, b, limit in zip(*(values.tolist() for values in _unit_faces(region)), strict=True):
        if b > 0:
            high = torch.minimum(high, (limit - a * first) / b)
        elif b < 0:
            low = torch.maximum(low, (limit - a * first) / b)
    return low, high


def _unit_faces(region: Polytope) -> tuple[Tensor, Tensor, Tensor]:
    """a, b, d of a y_1 + b y_2 <= d, (l,) each, scaled; b is zero for nearly vertical faces."""
    length = region.normals.norm(dim=-1)
    a, b = (region.normals / length.unsqueeze(-1)).unbind(-1)
    return a, torch.where(b.abs() < 1e-9, 0.0, b), region.offsets / length


def _breaks(region: Polytope) -> Tensor:
    """The y_1 of a polygon's corners in order, and its ends: (panels + 1,)."""
    a, b, d = _unit_faces(region)
    vertical = b == 0
    ends, outward = d[vertical] / a[vertical], a[vertical] > 0
    infinity = d.new_tensor([math.inf])
    lower, upper = torch.cat([ends[~outward], -infinity]).amax(), torch.cat([ends[outward], infinity]).amin()
    row, column = torch.triu_indices(len(d), len(d), 1)
    turn = a[row] * b[column] - b[row] * a[column]
    crossing = turn.abs() > 1e-12
    row, column, turn = row[crossing], column[crossing], turn[crossing]
    across = (d[row] * b[column] - b[row] * d[column]) / turn
    along = (a[row] * d[column] - d[row] * a[column]) / turn
    corners = torch.stack([across, along], -1)
    slack = d - corners @ torch.stack([a, b])
    inside = across[(slack >= -1e-9 * (1 + corners.abs().amax(-1, keepdim=True))).all(-1)]
    return torch.cat([lower.reshape(1), upper.reshape(1), inside.clamp(float(lower), float(upper))]).unique()
