"""Location-scale mechanisms (heteroskedastic noise models) with Lipschitz networks, and their curvature.

Given the state x and the other parents q, the next state is

    v = h(x, q) + phi(x, q) * u,        u ~ N(0, Sigma),

with h and phi one-hidden-layer networks of Lipschitz constants L_h and L_phi in the smooth parents, phi
positive through a softplus and a floor, and Sigma = C C' with a trained lower-triangular C of positive
diagonal. The mechanism is element-wise bijective in u, hence counterfactually identifiable, and Lipschitz in
the smooth parents with constant L_h + L_phi max_i |u_i|. Used by `surrogates.transition`.

The loss is the negative log-likelihood of a transition,

    -log p(v | x, q) = |C^-1 u|^2 / 2 + sum_i log C_ii + sum_i log phi_i + c/2 log(2 pi),   u = (v - h) / phi.

Where values are missing, it is that of the observed ones, o: with Sigma_oo in place of Sigma.

**Networks.** m of them, in one batch, have one hidden layer,

    z = tanh(c (W_s s + b + W_a a)),    out = c (W_z z + b_z),    c = sqrt(L),

each with its own constant L. W_s and W_z are divided by their largest singular value if that exceeds one (in
the paper always, which admits no flatter functions), so that out is L-Lipschitz in s (tanh is 1-Lipschitz),
while the dependence on a is unconstrained. The singular value is exact: the square root of the largest
eigenvalue of the smaller Gram matrix. A network without a constant (L = None) has c = 1 and no division.

**Trajectories.** With the state x as the leading input and everything else fixed per time and action, both
networks share one pre-activation

    W x + o_{t,a},    W = (c_h W_h; c_phi W_phi),

so that the product W x is computed once for all actions, the offsets o are a table, and the spectral norms
are divided out once. F_t(x, a) = h + phi * u_t with the abducted u_t. The steps use tanh(z) = 2 sigmoid(2 z)
- 1, several times faster, with factors and shift folded into the weights.

**Curvature.** Given F_i = c_i + sum_j V_ij tanh(z_j) + u_i (softplus(y_i) + floor), with

    z = W x + o,    y_i = d_i + sum_j U_ij tanh(z'_j),    z' = W' x + o',

the prime of z, W, o and q marks those of the scale's network, that of tanh and sigma a derivative, and that
behind a product of matrices a transpose. Write q = tanh', and sigma for the derivative of softplus. Then

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

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7, Sec. 5, App. G.2 and, for identifiability, Thm. 3.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from rehearsal_torch.data.size_limits import WIDEST, bounded, reserve
from rehearsal_torch.data.trainable_part import Solved, Trained
from rehearsal_torch.mechanisms.mechanism import (
    Curvature,
    CurvedTrajectory,
    Trajectory,
    TransitionMechanism,
    spectral_bound,
    standard_normal,
)

NAMES = ("inner", "action", "bias", "outer", "shift")


class LipschitzNetwork(nn.Module):
    """m one-hidden-layer tanh networks over the same inputs, evaluated in one batch: s, in which each has its
    Lipschitz constant (above 0, or None for no constraint), and the free a, which may be of width 0.
    """

    def __init__(
        self, smooth: int, free: int, outputs: int, hidden: int, constants: Sequence[float | None]
    ) -> None:
        super().__init__()
        if min(smooth, outputs, hidden, len(constants)) < 1 or free < 0:
            raise ValueError(
                f"expected positive widths; got smooth={smooth}, free={free}, outputs={outputs}, "
                f"hidden={hidden}"
            )
        if any(constant is not None and constant <= 0 for constant in constants):
            raise ValueError(f"expected positive Lipschitz constants or null; got {list(constants)}")
        self.constants = tuple(constants)
        count = len(self.constants)
        bounded("hidden", hidden)
        for key, width in (("smooth", smooth), ("outputs", outputs), ("free", free)):
            bounded(key, width, WIDEST, 0)
        reserve("hidden", count * (hidden * (smooth + free + outputs + 1) + outputs))

        def weight(*shape: int, fan: int) -> nn.Parameter:
            """Initialised as in torch's linear layers: uniform in +-1/sqrt(fan-in)."""
            limit = max(fan, 1) ** -0.5
            return nn.Parameter(nn.init.uniform_(torch.empty(count, *shape), -limit, limit))

        self.inner = weight(hidden, smooth, fan=smooth)
        self.action = weight(hidden, free, fan=free)
        self.bias = weight(hidden, fan=smooth)
        self.outer = weight(outputs, hidden, fan=hidden)
        self.shift = weight(outputs, fan=hidden)

    def forward(self, smooth: Tensor, free: Tensor) -> Tensor:
        """(..., smooth), (..., free) -> (m, ..., outputs)."""
        inner, outer, root = self.weights()
        rows = torch.cat([smooth, free], -1).reshape(-1, smooth.shape[-1] + free.shape[-1])
        weight = torch.cat([inner, self.action], -1) * root
        hidden = torch.tanh(
            torch.baddbmm((self.bias * root[..., 0]).unsqueeze(1), rows.expand(len(root), -1, -1), weight.mT)
        )
        out = torch.baddbmm((self.shift * root[..., 0]).unsqueeze(1), hidden, (outer * root).mT)
        return out.reshape(len(root), *smooth.shape[:-1], out.shape[-1])

    def weights(self) -> tuple[Tensor, Tensor, Tensor]:
        """W_s (m, hidden, smooth) and W_z (m, outputs, hidden), divided, and c = sqrt(L), (m, 1, 1)."""
        root = self.inner.new_tensor([1.0 if c is None else c**0.5 for c in self.constants])
        return self._divided(self.inner), self._divided(self.outer), root[:, None, None]

    def lipschitz(self) -> Tensor:
        """(m,) float64, each network's certified Lipschitz constant in s, from the weights in use."""
        inner, outer, root = self.exact().weights()
        return (root[:, 0, 0] ** 2 * spectral_norm(inner) * spectral_norm(outer)).detach()

    def exact(self) -> "LipschitzNetwork":
        """The same networks in float64 (a copy, without gradients)."""
        return deepcopy(self).to(torch.float64).requires_grad_(False)

    @classmethod
    def from_tensors(
        cls, networks: Mapping[str, Mapping[str, Tensor]], constants: Sequence[float | None]
    ) -> "LipschitzNetwork":
        """Networks with given weights, kept in their precision and unchanged to the last bit: name (for
        messages) to ``inner`` W_s (hidden, smooth), ``action`` W_a (hidden, free), ``bias`` b (hidden,),
        ``outer`` W_z (outputs, hidden) and ``shift`` b_z (outputs,), the same shapes in each. A constant of
        None accepts any weights, and `lipschitz` certifies their norms. ValueError if a tensor is missing, of
        another shape or not finite, or if a constant would require weights to be divided.
        """
        first = next(iter(networks.values()))
        dtype = first["inner"].dtype
        for label, weights in networks.items():
            if set(weights) != set(NAMES):
                expected = f"{label}: expected the tensors {', '.join(NAMES)}"
                raise ValueError(f"{expected}; got {', '.join(sorted(weights)) or 'none'}")
            smooth, free, outputs, hidden = (
                first[name].shape[-1] for name in ("inner", "action", "shift", "bias")
            )
            shapes = ((hidden, smooth), (hidden, free), (hidden,), (outputs, hidden), (outputs,))
            for name, shape in zip(NAMES, shapes, strict=True):
                weight = weights[name]
                finite = bool(weight.isfinite().all())
                if weight.shape != shape or weight.dtype != dtype or not finite:
                    raise ValueError(
                        f"{label}: {name}: expected finite numbers of shape {shape} and {dtype}, as in the "
                        f"first network; got shape {tuple(weight.shape)} and {weight.dtype}"
                        f"{'' if finite else ', not all finite'}"
                    )
        built = cls(smooth, free, outputs, hidden, constants).to(first["inner"])
        with torch.no_grad():
            for name in NAMES:
                built.get_parameter(name).copy_(torch.stack([weights[name] for weights in networks.values()]))
        built.check_norms(tuple(networks), 0.0)
        return built.eval()

    @torch.no_grad()
    def check_norms(self, names: Sequence[str], slack: float = 1e-6) -> None:
        """ValueError if weights would be divided: with a norm above 1 + slack."""

        def norms(weight: Tensor) -> list[float]:
            return torch.maximum(spectral_norm(weight).double(), spectral_norm(weight.double())).tolist()

        pairs = norms(self.inner), norms(self.outer)
        for label, constant, inner, outer in zip(names, self.constants, *pairs, strict=True):
            if constant is not None and max(inner, outer) > 1 + slack:
                raise ValueError(
                    f"{label}: expected weights of spectral norm at most 1 under a Lipschitz constant of "
                    f"{constant:g}; got {inner:.9g} for the state's weights and {outer:.9g} for the "
                    "output's, which would be divided by them. Leave the constant out (None, null in a "
                    "configuration): the weights then stay as they are, and the constant certified from "
                    f"their norms is {inner * outer:.9g}. Or divide them yourself; `finish` does so "
                    "permanently"
                )

    @torch.no_grad()
    def finish(self) -> None:
        """Stores the divided weights, with norms of at most one in float64 as well."""
        for weight in (self.inner, self.outer):
            norm = torch.linalg.matrix_norm(weight.to(torch.float64), 2)
            for index, constant in enumerate(self.constants):
                if constant is not None and norm[index] > 1 - 1e-7:
                    divided = weight[index].to(torch.float64) / norm[index] * (1 - 1e-7)
                    weight[index] = divided.to(weight.dtype)

    def _divided(self, weight: Tensor) -> Tensor:
        if all(constant is None for constant in self.constants):
            return weight
        norm = spectral_norm(weight).clamp_min(1.0)
        constrained = torch.tensor([constant is not None for constant in self.constants], device=norm.device)
        return weight / torch.where(constrained, norm, torch.ones_like(norm))[:, None, None]


