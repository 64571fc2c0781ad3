"""Space-filling actions that ignore what has been learnt: the baselines without a search.

Uniform actions are independent from round to round. Sobol actions are the points of one scrambled sequence:
after n experiments the (n + 1)-th, so that a resumed run continues where it stopped. The recommendation is
still the maximiser of the posterior mean: these are baselines for the choice of experiments, not for learning
from them.

Source: Sobol (1967) and Owen (1998); random search as a baseline: Bergstra and Bengio (2012).
"""

from typing import final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.question import Kind
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.search.budget import Budget, checked_budget
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.trials.acquisition import decided
from rehearsal_torch.search.trials.recommendation import recommend
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.candidate_region import CandidateRegion

SAMPLINGS = ("uniform", "sobol")


@final
class SpaceFilling(Search[CausalObjective]):
    """Uniform or Sobol actions.

    Args:
        sampling: ``uniform`` or ``sobol``.
        seed: Determines the actions; uniform ones together with the identity of the round.
        budget_s: See `Search`; a step is one evaluation in the ascent to the recommendation.

    Raises:
        ValueError: if `sampling` is neither of the two, or the budget is not positive.
    """

    kind: Kind | None = "optimise"

    def __init__(self, sampling: str = "uniform", seed: int = 0, budget_s: float | None = None) -> None:
        if sampling not in SAMPLINGS:
            raise ValueError(f"expected sampling in {list(SAMPLINGS)}; got {sampling!r}")
        self.sampling, self.seed, self.budget_s = sampling, seed, checked_budget(budget_s)

    @torch.no_grad()
    def __call__(self, objective: CausalObjective) -> Decision:
        """Returns the next action."""
        budget, identity = Budget(self.budget_s), objective.case.identity
        recommended = recommend(objective, round_seed(self.seed, identity), budget=budget)
        action = self._next(objective, objective.region(further=False), identity)
        with torch.no_grad():
            value = float(objective.expected(action.unsqueeze(0)))
        return decided(objective, action, value, recommended, f"{self.sampling}_actions", budget, {})

    def _next(self, objective: CausalObjective, region: CandidateRegion, identity: str) -> Tensor:
        if self.sampling == "uniform":
            # The first point of a scrambled sequence is uniform over the box, cut off by the linear limits.
            return region.units(region.spread(1, round_seed(self.seed, f"uniform {identity}"))[0])
        count = len(objective.visited)
        return region.units(region.spread(count + 1, round_seed(self.seed, "sobol"))[count])
