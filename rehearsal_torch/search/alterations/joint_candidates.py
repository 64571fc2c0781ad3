"""Candidate alterations of several variables that satisfy the chance constraint, and limits on their cost.

The z for which at least m of n scenarios are desired form a set without structure, and finding one point of
it is hard (Thm. 6). Candidates come from three sources:

1. a log-concave relaxation, in which every row g' z - h of the scenarios is normal with the mean and the
   standard deviation that it has over the scenarios at the middle of the box: prod_r Phi((h_r - g_r' z) /
   s_r). Gradient ascent finds its maximum, from which the sweeps and the programs begin;
2. mixed-integer programs over some hundred scenarios each, solved one after the other. Half of the scenarios
   that an earlier solution satisfied are dropped at random, so that each program covers other scenarios;
3. line searches through each of these points that qualifies, along the axes and in random directions. On a
   line the qualifying points form intervals, found exactly; their ends and midpoints are candidates too.

Every candidate is validated on scenarios that no program and no sweep has used. Other qualifying points may
exist: finding none proves nothing.

An `AlterationBudget` limits the cost. Setting the variables of a set to z costs sum_i w_i |z_i - r_i|, with
w_i the price per unit and r_i the value at which nothing is spent; an alteration is affordable if this is at
most the limit. The affordable region is a polytope, for one variable an interval.

Source: Qin et al. (2023), Thm. 6 and App. B.2 (the program, dropping for diversity, validation); the
relaxation and the lines are ours. Du et al. (2024), Sec. 3 (costs of alterations, there a sum of squares);
the limit beside tau is ours.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios
from rehearsal_torch.search.alterations.interval_sweep import (
    Cover,
    chord,
    intervals,
    line_sweeps,
    meet,
)
from rehearsal_torch.search.alterations.mixed_integer import solve
from rehearsal_torch.search.budget import UNLIMITED, Budget
from rehearsal_torch.search.search import in_time
from rehearsal_torch.seeding import generator

ROOM = 1e-9


@dataclass(frozen=True)
class AlterationBudget:
    """An upper bound on the cost of an alteration.

    Attributes:
        limit: Maximum cost.
        costs: Price per unit, variable to a non-negative number; 1 by default.
        reference: Value at which nothing is spent, variable to value; 0 by default.

    Raises:
        ValueError: if the limit or a price is negative.
    """

    limit: float
    costs: Mapping[str, float] = field(default_factory=dict)
    reference: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lowest = min([self.limit, *self.costs.values()])
        require(lowest >= 0, "a limit and costs of at least 0", limit=self.limit, costs=dict(self.costs))

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "AlterationBudget":
        """Builds a budget from plain data, {limit, costs, reference}, the last two optional.

        Raises:
            ValueError: if the limit is missing or another key is present.
        """
        unknown = sorted(set(plain) - {"limit", "costs", "reference"})
        if unknown or "limit" not in plain:
            raise ValueError(
                f"a budget has a limit, and optionally costs and a reference; got {sorted(plain)}"
            )
        return cls(float(plain["limit"]), dict(plain.get("costs") or {}), dict(plain.get("reference") or {}))

    def affordable(self, names: Sequence[str], actions: Tensor) -> Tensor:
        """Whether actions are within the limit, (..., k) -> (...) bool."""
        prices = actions.new_tensor([float(self.costs.get(name, 1.0)) for name in names])
        origin = actions.new_tensor([float(self.reference.get(name, 0.0)) for name in names])
        cost = (prices * (actions - origin).abs()).sum(-1)
        # A cost is a difference of actions, so its rounding error scales with their magnitude.
        exact = 4 * torch.finfo(actions.dtype).eps * (prices * (actions.abs() + origin.abs())).sum(-1)
        return cost <= self.limit * (1 + ROOM) + exact

    def reach(self, name: str) -> tuple[float, float]:
        """The affordable interval of one variable that is altered alone."""
        price, origin = float(self.costs.get(name, 1.0)), float(self.reference.get(name, 0.0))
        width = self.limit / price if price > 0 else torch.inf
        return origin - width, origin + width


def joint_candidates(
    objective: CountObjective,
    index: int,
    tau: float,
    programs: int = 3,
    scenarios: int = 100,
    nodes: int = 200,
    lines: int = 4,
    budget: Budget = UNLIMITED,
) -> Tensor:
    """Alterations that qualify in one case, (m, k); m may be 0.

    Args:
        objective: The objective of the k altered variables.
        tau: The share of scenarios that must be desired, in both samples.
        scenarios: Number of scenarios in each program.
        nodes: Maximum number of nodes of a branch-and-bound tree.
        lines: Number of random directions besides the axes.
        budget: A program gets the remaining time, and its best alteration so far is kept; no program and no
            line begins once the budget is spent.
    """
    samples = (objective.search_scenarios.one(index), objective.validation_scenarios.one(index))
    origin = objective.origin[index]
    lower, upper = objective.lower[index] - origin, objective.upper[index] - origin
    stream, first = generator(0), relaxed(samples[0], lower, upper)
    swept = line_sweeps(samples[0], lower[None], upper[None], first[None, None], 3, budget)[0][0, 0]
    solutions = programmed(samples[0], lower, upper, swept, programs, scenarios, nodes, budget, stream)
    good = [point for point in (first, swept, *solutions) if qualifies(samples, point[None], tau)[0]]
    width = len(lower)
    across = torch.randn(lines, width, dtype=torch.float64, generator=stream) * (upper - lower).cpu()
    directions = torch.cat([torch.eye(width, dtype=torch.float64), across]).to(lower)
    pairs = list(product(good, directions[(directions != 0).any(-1)]))
    on_lines = [
        point
        for begin, direction in in_time(pairs, budget)
        for point in along(samples, lower, upper, begin, direction, tau)
    ]
    points = torch.stack([*good, *on_lines]) if good else lower.new_empty(0, width)
    return origin + points[qualifies(samples, points, tau)]


def qualifies(samples: tuple[Scenarios, ...], actions: Tensor, tau: float) -> Tensor:
    """Whether enough scenarios of every sample are desired, (m, k) -> (m,) bool."""
    return torch.stack([part.share(actions.unsqueeze(-2)).squeeze(-1) >= tau for part in samples]).all(0)


def relaxed(scenarios: Scenarios, lower: Tensor, upper: Tensor, steps: int = 60) -> Tensor:
    """The maximiser of the log-concave relaxation, (k,)."""
    gains, room = scenarios.gains.mean(0), scenarios.slack[:, 0].mean(0)
    middle, width = (lower + upper) / 2, upper - lower
    spread = (scenarios.slack[:, 0] - scenarios.gains @ middle).std(0).clamp_min(1e-300)
    best, value, length = middle, torch.special.log_ndtr((room - gains @ middle) / spread).sum(), 0.5
    for _ in range(steps):
        slack = (room - gains @ best) / spread
        hazard = torch.exp(-slack.square() / 2 - 0.5 * math.log(2 * math.pi) - torch.special.log_ndtr(slack))
        ascent = -(hazard / spread) @ gains * width
        moved = (best + length * width * ascent / ascent.norm().clamp_min(1e-300)).clamp(lower, upper)
        other = torch.special.log_ndtr((room - gains @ moved) / spread).sum()
        best, value, length = (moved, other, length * 1.3) if other > value else (best, value, length / 2)
    return best


def programmed(
    scenarios: Scenarios,
    lower: Tensor,
    upper: Tensor,
    begin: Tensor,
    programs: int,
    count: int,
    nodes: int,
    budget: Budget,
    stream: torch.Generator,
) -> list[Tensor]:
    """Solutions of programs that each drop some scenarios that an earlier one satisfied; at most `programs`,
    and none that would begin once the budget is spent.
    """
    rest, answers = torch.arange(len(scenarios.gains), device=scenarios.gains.device), []
    box = (lower.cpu().numpy(), upper.cpu().numpy())
    for _ in range(programs):
        if budget.out():
            break
        part = scenarios.some(rest[:count])
        known = int(part.desired(begin[None]).sum())
        solution = solve(
            part.gains.cpu().numpy(), part.slack[:, 0].cpu().numpy(), *box, known, nodes, budget.left(), 0.01
        )
        if solution.action is not None:
            answer = torch.from_numpy(np.asarray(solution.action)).to(begin)
            answers.append(answer.clamp(lower, upper))
        satisfied = part.desired(answers[-1][None] if answers else begin[None])[:, 0]
        dropped = satisfied & (torch.rand(len(satisfied), generator=stream) < 0.5).to(satisfied.device)
        rest = torch.cat([rest[:count][~dropped], rest[count:]])
    return answers


def along(
    samples: tuple[Scenarios, ...],
    lower: Tensor,
    upper: Tensor,
    point: Tensor,
    direction: Tensor,
    tau: float,
) -> list[Tensor]:
    """Ends and midpoints of the intervals that qualify in both samples on the line through a point, (k,)
    each.
    """
    first, last = chord(point[None], direction[None], lower, upper)
    unions = []
    for part in samples:
        slack = part.slack - (part.gains @ point).unsqueeze(-2)
        left, right = intervals(part.gains @ direction, slack, first, last)
        unions.append(Cover.of(left[:, 0], right[:, 0]).at_least(math.ceil(tau * len(left) - 1e-9)).to(point))
    both = meet(*unions)
    steps = torch.cat([both[:, 0], both[:, 1], both.mean(-1)])
    return list((point + steps.unsqueeze(-1) * direction).clamp(lower, upper))
