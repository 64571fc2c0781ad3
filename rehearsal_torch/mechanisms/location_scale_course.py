"""The course of a location-scale mechanism, folded for speed.

With the state x in front and everything else fixed per time and action, both networks share one pre-activation

    W x + o_{t,a},    W = (c_h W_h; c_phi W_phi),

so the product W x is made once for all actions, the offsets o are a table, and the spectral norms are divided out
once. F_t(x, a) = h + phi * u_t with the abducted u_t. The steps use tanh(z) = 2 sigmoid(2 z) - 1, whose factors and
shift fold into the weights: the same function, and the sigmoid is evaluated several times faster.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7; the folding is ours.
"""

from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import softplus

from rehearsal_torch.mechanisms.curvature import Curvature, CurvedCourse
from rehearsal_torch.mechanisms.location_scale_curvature import location_scale_curvature
from rehearsal_torch.networks.lipschitz import LipschitzNetwork, spectral_norm


class LocationScaleCourse(CurvedCourse):
    """F_t(x, a) = h(x, q_{t,a}) + phi(x, q_{t,a}) * u_t.

    Args:
        states: The observed course, (T, D).
        observed: The actions taken, (T,) long.
        inner: W, the state's weights of both networks, (2 H, D).
        offsets: o, (T - 1, A, 2 H).
        location: Output weights (D, H) and shift (D,) of h.
        scale: Output weights (D, H) and shift (D,) of phi before its softplus.
        floor: What is added to the softplus.
    """

    def __init__(
        self, states: Tensor, observed: Tensor, inner: Tensor, offsets: Tensor, location: tuple[Tensor, Tensor], scale: tuple[Tensor, Tensor], floor: float
    ) -> None:
        super().__init__(states, observed, offsets.shape[1])
        self.inner, self.offsets, self.location, self.scale, self.floor = inner, offsets, location, scale, floor
        self._across, self._out = inner.mT.contiguous(), torch.stack([location[0].mT, scale[0].mT]).contiguous()
        self._twice, self._table = 2 * self._across, 2 * offsets
        self._pair = [(2 * weight, (shift - weight.sum(-1)).unsqueeze(-1)) for weight, shift in (location, scale)]
        time = torch.arange(len(offsets), device=observed.device)
        centre, spread = self.moments(states[:-1], offsets[time, observed[:-1]])
        self.noise = (states[1:] - centre) / spread

    @classmethod
    def fold(cls, networks: LipschitzNetwork, floor: float, states: Tensor, fixed: Tensor, observed: Tensor) -> Self:
        """Folds networks over (state, static, free) with the fixed parents (T - 1, A, static + free)."""
        inner, outer, root = networks.weights()
        width, hidden = states.shape[-1], inner.shape[1]
        rest = torch.cat([inner[:, :, width:], networks.action], -1)
        table = ((torch.einsum("taq,mhq->tamh", fixed, rest) + networks.bias) * root[:, :, 0]).flatten(-2)
        weights = (inner[:, :, :width] * root).reshape(2 * hidden, width)
        shift = networks.shift * root[:, :, 0]
        return cls(states, observed, weights, table, (outer[0] * root[0], shift[0]), (outer[1] * root[1], shift[1]), floor)

    def to(self, dtype: torch.dtype) -> "LocationScaleCourse":
        """The same course in another precision."""
        location, scale = ((weight.to(dtype), shift.to(dtype)) for weight, shift in (self.location, self.scale))
        return LocationScaleCourse(self.states.to(dtype), self.observed, self.inner.to(dtype), self.offsets.to(dtype), location, scale, self.floor)

    def moments(self, states: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """h and phi, (n, D), (n or 1, 2 H) -> (n, D) each."""
        return self._read(torch.sigmoid_(torch.addmm(2 * offsets, states, self._twice)))

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, D), t, (n,) or () long -> (n, D)."""
        centre, spread = self._read(torch.sigmoid_(torch.addmm(self._table[time, actions], states, self._twice)))
        return torch.addcmul(centre, spread, self.noise[time])

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, D), t, (A',) long -> (n, A', D)."""
        offsets = self._table[time] if actions is None else self._table[time, actions]
        hidden = torch.sigmoid_((states @ self._twice).unsqueeze(1) + offsets)
        centre, spread = self._read(hidden.flatten(0, 1))
        return torch.addcmul(centre, spread, self.noise[time]).unflatten(0, (len(states), len(offsets)))

    def lipschitz(self) -> Tensor:
        """(T - 1,) float64, L_h + L_phi max_i |u_i| from the norms of the weights in use (state columns only)."""
        hidden = self.inner.shape[0] // 2
        inner, outer = self.inner.to(torch.float64), [weight.to(torch.float64) for weight, _ in (self.location, self.scale)]
        location = spectral_norm(inner[:hidden]) * spectral_norm(outer[0])
        scale = spectral_norm(inner[hidden:]) * spectral_norm(outer[1])
        return (location + scale * self.noise.to(torch.float64).abs().amax(-1)) * (1 + 1e-9)

    def jacobians(self, states: Tensor, time: int) -> Tensor:
        """(n, D), t -> (n, A, D, D)."""
        hidden = torch.tanh((states @ self._across).unsqueeze(1) + self.offsets[time])
        half = hidden.shape[-1] // 2
        slope = 1 - hidden.square()
        raw = hidden[..., half:] @ self._out[1] + self.scale[1]
        along = torch.einsum("ij,naj,jk->naik", self.location[0], slope[..., :half], self.inner[:half])
        across = torch.einsum("ij,naj,jk->naik", self.scale[0], slope[..., half:], self.inner[half:])
        return along + (self.noise[time] * torch.sigmoid(raw)).unsqueeze(-1) * across

    def curvature(self, states: Tensor, time: int, covectors: Tensor, radii: Tensor) -> Curvature:
        """(n, D), t, (n, D), (n,) -> derivatives and their bounds on the balls."""
        return location_scale_curvature(states, covectors, radii, self.inner, self.offsets[time], self.location[0], self.scale, self.noise[time])

    def _read(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """h and phi from sigmoids, (n, 2 H) -> (n, D) each; weights stand on the left, where a narrow product is fastest."""
        half = hidden.shape[-1] // 2
        (location, centre), (scale, raw) = self._pair
        spread = softplus(torch.addmm(raw, scale, hidden[:, half:].mT)) + self.floor
        return torch.addmm(centre, location, hidden[:, :half].mT).mT, spread.mT
