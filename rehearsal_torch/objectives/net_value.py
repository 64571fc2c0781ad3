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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rehearsal_torch.data.costs.action_cost import CaseCosts, CostTable, weighing
from rehearsal_torch.data.decision import Decision, RehearsalCase

if TYPE_CHECKING:
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

    one: "AlterationObjective"
    costs: CostTable
    worth: Tensor

    @classmethod
    def of(cls, one: "AlterationObjective") -> "NetValue":
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


def with_costs(cases: Sequence[RehearsalCase], decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions with their costs, where the case has some: that of the alteration, none for no action.

    Args:
        cases: B cases.
    """
    return [
        each if case.costs is None else replace(each, cost=_cost(case.costs, each), worth=case.costs.worth)
        for case, each in zip(cases, decisions, strict=True)
    ]


def _cost(costs: CaseCosts, decision: Decision) -> float | None:
    if decision.alteration is None:
        return None if decision.undecided else 0.0
    return round(costs.of_setting(decision.alteration.names, decision.alteration.values.tolist()), 9)


def paid(case: RehearsalCase, decision: Decision) -> float:
    """The cost of an alteration in units of the worth of a desired outcome; 0 where costs do not count."""
    costs = case.costs
    if costs is None or costs.worth is None:
        return 0.0
    return (_cost(costs, decision) or 0.0) / costs.worth


def nets_no_more(decision: Decision, where: str) -> str:
    """Why an alteration is not worth its cost, in a sentence.

    Args:
        where: What it is compared with, in words.
    """
    net, estimate, before = decision.net_gain, decision.estimate, decision.before
    assert net is not None
    assert estimate is not None
    assert before is not None
    if not decision.cost and net.point == 0:
        return f"no change nets more than {where}"
    gains = net.point + (decision.cost or 0.0)
    return (
        f"nothing nets more than {where}: the best change found costs {decision.cost:.6g}, and a probability "
        f"of {estimate.point:.3f} in place of {before.point:.3f} is worth {gains:.6g}"
    )
