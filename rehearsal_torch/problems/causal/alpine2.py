"""Alpine2: six actions and a chain of six nodes, whose values multiply.

With s(x) = sqrt(x) sin x and x_i = 10 a_i,

    anm      X_0 = -s(x_0) + lambda U_0               X_i = s(x_i) X_{i-1} + lambda U_i
    non_dgm  X_0 = -s(x_0 + lambda U_0)               X_i = s(x_i + lambda U_i) X_{i-1}
    dgm      X_0 = -s(x_0) + (cos x_0 + 1.2) lambda U_0^4
             X_i = s(x_i) X_{i-1} + .1 (cos x_i + X_{i-1}^2 + 1.2) lambda U_i^4,        i = 1 ... 5,

and the reward is X_5. A negative argument of s counts as 0; the paper does not say. `dgm_bounded` has X^2 /
(1 + X^2 / 100) in place of X^2: repeated squaring has moments that explode with lambda and sigma, so that no
number of draws estimates the mean.

For the first two mechanisms E[X_5 | a] is exact, and multilinear in the means E s(x_i + ...): the best action
is one of 2^6 corners, each a_i either at the largest or at the smallest mean. For the other two it is
*defined* as the mean over 65,536 Sobol draws of the first five noises; X_5 is linear in U_5^4, whose mean
stands for it. For `dgm` a recursion of moments gives the exact mean as well: the two agree to .1 % at lambda
= .3, sigma = .2; but at lambda = .3, sigma = .4 the exact mean is 10^38 at actions whose reward has a median
of 4, dominated by draws too rare ever to be observed.

Source: Ren et al. (2025), Eq. 7, Eq. 8, Sec. 11.3, 11.4 and 11.10 (Table 3); Sussex et al. (2023). The
bounded variant is ours.
"""

from collections.abc import Mapping
from functools import cached_property
from itertools import product
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.causal.noise import ModalNoise, sobol_draws
from rehearsal_torch.problems.causal.optimum import best_action
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds, setting
from rehearsal_torch.spaces.box import Box

Mechanism = Literal["anm", "non_dgm", "dgm", "dgm_bounded"]
NODES = tuple(f"X{place}" for place in range(6))
ACTIONS = tuple(f"a{place}" for place in range(6))
BOUND = 100.0
# Where s has its largest and smallest value, and a local maximum and minimum.
EXTREMES = (0.4815842, 0.7917053, 0.2028757, 1.0)
POWER, SEARCHED = 16, 11


def hill(argument: Tensor) -> Tensor:
    """sqrt(x) sin x, any shape; 0 where x < 0."""
    inside = argument.clamp_min(0)
    # The square root has no finite gradient at 0, where the sine is 0 as well.
    return inside.clamp_min(torch.finfo(inside.dtype).tiny).sqrt() * torch.sin(inside)


