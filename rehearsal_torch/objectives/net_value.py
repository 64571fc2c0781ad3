"""The net value of alterations: what a desired outcome is worth, minus what the alteration costs.

With v the worth of a desired outcome and c the cost of an alteration a (`data.costs`),

    net value of a          v P(desired | x, do(a)) - c(a)
    of changing nothing     v P(desired | x, do(o)), o the present values of what a sets,
                            or v P(desired | x) where these are unknown

An alteration is recommended only if its net value is above that of changing nothing. A search maximises
P - c / v with the P by which the method compares actions, its caution included
(`AlterationObjective.probability`); a decision reports v times its estimate and interval, less the cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.cost_table import CostTable
from rehearsal_torch.data.costs import CaseCosts, weighing
from rehearsal_torch.data.decision import RehearsalCase

FREE = CaseCosts({}, {}, 1.0)


@dataclass(frozen=True)
class Charge:
    """The cost of altering a set of k variables in B cases, in units of the worth of a desired outcome.

    Attributes:
        counts: Where costs count, (B,) bool.
        costs: In their own unit; 0 where they do not count.
        worth: v, (B,); 1 where they do not count.
    """

    counts: Tensor
    costs: CostTable
    worth: Tensor

    @classmethod
    def of(cls, cases: Sequence[RehearsalCase], names: Sequence[str]) -> "Charge | None":
        """The charge of altering some variables; None where costs count in no case."""
        counts = [weighing(case.costs) for case in cases]
        if not any(counts):
            return None
        charges = [case.costs if case.costs is not None and weighing(case.costs) else FREE for case in cases]
        worth = torch.tensor([costs.worth or 1.0 for costs in charges], dtype=torch.float64)
        return cls(torch.tensor(counts), CostTable.of(charges, names), worth)

    def __call__(self, actions: Tensor) -> Tensor:
        """c / v, (..., B, k) -> (..., B)."""
        return self.costs(actions) / self.worth.to(actions)
