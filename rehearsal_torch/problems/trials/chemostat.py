"""Plankton in a chemostat: reducing tomorrow's dead animals.

The actions are the nitrogen of the inflow and the juvenile and adult predators of today; the reward is minus
tomorrow's dead, -D. Nitrogen N, algae P and dead of today are context: roots, sampled jointly as days of a
simulation. Eggs do not affect the reward and are pruned. Algae, rotifers and their dead follow the graph

    N <- N_in, N', P'      P <- N, P'      J <- P, J', A'      A <- P, A'      D <- J, A, D'
    (' is the day before).

It is a smoke test, not a ranking: the dead increase with J and A, so that J = A = 0 is the best action,
exactly, for any inflow. Each differential equation (`next_day`) is integrated over the day while its other
inputs keep the values given by the graph, and has standard normal noise:

    N' = delta (N_in - N) - r_P N P / (K_P + N),      P' = r_P N P / (K_P + N) - delta P,
    J' = -(m + delta) J,
    A' = -(m + delta) A,              D' = m (J + A) - delta D.

Eggs take a day to hatch, and hatched animals are adult at once (tau = 0). So nothing hatches within the day,
juveniles and adults only die and are washed out, nitrogen and algae do not affect the dead, and D is exact.
Grazing is left out of P, as the graph has no animals there.

Contexts (`equation_states`) are days of the coupled system

    N' = delta (N_in - N) - F_P P,   P' = F_P P - F_B (beta J + A) / eps - delta P,
    E' = R_E - R_J - delta E,   J' = -(m + delta) J,
    A' = beta R_J - (m + delta) A,   D' = m (J + A) - delta D,   R_E = F_B A,
    R_J(t) = R_E(t - theta) e^{-delta theta},      theta = 1 day,
    F_P = r_P N / (K_P + N),   F_B = r_B P^k / (K_B^k + P^k),

from N = 41.3, P = 2.716, J = 1.23, A = 6.15, D = 0, by Euler steps of a hundredth of a day. Predator and prey
oscillate.

Source: Ren et al. (2025), Sec. 7.5 and 11.6, Eq. 9-14, after Blasius et al. (2020); the nodewise integration
is ours.
"""

import math
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.problems.trials.mixture_noise import STANDARD, MixtureNoise, sobol_draws
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.spaces.box import Box

PARENTS = {
    "N": ("N_in", "N0", "P0"),
    "P": ("N", "P0"),
    "J": ("P", "J0", "A0"),
    "A": ("P", "A0"),
    "E": ("P", "A", "E0"),
    "D": ("J", "A", "D0"),
}
DILUTION, DEATH, BETA = 0.55, 0.15, 5.0
PREY_RATE, PREY_HALF, PREDATOR_RATE, PREDATOR_HALF, POWER = 3.3, 4.3, 2.25, 15.0, 1.25
STEPS = 24


def next_day(node: str, inputs: Mapping[str, Tensor]) -> Tensor:
    """A node after a day, from its parents, name to (...), without noise -> (...)."""
    if node == "N":
        return _nitrogen(inputs["N_in"], inputs["N0"].clamp_min(0), inputs["P0"].clamp_min(0))
    if node == "P":
        nitrogen = inputs["N"].clamp_min(0)
        return inputs["P0"] * torch.exp(PREY_RATE * nitrogen / (PREY_HALF + nitrogen) - DILUTION)
    if node in ("J", "A"):
        return inputs[f"{node}0"] * math.exp(-DEATH - DILUTION)
    return inputs["D0"] * math.exp(-DILUTION) + (inputs["J"] + inputs["A"]) * math.expm1(DEATH)


def _nitrogen(inflow: Tensor, nitrogen: Tensor, prey: Tensor) -> Tensor:
    """N after a day, by implicit midpoint-like steps that keep it positive."""
    step = 1 / STEPS
    for _ in range(STEPS):
        # Uptake is proportional to N: an implicit step keeps N positive for any step size.
        uptake = PREY_RATE * prey / (PREY_HALF + nitrogen)
        nitrogen = (nitrogen + step * DILUTION * inflow) / (1 + step * (DILUTION + uptake))
    return nitrogen


INFLOW, YIELD, DELAY = 80.0, 0.25, 1.0
STEPS_A_DAY = 100
DAYS = 256


