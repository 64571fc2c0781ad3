"""Rosenbrock: five actions and a chain of four nodes, with a narrow curved ridge.

With x_i = 4 (a_i - .5),

    X_i = -100 (x_{i+1} - x_i^2)^2 - (1 - x_i)^2 + X_{i-1} + U_i,        i = 0 ... 3,   X_{-1} = 0,

and the reward is X_3. Actions 1, 2, 3 enter two nodes each. Noise is additive and accumulates along the
chain, so

    E[X_3 | a] = -sum_i (100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2) + sum_i E U_i,

whose maximum is sum_i E U_i, at x = 1, a = .75: exact.

Source: Ren et al. (2025), earlier version, Sec. C.2; Sussex et al. (2023).
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.causal.noise import ModalNoise, modal_noise, noise_scale
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.spaces.box import Box

NODES = tuple(f"X{place}" for place in range(4))
ACTIONS = tuple(f"a{place}" for place in range(5))


def valley(first: Tensor, second: Tensor) -> Tensor:
    """-100 (x' - x^2)^2 - (1 - x)^2 of actions a, a', any shape."""
    here, there = 4 * (first - 0.5), 4 * (second - 0.5)
    return -100 * (there - here**2) ** 2 - (1 - here) ** 2


class Rosenbrock(CausalWorld):
    """The Rosenbrock world.

    Args:
        noise: Level and modes of the noise.
        scale: lambda, which multiplies the noise.
        size: Number of rounds and of experiments in the start design; by default 100 and 12.
    """

    def __init__(
        self,
        noise: ModalNoise = ModalNoise(0.1),
        scale: float = 1.0,
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        self.scale = noise_scale(scale)
        parents = {
            node: (ACTIONS[place], ACTIONS[place + 1]) + ((NODES[place - 1],) if place else ())
            for place, node in enumerate(NODES)
        }
        task = CausalTask(
            RehearsalGraph.of(parents),
            Box.of(dict.fromkeys(ACTIONS, (0.0, 1.0))),
            WeightedSum({NODES[-1]: 1.0}),
        )
        super().__init__(
            task,
            dict.fromkeys(NODES, modal_noise(noise)),
            size,
            seed,
        )

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """One Rosenbrock term, added to the node before."""
        place = NODES.index(node)
        here = valley(inputs[ACTIONS[place]], inputs[ACTIONS[place + 1]]) + self.scale * noise
        return here + inputs[NODES[place - 1]] if place else here

    def expected(self, actions: Tensor) -> Tensor:
        """E[X_3 | a], exact."""
        return valley(actions[..., :-1].double(), actions[..., 1:].double()).sum(-1) + self.optimal_value

    @property
    def optimal_value(self) -> float:
        """lambda sum_i E U_i, exact."""
        return self.scale * sum(self.noise[node].mean for node in NODES)

    @property
    def optimal_action(self) -> Tensor:
        """a = .75, the unique maximiser."""
        return torch.full((len(ACTIONS),), 0.75, dtype=torch.float64)

    def card(self) -> Mapping[str, Any]:
        """The card of `CausalWorld`, and the source."""
        return {**super().card(), "source": "Ren et al. (2025), earlier version, Sec. C.2"}
