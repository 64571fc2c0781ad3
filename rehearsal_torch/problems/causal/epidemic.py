"""Calibrating an epidemic model: two groups, three periods, and contact rates that should reproduce targets.

I_{i,t} percent of group i are infectious. With contact rates b_{ij,t} and a share g that recovers per period,

    I_{i,t} = I_{i,t-1} (1 - g) + (1 - I_{i,t-1} / 100) sum_j b_{ij,t} I_{j,t-1} + U_{i,t},      I_{i,0} = 1,
    t = 1, 2, 3,

and the reward is -mean_{i,t} (I_{i,t} - target_{i,t})^2; Astudillo and Frazier take the sum. Targets are the
noise-free values under the true rates. Noise is in percent and propagates; values are not clipped at 0.

The reward is a polynomial: of degree 8 in the noise of t = 1, 4 in that of t = 2, 2 in that of t = 3. A Gauss
rule with 5 x 5 x 3 x 3 points gives E[r | a] exactly. Its maximum is not at the true rates: the variance is
penalised as well, and lower rates propagate less noise. No a reaches more than -Var U, as every node has
noise of its own. The maximum is searched for from many starts.

Source: Ren et al. (2025), Sec. 7.4 and 11.5; the true rates: released code of Astudillo and Frazier (2021).
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import TargetError
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.causal.noise import ModalNoise, product_rule
from rehearsal_torch.problems.causal.optimum import best_action
from rehearsal_torch.problems.causal.world import CausalWorld, in_parts
from rehearsal_torch.problems.world_size import Rounds, setting
from rehearsal_torch.spaces.box import Box

# b_{ij,t}: period, group that is infected, group that infects.
RATES = (((0.30, 0.05), (0.10, 0.70)), ((0.60, 0.05), (0.10, 0.80)), ((0.20, 0.05), (0.10, 0.20)))
RECOVERY = 0.5
START = 1.0
GROUPS, PERIODS = (1, 2), (1, 2, 3)
NODES = tuple(f"I{group}{period}" for period in PERIODS for group in GROUPS)
RECOVERS = "g"


def rate(group: int, source: int, period: int) -> str:
    """The name of b_{ij,t}."""
    return f"b{group}{source}{period}"


class Epidemic(CausalWorld):
    """Calibration of an epidemic model.

    Args:
        noise: Level and modes of the noise, in percent.
        actions: 12, the rates, or 13, the recovery as well.
        inputs: The parents that the graph gives a node besides the other nodes: the "block" of the four rates
            of its period (as in the released code), or the two of its own "row", the only ones that matter.
        size: Number of rounds and of experiments in the start design; by default 100 and 26 or 28.
    """

    source = "Ren et al. (2025), Sec. 7.4 and 11.5; Astudillo and Frazier (2021)"

    def __init__(
        self,
        noise: ModalNoise = ModalNoise(0.1),
        actions: int = 12,
        inputs: Literal["block", "row"] = "block",
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        if actions not in (12, 13) or inputs not in ("block", "row"):
            raise ValueError(
                f"expected 12 or 13 actions and inputs of block or row; got {actions} and {inputs!r}"
            )
        rates = [rate(group, source, period) for period in PERIODS for group in GROUPS for source in GROUPS]
        box = Box.of(dict.fromkeys(rates + [RECOVERS] * (actions == 13), (0.0, 1.0)))
        parents = {}
        for node in NODES:
            group, period = int(node[1]), int(node[2])
            before = [f"I{source_group}{period - 1}" for source_group in GROUPS] if period > 1 else []
            rows = GROUPS if inputs == "block" else (group,)
            parents[node] = [
                *before,
                *(rate(row, source, period) for row in rows for source in GROUPS),
                *([RECOVERS] if actions == 13 else []),
            ]
        truth = [value for block in RATES for row in block for value in row] + [RECOVERY] * (actions == 13)
        self.true_action = torch.tensor(truth, dtype=torch.float64)
        task = CausalTask(RehearsalGraph.of(parents), box, TargetError(_targets()))
        super().__init__(
            task, dict.fromkeys(NODES, setting("noise", noise, ModalNoise).mixture()), size, seed
        )

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """The next state of one group."""
        group, period = int(node[1]), int(node[2])
        before = {
            source: inputs[f"I{source}{period - 1}"]
            if period > 1
            else torch.tensor(START, dtype=torch.float64)
            for source in GROUPS
        }
        met = sum(
            (inputs[rate(group, source, period)] * before[source] for source in GROUPS),
            torch.zeros((), dtype=torch.float64),
        )
        return (
            before[group] * (1 - inputs.get(RECOVERS, torch.tensor(RECOVERY, dtype=torch.float64)))
            + (1 - before[group] / 100) * met
            + noise
        )

    def expected(self, actions: Tensor) -> Tensor:
        """E[r | a], exact: a Gauss rule for the noise of t = 1 and 2, and the variance of that of t = 3."""
        points, weights = self._rule
        mean = in_parts(
            lambda part: self.rewards(self.simulate(part[:, None], points)) @ weights, actions, 1000
        )
        return mean - self.noise[NODES[-1]].variance / 3

    @cached_property
    def _rule(self) -> tuple[Tensor, Tensor]:
        distribution = self.noise[NODES[0]]
        points, weights = product_rule([distribution] * 4, (5, 5, 3, 3))
        return torch.cat([points, points.new_full((len(points), 2), distribution.mean)], -1), weights

    def best(self) -> tuple[Tensor, float]:
        """The best value found from the true rates and the seven best of 1024 Sobol points; six targets do
        not determine all rates.
        """
        return best_action(
            self.expected, self.task.box, self.true_action[None], spread=1024, refined=8, steps=500
        )

    @property
    def ceiling(self) -> float:
        """An upper bound of E[r | a]: the variance of every node's own noise is always lost."""
        return -self.noise[NODES[0]].variance

    def details(self) -> Mapping[str, Any]:
        """The reward at the true rates, and its upper bound."""
        return {"at the true rates": float(self.expected(self.true_action)), "ceiling": self.ceiling}


def _targets() -> dict[str, float]:
    state, targets = [START, START], {}
    for period, rates in zip(PERIODS, RATES, strict=True):
        state = [
            own * (1 - RECOVERY) + (1 - own / 100) * (row[0] * state[0] + row[1] * state[1])
            for own, row in zip(state, rates, strict=True)
        ]
        targets.update({f"I{group}{period}": value for group, value in zip(GROUPS, state, strict=True)})
    return targets
