"""The cheapest alteration that satisfies a chance constraint.

For each candidate set and case one convex quadratic program is solved, restricted to the box; the set with
the lowest cost wins. Where no set is feasible, the fallback takes the alteration with the most probable
success (or there is no alteration), and the trace says so.

Source: Du et al. (2024), Alg. 1 (which does not act in such rounds).
"""

from dataclasses import dataclass

import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.search.search import BatchSearch, Budget, checked_budget, chosen, in_time


@dataclass(eq=False)
class CheapestAlteration(BatchSearch[Candidates[ChanceCost]]):
    """Minimises the cost under the chance constraint.

    Args:
        fallback: Finds the most probable alteration where none is feasible; None for no action there.
        budget_s: See `Search`; a step is a candidate set, or a Newton step of the fallback.
    """

    fallback: ProjectionNewton | None = None
    draws = False
    batch_size: int = 1000
    budget_s: float | None = None

    def __post_init__(self) -> None:
        checked_budget(self.budget_s)

    @torch.no_grad()
    def batch_search(self, objective: Candidates[ChanceCost]) -> list[Decision]:
        """Returns the cheapest set and action for each case: its value is minus its cost, or, where no set
        was feasible (``qualifies: false``), the log-probability of success.
        """
        budget = Budget(self.budget_s)
        sets = objective.sets
        solutions = [candidate.cheapest() for candidate in in_time(sets, budget)]
        actions = [solution.points for solution in solutions]
        pairs = zip(sets, solutions, strict=False)
        costs = [candidate.cost(best.points).where(best.feasible, torch.inf) for candidate, best in pairs]
        values = -torch.stack(costs)
        infeasible = (values == -torch.inf).all(0)
        if self.fallback is not None and bool(infeasible.any()):
            for row, candidate in enumerate(in_time(sets[: len(solutions)], budget)):
                best = self.fallback.best(candidate.success, budget)
                actions[row] = torch.where(infeasible.unsqueeze(-1), best, actions[row])
                log_p = self.fallback.compared_value(candidate.success, best)
                values[row] = torch.where(infeasible, log_p, values[row])
        return chosen(objective, actions, values, "cheapest_alteration", budget, declines=self.declines)
