"""Systems in which experiments set a chosen set of nodes: ToyGraph, CompleteGraph and PSA, to be minimised.

    ToyGraph    X = e_X,    Z = exp(-X) + e_Z,    Y = cos Z - exp(-Z / 20) + e_Y;
                X may be set within [-5, 5], Z within [-5, 20]

    CompleteGraph, with hidden U1 and U2

                F = e_F,    A = F^2 + U1 + e_A,    B = U2 + e_B,    C = exp(-B) + e_C,
                D = exp(-C) / 10 + e_D,    E = cos A + C / 10 + e_E,
                Y = cos D - D / 5 + sin E - E / 4 + U1 + exp(-U2) + e_Y;
                B may be set within [-5, 4], D within [-5, 5], E within [-6, 3]

    PSA         age uniform in [55, 75],    bmi = 27 - .01 age + .7 e,
                aspirin = s(-8 + .1 age + .03 bmi),    statin = s(-13 + .1 age + .2 bmi),
                cancer = s(2.2 - .05 age + .01 bmi - .04 statin + .02 aspirin),    s(x) = 1 / (1 + exp(-x)),
                Y = 6.8 + .04 age - .15 bmi - .6 statin + .55 aspirin + cancer + .4 e;
                aspirin and statin may be set within [0, 1]

All e and U are standard normal, times lambda (`scale`) except in age; the reward is -Y. The start design has
rows in which nothing is set, 100 as in the released code. In the paper an experiment shows the expectation,
without noise; here it is one of a single unit, and lambda = .1 is about the noise of the mean of a hundred.

E[r | do(S = s)] is a mean over 2^13 Sobol draws, the same for all settings. The optima are 2.172 at Z =
-3.20; 3.484 at B = -5, D = 3.34; and -5.155 at aspirin = 0, statin = 1.

Source: Aglietti et al. (2020), "Causal Bayesian optimization", Sec. 4, and released code (equations, ranges).
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.problems.trials.global_maximum import best_action
from rehearsal_torch.problems.trials.mixture_noise import STANDARD, sobol_draws
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.spaces.box import Box

POWER = 13
ROWS = 100  # Of a start design
# A node of the values before it, and of its noise.
Equation = Callable[[Mapping[str, Tensor], Tensor], Tensor]


class SettableWorld(CausalWorld):
    """A system with a table of equations, causes first; those of hidden variables are not in the graph.

    Args:
        scale: lambda, which multiplies the noise.
        size: Number of rounds, and of rows in which nothing is set; by default 100 each.
    """

    graph: ClassVar[str]
    settable: ClassVar[Mapping[str, tuple[float, float]]]
    equations: ClassVar[Mapping[str, Equation]]
    source = "Aglietti et al. (2020), Sec. 4, and released code"

    def __init__(self, scale: float = 1.0, size: Rounds = Rounds(initial=ROWS), seed: int = 0) -> None:
        self.scale = float(scale)
        task = CausalTask.of(
            {"graph": self.graph, "settable": dict(self.settable), "reward": {"weights": {"Y": -1}}}
        )
        super().__init__(task, dict.fromkeys(self.equations, STANDARD), size, seed)

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """The equation of the table."""
        return self.equations[node](inputs, noise if node == "age" else self.scale * noise)

    def mean_of(self, node: str, inputs: Mapping[str, Tensor]) -> Tensor | None:
        """As in any world; None for nodes that hidden variables move."""
        hidden = {name for pair in self.task.graph.bidirected for name in pair}
        return None if node in hidden else super().mean_of(node, inputs)

    def simulate(self, actions: Tensor, noise: Tensor) -> Tensor:
        """Node values of settings (..., k), NaN for what is not set, and noise (..., number of equations)."""
        settings = dict(zip(self.task.actions, actions.unbind(-1), strict=True))
        values = dict[str, Tensor]()
        for index, name in enumerate(self.equations):
            values[name] = self.equation(name, values, noise[..., index])
            if name in settings:
                values[name] = torch.where(settings[name].isnan(), values[name], settings[name])
        return torch.stack(torch.broadcast_tensors(*(values[node] for node in self.task.nodes)), -1)

    def noise_rows(self, count: int, stream: np.random.Generator) -> Tensor:
        """Independent noise of all equations."""
        return torch.from_numpy(stream.standard_normal((count, len(self.equations))))

    def random_actions(self, count: int, stream: np.random.Generator) -> Tensor:  # noqa: ARG002
        """Settings in which nothing is set, (count, k)."""
        return torch.full((count, len(self.settable)), torch.nan, dtype=torch.float64)

    @cached_property
    def _common(self) -> Tensor:
        return sobol_draws([STANDARD] * len(self.equations), POWER)

    def best(self) -> tuple[Tensor, float]:
        """The best of all sets, found by ascent in each."""
        ends = list[tuple[Tensor, float]]()
        for levels in self.task.sets({}):
            box = self.task.box.only([name for name in self.settable if name not in levels])
            value = partial(self._expected_in, box)
            nothing = torch.zeros(0), float(value(torch.zeros(1, len(box.names))))
            point, best = best_action(value, box, spread=256, refined=4) if box.names else nothing
            ends.append((self._settings(box, point), best))
        return max(ends, key=lambda end: end[1])

    def _settings(self, box: Box, points: Tensor) -> Tensor:
        """Settings (..., k) of the points of a set, (..., size)."""
        settings = torch.full((*points.shape[:-1], len(self.settable)), torch.nan, dtype=torch.float64)
        settings[..., [self.task.actions.index(name) for name in box.names]] = points.double()
        return settings

    def _expected_in(self, box: Box, points: Tensor) -> Tensor:
        return self.expected(self._settings(box, points))


class ToyGraph(SettableWorld):
    """A chain of three nodes, of which the last but one is best set."""

    graph = "X -> Z; Z -> Y"
    settable: ClassVar = {"X": (-5.0, 5.0), "Z": (-5.0, 20.0)}
    equations: ClassVar = {
        "X": lambda x, u: u,  # noqa: ARG005
        "Z": lambda x, u: torch.exp(-x["X"]) + u,
        "Y": lambda x, u: torch.cos(x["Z"]) - torch.exp(-x["Z"] / 20) + u,
    }


class CompleteGraph(SettableWorld):
    """Seven nodes, two of which share hidden causes with the reward."""

    graph = "F -> A; B -> C; C -> {D E}; A -> E; {D E} -> Y; A <-> Y; B <-> Y"
    settable: ClassVar = {"B": (-5.0, 4.0), "D": (-5.0, 5.0), "E": (-6.0, 3.0)}
    equations: ClassVar = {
        "U1": lambda x, u: u,  # noqa: ARG005
        "U2": lambda x, u: u,  # noqa: ARG005
        "F": lambda x, u: u,  # noqa: ARG005
        "A": lambda x, u: x["F"] ** 2 + x["U1"] + u,
        "B": lambda x, u: x["U2"] + u,
        "C": lambda x, u: torch.exp(-x["B"]) + u,
        "D": lambda x, u: torch.exp(-x["C"]) / 10 + u,
        "E": lambda x, u: torch.cos(x["A"]) + x["C"] / 10 + u,
        "Y": lambda x, u: (
            torch.cos(x["D"])
            - x["D"] / 5
            + torch.sin(x["E"])
            - x["E"] / 4
            + x["U1"]
            + torch.exp(-x["U2"])
            + u
        ),
    }


class PSA(SettableWorld):
    """Prostate-specific antigen, and two drugs whose doses follow age and weight unless they are set."""

    graph = (
        "age -> {bmi aspirin statin cancer Y}; bmi -> {aspirin statin cancer Y}; {aspirin statin} -> {cancer "
        "Y}; cancer -> Y"
    )
    settable: ClassVar = {"aspirin": (0.0, 1.0), "statin": (0.0, 1.0)}
    equations: ClassVar = {
        "age": lambda x, u: 55 + 20 * torch.special.ndtr(u),  # noqa: ARG005
        "bmi": lambda x, u: 27 - 0.01 * x["age"] + 0.7 * u,
        "aspirin": lambda x, u: torch.sigmoid(-8 + 0.1 * x["age"] + 0.03 * x["bmi"]) + 0 * u,
        "statin": lambda x, u: torch.sigmoid(-13 + 0.1 * x["age"] + 0.2 * x["bmi"]) + 0 * u,
        "cancer": lambda x, u: (
            torch.sigmoid(2.2 - 0.05 * x["age"] + 0.01 * x["bmi"] - 0.04 * x["statin"] + 0.02 * x["aspirin"])
            + 0 * u
        ),
        "Y": lambda x, u: (
            6.8
            + 0.04 * x["age"]
            - 0.15 * x["bmi"]
            - 0.6 * x["statin"]
            + 0.55 * x["aspirin"]
            + x["cancer"]
            + 0.4 * u
        ),
    }
