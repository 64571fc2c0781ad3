"""Location-scale mechanisms with Lipschitz networks.

Given the state x and the other parents q, the next state is

    v = h(x, q) + phi(x, q) * u,        u ~ N(0, Sigma),

with h and phi one-hidden-layer networks of Lipschitz constants L_h and L_phi in the smooth parents, phi
positive through a softplus and a floor, and Sigma = C C' with a trained lower-triangular C of positive
diagonal. The mechanism is element-wise bijective in u, hence counterfactually identifiable, and Lipschitz in
the smooth parents with constant L_h + L_phi max_i |u_i|.

The loss is the negative log-likelihood of a transition,

    -log p(v | x, q) = |C^-1 u|^2 / 2 + sum_i log C_ii + sum_i log phi_i + c/2 log(2 pi),   u = (v - h) / phi.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 and App. G.2; identifiability: Thm. 3.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from rehearsal_torch.data.part import Solved, Trained
from rehearsal_torch.mechanisms.lipschitz_network import LipschitzNetwork
from rehearsal_torch.mechanisms.location_scale_trajectory import LocationScaleTrajectory
from rehearsal_torch.mechanisms.mechanism import TransitionMechanism, standard_normal
from rehearsal_torch.mechanisms.trajectory import Trajectory


class LocationScale(Trained, TransitionMechanism):
    """v = h(parents) + phi(parents) * u with jointly normal u.

    Args:
        smooth: Number of leading parents in which the constants hold (the c values of the previous step, then
            static features).
        free: Number of further parents (contextual features and doses).
        outputs: c, the width of the values; at most `smooth`.
        hidden: Hidden units of each network.
        location_constant: L_h, or None for an unconstrained h.
        scale_constant: L_phi, or None for an unconstrained phi.
        floor: Lower bound of phi, in the unit of the values.

    Raises:
        ValueError: if outputs exceeds smooth, or the floor is not positive.
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
            raise ValueError(
                f"expected outputs <= smooth and a positive floor; got outputs={outputs}, smooth={smooth}, "
                f"floor={floor}"
            )
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
        """A mechanism with user-supplied weights, unchanged to the last bit.

        Args:
            location: The weights of h: ``inner`` (H, smooth), ``action`` (H, free), ``bias`` (H,), ``outer``
                (c, H) and ``shift`` (c,).
            scale: Those of phi before its softplus, of the same shapes.
            cholesky: C, lower triangular with a positive diagonal, (c, c); Sigma = C C'.
            location_constant: L_h, with which weights of a norm above one are refused; None accepts any
                weights, and `lipschitz` certifies the constant from their norms.
            scale_constant: L_phi, likewise.
            floor: Lower bound of phi.

        Raises:
            ValueError: if a tensor is missing, of another shape or not finite, or if a constant would require
                weights to be divided.
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
        built = cls(smooth, free, outputs, hidden, location_constant, scale_constant, floor).to(
            networks.inner
        )
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
        """log p(values | parents) of each row, (..., p), (..., c) -> (...)."""
        location, scale = self.moments(parents)
        noise = ((values - location) / scale).reshape(-1, self.outputs)
        white = torch.linalg.solve_triangular(self.cholesky(), noise.mT, upper=False)
        quadratic = white.square().sum(0).reshape(scale.shape[:-1])
        constant = self.factor.diagonal().sum() + 0.5 * self.outputs * math.log(2 * math.pi)
        return -0.5 * quadratic - constant - scale.log().sum(-1)

    def parts(self, parents: Tensor, values: Tensor) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        """Itself, with all examples."""
        yield self, (parents, values)

    def loss(self, *examples: Tensor) -> Tensor:
        """Mean negative log-likelihood of parents (n, p) and values (n, c), -> ()."""
        parents, values = examples
        return -self.log_likelihood(parents, values).mean()

    def finish(self) -> None:
        """Writes the spectrally normalised weights back, exact in float64."""
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