def spectral_norm(weight: Tensor) -> Tensor:
    """The exact largest singular value, (..., p, q) -> (...), by the smaller Gram matrix; its gradient is
    finite where the value is repeated, and zero at zero.
    """
    # Where TF32 is allowed, products of float32 have 10 bits on a GPU.
    exact = weight.double() if weight.is_cuda else weight
    gram = exact.mT @ exact if weight.shape[-1] <= weight.shape[-2] else exact @ exact.mT
    largest = torch.linalg.eigvalsh(gram)[..., -1].clamp_min(torch.finfo(weight.dtype).tiny)
    return largest.sqrt().to(weight.dtype)


# max |tanh''|, an upper bound of max |tanh''''| = 4.0859, and max |sigma''|.
_SECOND, _FOURTH, _SIGMOID_SECOND = 4 / math.sqrt(27) + 1e-12, 4.09, 1 / math.sqrt(108) + 1e-12


@dataclass(frozen=True)
class _Derivatives:
    """A network's weights and, at the centres, the derivatives of its tanh with bounds on the ball."""

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
    shift_bound = torch.linalg.vector_norm(inner, dim=-1) * radii[:, None, None]
    second = -2 * hidden * derivative
    second_bound = (second.abs() + 2 * shift_bound).clamp_max(_SECOND)
    third = ((derivative * (6 * hidden.square() - 2)).abs() + _FOURTH * shift_bound).clamp_max(2.0)
    top, bottom = slice(0, half), slice(half, 2 * half)
    h = _Derivatives(inner[top], location, *(x[..., top] for x in (derivative, second, second_bound, third)))
    # The scale has far less curvature: one bound for all actions suffices.
    bounds = (x[..., bottom].amax(1, keepdim=True) for x in (second_bound, third))
    phi = _Derivatives(inner[bottom], scale[0], derivative[..., bottom], second[..., bottom], *bounds)
    y = hidden[..., half:] @ scale[0].mT + scale[1]
    slope, pu = torch.sigmoid(y), covectors.unsqueeze(1) * noise
    y_bound = spectral_bound(scale[0]) * spectral_bound(phi.inner)
    max_slope = torch.sigmoid(y.amax(1, keepdim=True) + (y_bound * radii)[:, None, None])
    phi_jacobian, h_jacobian = phi.jacobian(), h.jacobian()
    jacobian = h_jacobian + (noise * slope).unsqueeze(-1) * phi_jacobian
    h_weight = (covectors @ location).unsqueeze(1)
    phi_weight = (pu * slope) @ scale[0]
    hessian = (
        h.hessian(h.second * h_weight)
        + phi.hessian(phi.second * phi_weight)
        + phi_jacobian.mT @ ((pu * slope * (1 - slope)).unsqueeze(-1) * phi_jacobian)
    )
    max_noise = noise.abs().max()
    second_norm = (
        h.second_derivative_bound(location)
        + phi.second_derivative_bound((noise.abs() * max_slope).unsqueeze(-1) * scale[0])
        + 0.25 * max_noise * y_bound**2
    )
    global_bound = spectral_bound(location) * spectral_bound(h.inner) + max_noise * y_bound
    jacobian_norm = torch.minimum(spectral_bound(jacobian) + second_norm * radii[:, None], global_bound)
    drift = 0.25 * (y_bound * radii)[:, None, None] * (pu.abs() @ scale[0].abs())
    # torch evaluates softplus(y) as y for y > 20, a jump of 2e-9 that the derivatives do not account for.
    linear = y.amax((1, 2)) + y_bound * radii > 20
    second_norm = second_norm + torch.where(linear, torch.inf, 0.0).unsqueeze(1)
    phi_bound = phi_weight.abs().amax(1, keepdim=True) + drift
    lipschitz = _hessian_lipschitz(h, phi, h_weight, phi_bound, pu, y_bound)
    return Curvature(jacobian, hessian, jacobian_norm, second_norm, lipschitz)


