"""Probability of a convex region under a normal distribution.

Whitened, the outcome is w ~ N(nu, I) and the region a polytope Q. For

    P(nu) = P(w in Q),

a `RegionProbability` computes log P with its gradient and curvature in nu. Both derivatives are moments of
the truncated normal distribution,

    grad log P = E[w | Q] - nu,       Hess log P = Cov[w | Q] - I,

and log P is concave (Prekopa: P is the convolution of two log-concave functions), so that the eigenvalues of
the curvature lie in [-1, 0], whatever the shape of the region.

For the canonical rectangles of CARE, with faces along q <= m orthonormal directions a_i, l_i <= a_i' w <= u_i
(a side may be open), P is a product over intervals,

    P(nu) = prod_i [ Phi(u_i - a_i' nu) - Phi(l_i - a_i' nu) ].

In the outcomes' own units these are the regions M y <= d with M Sigma M' = I on one face of each pair, CARE's
condition. Differences of Phi are computed in logarithms: far from the region, where both terms underflow, log
P and its derivatives remain finite and accurate.

Polygons are the convex regions of two outcomes. For a polygon with vertices in counter-clockwise order, an
edge at signed distance h from nu that runs from t1 to t2 along its own direction spans with nu a triangle of
probability G(h, t2) - G(h, t1),

    G(h, t) = 1/(2 pi) int_0^{t/h} (1 - exp(-h^2 (1 + x^2) / 2)) / (1 + x^2) dx,     odd in h and in t,

and P is the sum over the edges. For 0 < h < t the identity G(h, t) = (Phi(h) - 1/2)(Phi(t) - 1/2) - G(t, h)
brings the upper limit below one, where Gauss-Legendre quadrature is accurate to machine precision. Gradient
and curvature of P are sums over the edges too,

    grad P = -sum_e n_e phi(h_e) [Phi(t2_e) - Phi(t1_e)]        (Gauss' theorem),

without numerical differentiation. Where P is so small that the sum of triangles loses its precision, P and
its moments are integrated outwards from the nearest point of the polygon instead, with positive terms. An
open side is closed `FAR` standard deviations away, or farther, beyond all centres nu: these lie far away
where outcomes nearly follow from each other, or the noise is small.

Other polytopes take quasi-Monte Carlo, with one coordinate integrated exactly. Along the first whitened
coordinate the polytope is an interval [l(u), r(u)] given the others u, so

    P(nu) = E_u [ Phi(r(u)) - Phi(l(u)) ],        u ~ N(nu_rest, I),

whose integrand is continuous in nu, unlike an indicator. A fixed Sobol sequence represents u. If nu lies
outside, the sequence is shifted to the nearest point of the polytope and reweighted by the ratio of the
densities, so that log P is accurate far away as well. The first coordinate is the direction, among random
ones, that is farthest from parallel to any face.

Source: Qin et al. (2025b), Def. 3.1, Thm. 3.2, Eq. 9-10 and App. C (canonical rectangles); Owen (1956) (the
function T, with 2 pi G = angle - 2 pi T); Genz (1992) (conditioning, quasi-Monte Carlo); Botev (2017)
(shifting the points to where the mass is); Prekopa (1971).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.seeding import generator, sobol
from rehearsal_torch.spaces.projection import project


@dataclass(frozen=True)
class Expansion:
    """A concave function to second order at n points of k coordinates."""

    value: Tensor  # (...,)
    gradient: Tensor  # (..., k)
    curvature: Tensor  # (..., k, k), with no positive eigenvalue


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
        length = radius.clamp_min(1e-300)
        along, across = (a - c) / 2 / length, b / length
        mean, half = (low + high) / 2, (high - low) / 2
        entries = [mean + half * along, half * across, half * across, mean - half * along]
        return torch.stack(entries, -1).unflatten(-1, (2, 2))
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
    close, apart = torch.log(-torch.expm1(ratio)), torch.log1p(-torch.exp(ratio))
    value = near + torch.where(ratio > -math.log(2), close, apart)
    return torch.where(empty, torch.full_like(value, -torch.inf), value)


def interval(lower: Tensor, upper: Tensor) -> Tensor:
    """Phi(upper) - Phi(lower), (...), to the relative precision of `log_interval`; 0 where lower >= upper."""
    right = lower + upper > 0
    low, high = torch.where(right, upper, -lower), torch.where(right, lower, -upper)
    scale = math.sqrt(0.5)
    return 0.5 * (torch.erfc(scale * high) - torch.erfc(scale * low)).clamp_min(0.0)


def log_density(values: Tensor) -> Tensor:
    """log phi, (...) -> (...)."""
    return -0.5 * values.square() - 0.5 * math.log(2 * math.pi)


class RectangleProbability(RegionProbability):
    """A rectangle l_i <= a_i' w <= u_i with orthogonal edges in whitened coordinates: directions a (q, m),
    orthonormal (else a ValueError), and ends (q,), infinite for an open side.
    """

    def __init__(self, directions: Tensor, lower: Tensor, upper: Tensor) -> None:
        gram = directions @ directions.mT
        eye = torch.eye(len(directions), dtype=gram.dtype, device=gram.device)
        if not torch.allclose(gram, eye, atol=1e-6):
            raise ValueError(
                "expected orthonormal directions: this region is not a canonical rectangle; use "
                "PolygonProbability or PolytopeProbability"
            )
        self.directions = directions
        self.lower, self.upper = lower.clamp(-OPEN, OPEN), upper.clamp(-OPEN, OPEN)

    @cached_property
    def middle(self) -> Tensor:
        """The midpoint along each direction, (q,); infinite towards an open side."""
        middle = (self.lower + self.upper) / 2
        middle = torch.where(self.lower <= -OPEN, -torch.inf, middle)
        return torch.where(self.upper >= OPEN, torch.inf, middle)

    def log_probability(self, centres: Tensor) -> Tensor:
        """sum_i log(Phi(u_i - a_i' nu) - Phi(l_i - a_i' nu)), (..., m) -> (...)."""
        along = centres @ self.directions.mT
        return log_interval(self.lower - along, self.upper - along).sum(-1)

    def expansion(self, centres: Tensor) -> Expansion:
        """In closed form: Qin et al. (2025b), Eq. 10 and App. C (whose k'k is a printing error for k k')."""
        along = centres @ self.directions.mT
        low, high = self.lower - along, self.upper - along
        log_masses = log_interval(low, high)
        at_low, at_high = (log_density(low) - log_masses).exp(), (log_density(high) - log_masses).exp()
        first = at_low - at_high
        second = (low * at_low - high * at_high - first.square()).clamp(-1.0, 0.0)
        curvature = (self.directions.mT * second.unsqueeze(-2)) @ self.directions
        return Expansion(log_masses.sum(-1), first @ self.directions, curvature)


def rectangle_of(normals: Tensor, offsets: Tensor) -> RectangleProbability | None:
    """The rectangle {w : N w <= s}; None if its faces are not pairwise parallel or orthogonal."""
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


class PolytopeProbability(RegionProbability):
    """Any polytope {w : N w <= s} in whitened coordinates, N (l, m), s (l,), of m >= 2 dimensions."""

    def __init__(self, normals: Tensor, offsets: Tensor, points: int = 512, seed: int = 0) -> None:
        if normals.shape[-1] < 2:
            raise ValueError(
                "expected at least two dimensions; one outcome is an interval: use RectangleProbability"
            )
        length = normals.norm(dim=-1)
        rays = torch.randn(1024, normals.shape[1], generator=generator(seed), dtype=torch.float64).to(normals)
        rays = rays / rays.norm(dim=-1, keepdim=True)
        askew = rays[((rays @ normals.mT) / length).abs().amin(-1).argmax()].unsqueeze(-1)
        # An orthogonal matrix whose first column is that direction.
        axes = torch.eye(len(askew), dtype=normals.dtype, device=normals.device)
        frame = torch.linalg.qr(torch.cat([askew, axes[:, 1:]], -1)).Q
        uniform = sobol(normals.shape[1] - 1, seed).draw(points, dtype=torch.float64)
        self.frame = frame
        self.normals, self.offsets = normals / length.unsqueeze(-1), offsets / length
        self.points = torch.special.ndtri(uniform.clamp(1e-12, 1 - 1e-12)).to(normals)

    def log_probability(self, centres: Tensor) -> Tensor:
        """log P at centres nu, (..., m) -> (...)."""
        return torch.logsumexp(self._terms(centres)[0], -1) - math.log(len(self.points))

    def _terms(self, centres: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Log-weights and ends of intervals, (..., n) each, and the other coordinates, (..., n, m - 1)."""
        flat = centres.reshape(-1, centres.shape[-1])
        slack = self.offsets - flat @ self.normals.mT
        with torch.no_grad():
            unit = torch.ones(flat.shape[1], dtype=flat.dtype, device=flat.device)
            nearest = project(torch.zeros_like(flat), unit, self.normals, slack.detach()).points
            move = nearest @ self.frame[:, 1:]
        rotated = self.normals @ self.frame
        u = self.points + move.unsqueeze(-2)
        room = slack.unsqueeze(-2) - u @ rotated[:, 1:].mT
        slope = rotated[:, 0].expand_as(room)
        near, far, outside = _line_segment(room, slope, 1e6, -1)
        ratio = -(self.points * move.unsqueeze(-2)).sum(-1) - 0.5 * move.square().sum(-1, keepdim=True)
        terms = (log_interval(near, far) + ratio).masked_fill(outside, -1e30)
        lead = centres.shape[:-1]
        terms, near, far = (part.reshape(*lead, -1) for part in (terms, near, far))
        return terms, near, far, u.reshape(*lead, *u.shape[-2:])

    def expansion(self, centres: Tensor) -> Expansion:
        """The gradient by automatic differentiation, whose own gradient jumps; the curvature from moments."""
        with torch.enable_grad():
            at = centres.detach().requires_grad_(True)
            value = self.log_probability(at)
            (gradient,) = torch.autograd.grad(value.sum(), at)
        with torch.no_grad():
            terms, near, far, u = self._terms(centres)
            weight = torch.softmax(terms, -1).unsqueeze(-1)
            mean, spread = _truncated_moments(near, far, log_interval(near, far))
            location = torch.cat([mean.unsqueeze(-1), u], -1)
            deviation = location - (weight * location).sum(-2, keepdim=True)
            moments = (weight * deviation).mT @ deviation
            moments[..., 0, 0] += (weight.squeeze(-1) * spread).sum(-1)
            eye = torch.eye(centres.shape[-1], dtype=centres.dtype, device=centres.device)
            curvature = self.frame @ moments @ self.frame.mT - eye
        return Expansion(value.detach(), gradient, concave((curvature + curvature.mT) / 2))


