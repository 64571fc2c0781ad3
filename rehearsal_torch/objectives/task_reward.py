"""The reward of one step of an episode: weights of states, a step score, and costs of actions.

    R(s, a) = sum_i w_i s_i  -  score(s, a)  -  sum_j c_j(a_j)

The cost of an action is that of its level, or its amount times the cost of one unit. If an action has a cost,
R depends on it; a recommendation may then gain by sparing costs, by better states, or both: the returns
without and with costs are reported beside each other (`EpisodeReward.related`).

A bound over a box of states is the sum of the bounds of the parts. It is exact if no state is in two parts.

A step score (`StepScore`) adds up points, as clinical severity scores do. It has components (organs, for
instance), and each of these has criteria, a measured quantity x with rules such as "x < 300: 2 points"; a
criterion gives the largest number of points of its rules that hold, or 0, and a component the largest of its
criteria:

    R(s, a) = - sum over components c of  max over criteria j of c of  p_j(x_j),

with x_j a state variable, a dose of the action, or the ratio of two of them. Each p_j is a step function: its
rules divide the real line into cells, with the smallest number that does not fulfil a strict rule as a border
(exact in float64), so that a score costs one search of a sorted list per criterion.

Over a box of states a criterion's quantity lies in an interval: that of the variable, or the quotient of two
intervals (the whole line if the denominator's contains 0). Its points are at least the smallest in the cells
that the interval meets, found in a table of all pairs of first and last cell. Hence

    R(s, a) <= - sum over c of  max over j of c of  min of p_j over the interval of x_j.

The bound is exact if no variable is read twice.

A replay returns the observed states up to rounding, so that a value at a limit would fall on either side by
chance. States of a model are therefore scored by rules with a tolerance (`StepScore.tolerant`): a value
counts as equal to a limit if it differs from it by at most 1e-9 of the variable's range in the training
table, but, as one stray value makes a range wide, by no more than 1e-6 of the limit plus 1 or, if that is
larger, 1e-13 of the range, which rounding needs; by 1e-9 of the limit for a ratio, and of the limit plus 1
for a variable on a logarithmic scale. Borders move by the tolerance: it is a step score again. Doses are
compared exactly.

If a criterion reads a dose, the score also falls when the drug is withheld, whatever happens to the patient;
`StepScore.without_doses` leaves these criteria out. Both scores are reported for the same actions
(`StepScore.related`), and a change is recommended only where neither falls (`claims.sequence_rules`).

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7 (R is any function of state and action); the SOFA score by
the rules in `conf/reward/sofa_score.yaml` (Vincent et al., 1996; Komorowski et al., 2018).
"""

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.records import positions
from rehearsal_torch.objectives.step_reward import BoundedReward, Doses, LinearReward, Reward

RULE = re.compile(r"^\s*(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*$")
MAX_RULES = 1000
# Shares of a state's range, and of the limit, within which the state counts as equal to the limit.
TOLERANCE, ROUNDING = 1e-9, 16 * sys.float_info.epsilon
# Bounds of the tolerance: at most this share of the limit plus 1, at least that share of the range.
MOST, LEAST = 1e-6, 1e-13
WITHOUT_DOSES, WITH_DOSES = "without doses", "with doses"

Rules = Mapping[str, float]


