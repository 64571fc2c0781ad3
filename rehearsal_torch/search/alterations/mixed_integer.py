"""Mixed-integer programs: the alteration of several variables that satisfies most scenarios.

    maximise sum_i e_i   subject to   g_ir' z <= h_ir + (1 - e_i) a_ir,    e_i in {0, 1},    l <= z <= u,

over scenarios i and their rows r. Any a_ir that is large enough is valid; the smallest one, the maximum over
the box of g_ir' z - h_ir, makes the relaxation tight. Rows that hold in the whole box are left out, and so
are scenarios that hold nowhere in it.

HiGHS solves a program of some hundred scenarios in about a second. Its solution, and the one that sweeps find
by themselves, are swept over all scenarios, and the best is kept; for one variable, the sweep is exact. The
tree is limited by nodes, so that a result does not depend on the load of the machine unless a time budget
ends it. A truncated tree keeps its best alteration; ``program_gap`` is the relative gap to the optimum.

Candidates. Finding one z for which at least m of n scenarios are desired is hard (Thm. 6). Candidates that
satisfy a chance constraint come from three sources:

1. a log-concave relaxation, in which every row g' z - h of the scenarios is normal with the mean and the
   standard deviation that it has over the scenarios at the middle of the box: prod_r Phi((h_r - g_r' z) /
   s_r). Gradient ascent finds its maximum, from which the sweeps and the programs begin;
2. mixed-integer programs over some hundred scenarios each, solved one after the other. Half of the scenarios
   that an earlier solution satisfied are dropped at random, so that each program covers other scenarios;
3. line searches through each of these points that qualifies, along the axes and in random directions. On a
   line the qualifying points form intervals, found exactly; their ends and midpoints are candidates too.

Every candidate is validated on scenarios that no program and no sweep has used. Finding none proves nothing.

An `AlterationBudget` limits the cost. Setting the variables of a set to z costs sum_i w_i |z_i - r_i|, with
w_i the price per unit and r_i the value at which nothing is spent; an alteration is affordable if this is at
most the limit. The affordable region is a polytope, for one variable an interval.

Source: Qin et al. (2023), Thm. 6, App. B.2 and C (the program, there with one constant for all rows, dropping
for diversity, validation). Du et al. (2024), Sec. 3 (costs of alterations, there a sum of squares).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
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
    intervals,
    line_sweeps,
    meet,
    swept,
)
from rehearsal_torch.search.cost_kinks import chord
from rehearsal_torch.search.search import UNLIMITED, BatchSearch, Budget, chosen, in_time
from rehearsal_torch.seeding import generator

ORDINARY_BOX = (1e-2, 1e4)  # Widths for which a program is solved in the actions' own units


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
        results = [self.best(candidate, budget) for candidate in in_time(sets, budget)]
        actions, traces = zip(*results, strict=True)
        shares = [each.compared_probability(best) for each, best in zip(sets, actions, strict=False)]
        values = torch.stack(shares)
        winner = values.argmax(0).tolist()
        facts = [traces[which][index] for index, which in enumerate(winner)]
        return chosen(objective, list(actions), values, "mixed_integer", budget, facts, self.declines)

    def best(
        self, objective: CountObjective, budget: Budget = UNLIMITED
    ) -> tuple[Tensor, list[dict[str, Any]]]:
        """The best actions of one set, (B, k), and for each the remaining gap of its program."""
        if len(objective.names) == 1:
            return swept(objective, 1, 1, self.screening_draws), [{} for _ in objective.cases]
        subset, origin = objective.search_scenarios.first(self.scenarios), objective.origin
        sweeps = swept(objective, self.starts, self.rounds, self.screening_draws, budget) - origin
        reached_counts = subset.desired(sweeps).sum(0).tolist()
        solutions, facts = sweeps.clone(), list[dict[str, Any]]()
        box = (objective.lower - origin, objective.upper - origin)
        gains, lower, upper = subset.gains.cpu().numpy(), box[0].cpu().numpy(), box[1].cpu().numpy()
        for index in range(len(sweeps)):
            if budget.out():
                facts.append({})
                continue
            slack, reached = subset.slack[:, index].cpu().numpy(), int(reached_counts[index])
            limits = (reached, self.nodes, budget.left(), self.gap)
            solution = solve(gains, slack, lower[index], upper[index], *limits)
            if solution.action is not None:
                solutions[index] = torch.from_numpy(solution.action).to(solutions)
            gap = (solution.bound - max(solution.count, reached)) / max(solution.bound, 1.0)
            facts.append({"program_gap": round(max(gap, 0.0), 4)})
        starts = torch.stack([sweeps, solutions.clamp(*box)])
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
    """Solves one program, G (n, l, k), h (n, l), in a box, (k,), with `known` reached, to a relative gap."""
    # The tolerances of HiGHS are absolute: a box that is not of the order of one is rescaled first.
    size = np.where((upper - lower < ORDINARY_BOX[0]) | (upper - lower > ORDINARY_BOX[1]), upper - lower, 1.0)
    size = np.where(size > 0, size, 1.0)
    gains, lower, upper = gains * size, lower / size, upper / size
    max_excess = np.maximum(gains * lower, gains * upper).sum(-1) - slack
    min_excess = np.minimum(gains * lower, gains * upper).sum(-1) - slack
    possible = (min_excess <= 0).all(-1)
    always = possible & (max_excess <= 0).all(-1)
    undecided = np.flatnonzero(possible & ~always)
    base, width = int(always.sum()), gains.shape[-1]
    if not len(undecided):
        return Solution((lower + upper) / 2 * size, base, float(base))
    scenario, row = np.nonzero(max_excess[undecided] > 0)
    violation, coefficients = max_excess[undecided][scenario, row], gains[undecided][scenario, row]
    limits = slack[undecided][scenario, row]
    # g' z + a e <= h + a, every row scaled to a largest entry of one: outcomes come in any unit.
    unit = np.maximum(np.abs(coefficients).max(-1), violation)
    violation, coefficients, limits = violation / unit, coefficients / unit[:, None], limits / unit
    rows = np.arange(len(scenario))
    entries = np.concatenate([coefficients.ravel(), violation])
    row_index = np.concatenate([np.repeat(rows, width), rows])
    column_index = np.concatenate([np.tile(np.arange(width), len(rows)), width + scenario])
    columns = width + len(undecided)
    cost = np.concatenate([np.zeros(width), -np.ones(len(undecided))])
    matrix = coo_array((entries, (row_index, column_index)), shape=(len(rows), columns)).tocsc()
    constraints = [LinearConstraint(matrix, -np.inf, limits + violation)]
    if known > base:
        constraints.append(LinearConstraint(-cost[None], known - base, np.inf))
    lowest = np.concatenate([lower, np.zeros(len(undecided))])
    highest = np.concatenate([upper, np.ones(len(undecided))])
    time_limit = {"time_limit": seconds} if seconds < math.inf else {}
    result = milp(
        cost,
        integrality=(cost < 0).astype(int),
        bounds=Bounds(lowest, highest),
        constraints=constraints,
        options={"node_limit": nodes, "mip_rel_gap": gap} | time_limit,
    )
    dual = result.mip_dual_bound
    bound = base + (-dual if dual is not None and np.isfinite(dual) else float(len(undecided)))
    if result.x is None:
        return Solution(None, 0, bound)
    return Solution(result.x[:width] * size, base + round(float(result.x[width:].sum())), bound)


ROOM = 1e-9


@dataclass(frozen=True)
class AlterationBudget:
    """An upper bound on the cost of an alteration; a negative limit or price raises a ValueError."""

    limit: float  # Maximum cost
    costs: Mapping[str, float] = field(default_factory=dict)  # Variable to price per unit, by default 1
    reference: Mapping[str, float] = field(default_factory=dict)  # Variable to free value, by default 0

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
        rounding = 4 * torch.finfo(actions.dtype).eps * (prices * (actions.abs() + origin.abs())).sum(-1)
        return cost <= self.limit * (1 + ROOM) + rounding

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
    """Alterations for which a share tau of both samples is desired in one case, (m, k), from programs of some
    `scenarios` each, and `lines` random directions besides the axes; with the remaining time.
    """
    samples = (objective.search_scenarios.one(index), objective.validation_scenarios.one(index))
    origin = objective.origin[index]
    lower, upper = objective.lower[index] - origin, objective.upper[index] - origin
    stream, start = generator(0), relaxed(samples[0], lower, upper)
    swept_point = line_sweeps(samples[0], lower[None], upper[None], start[None, None], 3, budget)[0][0, 0]
    solutions = programmed(samples[0], lower, upper, swept_point, programs, scenarios, nodes, budget, stream)
    good = [point for point in (start, swept_point, *solutions) if qualifies(samples, point[None], tau)[0]]
    width = len(lower)
    rays = torch.randn(lines, width, dtype=torch.float64, generator=stream) * (upper - lower).cpu()
    directions = torch.cat([torch.eye(width, dtype=torch.float64), rays]).to(lower)
    pairs = list(product(good, directions[(directions != 0).any(-1)]))
    on_lines = chain.from_iterable(
        along(samples, lower, upper, *pair, tau) for pair in in_time(pairs, budget)
    )
    points = torch.stack([*good, *on_lines]) if good else lower.new_empty(0, width)
    return origin + points[qualifies(samples, points, tau)]


def qualifies(samples: tuple[Scenarios, ...], actions: Tensor, tau: float) -> Tensor:
    """Whether enough scenarios of every sample are desired, (m, k) -> (m,) bool."""
    return torch.stack([sample.share(actions.unsqueeze(-2)).squeeze(-1) >= tau for sample in samples]).all(0)


def relaxed(scenarios: Scenarios, lower: Tensor, upper: Tensor, steps: int = 60) -> Tensor:
    """The maximiser of the log-concave relaxation, (k,)."""
    gains, margin = scenarios.gains.mean(0), scenarios.slack[:, 0].mean(0)
    middle, width = (lower + upper) / 2, upper - lower
    spread = (scenarios.slack[:, 0] - scenarios.gains @ middle).std(0).clamp_min(1e-300)
    point, value, length = middle, torch.special.log_ndtr((margin - gains @ middle) / spread).sum(), 0.5
    for _ in range(steps):
        slack = (margin - gains @ point) / spread
        hazard = torch.exp(-slack.square() / 2 - 0.5 * math.log(2 * math.pi) - torch.special.log_ndtr(slack))
        ascent = -(hazard / spread) @ gains * width
        moved = (point + length * width * ascent / ascent.norm().clamp_min(1e-300)).clamp(lower, upper)
        trial = torch.special.log_ndtr((margin - gains @ moved) / spread).sum()
        point, value, length = (moved, trial, length * 1.3) if trial > value else (point, value, length / 2)
    return point


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
    remaining, solutions = torch.arange(len(scenarios.gains), device=scenarios.gains.device), []
    box = (lower.cpu().numpy(), upper.cpu().numpy())
    for _ in range(programs):
        if budget.out():
            break
        subset = scenarios.some(remaining[:count])
        reached = int(subset.desired(begin[None]).sum())
        gains, slack = subset.gains.cpu().numpy(), subset.slack[:, 0].cpu().numpy()
        solution = solve(gains, slack, *box, reached, nodes, budget.left(), 0.01)
        if solution.action is not None:
            point = torch.from_numpy(np.asarray(solution.action)).to(begin)
            solutions.append(point.clamp(lower, upper))
        satisfied = subset.desired(solutions[-1][None] if solutions else begin[None])[:, 0]
        dropped = satisfied & (torch.rand(len(satisfied), generator=stream) < 0.5).to(satisfied.device)
        remaining = torch.cat([remaining[:count][~dropped], remaining[count:]])
    return solutions


def along(
    samples: tuple[Scenarios, ...], lower: Tensor, upper: Tensor, point: Tensor, direction: Tensor, tau: float
) -> list[Tensor]:
    """Ends and midpoints of the intervals on the line through a point that qualify in both samples."""
    first, last = chord(point[None], direction[None], lower, upper)
    unions = []
    for sample in samples:
        slack = sample.slack - (sample.gains @ point).unsqueeze(-2)
        left, right = intervals(sample.gains @ direction, slack, first, last)
        unions.append(Cover.of(left[:, 0], right[:, 0]).at_least(math.ceil(tau * len(left) - 1e-9)).to(point))
    intersection = meet(*unions)
    steps = torch.cat([intersection[:, 0], intersection[:, 1], intersection.mean(-1)])
    return list((point + steps.unsqueeze(-1) * direction).clamp(lower, upper))
