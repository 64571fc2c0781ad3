"""What alterations cost, and what that is in units of the worth of a desired outcome.

An alteration is recommended only if its net value (`objectives.net_value`) is above that of changing nothing
(`claims.improvement`).
"""

from collections.abc import Sequence
from dataclasses import replace

from rehearsal_torch.claims.context import Context
from rehearsal_torch.data.costs import CaseCosts
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.objectives.objective import Candidates


def costs(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions with their costs, where the case has some: that of the alteration, none for no action."""
    if not isinstance(context.objective, Candidates):
        return list(decisions)
    return [
        each if case.costs is None else replace(each, cost=_cost(case.costs, each), worth=case.costs.worth)
        for case, each in zip(context.cases, decisions, strict=True)
    ]


def _cost(known: CaseCosts, decision: Decision) -> float | None:
    if decision.alteration is None:
        return None if decision.undecided else 0.0
    return round(known.of_setting(decision.alteration.names, decision.alteration.values.tolist()), 9)


def paid(case: RehearsalCase, decision: Decision) -> float:
    """The cost of an alteration in units of the worth of a desired outcome; 0 where costs do not count."""
    known = case.costs
    if known is None or known.worth is None:
        return 0.0
    return (_cost(known, decision) or 0.0) / known.worth
