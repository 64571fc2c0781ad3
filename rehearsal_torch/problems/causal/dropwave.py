"""Dropwave: two actions and two nodes; the reward forms rings around a centre.

    r = |(10.24 a_0 - 5.12, 10.24 a_1 - 5.12)|,    X = r + lambda U_X,
    Y = (1 + cos 12 X) / (2 + X^2 / 2) + lambda U_Y.

The reward is Y. E[Y | a] depends on r alone: an integral over U_X. With the paper's two modes and lambda = 1,
sigma = .1, the best action is not the centre but a ring around it, at r = .156, where one of the two noise
modes moves X towards the centre.

In the released code of Sussex et al. (2023) Y follows from r instead of the noisy X
(`propagate_noise: false`): X is then r measured with an error, and the maximum is 1 + lambda E[U_Y], at the
centre.

The maximum is certified on a grid of r with step h: the wave's second derivative is at most 80 in absolute
value, and so is that of its mean; hence no r is better than the best grid point by more than
80 (h / 2)^2 / 2 = 1e-5.

Source: Ren et al. (2025), Sec. 7.2, 11.2 and 11.10 (Table 2), Eq. 6 (weights, means and factors); Sussex et
al. (2023). Three modes are ours.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from rehearsal_torch.problems.causal.noise import ModalNoise
from rehearsal_torch.problems.causal.world import AdditiveWorld, NetworkTable, Node
from rehearsal_torch.problems.world_size import Rounds

RADIUS_MODES = {1: ((0.0,), (1.0,)), 2: ((-0.2, 0.4), (1.4, 1.0)), 3: ((-0.6, 0.0, 0.6), (1.0, 0.5, 1.0))}
HEIGHT_MODES = {
    1: ((0.0,), (1.0,)),
    2: ((-0.1, 0.05), (0.32, 0.32)),
    3: ((-0.1, 0.0, 0.1), (0.32, 0.32, 0.32)),
}
ORDER = 256
GRID = 1e-3
CURVATURE = 80.0


def wave(radius: Tensor) -> Tensor:
    """(1 + cos 12 x) / (2 + x^2 / 2), any shape."""
    return (1 + torch.cos(12 * radius)) / (2 + 0.5 * radius**2)


def radius(first: Tensor, second: Tensor) -> Tensor:
    """r of two actions, any shape."""
    centred = 10.24 * torch.stack([first, second], -1) - 5.12
    return (centred**2).sum(-1).clamp_min(1e-30).sqrt()


class Dropwave(AdditiveWorld):
    """The Dropwave world.

    Args:
        propagate_noise: Whether Y follows from the noisy X (the paper) or from the noise-free radius (the
            released code of MCBO).
    """

    table = NetworkTable(
        equations={"X": Node(("a0", "a1"), radius), "Y": Node(("X",), wave)},
        width=2,
        reward={"Y": 1.0},
        source="Ren et al. (2025), Sec. 7.2 and 11.2",
        own_modes={"X": RADIUS_MODES, "Y": HEIGHT_MODES},
    )

    def __init__(
        self,
        noise: ModalNoise = ModalNoise(0.1),
        scale: float = 1.0,
        propagate_noise: bool = True,
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        self.propagate_noise = propagate_noise
        super().__init__(noise, scale, size, seed)

    def simulate(self, actions: Tensor, noise: Tensor) -> Tensor:
        """Node values; if `propagate_noise` is false, the measurement error of X does not propagate to Y."""
        if self.propagate_noise:
            return super().simulate(actions, noise)
        free = radius(*actions.unbind(-1))
        return torch.stack(torch.broadcast_tensors(free, wave(free)), -1) + self.scale * noise

    def mean_of(self, node: str, inputs: Mapping[str, Tensor]) -> Tensor | None:
        """As in any world; None for Y if it follows from the radius and not from the measured X."""
        return super().mean_of(node, inputs) if node == "X" or self.propagate_noise else None

    def expected(self, actions: Tensor) -> Tensor:
        """E[Y | a], by quadrature over U_X."""
        return self._at(radius(*actions.double().unbind(-1)))

    def _at(self, free: Tensor) -> Tensor:
        shift = self.mean_noise("Y")
        if not self.propagate_noise:
            return wave(free) + shift
        points, weights = self._rule
        return wave(free[..., None] + self.scale * points) @ weights + shift

    @cached_property
    def _rule(self) -> tuple[Tensor, Tensor]:
        points, weights = self.noise["X"].nodes(ORDER)
        return torch.from_numpy(points), torch.from_numpy(weights)

    @cached_property
    def best_radius(self) -> float:
        """r of the best actions: the best point of a grid, refined by a bounded scalar search."""
        ends = 5.12 * 2**0.5
        grid = torch.arange(0, ends, GRID, dtype=torch.float64)
        top = float(grid[torch.cat([self._at(part) for part in grid.split(1000)]).argmax()])
        around = (max(0.0, top - GRID), min(ends, top + GRID))
        polished = minimize_scalar(
            lambda r: -float(self._at(torch.tensor(r, dtype=torch.float64))),
            bounds=around,
            method="bounded",
            options={"xatol": 1e-9},
        )
        return float(
            max((top, float(polished.x)), key=lambda r: float(self._at(torch.tensor(r, dtype=torch.float64))))
        )

    def best(self) -> tuple[Tensor, float]:
        """A point of the best ring, along the first action; its value is too small by at most `gap`."""
        shift = self.best_radius / 10.24
        # A ring wider than half the square is met on the diagonal.
        point = (0.5 + shift, 0.5) if shift <= 0.5 else (0.5 + shift / 2**0.5, 0.5 + shift / 2**0.5)
        action = torch.tensor(point, dtype=torch.float64)
        return action, float(self.expected(action))

    @property
    def gap(self) -> float:
        """An upper bound on how much better an action can be than the best one on the grid."""
        return CURVATURE * (GRID / 2) ** 2 / 2

    def details(self) -> Mapping[str, Any]:
        """The radius of the best ring, the value at the centre, and the bound on the optimality gap."""
        return {
            "best_radius": round(self.best_radius, 6),
            "at the centre": float(self.expected(torch.full((2,), 0.5, dtype=torch.float64))),
            "optimum is certified to": self.gap,
        }