@dataclass(frozen=True)
class StepFunction:
    """A step function p of one number."""

    edges: Tensor  # (m,), increasing; cell j contains the x with edges[j - 1] < x <= edges[j]
    points: Tensor  # (m + 1,), the value in each cell

    @classmethod
    def of(cls, rules: Rules, where: str, scale: float | None = None) -> "StepFunction":
        """The function of rules, comparisons with points: {"< 300": 2, "< 200": 3} gives the largest value of
        those that hold, 0 if none does. A ValueError if a rule cannot be parsed, or points are not finite.

        Args:
            scale: The range of the number, of which `TOLERANCE` counts as equal to a limit; 0 for that share
                of the limit itself, infinite for that of the limit plus 1, None for an exact comparison.
        """
        if not isinstance(rules, Mapping) or not 0 < len(rules) <= MAX_RULES:
            raise ValueError(
                f'{where}: expected 1 to {MAX_RULES} rules, such as {{"< 300": 2, "< 200": 3}}; got {rules!r}'
            )
        cuts = [_rule(text, points, where, scale) for text, points in rules.items()]
        edges = sorted({border for border, _, _ in cuts})
        rank = {border: cell for cell, border in enumerate(edges)}
        points = [
            max([0.0] + [value for border, above, value in cuts if (cell > rank[border]) == above])
            for cell in range(len(edges) + 1)
        ]
        return cls(torch.tensor(edges, dtype=torch.float64), torch.tensor(points, dtype=torch.float64))

    def __call__(self, values: Tensor) -> Tensor:
        """p(x), (...) -> (...), float64; NaN where x is."""
        points = self.points.to(values.device)[self._cells(values)]
        return torch.where(values.isnan(), torch.nan, points)

    def lowest(self, lower: Tensor, upper: Tensor) -> Tensor:
        """The smallest p(x) with lower <= x <= upper, (...), (...) -> (...); a NaN at an end is infinite."""
        if self._falls:
            return self.points.to(upper.device)[self._cells(upper.nan_to_num(math.inf, math.inf, -math.inf))]
        if self._rises:
            return self.points.to(lower.device)[self._cells(lower.nan_to_num(-math.inf, math.inf, -math.inf))]
        first = self._cells(lower.nan_to_num(-math.inf, math.inf, -math.inf))
        last = self._cells(upper.nan_to_num(math.inf, math.inf, -math.inf))
        return self._least.to(lower.device)[first, last]

    @cached_property
    def _falls(self) -> bool:
        return bool((self.points.diff() <= 0).all())

    @cached_property
    def _rises(self) -> bool:
        return bool((self.points.diff() >= 0).all())

    @cached_property
    def _least(self) -> Tensor:
        """The smallest points of the cells from i to j, (m + 1, m + 1); infinite for j < i."""
        table = self.points.expand(len(self.points), -1).clone()
        return table.masked_fill_(torch.ones_like(table, dtype=torch.bool).tril(-1), math.inf).cummin(-1)[0]

    def _cells(self, values: Tensor) -> Tensor:
        return torch.bucketize(values.to(torch.float64).contiguous(), self.edges.to(values.device))


@dataclass(frozen=True)
class Criterion:
    """Points for one measured quantity."""

    over: str  # The variable or dose, or the numerator
    per: str  # The denominator; empty if there is none
    steps: StepFunction  # Its points
    rules: Rules  # The rules that `steps` was made of

    @property
    def names(self) -> tuple[str, ...]:
        """The variables and doses that it reads."""
        return (self.over, self.per) if self.per else (self.over,)


