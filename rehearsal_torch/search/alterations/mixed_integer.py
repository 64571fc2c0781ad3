"""Mixed-integer programs: the alteration of several variables that satisfies most scenarios.

    maximise sum_i e_i   subject to   g_ir' z <= h_ir + (1 - e_i) a_ir,    e_i in {0, 1},    l <= z <= u,

over scenarios i and their rows r. Any a_ir that is large enough is valid; the smallest one, the maximum over
the box of g_ir' z - h_ir, makes the relaxation tight. Rows that hold in the whole box are left out, and so
are scenarios that hold nowhere in it.

HiGHS solves a program of some hundred scenarios in about a second. Its solution is therefore only a start:
this solution, and the one that sweeps find by themselves, are swept over all scenarios, and the best under
all of them is kept. One variable needs no program, as the sweep is exact.

The branch-and-bound tree is limited by nodes, so that a result does not depend on the load of the machine
unless a time budget ends it. A truncated tree keeps its best alteration; ``program_gap`` is the relative gap
to the program's optimum.

Candidates. The z for which at least m of n scenarios are desired form a set without structure, and finding
one point of it is hard (Thm. 6). Candidates that satisfy a chance constraint come from three sources:

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

Source: Qin et al. (2023), Thm. 6, App. B.2 and C (the program, there with one constant for all rows, dropping
for diversity, validation); the relaxation and the lines are ours. Du et al. (2024), Sec. 3 (costs of
alterations, there a sum of squares); the limit beside tau is ours.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios
from rehearsal_torch.search.alterations.interval_sweep import (
    Cover,
    best_of,
    chord,
    intervals,
    line_sweeps,
    meet,
    swept,
)
from rehearsal_torch.search.search import UNLIMITED, BatchSearch, Budget, chosen, in_time
from rehearsal_torch.seeding import generator

# Range of box widths for which a program is solved in the actions' own units.
ORDINARY_BOX = (1e-2, 1e4)


@dataclass(frozen=True)
class Solution:
    """The solution of a program."""

    action: np.ndarray | None  # (k,), or None if the tree was truncated before it found one
    count: int  # Number of desired scenarios according to the program
    bound: float  # Upper bound on that number


@dataclass(eq=False)
class MixedInteger(BatchSearch[Candidates[CountObjective]]):
    """The alteration of any number of variables that satisfies most scenarios.

    Args:
        scenarios: Number of scenarios in the program.
        nodes: Maximum number of nodes of the branch-and-bound tree.
        gap: Relative gap at which the program stops.
        starts: Number of starts of the sweeps.
        rounds: Maximum number of sweeps over all lines.
        screening_draws: Number of scenarios that are swept from all starts.
        budget_s: See `Search`; a program gets the remaining time, and a step is a sweep along one line.
    """

    scenarios: int = 100
    nodes: int = 500
    gap: float = 0.01
    starts: int = 8
    rounds: int = 10
    screening_draws: int = 500
    batch_size: int = 32
    budget_s: float | None = None

    def __post_init__(self) -> None:
        names = ("scenarios", "nodes", "starts", "rounds", "screening_draws", "batch_size")
        self.check_sizes(*names, fits=self.gap >= 0, gap=self.gap)

    @torch.no_grad()
    def batch_search(self, objective: Candidates[CountObjective]) -> list[Decision]:
        """Returns the best set and action for each case."""
        budget = Budget(self.budget_s)
        sets = objective.sets
        actions, traces = zip(
            *(self.best(candidate, budget) for candidate in in_time(sets, budget)), strict=True
        )
        values = torch.stack([candidate.share(best) for candidate, best in zip(sets, actions, strict=False)])
        winner = values.argmax(0).tolist()
        facts = [traces[which][index] for index, which in enumerate(winner)]
        return chosen(objective, list(actions), values, "mixed_integer", budget, facts, self.declines)

    def best(
        self, objective: CountObjective, budget: Budget = UNLIMITED
    ) -> tuple[Tensor, list[dict[str, Any]]]:
        """The best actions of one set, (B, k), and for each the remaining gap of its program."""
        if len(objective.names) == 1:
            return swept(objective, 1, 1, self.screening_draws), [{} for _ in objective.cases]
        some, origin = objective.search_scenarios.first(self.scenarios), objective.origin
        alone = swept(objective, self.starts, self.rounds, self.screening_draws, budget) - origin
        known = some.desired(alone).sum(0).tolist()
        answers, facts = alone.clone(), list[dict[str, Any]]()
        box = (objective.lower - origin, objective.upper - origin)
        gains, lower, upper = some.gains.cpu().numpy(), box[0].cpu().numpy(), box[1].cpu().numpy()
        for index in range(len(alone)):
            if budget.out():
                facts.append({})
                continue
            slack, reached = some.slack[:, index].cpu().numpy(), int(known[index])
            limits = (reached, self.nodes, budget.left(), self.gap)
            solution = solve(gains, slack, lower[index], upper[index], *limits)
            if solution.action is not None:
                answers[index] = torch.from_numpy(solution.action).to(answers)
            gap = (solution.bound - max(solution.count, reached)) / max(solution.bound, 1.0)
            facts.append({"program_gap": round(max(gap, 0.0), 4)})
        starts = torch.stack([alone, answers.clamp(*box)])
        ends = line_sweeps(objective.search_scenarios, *box, starts, self.rounds, budget)
        return objective.project(origin + best_of(*ends)), facts


def solve(
    gains: np.ndarray,
    slack: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    known: int = 0,
    nodes: int = 500,
    seconds: float = math.inf,
    gap: float = 0.0,
) -> Solution:
    """Solves one program, with gains G (n, l, k), slack h (n, l), in a box, (k,): `known` desired scenarios
    are known to be reached, and it stops at a relative gap.
    """
    # The tolerances of HiGHS are in units of its variables: a box that is not of the order of one is rescaled
    # first.
    size = np.where((upper - lower < ORDINARY_BOX[0]) | (upper - lower > ORDINARY_BOX[1]), upper - lower, 1.0)
    size = np.where(size > 0, size, 1.0)
    gains, lower, upper = gains * size, lower / size, upper / size
    max_excess = np.maximum(gains * lower, gains * upper).sum(-1) - slack
    min_excess = np.minimum(gains * lower, gains * upper).sum(-1) - slack
    # A scenario with a row that holds nowhere in the box can never be desired; one whose rows hold everywhere
    # always is.
    possible = (min_excess <= 0).all(-1)
    always = possible & (max_excess <= 0).all(-1)
    undecided = np.flatnonzero(possible & ~always)
    free, width = int(always.sum()), gains.shape[-1]
    if not len(undecided):
        return Solution((lower + upper) / 2 * size, free, float(free))
    which, row = np.nonzero(max_excess[undecided] > 0)
    violation, coefficients = max_excess[undecided][which, row], gains[undecided][which, row]
    limits = slack[undecided][which, row]
    # g' z + a e <= h + a, every row scaled to a largest entry of one: outcomes come in any unit.
    unit = np.maximum(np.abs(coefficients).max(-1), violation)
    violation, coefficients, limits = violation / unit, coefficients / unit[:, None], limits / unit
    rows = np.arange(len(which))
    entries = np.concatenate([coefficients.ravel(), violation])
    indices = (
        np.concatenate([np.repeat(rows, width), rows]),
        np.concatenate([np.tile(np.arange(width), len(rows)), width + which]),
    )
    total = width + len(undecided)
    cost = np.concatenate([np.zeros(width), -np.ones(len(undecided))])
    matrix = coo_array((entries, indices), shape=(len(rows), total)).tocsc()
    constraints = [LinearConstraint(matrix, -np.inf, limits + violation)]
    if known > free:
        constraints.append(LinearConstraint(-cost[None], known - free, np.inf))
    bounds = Bounds(
        np.concatenate([lower, np.zeros(len(undecided))]), np.concatenate([upper, np.ones(len(undecided))])
    )
    timed = {"time_limit": seconds} if seconds < math.inf else {}
    result = milp(
        cost,
        integrality=(cost < 0).astype(int),
        bounds=bounds,
        constraints=constraints,
        options={"node_limit": nodes, "mip_rel_gap": gap} | timed,
    )
    # The bound: of the tree where it gives one, else of counting.
    dual = result.mip_dual_bound
    bound = free + (-dual if dual is not None and np.isfinite(dual) else float(len(undecided)))
    if result.x is None:
        return Solution(None, 0, bound)
    return Solution(result.x[:width] * size, free + round(float(result.x[width:].sum())), bound)


ROOM = 1e-9


@dataclass(frozen=True)
class AlterationBudget:
    """An upper bound on the cost of an alteration; a negative limit or price raises a ValueError."""

    limit: float  # Maximum cost
    # Price per unit, variable to a non-negative number; 1 by default.
    costs: Mapping[str, float] = field(default_factory=dict)
    # Value at which nothing is spent, variable to value; 0 by default.
    reference: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lowest = min([self.limit, *self.costs.values()])
        require(lowest >= 0, "a limit and costs of at least 0", limit=self.limit, costs=dict(self.costs))

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "AlterationBudget":
        """From {limit, costs, reference}, the last two optional; others raise a ValueError."""
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
    """Alterations for which a share tau of both samples is desired in one case, (m, k), maybe none;
    `programs` are solved over `scenarios` each, and `lines` random directions searched besides the axes. A
    program gets the remaining time and keeps its best; none begins, and no line, once the budget is spent.
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
    """Solutions of at most so many programs that drop some scenarios that an earlier one satisfied."""
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
    samples: tuple[Scenarios, ...], lower: Tensor, upper: Tensor, point: Tensor, direction: Tensor, tau: float
) -> list[Tensor]:
    """Ends and midpoints of the intervals on the line through a point that qualify in both samples."""
    first, last = chord(point[None], direction[None], lower, upper)
    unions = []
    for part in samples:
        slack = part.slack - (part.gains @ point).unsqueeze(-2)
        left, right = intervals(part.gains @ direction, slack, first, last)
        unions.append(Cover.of(left[:, 0], right[:, 0]).at_least(math.ceil(tau * len(left) - 1e-9)).to(point))
    both = meet(*unions)
    steps = torch.cat([both[:, 0], both[:, 1], both.mean(-1)])
    return list((point + steps.unsqueeze(-1) * direction).clamp(lower, upper))
