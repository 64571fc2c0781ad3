"""The reward of a step as a task of episodes states it: weights of states, a score, and costs of actions.

    R(s, a) = sum_i w_i s_i  -  score(s, a)  -  sum_j c_j(a_j)

The score adds up points beyond limits (`objectives.step_score`). The cost of an action is that of its level,
or its amount times the cost of one unit. If an action has a cost, R depends on it; a recommendation may then
gain by sparing costs, by better states, or both: the returns without and with costs are reported beside
each other (`EpisodeReward.related`).

A bound over a box of states is the sum of the bounds of the parts. It is exact if no state is in two parts.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7 (R is any function of state and action); ours otherwise.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.objectives.reward import BoundedReward, Doses, LinearReward, Reward
from rehearsal_torch.objectives.step_score import StepScore

WITHOUT, WITH = "without costs", "with costs"
Costs = Mapping[str, float | Sequence[float]]


def episode_reward(
    weights: Mapping[str, float] | None = None,
    components: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
    costs: Costs | None = None,
    doses: Sequence[str] = (),
    name: str | None = None,
) -> BoundedReward:
    """The reward of the parts that are given: a `LinearReward` or a `StepScore` if it is one of them alone.

    Args:
        weights: State to weight, in 1 / the state's unit.
        components: Part of the score to its criteria; see `StepScore`.
        costs: Action to the cost of one unit, or to that of each level 0 ... L - 1.
        doses: The names of the actions among the quantities of the score.
        name: What tables and figures call the reward, or the score if it is alone.

    Raises:
        ValueError: if nothing is given, or a part is wrong.
    """
    parts: list[BoundedReward] = []
    if weights:
        parts.append(LinearReward(weights))
    if components:
        parts.append(StepScore(components, doses, name=name or "score"))
    if len(parts) == 1 and not costs:
        return parts[0]
    return EpisodeReward(parts, costs)


class EpisodeReward(BoundedReward):
    """A sum of rewards, minus costs of actions.

    Args:
        parts: Rewards that are added up; may be empty if there are costs.
        costs: Action to the cost of one unit of it, or to that of each of its levels 0 ... L - 1.

    Raises:
        ValueError: if there is neither part nor cost, or a cost is not a finite number.
    """

    def __init__(self, parts: Sequence[BoundedReward] = (), costs: Costs | None = None) -> None:
        self.parts = tuple(parts)
        if costs is not None and not isinstance(costs, Mapping):
            raise ValueError(f"reward.costs: expected {{action: cost}}; got {costs!r}")
        self.costs = {str(name): _cost(str(name), cost) for name, cost in (costs or {}).items()}
        if not self.parts and not self.costs:
            raise ValueError(
                "reward: expected weights, components or costs; got none: name them in the task, or choose "
                "reward=linear 'objective.reward.weights={NAME: 1}'"
            )

    @property
    def acts(self) -> bool:
        """Whether R depends on the action."""
        return bool(self.costs) or any(part.acts for part in self.parts)

    @property
    def reads(self) -> tuple[str, ...]:
        """The states of all parts."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.reads))

    @property
    def reads_doses(self) -> tuple[str, ...]:
        """The actions of the score, and those with costs."""
        names = (name for part in self.parts for name in part.reads_doses)
        return tuple(dict.fromkeys([*names, *self.costs]))

    def tolerant(self, names: Sequence[str], state_scale: Tensor) -> Self:
        """The sum of the tolerant parts, minus costs."""
        found = copy(self)
        found.parts = tuple(part.tolerant(names, state_scale) for part in self.parts)
        return found

    def related(self) -> Mapping[str, Reward]:
        """The reward "without costs" and "with costs", if it has both; and what is guarded."""
        found: dict[str, Reward] = {}
        if self.costs and self.parts:
            found = {WITHOUT: EpisodeReward(self.parts), WITH: self}
        return found | dict(self.guarded())

    def guarded(self) -> Mapping[str, Reward]:
        """What its parts guard, added up name by name: a score that reads doses is guarded beside costs and
        weights as it is alone.
        """
        found: dict[str, list[BoundedReward]] = {}
        for part in self.parts:
            for name, each in part.guarded().items():
                if isinstance(each, BoundedReward):
                    found.setdefault(name, []).append(each)
        return {name: EpisodeReward(rewards) for name, rewards in found.items()}

    def __call__(self, states: Tensor, names: Sequence[str], doses: Doses | None = None) -> Tensor:
        """R, (..., D) -> (..., A), or (..., 1) if it does not depend on the action.

        Raises:
            ValueError: if it depends on the action and the actions are missing.
        """
        return self._total(lambda part: part(states, names, doses), states, doses)

    def highest(
        self, lower: Tensor, upper: Tensor, names: Sequence[str], doses: Doses | None = None
    ) -> Tensor:
        """The sum of the parts' bounds, minus costs, (..., D), (..., D) -> (..., A) or (..., 1)."""
        return self._total(lambda part: part.highest(lower, upper, names, doses), lower, doses)

    def lipschitz(self, names: Sequence[str], state_scale: Tensor) -> float:
        """The sum of the parts' constants; costs do not depend on the state."""
        return sum((part.lipschitz(names, state_scale) for part in self.parts), 0.0)

    def cost(self, doses: Doses) -> Tensor:
        """The costs of all actions together, (..., A), in the reward's unit."""
        total = torch.zeros_like(doses.values[..., 0])
        for name, cost in self.costs.items():
            amount = doses.column(name)
            if cost.ndim:
                level = amount.round().long().clamp(0, len(cost) - 1)
                total = total + cost.to(total)[level]
            else:
                total = total + cost.to(total) * amount
        return total

    def _total(self, value: Callable[[BoundedReward], Tensor], states: Tensor, doses: Doses | None) -> Tensor:
        if self.acts and doses is None:
            raise ValueError(
                f"this reward reads the actions {list(self.reads_doses)}: pass those of each step"
            )
        total = states.new_zeros(*states.shape[:-1], 1)
        for part in self.parts:
            total = total + value(part)
        if self.costs and doses is not None:
            total = total - self.cost(doses).to(total)
        return total


def _cost(name: str, cost: float | Sequence[float]) -> Tensor:
    """A cost as a tensor, () for one unit, (L,) for levels."""
    numbers = list(cost) if isinstance(cost, Sequence) and not isinstance(cost, str) else [cost]
    if not numbers or any(
        isinstance(each, bool) or not isinstance(each, int | float) or not math.isfinite(each)
        for each in numbers
    ):
        raise ValueError(
            f"reward.costs.{name}: expected a finite number, or one for each level; got {cost!r}"
        )
    found = torch.tensor([float(each) for each in numbers], dtype=torch.float64)
    return found if isinstance(cost, Sequence) else found[0]