class StepScore(BoundedReward):
    """Minus a score, the sum over components of the largest criteria; a ValueError for invalid rules.

    Args:
        components: Component to criteria; quantity (state or dose, or a ratio "A / B") to rules {"< 300": 2}.
        without_doses: Whether to leave out all criteria that read one of `doses`.
        doses: The names of the doses among the quantities.
        name: The score's name, in tables and figures.
    """

    def __init__(
        self,
        components: Mapping[str, Mapping[str, Rules]],
        doses: Sequence[str] = (),
        without_doses: bool = False,
        name: str = "score",
    ) -> None:
        if isinstance(doses, str) or not all(isinstance(name, str) for name in doses or ()):
            raise ValueError(f"reward.doses: expected a list of names, such as [vasopressor]; got {doses!r}")
        self.doses, self.without_doses, self.name = tuple(doses or ()), without_doses, name
        self._rules = components
        if not isinstance(components, Mapping) or not components:
            raise ValueError(
                "reward.components: expected components with criteria, such as "
                f'{{lungs: {{paO2 / FiO2_1: {{"< 300": 2}}}}}}; got {components!r}'
            )
        self.components: dict[str, tuple[Criterion, ...]] = {}
        left_out = set(self.doses) if without_doses else set()
        for component, rules in components.items():
            criteria = [item for item in _criteria(str(component), rules) if not left_out & set(item.names)]
            if criteria:
                self.components[str(component)] = tuple(criteria)
        if not self.components:
            raise ValueError(
                "reward.components: expected a criterion that reads a state variable; all of them read "
                "doses, which without_doses=true leaves out"
            )

    def tolerant(self, names: Sequence[str], state_scale: Tensor) -> Self:
        """The score of replayed states: values within the tolerance of a limit count as equal to it."""
        scales = dict(zip(names, state_scale.tolist(), strict=True))
        score = copy(self)
        score.components = {
            component: tuple(self._tolerant(criterion, scales, component) for criterion in criteria)
            for component, criteria in self.components.items()
        }
        return score

    def _tolerant(self, criterion: Criterion, scales: Mapping[str, float], component: str) -> Criterion:
        if not set(criterion.names) & scales.keys():
            return criterion
        scale = 0.0 if criterion.per else scales[criterion.over]
        steps = StepFunction.of(criterion.rules, f"reward.components.{component}", scale)
        return replace(criterion, steps=steps)

    def related(self) -> Mapping[str, Reward]:
        """The score "without doses" and "with doses"; empty if it reads no dose, or nothing else."""
        complete, states_only = self, self
        if self.without_doses:
            complete = StepScore(self._rules, self.doses, name=self.name)
        if not complete.acts or not complete.reads:
            return {}
        if not self.without_doses:
            states_only = StepScore(self._rules, self.doses, without_doses=True, name=self.name)
        return {WITHOUT_DOSES: states_only, WITH_DOSES: complete}

    def guarded(self) -> Mapping[str, Reward]:
        """Both: a change that raises one score by lowering the other is no improvement."""
        return self.related()

    @property
    def reads(self) -> tuple[str, ...]:
        """The state variables of the criteria."""
        return tuple(name for name in self._names() if name not in self.doses)

    @property
    def reads_doses(self) -> tuple[str, ...]:
        """The doses of the criteria."""
        return tuple(name for name in self._names() if name in self.doses)

    @property
    def greatest(self) -> float:
        """0: points count against a step."""
        return 0.0

    @property
    def acts(self) -> bool:
        """Whether a criterion reads a dose."""
        return bool(self.reads_doses)

    def __call__(self, states: Tensor, names: Sequence[str], doses: Doses | None = None) -> Tensor:
        """R, (..., D) -> (..., A), or (..., 1) if no criterion reads a dose; else doses are required."""
        if self.acts and doses is None:
            raise ValueError(f"this score reads the doses {self.doses}: pass the doses of each action")
        points = self._total(lambda part: part.steps(self._quantity(part, states, names, doses)), doses)
        shape = torch.broadcast_shapes(points.shape, (*states.shape[:-1], 1))
        return -points.to(states.dtype).expand(shape)

    def highest(
        self, lower: Tensor, upper: Tensor, names: Sequence[str], doses: Doses | None = None
    ) -> Tensor:
        """(..., D), (..., D) -> (..., A), or (..., 1) if no criterion reads a dose."""
        ends = lower, upper
        points = self._total(lambda part: part.steps.lowest(*self._interval(part, ends, names, doses)), doses)
        shape = torch.broadcast_shapes(points.shape, (*lower.shape[:-1], 1))
        return -points.to(lower.dtype).expand(shape)

    def lipschitz(self, names: Sequence[str], state_scale: Tensor) -> float:  # noqa: ARG002
        """Infinite: the score jumps."""
        return math.inf

    def _total(self, points: Callable[[Criterion], Tensor], doses: Doses | None) -> Tensor:
        """The sum over components of the largest points of their criteria."""
        largest = [
            reduce(torch.maximum, [self._where_given(item, points(item), doses) for item in criteria])
            for criteria in self.components.values()
        ]
        return reduce(torch.add, largest)

    def _where_given(self, criterion: Criterion, points: Tensor, doses: Doses | None) -> Tensor:
        """The points of a criterion, 0 where it reads a dose and nothing was done."""
        for name in criterion.names:
            if doses is not None and name in self.doses:
                points = points.where(~doses.column(name).isnan(), 0.0)
        return points

    def _names(self) -> tuple[str, ...]:
        names = (name for group in self.components.values() for item in group for name in item.names)
        return tuple(dict.fromkeys(names))

    def _quantity(
        self, criterion: Criterion, states: Tensor, names: Sequence[str], doses: Doses | None
    ) -> Tensor:
        """The quantity of a criterion, (..., 1), or (..., A) if it is a dose."""
        numerator, *denominator = (
            doses.column(name)
            if doses is not None and name in self.doses
            else states[..., positions(names, (name,))]
            for name in criterion.names
        )
        return numerator / denominator[0] if denominator else numerator

    def _interval(
        self, criterion: Criterion, ends: tuple[Tensor, Tensor], names: Sequence[str], doses: Doses | None
    ) -> tuple[Tensor, Tensor]:
        """The ends of the quantity of a criterion over a box, (..., 1) or (..., A) each."""
        if not criterion.per:
            lower, upper = (self._quantity(criterion, end, names, doses) for end in ends)
            return lower, upper
        numerator, denominator = (replace(criterion, over=name, per="") for name in criterion.names)
        parts = torch.broadcast_tensors(
            *(self._quantity(numerator, end, names, doses) for end in ends),
            *(self._quantity(denominator, end, names, doses) for end in ends),
        )
        quotients = torch.stack([parts[i] / parts[j] for i in (0, 1) for j in (2, 3)])
        unbounded = ~((parts[2] > 0) | (parts[3] < 0)) | quotients.isnan().any(0)
        lower, upper = quotients.aminmax(dim=0)
        return lower.masked_fill(unbounded, -math.inf), upper.masked_fill(unbounded, math.inf)


