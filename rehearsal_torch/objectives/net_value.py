"""The net value of alterations: what a desired outcome is worth, minus what the alteration costs.

With v the worth of a desired outcome and c the cost of an alteration a (`data.costs`),

    net value of a          v P(desired | x, do(a)) - c(a)
    of changing nothing     v P(desired | x, do(o)), o the present values of what a sets,
                            or v P(desired | x) where these are unknown

An alteration is recommended only if its net value is above that of changing nothing. P is the method's own: a
search maximises with the P by which the method compares actions, its caution included
(`AlterationObjective.probability`); what a decision says is computed from its estimate, and its interval is
the estimate's, times v, less the cost.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.costs import CaseCosts, CostTable, weighing
from rehearsal_torch.objectives.objective import AlterationObjective

FREE = CaseCosts({}, {}, 1.0)


@dataclass(frozen=True)
class NetValue:
    """The net value of altering one set of variables in B cases, in units of the worth of a desired outcome.

    Attributes:
        one: The objective of the set.
        costs: What its alterations cost.
        worth: v, (B,); 1, and no costs, in cases where costs do not count.
    """

    one: AlterationObjective
    costs: CostTable
    worth: Tensor

    @classmethod
    def of(cls, one: AlterationObjective) -> "NetValue":
        """The net value of the objective of a set."""
        stated = [case.costs or FREE for case in one.cases]
        counted = [costs if weighing(costs) else FREE for costs in stated]
        worth = torch.tensor([each.worth or 1.0 for each in counted], dtype=torch.float64)
        return cls(one, CostTable.of(counted, one.names), worth)

    def __call__(self, actions: Tensor) -> Tensor:
        """P - cost / v, (..., B, k) -> (..., B)."""
        return self.one.probability(actions) - self._share(actions)

    def compared(self, actions: Tensor) -> Tensor:
        """The net value by which the best actions of several sets are compared, (B, k) -> (B,), in the unit
        of the costs.
        """
        worth = self.worth.to(actions)
        return worth * (self.one.compared_probability(actions) - self._share(actions))

    def _share(self, actions: Tensor) -> Tensor:
        return self.costs(actions) / self.worth.to(actions)
