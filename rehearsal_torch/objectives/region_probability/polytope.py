"""Polytopes in two or more dimensions: quasi-Monte Carlo, with one coordinate integrated exactly.

Along the first whitened coordinate the polytope is an interval [l(u), r(u)] given the others u, so

    P(nu) = E_u [ Phi(r(u)) - Phi(l(u)) ],        u ~ N(nu_rest, I),

whose integrand is continuous in nu, unlike an indicator. A fixed Sobol sequence represents u. If nu lies
outside, the sequence is shifted to the nearest point of the polytope and reweighted by the ratio of the
densities, so that log P is accurate far away as well. The first coordinate is the direction, among random
ones, that is farthest from parallel to any face.

Source: Genz (1992) (conditioning, quasi-Monte Carlo); Botev (2017) (shifting the points to where the mass
is); Prekopa (1971).
"""

import math

import torch
from torch import Tensor

from rehearsal_torch.objectives.region_probability.rectangle import (
    Expansion,
    RegionProbability,
    concave,
    log_density,
    log_interval,
)
from rehearsal_torch.seeding import generator, sobol
from rehearsal_torch.spaces.projection import project


class PolytopeProbability(RegionProbability):
    """Any polytope {w : N w <= s} in whitened coordinates.

    Args:
        normals: N, (l, m), m >= 2.
        offsets: s, (l,).
        points: Number of quasi-random points; a power of two.
        seed: Seed of the scrambling.

    Raises:
        ValueError: if there is only one dimension.
    """

    def __init__(self, normals: Tensor, offsets: Tensor, points: int = 512, seed: int = 0) -> None:
        if normals.shape[-1] < 2:
            raise ValueError(
                "expected at least two dimensions; one outcome is an interval: use RectangleProbability"
            )
        length = normals.norm(dim=-1)
        several = torch.randn(1024, normals.shape[1], generator=generator(seed), dtype=torch.float64).to(
            normals
        )
        several = several / several.norm(dim=-1, keepdim=True)
        askew = several[((several @ normals.mT) / length).abs().amin(-1).argmax()].unsqueeze(-1)
        # An orthogonal matrix whose first column is that direction.
        frame = torch.linalg.qr(
            torch.cat([askew, torch.eye(len(askew), dtype=normals.dtype, device=normals.device)[:, 1:]], -1)
        ).Q
        uniform = sobol(normals.shape[1] - 1, seed).draw(points, dtype=torch.float64)
        self.frame = frame
        self.normals, self.offsets = normals / length.unsqueeze(-1), offsets / length
        self.points = torch.special.ndtri(uniform.clamp(1e-12, 1 - 1e-12)).to(normals)

    def log_probability(self, centres: Tensor) -> Tensor:
        """log P at centres nu, (..., m) -> (...)."""
        return torch.logsumexp(self._terms(centres)[0], -1) - math.log(len(self.points))

    def _terms(self, centres: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """For each point its log-weight, and its position relative to nu: the ends of the interval, (..., n)
        each, and the other coordinates, (..., n, m - 1).
        """
        flat = centres.reshape(-1, centres.shape[-1])
        slack = self.offsets - flat @ self.normals.mT
        with torch.no_grad():
            unit = torch.ones(flat.shape[1], dtype=flat.dtype, device=flat.device)
            move = (
                project(torch.zeros_like(flat), unit, self.normals, slack.detach()).points @ self.frame[:, 1:]
            )
        rotated = self.normals @ self.frame
        rest = self.points + move.unsqueeze(-2)
        left = slack.unsqueeze(-2) - rest @ rotated[:, 1:].mT
        pull = rotated[:, 0].expand_as(left)
        quotient = left / torch.where(pull.abs() > 1e-12, pull, torch.ones_like(pull))
        near = torch.where(pull < -1e-12, quotient, torch.full_like(quotient, -1e6)).amax(-1)
        far = torch.where(pull > 1e-12, quotient, torch.full_like(quotient, 1e6)).amin(-1)
        outside = ((pull.abs() <= 1e-12) & (left < 0)).any(-1) | (near >= far)
        inner = log_interval(
            torch.where(outside, torch.zeros_like(near), near),
            torch.where(outside, torch.ones_like(far), far),
        )
        ratio = -(self.points * move.unsqueeze(-2)).sum(-1) - 0.5 * move.square().sum(-1, keepdim=True)
        terms = torch.where(outside, torch.full_like(inner, -1e30), inner + ratio)
        near, far = (
            torch.where(outside, torch.zeros_like(near), near),
            torch.where(outside, torch.ones_like(far), far),
        )
        lead = centres.shape[:-1]
        return (
            terms.reshape(*lead, -1),
            near.reshape(*lead, -1),
            far.reshape(*lead, -1),
            rest.reshape(*lead, *rest.shape[-2:]),
        )

    def expansion(self, centres: Tensor) -> Expansion:
        """The gradient by automatic differentiation, the curvature from moments.

        Differentiating twice would be wrong: the gradient of the integrand jumps wherever another face
        becomes the nearest.
        """
        with torch.enable_grad():
            at = centres.detach().requires_grad_(True)
            value = self.log_probability(at)
            (gradient,) = torch.autograd.grad(value.sum(), at)
        with torch.no_grad():
            terms, near, far, rest = self._terms(centres)
            weight = torch.softmax(terms, -1).unsqueeze(-1)
            inner = log_interval(near, far)
            at_near, at_far = (log_density(near) - inner).exp(), (log_density(far) - inner).exp()
            mean = at_near - at_far
            spread = (1 + near * at_near - far * at_far - mean.square()).clamp(0.0, 1.0)
            where = torch.cat([mean.unsqueeze(-1), rest], -1)
            off = where - (weight * where).sum(-2, keepdim=True)
            moments = (weight * off).mT @ off
            moments[..., 0, 0] += (weight.squeeze(-1) * spread).sum(-1)
            eye = torch.eye(centres.shape[-1], dtype=centres.dtype, device=centres.device)
            curvature = self.frame @ moments @ self.frame.mT - eye
        return Expansion(value.detach(), gradient, concave((curvature + curvature.mT) / 2))
