"""Trajectories of a location-scale mechanism: fast steps, and certified bounds on their derivatives.

With the state x as the leading input and everything else fixed per time and action, both networks share one
pre-activation

    W x + o_{t,a},    W = (c_h W_h; c_phi W_phi),

so that the product W x is computed once for all actions, the offsets o are a table, and the spectral norms
are divided out once. F_t(x, a) = h + phi * u_t with the abducted u_t. The steps use tanh(z) = 2 sigmoid(2 z)
- 1, whose factors and shift are folded into the weights: the same function, and the sigmoid is evaluated
several times faster.

Curvature: given F_i = c_i + sum_j V_ij tanh(z_j) + u_i (softplus(y_i) + floor), with

    z = W x + o,    y_i = d_i + sum_j U_ij tanh(z'_j),    z' = W' x + o',

write q = tanh', and sigma for the derivative of softplus. Then

    DF        = V diag(q) W + diag(u sigma) U diag(q') W',
    D^2(p.F)  = W' diag(V'p tanh'') W + DY' diag(p u sigma') DY + W' diag(U'(p u sigma) tanh'') W',
    DY = U diag(q') W'.

On a ball of radius r, |z_j - z_j(x)| <= |w_j| r and |y - y(x)| <= L r with L = |U| |W'|; hence, by
|tanh''| <= 4 / sqrt(27), |tanh'''| <= 2, |tanh''''| < 4.09, |sigma'| <= 1/4, |sigma''| <= 1 / sqrt(108) and
the monotonicity of sigma,

    b_j = min(4/sqrt(27), |tanh''| + 2 |w_j| r)  bounds |tanh''|,    c_j = min(2, |tanh'''| + 4.09 |w_j| r)
    bounds |tanh'''|,
    |(sum_j V_ij tanh''_j (w_j v)(w_j w))_i| <= |V diag(b |w|)^(1/2)| |diag(b |w|)^(1/2) W|
    for unit v and w,
    |W' diag(m) W| <= |W' diag(n) W|  where |m| <= n.

The second line writes V diag(tanh'' (w v)) W as R diag(theta) S with factors theta in [-1, 1]. The third
derivative of the scale is bounded term by term (`_hessian_lipschitz`). Where softplus is evaluated as the
identity (above 20), nothing is certified.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7 and App. G.2 (the mechanism).
"""

import math
from copy import copy
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import softplus

from rehearsal_torch.mechanisms.lipschitz_network import LipschitzNetwork, spectral_norm
from rehearsal_torch.mechanisms.trajectory import Curvature, CurvedTrajectory, spectral_bound

_SECOND = 4 / math.sqrt(27) + 1e-12
"""max |tanh''|."""
_FOURTH = 4.09
"""Upper bound of max |tanh''''| = 4.0859."""
_SIGMOID_SECOND = 1 / math.sqrt(108) + 1e-12
"""max |sigma''|."""


@dataclass(frozen=True)
class _Half:
    """One network: its weights and, at the centres, the derivatives of its tanh with bounds on the ball."""

    inner: Tensor
    outer: Tensor
    derivative: Tensor
    second: Tensor
    second_bound: Tensor
    third: Tensor

    def jacobian(self) -> Tensor:
        """(n, A, D, D)."""
        return (self.derivative.unsqueeze(-2) * self.outer) @ self.inner

    def second_derivative_bound(self, outer: Tensor) -> Tensor:
        """Bound, (n, A), of the second derivative of `outer` (..., D, H), with row factors, times tanh(z)."""
        weight = (self.second_bound * torch.linalg.vector_norm(self.inner, dim=-1)).sqrt()
        return spectral_bound(outer * weight.unsqueeze(-2)) * spectral_bound(
            weight.unsqueeze(-1) * self.inner
        )

    def hessian(self, weight: Tensor) -> Tensor:
        """W' diag(weight) W, (n, A or 1, H) -> (n, A, D, D)."""
        return self.inner.mT @ (weight.unsqueeze(-1) * self.inner)