@lru_cache(maxsize=1)
def equation_states() -> Tensor:
    """N, P and D of 256 consecutive days, (256, 3)."""
    nitrogen, prey, young, adult, dead = 41.3, 2.716, 1.23, 6.15, 0.0
    step, eggs, days = 1 / STEPS_A_DAY, [], []
    for number in range(DAYS * STEPS_A_DAY):
        if number % STEPS_A_DAY == 0:
            days.append((nitrogen, prey, dead))
        uptake = PREY_RATE * nitrogen / (PREY_HALF + nitrogen)
        grazing = PREDATOR_RATE * prey**POWER / (PREDATOR_HALF**POWER + prey**POWER)
        eggs.append(grazing * adult)
        laid_at = number - round(DELAY * STEPS_A_DAY)
        hatched = eggs[laid_at] * math.exp(-DILUTION * DELAY) if laid_at >= 0 else 0.0
        prey_growth = uptake * prey - grazing * (BETA * young + adult) / YIELD - DILUTION * prey
        nitrogen, prey, young, adult, dead = (
            nitrogen + step * (DILUTION * (INFLOW - nitrogen) - uptake * prey),
            max(0.0, prey + step * prey_growth),
            young - step * (DEATH + DILUTION) * young,
            adult + step * (BETA * hatched - (DEATH + DILUTION) * adult),
            dead + step * (DEATH * (young + adult) - DILUTION * dead),
        )
    return torch.tensor(days, dtype=torch.float64)


BOUNDS = {"N_in": (60.0, 100.0), "J0": (0.0, 36.0), "A0": (0.0, 180.0)}
ROOTS = ("N0", "P0", "D0")


class Chemostat(CausalWorld):
    """The chemostat world; ValueError for a negative `sigma`.

    Args:
        sigma: Multiplies the noise of all nodes but the roots.
        size: Number of rounds and of experiments in the start design; by default 100 and 8.
    """

    source = "Ren et al. (2025), Sec. 7.5 and 11.6"

    def __init__(self, sigma: float = 1.0, size: Rounds = Rounds(), seed: int = 0) -> None:
        if not sigma >= 0:
            raise ValueError(f"expected sigma of at least 0; got {sigma}")
        self.sigma, self.contexts = float(sigma), equation_states()
        graph = RehearsalGraph.of({**dict.fromkeys((*ROOTS, "E0"), ()), **PARENTS})
        task = CausalTask(graph, Box.of(BOUNDS), WeightedSum({"D": -1.0}))
        # For the roots, mean and standard deviation only describe them: whole rows are drawn.
        distributions = {
            name: MixtureNoise((1.0,), (float(column.mean()),), (float(column.std()),))
            for name, column in zip(ROOTS, self.contexts.T, strict=True)
        }
        super().__init__(task, {**dict.fromkeys(task.nodes, STANDARD), **distributions}, size, seed)

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """A root is its noise; the others follow from the day before."""
        if node in ROOTS:
            return noise
        return next_day(node, inputs) + self.sigma * noise

    def noise_rows(self, count: int, stream: np.random.Generator) -> Tensor:
        """Roots: rows of the contexts, sampled jointly. The other nodes: standard normal draws."""
        noise = torch.from_numpy(stream.standard_normal((count, len(self.task.nodes))))
        return self._with_contexts(noise, stream.integers(len(self.contexts), size=count))

    def _with_contexts(self, noise: Tensor, rows: Any) -> Tensor:
        noise[:, [self.task.nodes.index(name) for name in ROOTS]] = self.contexts[rows]
        return noise

    def expected(self, actions: Tensor) -> Tensor:
        """E[-D | a]: the mean over all contexts, each with its own Sobol noise; D's own noise has mean 0."""
        return self.averaged(actions, self._common_noise)

    @cached_property
    def _common_noise(self) -> Tensor:
        count = len(self.contexts)
        noise = sobol_draws([STANDARD] * len(self.task.nodes), (count - 1).bit_length())[:count]
        noise[:, self.task.nodes.index("D")] = 0.0
        return self._with_contexts(noise, slice(None))

    def best(self) -> tuple[Tensor, float]:
        """Exact: no animals are best for any inflow."""
        action = torch.tensor([80.0, 0.0, 0.0], dtype=torch.float64)
        return action, float(self.expected(action))

    def details(self) -> Mapping[str, Any]:
        """Where the roots come from, and the caution."""
        return {
            "contexts": len(self.contexts),
            "roots": "rows, sampled jointly; their noise above gives mean and standard deviation only",
            "caution": "a smoke test: the equations have a trivial optimum",
        }