def _line_segment(slack: Tensor, slope: Tensor, beyond: float, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """The ends of {t in +-beyond : slope t <= slack}, and where that is empty (ends 0 and 1)."""
    quotient = slack / torch.where(slope.abs() > 1e-12, slope, torch.ones_like(slope))
    near = quotient.where(slope < -1e-12, -beyond).amax(dim)
    far = quotient.where(slope > 1e-12, beyond).amin(dim)
    outside = ((slope.abs() <= 1e-12) & (slack < 0)).any(dim) | (near >= far)
    return near.masked_fill(outside, 0.0), far.masked_fill(outside, 1.0), outside


def _truncated_moments(near: Tensor, far: Tensor, inner: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of a normal distribution on an interval, whose log-probability is `inner`."""
    at_near, at_far = (log_density(near) - inner).exp(), (log_density(far) - inner).exp()
    mean = at_near - at_far
    return mean, (1 + near * at_near - far * at_far - mean.square()).clamp(0.0, 1.0)


FAR = 1e4
FARTHEST = 1e9  # Farther away, vertices lose their precision
SMALL = 1e-7


@lru_cache(maxsize=8)
def _legendre_nodes(count: int) -> tuple[Tensor, Tensor]:
    points, weights = np.polynomial.legendre.leggauss(count)
    return torch.from_numpy((points + 1) / 2), torch.from_numpy(weights / 2)


def triangle(distance: Tensor, along: Tensor, nodes: int = 12) -> Tensor:
    """G(h, t), (...): the probability of the triangle 0, (h, 0), (h, t) under N(0, I), signed as h t."""
    h, t = distance.abs(), along.abs()
    long, short = torch.maximum(h, t), torch.minimum(h, t)
    points, weights = (rule.to(long) for rule in _legendre_nodes(nodes))
    square = 1 + ((short / long.clamp_min(1e-300)).unsqueeze(-1) * points).square()
    inner = -torch.expm1(-0.5 * long.unsqueeze(-1).square() * square) / square
    wedge = short / long.clamp_min(1e-300) * (inner @ weights) / (2 * math.pi)
    box = 0.25 * torch.special.erf(h / math.sqrt(2)) * torch.special.erf(t / math.sqrt(2))
    return torch.where(t > h, box - wedge, wedge) * torch.sign(distance) * torch.sign(along)


def edges(vertices: Tensor) -> tuple[Tensor, Tensor]:
    """Outward normals and directions of the edges, (..., q, 2) each; zero for an edge of zero length."""
    step = vertices.roll(-1, -2) - vertices
    length = step.norm(dim=-1, keepdim=True)
    direction = torch.where(length > 0, step / length.clamp_min(1e-300), torch.zeros_like(step))
    return torch.stack([direction[..., 1], -direction[..., 0]], -1), direction


def probability(vertices: Tensor, centres: Tensor, nodes: int = 12) -> Tensor:
    """P to about 1e-14 (12 nodes) or 1e-8 (6): vertices (..., q, 2), centres (..., 2) -> (...)."""
    normal, direction = edges(vertices)
    step = vertices - centres.unsqueeze(-2)
    distance, first = (step * normal).sum(-1), (step * direction).sum(-1)
    second = ((step.roll(-1, -2)) * direction).sum(-1)
    return (triangle(distance, second, nodes) - triangle(distance, first, nodes)).sum(-1).clamp(0.0, 1.0)


def vertices_of(normals: Tensor, offsets: Tensor, reach: float = 0.0) -> Tensor:
    """The vertices of {w : N w <= s}, N (l, 2) and s (l,), in counter-clockwise order, (q, 2), cut off far
    beyond `reach`, the distance of the centres from zero. An empty interior raises a ValueError.
    """
    corners = _clip_square(normals, offsets, FAR)
    if 2 * reach > FAR and (len(corners) < 3 or max(abs(x) for pair in corners for x in pair) >= FAR):
        # A small region far from the corners of a larger square would lose precision.
        corners = _clip_square(normals, offsets, min(2 * reach, FARTHEST))
    if len(corners) < 3:
        raise ValueError(
            "the desired region has an empty interior: its probability is zero for every action; widen it"
        )
    return normals.new_tensor(corners)


def _clip_square(normals: Tensor, offsets: Tensor, end: float) -> list[tuple[float, float]]:
    """The corners of the intersection of half-planes with the square from -end to end."""
    corners = [(-end, -end), (end, -end), (end, end), (-end, end)]
    for (a, b), limit in zip(normals.tolist(), offsets.tolist(), strict=True):
        clipped = []
        for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
            slack0, slack1 = limit - a * x0 - b * y0, limit - a * x1 - b * y1
            if slack0 >= 0:
                clipped.append((x0, y0))
            if (slack0 > 0 > slack1) or (slack0 < 0 < slack1):
                share = slack0 / (slack0 - slack1)
                clipped.append((x0 + share * (x1 - x0), y0 + share * (y1 - y0)))
        corners = clipped
    return corners


class PolygonProbability(RegionProbability):
    """A convex polygon in whitened coordinates, by its vertices in counter-clockwise order, (q, 2)."""

    def __init__(self, vertices: Tensor) -> None:
        self.vertices = vertices

    def log_probability(self, centres: Tensor) -> Tensor:
        """log P at centres nu, (..., 2) -> (...)."""
        mass = probability(self.vertices, centres)
        value = mass.clamp_min(SMALL).log()
        far = mass < SMALL
        if bool(far.any()):
            value = value.masked_scatter(far, tail(self.vertices, centres[far]).value)
        return value

    def expansion(self, centres: Tensor) -> Expansion:
        """In closed form except for P itself; by quadrature where P is small."""
        mass = probability(self.vertices, centres)
        value = mass.clamp_min(SMALL).log()
        normal, direction = edges(self.vertices)
        step = self.vertices - centres.unsqueeze(-2)
        distance, first = (step * normal).sum(-1), (step * direction).sum(-1)
        second = ((step.roll(-1, -2)) * direction).sum(-1)
        scale = log_density(distance) - value.unsqueeze(-1)
        edge_mass = (scale + log_interval(first, second)).exp()
        ends = (scale + log_density(second)).exp() - (scale + log_density(first)).exp()
        gradient = -(edge_mass.unsqueeze(-1) * normal).sum(-2)
        hessian = -torch.einsum("...e,ei,ej->...ij", distance * edge_mass, normal, normal) + torch.einsum(
            "...e,ei,ej->...ij", ends, normal, direction
        )
        curvature = hessian - gradient.unsqueeze(-1) * gradient.unsqueeze(-2)
        curvature = concave((curvature + curvature.mT) / 2)
        far = mass < SMALL
        if bool(far.any()):
            small = tail(self.vertices, centres[far])
            value, gradient, curvature = value.clone(), gradient.clone(), curvature.clone()
            value[far], gradient[far], curvature[far] = small.value, small.gradient, small.curvature
        return Expansion(value, gradient, curvature)


def tail(vertices: Tensor, centres: Tensor) -> Expansion:
    """log P where P is small, and its derivatives: vertices (q, 2), centres (n, 2).

    With e the unit vector from nu to the polygon's nearest point, and t the coordinate across it,

        P = int phi(t) [Phi(far(t)) - Phi(near(t))] dt,

    whose integrand decays on both sides of t = 0; gradient and curvature are moments under the same positive
    weights. The error of log P is a few hundredths at worst (where an edge ends near the nearest point), on
    values below -16.
    """
    normal, direction = edges(vertices)
    step = vertices - centres.unsqueeze(-2)
    reach = (vertices.roll(-1, -2) - vertices).norm(dim=-1)
    share = (-(step * direction).sum(-1)).clamp_min(0.0)
    nearest = step + torch.minimum(share, reach).unsqueeze(-1) * direction
    aim = nearest[torch.arange(len(centres), device=centres.device), nearest.norm(dim=-1).argmin(-1)]
    # The axes only place the nodes: P does not depend on them.
    aim = (aim / aim.norm(dim=-1, keepdim=True).clamp_min(1e-300)).detach()
    across = torch.stack([-aim[:, 1], aim[:, 0]], -1)
    # Nodes are dense around zero, since the weight may decay within a thousandth there.
    size = torch.linspace(math.log(1e-6), math.log(12.0), 160, dtype=centres.dtype, device=centres.device)
    t = torch.cat([-size.exp().flip(0), size.exp()])
    gauge = torch.cat([size.flip(0), size]) + torch.log(size[1] - size[0])
    slack = (step * normal).sum(-1, keepdim=True) - (across @ normal.mT).unsqueeze(-1) * t
    slope = (aim @ normal.mT).unsqueeze(-1).expand_as(slack)
    beyond = 10 * max(FAR, float(vertices.abs().max()) + float(centres.abs().max()))
    near, far, outside = _line_segment(slack, slope, beyond, -2)
    inner = log_interval(near, far)
    terms = (inner + log_density(t) + gauge).masked_fill(outside, -1e30)
    value = torch.logsumexp(terms, -1)
    weight = (terms - value.unsqueeze(-1)).exp()
    mean, spread = _truncated_moments(near, far, inner)
    ahead, aside = (weight * mean).sum(-1), (weight * t).sum(-1)
    var_ahead = (weight * (spread + (mean - ahead.unsqueeze(-1)).square())).sum(-1)
    mixed = (weight * (mean - ahead.unsqueeze(-1)) * (t - aside.unsqueeze(-1))).sum(-1)
    var_aside = (weight * (t - aside.unsqueeze(-1)).square()).sum(-1)
    frame = torch.stack([aim, across], -1)
    moments = torch.stack([torch.stack([var_ahead, mixed], -1), torch.stack([mixed, var_aside], -1)], -2)
    eye = torch.eye(2, dtype=centres.dtype, device=centres.device)
    gradient = (frame @ torch.stack([ahead, aside], -1).unsqueeze(-1)).squeeze(-1)
    return Expansion(value, gradient, concave(frame @ moments @ frame.mT - eye))
