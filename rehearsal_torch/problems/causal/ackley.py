"""Ackley: six actions, two nodes that depend on all of them, and the reward as a function of both.

With x_i = 4 (a_i - .5),

    X_0 = mean x_i^2 + U_0,    X_1 = mean cos(2 pi x_i) + U_1,
    Y = 20 exp(-.2 sqrt(X_0)) + exp(X_1) - 20 - e + U_2.

The reward is Y. A negative X_0 counts as 0 under the root; the released code gives no number there. Y
decreases in X_0 and increases in X_1, and a = .5 has both the smallest mean x^2 and the largest mean cosine:
it is the best action for every noise distribution, exactly.

Source: Sussex et al. (2023), released code; Astudillo and Frazier (2021).
"""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.causal.noise import ModalNoise, modal_noise, noise_scale, quantiles
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.spaces.box import Box

ACTIONS = tuple(f"a{place}" for place in range(6))
LEVELS = 4096


def bowl(actions: Tensor) -> Tensor:
    """mean x^2, (..., 6) -> (...)."""
    return ((4 * (actions - 0.5)) ** 2).mean(-1)


def ripples(actions: Tensor) -> Tensor:
    """Mean cos(2 pi x), (..., 6) -> (...)."""
    return torch.cos(8 * math.pi * (actions - 0.5)).mean(-1)


def height(squares: Tensor) -> Tensor:
    """20 exp(-.2 sqrt(x)), any shape; 20 where x < 0."""
    inside = squares.clamp_min(0)
    return 20 * torch.exp(-0.2 * inside.clamp_min(torch.finfo(inside.dtype).tiny).sqrt())


class Ackley(CausalWorld):
    """The Ackley world.

    Args:
        noise: Level and modes of the noise.
        scale: lambda, which multiplies the noise.
        size: Number of rounds and of experiments in the start design; by default 100 and 14.
    """

    def __init__(
        self,
        noise: ModalNoise = ModalNoise(0.1),
        scale: float = 1.0,
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        self.scale = noise_scale(scale)
        parents = {"X0": ACTIONS, "X1": ACTIONS, "Y": ("X0", "X1")}
        task = CausalTask(
            RehearsalGraph.of(parents), Box.of(dict.fromkeys(ACTIONS, (0.0, 1.0))), WeightedSum({"Y": 1.0})
        )
        super().__init__(
            task,
            dict.fromkeys(("X0", "X1", "Y"), modal_noise(noise)),
            size,
            seed,
        )

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """Mean square, mean cosine, or the reward that combines them."""
        if node == "Y":
            return height(inputs["X0"]) + torch.exp(inputs["X1"]) - 20 - math.e + self.scale * noise
        actions = torch.stack([inputs[name] for name in ACTIONS], -1)
        return (bowl(actions) if node == "X0" else ripples(actions)) + self.scale * noise

    def expected(self, actions: Tensor) -> Tensor:
        """E[Y | a]: the mean of the root term over 4096 equally likely values of U_0, that of the exponential
        in closed form.
        """
        actions = actions.double()
        distribution = self.noise["X1"]
        rise = sum(
            w * math.exp(self.scale * m + (self.scale * d) ** 2 / 2)
            for w, m, d in zip(distribution.weights, distribution.means, distribution.stds, strict=True)
        )
        flat = bowl(actions).reshape(-1, 1)
        mean = torch.cat(
            [height(part + self.scale * self._likely).mean(-1) for part in flat.split(1000)]
        ).reshape(actions.shape[:-1])
        return mean + rise * torch.exp(ripples(actions)) - 20 - math.e + self.scale * self.noise["Y"].mean

    @cached_property
    def _likely(self) -> Tensor:
        return quantiles(self.noise["X0"], (torch.arange(LEVELS, dtype=torch.float64) + 0.5) / LEVELS)

    @property
    def optimal_value(self) -> float:
        """E[Y | a = .5]; 0 without noise."""
        return float(self.expected(self.optimal_action))

    @property
    def optimal_action(self) -> Tensor:
        """a = .5, the unique maximiser."""
        return torch.full((len(ACTIONS),), 0.5, dtype=torch.float64)

    def card(self) -> Mapping[str, Any]:
        """The card of `CausalWorld`, and the source."""
        return {**super().card(), "source": "Sussex et al. (2023), released code"}
