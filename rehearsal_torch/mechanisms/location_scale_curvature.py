"""Curvature of location-scale courses with one hidden tanh layer.

Given the folded course of an episode, F_i = c_i + sum_j V_ij tanh(z_j) + u_i (softplus(y_i) + floor), with

    z = W x + o,    y_i = d_i + sum_j U_ij tanh(z'_j),    z' = W' x + o',

write q = tanh', and sigma for the softplus' derivative. Then

    DF        = V diag(q) W + diag(u sigma) U diag(q') W',
    D^2(p.F)  = W' diag(V'p tanh'') W + DY' diag(p u sigma') DY + W' diag(U'(p u sigma) tanh'') W',    DY = U diag(q') W'.

On a ball of radius r, |z_j - z_j(x)| <= |w_j| r and |y - y(x)| <= L r with L = |U| |W'|; hence, by
|tanh''| <= 4 / sqrt(27), |tanh'''| <= 2, |tanh''''| < 4.09, |sigma'| <= 1/4, |sigma''| <= 1 / sqrt(108) and sigma rising,

    b_j = min(4/sqrt(27), |tanh''| + 2 |w_j| r)  bounds |tanh''|,    c_j = min(2, |tanh'''| + 4.09 |w_j| r)  bounds |tanh'''|,
    |(sum_j V_ij tanh''_j (w_j v)(w_j w))_i| <= |V diag(b |w|)^(1/2)| |diag(b |w|)^(1/2) W|   for unit v and w,
    |W' diag(m) W| <= |W' diag(n) W|  where |m| <= n.

The second line writes V diag(tanh'' (w v)) W as R diag(theta) S with factors theta in [-1, 1]. The scale's third
derivative is taken term by term (`_twist`). Where softplus is evaluated as the identity (above 20), nothing is certified.

Source: ours, from the mechanism of Tsirtsis and Gomez-Rodriguez (2023), App. G.2.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.curvature import Curvature, spectral_bound

_SECOND = 4 / math.sqrt(27) + 1e-12
"""max |tanh''|."""
_FOURTH = 4.09
"""More than max |tanh''''| = 4.0859."""
_SIGMOID_SECOND = 1 / math.sqrt(108) + 1e-12
"""max |sigma''|."""


@dataclass(frozen=True)
class _Half:
    """One network's part: weights and, at the centres, the derivatives of its tanh and bounds of them on the ball."""

    inner: Tensor
    outer: Tensor
    slope: Tensor
    second: Tensor
    most: Tensor
    third: Tensor

    def jacobian(self) -> Tensor:
        """(n, A, D, D)."""
        return (self.slope.unsqueeze(-2) * self.outer) @ self.inner

    def bend(self, outer: Tensor) -> Tensor:
        """Bound of the second derivative of `outer` (..., D, H) tanh, with `outer` within its rows' factors, (n, A)."""
        weight = (self.most * torch.linalg.vector_norm(self.inner, dim=-1)).sqrt()
        return spectral_bound(outer * weight.unsqueeze(-2)) * spectral_bound(weight.unsqueeze(-1) * self.inner)

    def hessian(self, weight: Tensor) -> Tensor:
        """W' diag(weight) W, (n, A or 1, H) -> (n, A, D, D)."""
        return self.inner.mT @ (weight.unsqueeze(-1) * self.inner)


def location_scale_curvature(
    states: Tensor, covectors: Tensor, radii: Tensor, inner: Tensor, offsets: Tensor, location: Tensor, scale: tuple[Tensor, Tensor], noise: Tensor
) -> Curvature:
    """Derivatives of one step's maps and their bounds on balls.

    Args:
        states: Centres, (n, D).
        covectors: p, (n, D).
        radii: (n,).
        inner: W above W', (2 H, D).
        offsets: (A, 2 H).
        location: V, (D, H).
        scale: U (D, H) and its shift (D,).
        noise: u, (D,).
    """
    hidden, half = torch.tanh((states @ inner.mT).unsqueeze(1) + offsets), inner.shape[0] // 2
    slope = 1 - hidden.square()
    reach = torch.linalg.vector_norm(inner, dim=-1) * radii[:, None, None]
    second = -2 * hidden * slope
    most = (second.abs() + 2 * reach).clamp_max(_SECOND)
    third = ((slope * (6 * hidden.square() - 2)).abs() + _FOURTH * reach).clamp_max(2.0)
    here, there = slice(0, half), slice(half, 2 * half)
    first = _Half(inner[here], location, *(x[..., here] for x in (slope, second, most, third)))
    # The scale bends far less: one bound for all actions will do.
    other = _Half(inner[there], scale[0], slope[..., there], second[..., there], *(x[..., there].amax(1, keepdim=True) for x in (most, third)))
    raw = hidden[..., half:] @ scale[0].mT + scale[1]
    rate, lean = torch.sigmoid(raw), covectors.unsqueeze(1) * noise
    steep = spectral_bound(scale[0]) * spectral_bound(other.inner)
    highest = torch.sigmoid(raw.amax(1, keepdim=True) + (steep * radii)[:, None, None])
    spread, along = other.jacobian(), first.jacobian()
    jacobian = along + (noise * rate).unsqueeze(-1) * spread
    weight = (covectors @ location).unsqueeze(1)
    pull = (lean * rate) @ scale[0]
    hessian = first.hessian(first.second * weight) + other.hessian(other.second * pull) + spread.mT @ ((lean * rate * (1 - rate)).unsqueeze(-1) * spread)
    largest = noise.abs().max()
    bend = first.bend(location) + other.bend((noise.abs() * highest).unsqueeze(-1) * scale[0]) + 0.25 * largest * steep**2
    everywhere = spectral_bound(location) * spectral_bound(first.inner) + largest * steep
    steepest = torch.minimum(spectral_bound(jacobian) + bend * radii[:, None], everywhere)
    drift = 0.25 * (steep * radii)[:, None, None] * (lean.abs() @ scale[0].abs())
    # torch evaluates softplus(y) as y for y > 20, a jump of 2e-9 that no derivative knows of.
    bend = bend + torch.where(raw.amax((1, 2)) + steep * radii > 20, torch.inf, 0.0).unsqueeze(1)
    twist = _twist(first, other, weight, pull.abs().amax(1, keepdim=True) + drift, lean, steep)
    return Curvature(jacobian, hessian, steepest, bend, twist)


def _twist(first: _Half, other: _Half, weight: Tensor, pull: Tensor, lean: Tensor, steep: Tensor) -> Tensor:
    """Bound of D^3 (p . F): location, then sigma'' DY^3, three terms sigma' DY D^2Y, and sigma D^3Y, (n, A).

    Along a unit v, |sum_i m_i (DY v)_i (DY a)_i (DY b)_i| <= max |m_i| L^3, |sum_i m_i (DY v)_i D^2Y_i[a, b]| <=
    max |m_i| L |D^2Y|, and D^3Y pulled back by p u sigma is W' diag(pull tanh''' (w v)) W'.
    """
    own = spectral_bound(first.hessian(first.third * torch.linalg.vector_norm(first.inner, dim=-1) * weight.abs()))
    far = spectral_bound(other.hessian(other.third * torch.linalg.vector_norm(other.inner, dim=-1) * pull))
    return own + far + lean.abs().amax(-1) * (_SIGMOID_SECOND * steep**3 + 0.75 * steep * other.bend(other.outer))
