"""Mixed-integer programs: the alteration of several variables that most scenarios agree on.

    maximise sum_i e_i   subject to   g_ir' z <= h_ir + (1 - e_i) a_ir,    e_i in {0, 1},    l <= z <= u,

over scenarios i and their rows r. Any a_ir that is large enough is right; the least one, max over the box of
g_ir' z - h_ir, makes the relaxation tight. Rows that hold all over the box are left out, scenarios that hold
nowhere as well.

A program of some hundred scenarios is what HiGHS solves in about a second. Its answer is therefore a start:
the answer, and what `interval_sweep` finds by itself, are swept over all scenarios, and the best by all of
them is kept. One variable needs no program, as the sweep is exact.

The search of the tree is bounded by nodes, so that a result does not depend on how busy the machine is, as
long as no budget in seconds ends it. A tree that is cut off keeps its best alteration; ``program_gap`` says
how much better the program's optimum could have been.

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
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.scenario_success import CountObjective
from rehearsal_torch.search.alterations.interval_sweep import best_of, line_sweeps, swept
from rehearsal_torch.search.budget import UNLIMITED, Budget, checked_budget
from rehearsal_torch.search.search import BatchSearch, chosen, in_time

# Widths of a box within which a program is solved in the actions' own units.
ORDINARY_BOX = (1e-2, 1e4)


@dataclass(frozen=True)
class Solution:
    """What a program found.

    Attributes:
        action: (k,), or None where the tree was cut off without one.
        count: How many scenarios it says are desired.
        bound: At most so many can be.
    """

    action: np.ndarray | None
    count: int
    bound: float


class MixedInteger(BatchSearch[Candidates[CountObjective]]):
    """The alteration of any number of variables that most scenarios agree on.

    Args:
        scenarios: How many of them the program holds.
        nodes: At most how many nodes of a tree are looked at.
        gap: Relative gap at which it stops.
        starts: From how many points the sweeps begin.
        rounds: At most how often all lines are swept.
        screening_draws: How many scenarios are swept from all starts.
        batch_size: How many situations at once.
        budget_s: See `Search`; a program has what is left of it, and a step is a sweep along one line.

    Raises:
        ValueError: if a number is out of range.
    """

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
        if min(scenarios, nodes, starts, rounds, screening_draws, batch_size) < 1 or gap < 0:
            given = (
                f"scenarios={scenarios}, nodes={nodes}, gap={gap}, starts={starts}, "
                f"rounds={rounds}, screening_draws={screening_draws}"
            )
            raise ValueError(f"expected positive numbers; got {given}, batch_size={batch_size}")
        self.scenarios, self.nodes, self.gap = scenarios, nodes, gap
        self.begin, self.rounds, self.screening_draws, self.batch_size = (
            starts,
            rounds,
            screening_draws,
            batch_size,
        )
        self.budget_s = checked_budget(budget_s)

    @torch.no_grad()
    def batch_search(self, objective: Candidates[CountObjective]) -> list[Decision]:
        """The best set and action for each situation."""
        budget = Budget(self.budget_s)
        sets = objective.sets
        actions, traces = zip(*(self.best(one, budget) for one in in_time(sets, budget)), strict=True)
        values = torch.stack([one.share(each) for one, each in zip(sets, actions, strict=False)])
        winner = values.argmax(0).tolist()
        facts = [traces[which][index] for index, which in enumerate(winner)]
        return chosen(objective, list(actions), ranked(values), "mixed_integer", budget, facts, self.declines)

    def best(
        self, objective: CountObjective, budget: Budget = UNLIMITED
    ) -> tuple[Tensor, list[dict[str, Any]]]:
        """The best actions of one set, (B, k), and for each how far its program was from a proof."""
        if len(objective.names) == 1:
            return swept(objective, 1, 1, self.screening_draws), [{} for _ in objective.cases]
        some = objective.search_scenarios.first(self.scenarios)
        alone = swept(objective, self.begin, self.rounds, self.screening_draws, budget)
        origin = objective.origin
        alone = alone - origin
        known = some.desired(alone).sum(0).tolist()
        answers, facts = alone.clone(), list[dict[str, Any]]()
        box = (objective.lower - origin, objective.upper - origin)
        gains, lower, upper = some.gains.cpu().numpy(), box[0].cpu().numpy(), box[1].cpu().numpy()
        for index in range(len(alone)):
            if budget.out():
                facts.append({})
                continue
            found = solve(
                gains,
                some.slack[:, index].cpu().numpy(),
                lower[index],
                upper[index],
                int(known[index]),
                self.nodes,
                budget.left(),
                self.gap,
            )
            if found.action is not None:
                answers[index] = torch.from_numpy(found.action).to(answers)
            gap = (found.bound - max(found.count, known[index])) / max(found.bound, 1.0)
            facts.append({"program_gap": round(max(gap, 0.0), 4)})
        starts = torch.stack([alone, torch.minimum(torch.maximum(answers, box[0]), box[1])])
        return objective.project(
            origin + best_of(*line_sweeps(objective.search_scenarios, *box, starts, self.rounds, budget))
        ), facts


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
        lower: The box, (k,).
        upper: (k,).
        known: A count that some alteration is known to reach.
        nodes: At most how many nodes.
        seconds: At most how long; infinite for no limit.
        gap: Relative gap at which to stop.
    """
    # HiGHS has tolerances in units of its variables: a box that is not of the order of one is brought there
    # first.
    size = np.where((upper - lower < ORDINARY_BOX[0]) | (upper - lower > ORDINARY_BOX[1]), upper - lower, 1.0)
    size = np.where(size > 0, size, 1.0)
    gains, lower, upper = gains * size, lower / size, upper / size
    max_excess = np.maximum(gains * lower, gains * upper).sum(-1) - slack
    min_excess = np.minimum(gains * lower, gains * upper).sum(-1) - slack
    # A scenario one of whose rows holds nowhere in the box can never be desired; one whose rows all hold
    # everywhere always is.
    possible = (min_excess <= 0).all(-1)
    always = possible & (max_excess <= 0).all(-1)
    open_ones = np.flatnonzero(possible & ~always)
    free, width = int(always.sum()), gains.shape[-1]
    if not len(open_ones):
        return Solution((lower + upper) / 2 * size, free, float(free))
    which, row = np.nonzero(max_excess[open_ones] > 0)
    violation, coefficients, limits = (
        max_excess[open_ones][which, row],
        gains[open_ones][which, row],
        slack[open_ones][which, row],
    )
    # g' z + a e <= h + a, every row scaled to a largest entry of one: outcomes come in any unit.
    unit = np.maximum(np.abs(coefficients).max(-1), violation)
    violation, coefficients, limits = violation / unit, coefficients / unit[:, None], limits / unit
    rows = np.arange(len(which))
    entries = np.concatenate([coefficients.ravel(), violation])
    place = (
        np.concatenate([np.repeat(rows, width), rows]),
        np.concatenate([np.tile(np.arange(width), len(rows)), width + which]),
    )
    total = width + len(open_ones)
    cost = np.concatenate([np.zeros(width), -np.ones(len(open_ones))])
    constraints = [
        LinearConstraint(
            coo_array((entries, place), shape=(len(rows), total)).tocsc(), -np.inf, limits + violation
        )
    ]
    if known > free:
        constraints.append(LinearConstraint(-cost[None], known - free, np.inf))
    bounds = Bounds(
        np.concatenate([lower, np.zeros(len(open_ones))]), np.concatenate([upper, np.ones(len(open_ones))])
    )
    timed = {"time_limit": seconds} if seconds < math.inf else {}
    found = milp(
        cost,
        integrality=(cost < 0).astype(int),
        bounds=bounds,
        constraints=constraints,
        options={"node_limit": nodes, "mip_rel_gap": gap} | timed,
    )
    # The bound: of the tree where it gives one, else of counting.
    bound = free + (
        -found.mip_dual_bound
        if found.mip_dual_bound is not None and np.isfinite(found.mip_dual_bound)
        else float(len(open_ones))
    )
    if found.x is None:
        return Solution(None, 0, bound)
    return Solution(found.x[:width] * size, free + round(float(found.x[width:].sum())), bound)
