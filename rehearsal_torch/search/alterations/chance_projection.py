"""The cheapest alteration that qualifies.

For each candidate set and situation one convex quadratic program is solved, the box inside it; the set with
the least cost wins. Where no set qualifies, the alteration with the most probable success is taken instead
(or nothing is altered), which says so.

Source: Du et al. (2024), Alg. 1 (which leaves such rounds alone).
"""

import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.objectives.chance_cost import ChanceCosts
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.search.budget import Budget, checked_budget
from rehearsal_torch.search.search import BatchSearch, chosen, in_time


class CheapestAlteration(BatchSearch[ChanceCosts]):
    """The least cost under the chance constraint.

    Args:
        fallback: Makes the most probable alteration where none qualifies; None alters nothing there.
        batch_size: How many situations at once.
        budget_s: See `Search`; a step is a candidate set, or a Newton step of what is made otherwise.

    Raises:
        ValueError: if the budget is not positive.
    """

    def __init__(
        self,
        fallback: ProjectionNewton | None = None,
        batch_size: int = 1000,
        budget_s: float | None = None,
    ) -> None:
        self.fallback, self.batch_size, self.budget_s = fallback, batch_size, checked_budget(budget_s)

    @torch.no_grad()
    def batch_search(self, objective: ChanceCosts) -> list[Decision]:
        """The cheapest set and action for each situation.

        A decision's value is minus its cost; where none qualified, the logarithm of its probability, and the
        trace says ``qualifies: false``.
        """
        budget = Budget(self.budget_s)
        sets = objective.sets
        found = [one.cheapest() for one in in_time(sets, budget)]
        actions = [each.points for each in found]
        none = torch.full_like(actions[0][:, 0], -torch.inf)
        values = torch.stack(
            [
                torch.where(each.feasible, -one.cost(each.points), none)
                for one, each in zip(sets, found, strict=False)
            ]
        )
        stuck = (values == -torch.inf).all(0)
        if self.fallback is not None and bool(stuck.any()):
            for row, one in enumerate(in_time(sets[: len(found)], budget)):
                best = self.fallback.best(one.success, budget)
                actions[row] = torch.where(stuck.unsqueeze(-1), best, actions[row])
                values[row] = torch.where(stuck, self.fallback.compared_value(one.success, best), values[row])
        return chosen(
            objective, actions, ranked(values), "cheapest_alteration", budget, declines=self.declines
        )