def location_scale_curvature(
    states: Tensor,
    covectors: Tensor,
    radii: Tensor,
    inner: Tensor,
    offsets: Tensor,
    location: Tensor,
    scale: tuple[Tensor, Tensor],
    noise: Tensor,
) -> Curvature:
    """Derivatives of the maps of one step at centres (n, D), along covectors p (n, D), and their bounds on
    balls of radii (n,): `inner` is W above W' (2 H, D), the offsets are (A, 2 H), the location V (D, H), the
    scale U (D, H) with its shift (D,), the noise u (D,).
    """
    hidden, half = torch.tanh((states @ inner.mT).unsqueeze(1) + offsets), inner.shape[0] // 2
    derivative = 1 - hidden.square()
    reach = torch.linalg.vector_norm(inner, dim=-1) * radii[:, None, None]
    second = -2 * hidden * derivative
    second_bound = (second.abs() + 2 * reach).clamp_max(_SECOND)
    third = ((derivative * (6 * hidden.square() - 2)).abs() + _FOURTH * reach).clamp_max(2.0)
    upper, lower = slice(0, half), slice(half, 2 * half)
    first = _Half(inner[upper], location, *(x[..., upper] for x in (derivative, second, second_bound, third)))
    # The scale has far less curvature: one bound for all actions suffices.
    bounds = (x[..., lower].amax(1, keepdim=True) for x in (second_bound, third))
    other = _Half(inner[lower], scale[0], derivative[..., lower], second[..., lower], *bounds)
    raw = hidden[..., half:] @ scale[0].mT + scale[1]
    rate, lean = torch.sigmoid(raw), covectors.unsqueeze(1) * noise
    raw_norm = spectral_bound(scale[0]) * spectral_bound(other.inner)
    highest = torch.sigmoid(raw.amax(1, keepdim=True) + (raw_norm * radii)[:, None, None])
    spread, along = other.jacobian(), first.jacobian()
    jacobian = along + (noise * rate).unsqueeze(-1) * spread
    weight = (covectors @ location).unsqueeze(1)
    pull = (lean * rate) @ scale[0]
    hessian = (
        first.hessian(first.second * weight)
        + other.hessian(other.second * pull)
        + spread.mT @ ((lean * rate * (1 - rate)).unsqueeze(-1) * spread)
    )
    largest = noise.abs().max()
    second_norm = (
        first.second_derivative_bound(location)
        + other.second_derivative_bound((noise.abs() * highest).unsqueeze(-1) * scale[0])
        + 0.25 * largest * raw_norm**2
    )
    everywhere = spectral_bound(location) * spectral_bound(first.inner) + largest * raw_norm
    jacobian_norm = torch.minimum(spectral_bound(jacobian) + second_norm * radii[:, None], everywhere)
    drift = 0.25 * (raw_norm * radii)[:, None, None] * (lean.abs() @ scale[0].abs())
    # torch evaluates softplus(y) as y for y > 20, a jump of 2e-9 that the derivatives do not account for.
    second_norm = second_norm + torch.where(
        raw.amax((1, 2)) + raw_norm * radii > 20, torch.inf, 0.0
    ).unsqueeze(1)
    hessian_lipschitz = _hessian_lipschitz(
        first, other, weight, pull.abs().amax(1, keepdim=True) + drift, lean, raw_norm
    )
    return Curvature(jacobian, hessian, jacobian_norm, second_norm, hessian_lipschitz)


def _hessian_lipschitz(
    first: _Half, other: _Half, weight: Tensor, pull: Tensor, lean: Tensor, raw_norm: Tensor
) -> Tensor:
    """Upper bound of D^3 (p . F): location, then sigma'' DY^3, three terms sigma' DY D^2Y, and sigma D^3Y,
    (n, A).

    Along a unit v, |sum_i m_i (DY v)_i (DY a)_i (DY b)_i| <= max |m_i| L^3, |sum_i m_i (DY v)_i D^2Y_i[a, b]|
    <= max |m_i| L |D^2Y|, and D^3Y pulled back by p u sigma is W' diag(pull tanh''' (w v)) W'.
    """
    own = spectral_bound(
        first.hessian(first.third * torch.linalg.vector_norm(first.inner, dim=-1) * weight.abs())
    )
    far = spectral_bound(other.hessian(other.third * torch.linalg.vector_norm(other.inner, dim=-1) * pull))
    mixed = _SIGMOID_SECOND * raw_norm**3 + 0.75 * raw_norm * other.second_derivative_bound(other.outer)
    return own + far + lean.abs().amax(-1) * mixed