def _criteria(component: str, criteria: Mapping[str, Rules]) -> tuple[Criterion, ...]:
    key = f"reward.components.{component}"
    if not isinstance(criteria, Mapping) or not criteria:
        raise ValueError(f'{key}: expected criteria, such as {{MeanBP: {{"< 70": 1}}}}; got {criteria!r}')
    parsed = []
    for quantity, rules in criteria.items():
        parts = [part.strip() for part in str(quantity).split("/")]
        if len(parts) > 2 or not all(parts):
            raise ValueError(f"{key}: expected a variable or a ratio A / B; got {quantity!r}")
        denominator = parts[1] if len(parts) == 2 else ""
        parsed.append(Criterion(parts[0], denominator, StepFunction.of(rules, key), rules))
    return tuple(parsed)


def _rule(text: str, points: float, key: str, scale: float | None) -> tuple[float, bool, float]:
    """The border of a rule, whether it holds above it, and its points: x <= border, or x > border."""
    match = RULE.match(str(text))
    numeric = isinstance(points, int | float) and not isinstance(points, bool)
    if match is None or not numeric or not math.isfinite(points) or points < 0:
        raise ValueError(
            f'{key}: expected a comparison and points of at least 0, such as "< 300": 2; got '
            f"{text!r}: {points!r}"
        )
    sign, border = match.group(1), float(match.group(2))
    if not math.isfinite(border):
        raise ValueError(f"{key}: expected a finite number; got {text!r}")
    margin = 0.0
    if scale is not None:
        size = abs(border)
        if not scale:
            margin = TOLERANCE * size
        elif math.isfinite(scale):
            margin = min(TOLERANCE * scale, max(MOST * (1 + size), LEAST * scale))
        else:
            margin = TOLERANCE * (1 + size)
        margin += ROUNDING * size
    if sign in ("<", ">="):
        return min(math.nextafter(border, -math.inf), border - margin), sign == ">=", float(points)
    return border + margin, sign == ">", float(points)