def _hessian_lipschitz(
    h: _Derivatives, phi: _Derivatives, h_weight: Tensor, phi_bound: Tensor, pu: Tensor, y_bound: Tensor
) -> Tensor:
    """Upper bound of D^3 (p . F): location, then sigma'' DY^3, three terms sigma' DY D^2Y, and sigma D^3Y,
    (n, A).

    Along a unit v, |sum_i m_i (DY v)_i (DY a)_i (DY b)_i| <= max |m_i| L^3, |sum_i m_i (DY v)_i D^2Y_i[a, b]|
    <= max |m_i| L |D^2Y|, and D^3Y pulled back by p u sigma is W' diag(pull tanh''' (w v)) W'.
    """
    h_term = spectral_bound(h.hessian(h.third * torch.linalg.vector_norm(h.inner, dim=-1) * h_weight.abs()))
    phi_term = spectral_bound(
        phi.hessian(phi.third * torch.linalg.vector_norm(phi.inner, dim=-1) * phi_bound)
    )
    mixed = _SIGMOID_SECOND * y_bound**3 + 0.75 * y_bound * phi.second_derivative_bound(phi.outer)
    return h_term + phi_term + pu.abs().amax(-1) * mixed


class LocationScaleTrajectory(CurvedTrajectory):
    """F_t(x, a) = h(x, q_{t,a}) + phi(x, q_{t,a}) * u_t."""

    def __init__(
        self,
        states: Tensor,  # The observed trajectory, (T, D)
        observed: Tensor,  # The actions taken, (T,) long
        inner: Tensor,  # W, the state's weights of both networks, (2 H, D)
        offsets: Tensor,  # o, (T - 1, A, 2 H)
        location: tuple[Tensor, Tensor],  # Output weights (D, H) and shift (D,) of h
        scale: tuple[Tensor, Tensor],  # Output weights (D, H) and shift (D,) of phi before its softplus
        floor: float,  # Constant added to the softplus
    ) -> None:
        super().__init__(states, observed, offsets.shape[1])
        self.inner, self.offsets = inner, offsets
        self.location, self.scale, self.floor = location, scale, floor
        self._weights = inner.mT.contiguous()
        self._scale_weights = scale[0].mT.contiguous()
        self._double_weights, self._double_offsets = 2 * self._weights, 2 * offsets
        self._outputs = [
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

    def with_noise(self, noise: Tensor) -> "LocationScaleTrajectory":
        """The same maps with other noise, (T - 1, D)."""
        trajectory = copy(self)
        trajectory.noise = noise
        return trajectory

    def moments(self, states: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """h and phi, (n, D), (n or 1, 2 H) -> (n, D) each."""
        return self._read(torch.sigmoid_(torch.addmm(2 * offsets, states, self._double_weights)))

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, D), t, (n,) or () long -> (n, D)."""
        hidden = torch.sigmoid_(
            torch.addmm(self._double_offsets[time, actions], states, self._double_weights)
        )
        centre, spread = self._read(hidden)
        return torch.addcmul(centre, spread, self.noise[time])

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, D), t, (A',) long -> (n, A', D)."""
        offsets = self._double_offsets[time] if actions is None else self._double_offsets[time, actions]
        hidden = torch.sigmoid_((states @ self._double_weights).unsqueeze(1) + offsets)
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
        hidden = torch.tanh((states @ self._weights).unsqueeze(1) + self.offsets[time])
        half = hidden.shape[-1] // 2
        derivative = 1 - hidden.square()
        y = hidden[..., half:] @ self._scale_weights + self.scale[1]
        dh = torch.einsum("ij,naj,jk->naik", self.location[0], derivative[..., :half], self.inner[:half])
        dy = torch.einsum("ij,naj,jk->naik", self.scale[0], derivative[..., half:], self.inner[half:])
        return dh + (self.noise[time] * torch.sigmoid(y)).unsqueeze(-1) * dy

    def curvature(self, states: Tensor, time: int, covectors: Tensor, radii: Tensor) -> Curvature:
        """(n, D), t, (n, D), (n,) -> derivatives and their bounds on the balls."""
        step = self.inner, self.offsets[time], self.location[0], self.scale, self.noise[time]
        return location_scale_curvature(states, covectors, radii, *step)

    def _read(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """h and phi from sigmoids, (n, 2 H) -> (n, D) each; fastest with weights as the left factors."""
        half = hidden.shape[-1] // 2
        (location, centre), (scale, raw) = self._outputs
        spread = softplus(torch.addmm(raw, scale, hidden[:, half:].mT)) + self.floor
        return torch.addmm(centre, location, hidden[:, :half].mT).mT, spread.mT


def _with_mask(values: Tensor) -> tuple[Tensor, ...]:
    """Values; where some are NaN, with 0 in their place, and the mask of observed ones."""
    observed = ~values.isnan()
    return (values,) if bool(observed.all()) else (values.where(observed, 0.0), observed)


class LocationScale(Trained, TransitionMechanism):
    """v = h(parents) + phi(parents) * u with jointly normal u. ValueError if outputs exceeds smooth, or the
    floor is not positive.

    Args:
        smooth: Number of leading parents in which the constants hold (the c values of the previous step, then
            static features).
        free: Number of further parents (contextual features and doses).
        outputs: c, the width of the values; at most `smooth`.
        hidden: Hidden units of each network.
        location_constant: L_h, or None for an unconstrained h.
        scale_constant: L_phi, or None for an unconstrained phi.
        floor: Lower bound of phi, in the unit of the values.
    """

    def __init__(
        self,
        smooth: int,
        free: int,
        outputs: int,
        hidden: int = 200,
        location_constant: float | None = 1.0,
        scale_constant: float | None = 0.1,
        floor: float = 1e-4,
    ) -> None:
        super().__init__()
        if outputs > smooth or floor <= 0:
            expected = "expected outputs <= smooth and a positive floor"
            raise ValueError(f"{expected}; got outputs={outputs}, smooth={smooth}, floor={floor}")
        self.smooth, self.outputs, self.floor = smooth, outputs, floor
        self.networks = LipschitzNetwork(smooth, free, outputs, hidden, (location_constant, scale_constant))
        # Values lie in a box of side one, so the noise starts with a standard deviation of exp(-2) phi, about
        # a tenth. From Sigma = I, training spends its first tens of epochs on shrinking the noise, half of it
        # through phi, and ends with larger u, hence with larger constants K.
        self.factor = nn.Parameter(torch.diag(torch.full((outputs,), -2.0)))

    @classmethod
    def from_tensors(
        cls,
        location: Mapping[str, Tensor],
        scale: Mapping[str, Tensor],
        cholesky: Tensor,
        location_constant: float | None = None,
        scale_constant: float | None = None,
        floor: float = 1e-4,
    ) -> Self:
        """A mechanism with weights of h and of phi before its softplus (shapes and errors as of
        `LipschitzNetwork.from_tensors`); Sigma = C C' with C lower triangular, (c, c), of positive diagonal.
        """
        networks = LipschitzNetwork.from_tensors(
            {"location": location, "scale": scale}, (location_constant, scale_constant)
        )
        hidden, smooth = location["inner"].shape
        free, outputs = location["action"].shape[1], len(location["shift"])
        if cholesky.shape != (outputs, outputs) or not bool(
            cholesky.isfinite().all() & (cholesky.diagonal() > 0).all() & (cholesky.triu(1) == 0).all()
        ):
            raise ValueError(
                f"cholesky: expected a lower triangle ({outputs}, {outputs}) of finite numbers with a "
                f"positive diagonal; got {cholesky.tolist()}"
            )
        built = cls(smooth, free, outputs, hidden, location_constant, scale_constant, floor)
        built = built.to(networks.inner)
        built.networks = networks
        with torch.no_grad():
            built.factor.copy_(torch.tril(cholesky, -1) + torch.diag(cholesky.diagonal().log()))
        return built.eval()

    def moments(self, parents: Tensor) -> tuple[Tensor, Tensor]:
        """h and phi, (..., p) -> (..., c) each."""
        location, raw = self.networks(parents[..., : self.smooth], parents[..., self.smooth :])
        return location, softplus(raw) + self.floor

    def cholesky(self) -> Tensor:
        """C, the lower-triangular factor of Sigma, (c, c): an exponential keeps its diagonal positive."""
        return torch.tril(self.factor, -1) + torch.diag(self.factor.diagonal().exp())

    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        location, scale = self.moments(parents)
        return location + scale * noise

    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        location, scale = self.moments(parents)
        return (values - location) / scale

    def noise(self, shape: tuple[int, ...]) -> Tensor:
        """Samples of N(0, Sigma), (*shape, c)."""
        return standard_normal((*shape, self.outputs), self.factor) @ self.cholesky().mT

    def log_likelihood(self, parents: Tensor, values: Tensor) -> Tensor:
        """log p(values | parents) of each row, (..., p), (..., c) -> (...); of those that are not NaN."""
        return self._density(parents, *_with_mask(values))

    def _density(self, parents: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
        location, scale = self.moments(parents)
        noise = ((values - location) / scale).reshape(-1, self.outputs)
        if mask is not None:
            observed = mask.reshape(-1, self.outputs)
            # Missing values become independent noise 0 of variance 1. `cholesky` would check its result,
            # and so wait for a GPU in every step.
            factor = self.cholesky().double()
            identity = torch.eye(self.outputs, dtype=factor.dtype, device=factor.device)
            pairs = observed.unsqueeze(2) & observed.unsqueeze(1)
            factor = torch.linalg.cholesky_ex(torch.where(pairs, factor @ factor.mT, identity))[0].to(noise)
            white = torch.linalg.solve_triangular(factor, (noise * observed).unsqueeze(2), upper=False)[
                ..., 0
            ]
            terms = white.square() / 2 + factor.diagonal(dim1=1, dim2=2).log()
            terms = terms + observed * (scale.log().reshape(noise.shape) + 0.5 * math.log(2 * math.pi))
            return -terms.sum(-1).reshape(scale.shape[:-1])
        white = torch.linalg.solve_triangular(self.cholesky(), noise.mT, upper=False)
        quadratic = white.square().sum(0).reshape(scale.shape[:-1])
        constant = self.factor.diagonal().sum() + 0.5 * self.outputs * math.log(2 * math.pi)
        return -0.5 * quadratic - constant - scale.log().sum(-1)

    def parts(self, parents: Tensor, values: Tensor) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        """This mechanism, with all examples."""
        yield self, (parents, *_with_mask(values))

    def loss(self, *examples: Tensor) -> Tensor:
        """Mean negative log-likelihood, (), of parents (n, p), values (n, c) and perhaps the mask of them."""
        return -self._density(*examples).mean()

    def finish(self) -> None:
        """Stores the spectrally normalised weights, exact in float64."""
        self.networks.finish()

    def lipschitz(self, noise: Tensor) -> Tensor:
        """K = L_h + L_phi max_i |u_i|, certified in float64, (..., c) -> (...)."""
        location, scale = self.networks.lipschitz()
        return location + scale * noise.detach().to(torch.float64).abs().amax(-1)

    @torch.no_grad()
    def unroll(self, states: Tensor, fixed: Tensor, observed: Tensor) -> Trajectory:
        """The episode's trajectory in float64: (T, c), (T - 1, A, p - c), (T,) long."""
        return LocationScaleTrajectory.fold(
            self.networks.exact(), self.floor, states.to(torch.float64), fixed.to(torch.float64), observed
        )