class LocationScaleTrajectory(CurvedTrajectory):
    """F_t(x, a) = h(x, q_{t,a}) + phi(x, q_{t,a}) * u_t.

    Args:
        states: The observed trajectory, (T, D).
        observed: The actions taken, (T,) long.
        inner: W, the state's weights of both networks, (2 H, D).
        offsets: o, (T - 1, A, 2 H).
        location: Output weights (D, H) and shift (D,) of h.
        scale: Output weights (D, H) and shift (D,) of phi before its softplus.
        floor: Constant added to the softplus.
    """

    def __init__(
        self,
        states: Tensor,
        observed: Tensor,
        inner: Tensor,
        offsets: Tensor,
        location: tuple[Tensor, Tensor],
        scale: tuple[Tensor, Tensor],
        floor: float,
    ) -> None:
        super().__init__(states, observed, offsets.shape[1])
        self.inner = inner
        self.offsets = offsets
        self.location = location
        self.scale = scale
        self.floor = floor
        self._across = inner.mT.contiguous()
        self._out = torch.stack([location[0].mT, scale[0].mT]).contiguous()
        self._twice, self._table = 2 * self._across, 2 * offsets
        self._pair = [
            (2 * weight, (shift - weight.sum(-1)).unsqueeze(-1)) for weight, shift in (location, scale)
        ]
        time = torch.arange(len(offsets), device=observed.device)
        centre, spread = self.moments(states[:-1], offsets[time, observed[:-1]])
        self.noise = (states[1:] - centre) / spread

    @classmethod
    def fold(
        cls, networks: LipschitzNetwork, floor: float, states: Tensor, fixed: Tensor, observed: Tensor
    ) -> Self:
        """Folds networks over (state, static, free) with the fixed parents (T - 1, A, static + free)."""
        inner, outer, root = networks.weights()
        width, hidden = states.shape[-1], inner.shape[1]
        rest = torch.cat([inner[:, :, width:], networks.action], -1)
        table = ((torch.einsum("taq,mhq->tamh", fixed, rest) + networks.bias) * root[:, :, 0]).flatten(-2)
        weights = (inner[:, :, :width] * root).reshape(2 * hidden, width)
        shift = networks.shift * root[:, :, 0]
        location, scale = ((outer[half] * root[half], shift[half]) for half in (0, 1))
        return cls(states, observed, weights, table, location, scale, floor)

    def to(self, dtype: torch.dtype) -> "LocationScaleTrajectory":
        """The same trajectory in another precision."""
        location, scale = (
            (weight.to(dtype), shift.to(dtype)) for weight, shift in (self.location, self.scale)
        )
        states, inner, offsets = (each.to(dtype) for each in (self.states, self.inner, self.offsets))
        return LocationScaleTrajectory(states, self.observed, inner, offsets, location, scale, self.floor)

    def with_noise(self, noise: Tensor) -> "LocationScaleTrajectory":
        """The same maps with other noise, (T - 1, D)."""
        trajectory = copy(self)
        trajectory.noise = noise
        return trajectory

    def moments(self, states: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """h and phi, (n, D), (n or 1, 2 H) -> (n, D) each."""
        return self._read(torch.sigmoid_(torch.addmm(2 * offsets, states, self._twice)))

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, D), t, (n,) or () long -> (n, D)."""
        centre, spread = self._read(
            torch.sigmoid_(torch.addmm(self._table[time, actions], states, self._twice))
        )
        return torch.addcmul(centre, spread, self.noise[time])

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, D), t, (A',) long -> (n, A', D)."""
        offsets = self._table[time] if actions is None else self._table[time, actions]
        hidden = torch.sigmoid_((states @ self._twice).unsqueeze(1) + offsets)
        centre, spread = self._read(hidden.flatten(0, 1))
        return torch.addcmul(centre, spread, self.noise[time]).unflatten(0, (len(states), len(offsets)))

    def lipschitz(self) -> Tensor:
        """(T - 1,) float64, L_h + L_phi max_i |u_i| from the weights in use (state columns only)."""
        hidden = self.inner.shape[0] // 2
        inner = self.inner.to(torch.float64)
        outer = [weight.to(torch.float64) for weight, _ in (self.location, self.scale)]
        location = spectral_norm(inner[:hidden]) * spectral_norm(outer[0])
        scale = spectral_norm(inner[hidden:]) * spectral_norm(outer[1])
        return (location + scale * self.noise.to(torch.float64).abs().amax(-1)) * (1 + 1e-9)

    def jacobians(self, states: Tensor, time: int) -> Tensor:
        """(n, D), t -> (n, A, D, D)."""
        hidden = torch.tanh((states @ self._across).unsqueeze(1) + self.offsets[time])
        half = hidden.shape[-1] // 2
        derivative = 1 - hidden.square()
        raw = hidden[..., half:] @ self._out[1] + self.scale[1]
        along = torch.einsum("ij,naj,jk->naik", self.location[0], derivative[..., :half], self.inner[:half])
        across = torch.einsum("ij,naj,jk->naik", self.scale[0], derivative[..., half:], self.inner[half:])
        return along + (self.noise[time] * torch.sigmoid(raw)).unsqueeze(-1) * across

    def curvature(self, states: Tensor, time: int, covectors: Tensor, radii: Tensor) -> Curvature:
        """(n, D), t, (n, D), (n,) -> derivatives and their bounds on the balls."""
        step = self.inner, self.offsets[time], self.location[0], self.scale, self.noise[time]
        return location_scale_curvature(states, covectors, radii, *step)

    def _read(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """h and phi from sigmoids, (n, 2 H) -> (n, D) each; fastest with weights as the left factors."""
        half = hidden.shape[-1] // 2
        (location, centre), (scale, raw) = self._pair
        spread = softplus(torch.addmm(raw, scale, hidden[:, half:].mT)) + self.floor
        return torch.addmm(centre, location, hidden[:, :half].mT).mT, spread.mT