WITHOUT_COSTS, WITH_COSTS = "without costs", "with costs"
Costs = Mapping[str, float | Sequence[float]]


def episode_reward(
    weights: Mapping[str, float] | None = None,
    components: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
    costs: Costs | None = None,
    doses: Sequence[str] = (),
    name: str | None = None,
) -> BoundedReward:
    """The reward of the given parts (else a ValueError), a `LinearReward` or `StepScore` if it is one alone.

    Args:
        weights: State to weight, in 1 / the state's unit.
        components: Part of the score to its criteria; see `StepScore`.
        costs: Action to the cost of one unit, or to that of each level 0 ... L - 1.
        doses: The names of the actions among the quantities of the score.
        name: What tables and figures call the reward, or the score if it is alone.
    """
    parts: list[BoundedReward] = []
    if weights:
        parts.append(LinearReward(weights))
    if components:
        parts.append(StepScore(components, doses, name=name or "score"))
    return parts[0] if len(parts) == 1 and not costs else EpisodeReward(parts, costs)


class EpisodeReward(BoundedReward):
    """A sum of rewards, minus costs of actions; a ValueError if there is neither, or a cost is not finite.

    Args:
        parts: Rewards that are added up; may be empty if there are costs.
        costs: Action to the cost of one unit of it, or to that of each of its levels 0 ... L - 1.
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
    def greatest(self) -> float:
        """The sum of the parts', where no cost is negative."""
        free = all(bool((cost >= 0).all()) for cost in self.costs.values())
        return sum((part.greatest for part in self.parts), 0.0) if free else math.inf

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
        reward = copy(self)
        reward.parts = tuple(part.tolerant(names, state_scale) for part in self.parts)
        return reward

    def related(self) -> Mapping[str, Reward]:
        """The reward "without costs" and "with costs", if it has both; and the guarded rewards."""
        rewards: dict[str, Reward] = {}
        if self.costs and self.parts:
            rewards = {WITHOUT_COSTS: EpisodeReward(self.parts), WITH_COSTS: self}
        return rewards | dict(self.guarded())

    def guarded(self) -> Mapping[str, Reward]:
        """The guarded rewards of its parts, added up name by name, without costs and weights."""
        parts: dict[str, list[BoundedReward]] = {}
        for part in self.parts:
            for name, reward in part.guarded().items():
                if isinstance(reward, BoundedReward):
                    parts.setdefault(name, []).append(reward)
        return {name: EpisodeReward(rewards) for name, rewards in parts.items()}

    def __call__(self, states: Tensor, names: Sequence[str], doses: Doses | None = None) -> Tensor:
        """R, (..., D) -> (..., A), or (..., 1) if R depends on no action; else doses are required."""
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
            present = ~doses.column(name).isnan()
            amount, price = doses.column(name).where(present, 0.0), cost.to(total)
            charge = price[amount.round().long().clamp(0, len(price) - 1)] if price.ndim else price * amount
            total = total + charge.where(present, 0.0)
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


def _cost(key: str, cost: float | Sequence[float]) -> Tensor:
    """A cost as a tensor, () for one unit, (L,) for levels."""
    numbers = list(cost) if isinstance(cost, Sequence) and not isinstance(cost, str) else [cost]
    if not numbers or any(
        isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number)
        for number in numbers
    ):
        raise ValueError(f"reward.costs.{key}: expected a finite number, or one for each level; got {cost!r}")
    costs = torch.tensor([float(number) for number in numbers], dtype=torch.float64)
    return costs if isinstance(cost, Sequence) else costs[0]
