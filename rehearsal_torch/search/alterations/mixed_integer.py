"""Mixed-integer programs: the alteration of several variables that satisfies most scenarios.

    maximise sum_i e_i   subject to   g_ir' z <= h_ir + (1 - e_i) a_ir,    e_i in {0, 1},    l <= z <= u,

over scenarios i and their rows r. Any a_ir that is large enough is valid; the smallest one, the maximum over
the box of g_ir' z - h_ir, makes the relaxation tight. Rows that hold in the whole box are left out, and so
are scenarios that hold nowhere in it.

HiGHS solves a program of some hundred scenarios in about a second. Its solution is therefore only a start:
this solution, and the one that `interval_sweep` finds by itself, are swept over all scenarios, and the best
under all of them is kept. One variable needs no program, as the sweep is exact.

The branch-and-bound tree is limited by nodes, so that a result does not depend on the load of the machine
unless a time budget ends it. A truncated tree keeps its best alteration; ``program_gap`` is the relative gap
to the program's optimum.

Source: Qin et al. (2023), App. C (the program, with one constant for all rows); tight constants are textbook.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.question import Kind
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.objectives.scenario_success import CountObjective
from rehearsal_torch.search.alterations.interval_sweep import best_of, line_sweeps, swept
from rehearsal_torch.search.budget import UNLIMITED, Budget, checked_budget
from rehearsal_torch.search.search import BatchSearch, chosen, in_time

# Range of box widths for which a program is solved in the actions' own units.
ORDINARY_BOX = (1e-2, 1e4)


@dataclass(frozen=True)
class Solution:
    """The solution of a program.

    Attributes:
        action: (k,), or None if the tree was truncated before it found one.
        count: Number of desired scenarios according to the program.
        bound: Upper bound on that number.
    """

    action: np.ndarray | None
    count: int
    bound: float


class MixedInteger(BatchSearch[Candidates[CountObjective]]):
    """The alteration of any number of variables that satisfies most scenarios.

    Args:
        scenarios: Number of scenarios in the program.
        nodes: Maximum number of nodes of the branch-and-bound tree.
        gap: Relative gap at which the program stops.
        starts: Number of starts of the sweeps.
        rounds: Maximum number of sweeps over all lines.
        screening_draws: Number of scenarios that are swept from all starts.
        batch_size: Maximum number of cases per call.
        budget_s: See `Search`; a program gets the remaining time, and a step is a sweep along one line.

    Raises:
        ValueError: if a number is out of range.
    """

    kind: Kind | None = "rehearse"

    def __init__(
        self,
        scenarios: int = 100,
        nodes: int = 500,
        gap: float = 0.01,
        starts: int = 8,
        rounds: int = 10,
        screening_draws: int = 500,
        batch_size: int = 32,
        budget_s: float | None = None,
    ) -> None:
        sizes = {"scenarios": scenarios, "nodes": nodes, "starts": starts, "rounds": rounds}
        sizes |= {"screening_draws": screening_draws, "batch_size": batch_size}
        require(min(sizes.values()) > 0 and gap >= 0, "positive numbers", **sizes, gap=gap)
        self.scenarios, self.nodes, self.gap = scenarios, nodes, gap
        self.begin, self.rounds, self.screening_draws = starts, rounds, screening_draws
        self.batch_size, self.budget_s = batch_size, checked_budget(budget_s)

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
        return chosen(objective, list(actions), ranked(values), "mixed_integer", budget, facts, self.declines)

    def best(
        self, objective: CountObjective, budget: Budget = UNLIMITED
    ) -> tuple[Tensor, list[dict[str, Any]]]:
        """The best actions of one set, (B, k), and for each the remaining gap of its program."""
        if len(objective.names) == 1:
            return swept(objective, 1, 1, self.screening_draws), [{} for _ in objective.cases]
        some, origin = objective.search_scenarios.first(self.scenarios), objective.origin
        alone = swept(objective, self.begin, self.rounds, self.screening_draws, budget) - origin
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
    """Solves one program.

    Args:
        gains: G, (n, l, k).
        slack: h, (n, l).
        lower: The box, (k,), like `upper`.
        known: A count that some alteration is known to reach.
        seconds: Time limit; infinite for none.
        gap: Relative gap at which to stop.
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