class Alpine2(CausalWorld):
    """The Alpine2 world.

    Args:
        mechanism: "anm", "non_dgm", "dgm" or "dgm_bounded".
        noise: Level and modes of the noise. Table 3 of the paper: mechanism "anm", sigma 1, scale 1, 1 mode.
        scale: lambda, which multiplies the noise; None for .3 with "dgm" and "dgm_bounded", where it enters
            to the fourth power, and for 1 with the other two.
        size: Number of rounds and of experiments in the start design; by default 100 and 14.
    """

    source = "Ren et al. (2025), Sec. 11.3 and 11.4"

    def __init__(
        self,
        mechanism: Mechanism = "dgm",
        noise: ModalNoise = ModalNoise(0.2),
        scale: float | None = None,
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        if scale is None:
            scale = 0.3 if mechanism in ("dgm", "dgm_bounded") else 1.0
        if mechanism not in get_args(Mechanism) or not scale >= 0:
            expected = f"expected a mechanism of {get_args(Mechanism)} and a scale of at least 0"
            raise ValueError(f"{expected}; got {mechanism!r} and {scale}")
        self.mechanism, self.scale = mechanism, float(scale)
        parents = {node: (*NODES[max(link - 1, 0) : link], ACTIONS[link]) for link, node in enumerate(NODES)}
        box = Box.of(dict.fromkeys(ACTIONS, (0.0, 1.0)))
        task = CausalTask(RehearsalGraph.of(parents), box, WeightedSum({NODES[-1]: 1.0}))
        self.distribution = setting("noise", noise, ModalNoise).mixture()
        super().__init__(task, dict.fromkeys(NODES, self.distribution), size, seed)

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """One link of the chain."""
        link = NODES.index(node)
        before = inputs[NODES[link - 1]] if link else torch.full_like(noise, -1.0)
        argument = 10 * inputs[ACTIONS[link]]
        if self.mechanism == "anm":
            return hill(argument) * before + self.scale * noise
        if self.mechanism == "non_dgm":
            return hill(argument + self.scale * noise) * before
        level = torch.cos(argument) + 1.2
        if link:
            level = 0.1 * (level + self._square(before))
        return hill(argument) * before + level * self.scale * noise**4

    def recoverable(self, node: str, noise: Tensor) -> Tensor:  # noqa: ARG002
        """f_c(u): u^4 for "dgm" and "dgm_bounded", u for "anm"; "non_dgm" has no such part, and u stands for
        it.
        """
        return noise**4 if self.mechanism in ("dgm", "dgm_bounded") else noise

    def _square(self, values: Tensor) -> Tensor:
        return values**2 if self.mechanism == "dgm" else values**2 / (1 + values**2 / BOUND)

    def expected(self, actions: Tensor) -> Tensor:
        """E[X_5 | a]: exact for "anm" and "non_dgm"; the mean over 65,536 Sobol draws for the others."""
        actions = actions.double()
        if self.mechanism not in ("anm", "non_dgm"):
            return self.averaged(actions, self._even)
        factors, mean = self._mean_hill(actions), -torch.ones(actions.shape[:-1], dtype=torch.float64)
        shift = self.scale * self.distribution.mean if self.mechanism == "anm" else 0.0
        for factor in factors.unbind(-1):
            mean = factor * mean + shift
        return mean

    def _mean_hill(self, actions: Tensor) -> Tensor:
        if self.mechanism == "anm":
            return hill(10 * actions)
        points, weights = (torch.from_numpy(array) for array in self.distribution.nodes(128))
        return hill(10 * actions[..., None] + self.scale * points) @ weights

    def _draws(self, power: int) -> Tensor:
        """2^power Sobol draws of the first five noises, with a value of the last one whose fourth power is
        its mean, (2^power, 6).
        """
        points, weights = self.distribution.nodes(80)
        draws = sobol_draws([self.distribution] * 5, power)
        last = torch.full((len(draws), 1), float(weights @ points**4) ** 0.25, dtype=torch.float64)
        return torch.cat([draws, last], -1)

    @cached_property
    def _even(self) -> Tensor:
        return self._draws(POWER)

    def best(self) -> tuple[Tensor, float]:
        """Exact for "anm" and "non_dgm"; else the best found from 4096 corners and 256 Sobol points by local
        search. Any component may be the one with the smallest value of s.
        """
        if self.mechanism in ("anm", "non_dgm"):
            return self._best_corner()
        corners = torch.tensor(list(product(EXTREMES, repeat=6)), dtype=torch.float64)
        draws = self._draws(SEARCHED)
        with torch.no_grad():
            first = corners[self.averaged(corners, draws[:256]).topk(256).indices]
        action, _ = best_action(
            lambda tried: self.averaged(tried, draws), self.task.box, first, spread=256, refined=6, steps=50
        )
        return best_action(self.expected, self.task.box, action[None], spread=1, refined=1, steps=30)

    def _best_corner(self) -> tuple[Tensor, float]:
        axis = torch.linspace(0, 1, 20_001, dtype=torch.float64)
        values = torch.cat([self._mean_hill(part[:, None])[:, 0] for part in axis.split(2000)])
        corners = torch.stack([axis[values.argmax()], axis[values.argmin()]])
        tried = corners[torch.tensor(list(product((0, 1), repeat=6)))]
        return best_action(self.expected, self.task.box, tried, spread=1, refined=2)

    def median(self, actions: Tensor) -> Tensor:
        """The median of X_5 under actions, (..., 6) -> (...), over 65,536 draws: the typical reward where
        rare draws dominate the mean.
        """
        draws = sobol_draws([self.distribution] * 6, POWER)
        return self.simulate(actions.double()[..., None, :], draws)[..., -1].median(-1).values

    def details(self) -> Mapping[str, Any]:
        """The mechanism, the best action, and the median reward under it."""
        return {
            "mechanism": self.mechanism,
            "best_action": [round(value, 5) for value in self.optimal_action.tolist()],
            "median at the optimum": float(self.median(self.optimal_action)),
        }
