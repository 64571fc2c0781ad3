"""Plankton in a chemostat: reducing tomorrow's dead animals.

The actions are the nitrogen of the inflow and the juvenile and adult predators of today; the reward is minus
tomorrow's dead, -D. Prey, predators and dead of today are context: roots, sampled jointly as rows of the
data. Eggs do not affect the reward and are pruned.

There are two dynamics: `gp`, fitted to the measurements, and `ode`. Both are smoke tests, not rankings. In
the measurements J is A / 5 exactly, the inflow is the same in C1 ... C4, and the three actions move E[-D] by
less than .05 where the noise has a standard deviation of .76. In the differential equations the dead increase
with J and A, so that J = A = 0 is the best action, exactly, for any inflow.

Source: Ren et al. (2025), Sec. 7.5 and 11.6, Eq. 9-14; Blasius et al. (2020); Aglietti et al. (2021).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.causal.chemostat_dynamics import (
    PARENTS,
    VARIABLES,
    ChemostatDynamics,
    DailyEquations,
    FittedProcesses,
    chemostat_pairs,
    equation_states,
)
from rehearsal_torch.problems.causal.noise import STANDARD, MixtureNoise, sobol_draws
from rehearsal_torch.problems.causal.optimum import best_action
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.spaces.box import Box

BOUNDS = {"N_in": (60.0, 100.0), "J0": (0.0, 36.0), "A0": (0.0, 180.0)}
ROOTS = ("N0", "P0", "D0")


class Chemostat(CausalWorld):
    """The chemostat world.

    Args:
        scm: "gp", fitted to the measurements, or "ode".
        path: The folder with C1.csv ... C10.csv, for "gp".
        series: Names of the experiments used, for "gp".
        hatching: theta of the differential equations, in days; below 1 some animals hatch within the day.
        sigma: Multiplies the noise of all nodes but the roots.
        rows: Number of pairs of days that the Gaussian processes are fitted to.
        size: Number of rounds and of experiments in the start design; by default 100 and 8.
        seed: Seed of the start design and of the noise in the rounds.

    Raises:
        ValueError: for another `scm`, a delay outside [0, 1], or a negative `sigma`.
        TableError: for "gp", if a file is missing; the message says where to get the files.
    """

    def __init__(
        self,
        scm: Literal["gp", "ode"] = "ode",
        path: str | Path | None = None,
        series: Sequence[str] = ("C1", "C2", "C3", "C4"),
        hatching: float = 1.0,
        sigma: float = 1.0,
        rows: int = 300,
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        if scm not in ("gp", "ode") or not 0 <= hatching <= 1 or not sigma >= 0:
            raise ValueError(
                f"expected scm gp or ode, hatching in [0, 1] and sigma of at least 0; got {scm!r}, "
                f"{hatching} and {sigma}"
            )
        self.scm, self.sigma = scm, float(sigma)
        self.dynamics: ChemostatDynamics
        if scm == "gp":
            before, after = chemostat_pairs(path, series)
            self.dynamics = FittedProcesses(before, after, rows)
            self.contexts = before[:, [VARIABLES.index(name[0]) for name in ROOTS]]
        else:
            self.dynamics, self.contexts = DailyEquations(hatching), equation_states()
        task = CausalTask(
            RehearsalGraph.of({**dict.fromkeys((*ROOTS, "E0"), ()), **PARENTS}),
            Box.of(BOUNDS),
            WeightedSum({"D": -1.0}),
        )
        # For the roots, mean and standard deviation only describe them: whole rows are drawn.
        distributions = {
            name: MixtureNoise((1.0,), (float(column.mean()),), (float(column.std()),))
            for name, column in zip(ROOTS, self.contexts.T, strict=True)
        }
        super().__init__(task, {**dict.fromkeys(task.nodes, STANDARD), **distributions}, size, seed)

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """A root is its noise; the others follow from the day before."""
        return (
            noise
            if node in ROOTS
            else self.dynamics.mean(node, inputs) + self.sigma * self.dynamics.std(node) * noise
        )

    def noise_rows(self, count: int, stream: np.random.Generator) -> Tensor:
        """Roots: rows of the contexts, sampled jointly. The other nodes: standard normal draws."""
        return self._with_contexts(
            torch.from_numpy(stream.standard_normal((count, len(self.task.nodes)))),
            stream.integers(len(self.contexts), size=count),
        )

    def _with_contexts(self, noise: Tensor, chosen: Any) -> Tensor:
        noise[:, [self.task.nodes.index(name) for name in ROOTS]] = self.contexts[chosen]
        return noise

    def expected(self, actions: Tensor) -> Tensor:
        """E[-D | a]: the mean over all contexts, each with its own Sobol noise; D's own noise has mean 0."""
        return self._averaged(actions, self._even)

    def _averaged(self, actions: Tensor, noise: Tensor) -> Tensor:
        flat = actions.double().reshape(-1, len(BOUNDS))
        parts = [self.rewards(self.simulate(part[:, None], noise)).mean(-1) for part in flat.split(20)]
        return torch.cat(parts).reshape(actions.shape[:-1])

    @cached_property
    def _even(self) -> Tensor:
        count = len(self.contexts)
        noise = sobol_draws([STANDARD] * len(self.task.nodes), (count - 1).bit_length())[:count]
        noise[:, self.task.nodes.index("D")] = 0.0
        return self._with_contexts(noise, slice(None))

    @cached_property
    def _best(self) -> tuple[Tensor, float]:
        if self.scm == "ode":
            action = torch.tensor([80.0, 0.0, 0.0], dtype=torch.float64)
            return action, float(self.expected(action))
        few = self._even[:: max(1, len(self._even) // 200)]
        action, _ = best_action(
            lambda tried: self._averaged(tried, few), self.task.box, spread=128, refined=4, steps=40
        )
        return best_action(self.expected, self.task.box, action[None], spread=16, refined=2, steps=20)

    @property
    def optimal_value(self) -> float:
        """max E[-D | a]: exact for "ode", the best value found by the search for "gp"."""
        return self._best[1]

    @property
    def optimal_action(self) -> Tensor:
        """An action that reaches it, (3,); for "ode" any inflow with no animals."""
        return self._best[0]

    def card(self) -> Mapping[str, Any]:
        """The card of `CausalWorld`, the dynamics, where the roots come from, and the caution."""
        facts = {
            "scm": self.scm,
            "contexts": len(self.contexts),
            "roots": "rows, sampled jointly; their noise above gives mean and standard deviation only",
        }
        caution = (
            "a smoke test: the fitted model is nearly flat in the actions, the equations have a trivial "
            "optimum"
        )
        return {
            **super().card(),
            **facts,
            "caution": caution,
            "source": "Ren et al. (2025), Sec. 7.5 and 11.6; data: Blasius et al. (2020), CC BY 4.0",
        }
