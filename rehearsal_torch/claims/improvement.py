"""Whether a decision is better than changing nothing: it is withdrawn if it is not.

    no_path     no directed path leads from the variables that would be set to an outcome: according to the
                graph, setting them has no effect
    no_gain     the method's own estimate is not above its estimate for no action, or, where the present
                values of what would be set are known, not above its estimate for leaving them as they are;
                where costs count, its net value is not
    gain        the interval of the estimate contains the estimate for no action, or that of the gain over
                the present values contains zero, so that the gain may be chance

Source: Qin et al. (2023), Sec. 4.2 (refusal as an answer); the rules are ours.
"""

from collections.abc import Sequence
from dataclasses import replace

from rehearsal_torch.claims.context import Context
from rehearsal_torch.claims.present_values import changes_nothing, leaving
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.estimates.percent import beside, percents, points
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.objective import Candidates


def paths(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions without those that, by every graph, cannot change an outcome."""
    objective = context.objective
    if not isinstance(objective, Candidates):
        return list(decisions)
    sets = {each.alteration.names for each in decisions if each.alteration is not None}
    against = {names: objective.no_path(names) for names in sets if not objective.linked(names)}
    return [
        each
        if each.alteration is None or each.alteration.names not in against
        else context.against(each, against[each.alteration.names])
        for each in decisions
    ]


def improvement(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions without those that are no better than changing nothing."""
    if not isinstance(context.objective, Candidates):
        return list(decisions)
    return [_improves(context, each, case) for each, case in zip(decisions, context.cases, strict=True)]


def _improves(context: Context, decision: Decision, case: RehearsalCase) -> Decision:
    estimate, before = decision.estimate, decision.before
    if decision.alteration is None or estimate is None or before is None:
        return decision
    at_present = decision.unchanged is not None
    where = leaving(case, decision.alteration.names) if at_present else ("doing nothing", "")
    net = decision.net_gain
    better = estimate.point > before.point if net is None else net.point > 0
    if not better:
        text = f"predicted no better than {{}} ({beside(estimate.point, before.point)})"
        against = Finding.comparing("no_gain", text if net is None else nets_no_more(decision), *where)
        if net is not None and context.declines and changes_nothing(decision, case):
            return replace(decision, alteration=None, reason=against, cost=0.0)
        return context.against(decision, against)
    difference, doubt = decision.gain if net is None else net, ""
    if difference is not None and difference.lower is not None and difference.upper is not None:
        if difference.lower <= 0:
            ends = f"{difference.lower:+.4g} to {difference.upper:+.4g}"
            if net is None:
                ends = " to ".join(points([difference.lower, difference.upper])) + " percentage points"
            what = "difference" if net is None else "net gain"
            doubt = f"the interval of the {what}, {ends}, contains zero"
    elif estimate.lower is not None and estimate.upper is not None and estimate.lower <= before.point:
        gives = "leaving it gives" if at_present else "no action gives"
        lower, upper, given = percents([estimate.lower, estimate.upper, before.point])
        doubt = f"the interval of the estimate, {lower} to {upper}, contains what {gives}, {given}"
    if not doubt:
        return decision
    text = f"not told apart from {{}}: {doubt}"
    return decision.told([Finding.comparing("gain", text, *(where if at_present else ("no action", "")))])


def nets_no_more(decision: Decision) -> str:
    """Why an alteration is not worth its cost, in a sentence for `Finding.comparing`."""
    net, estimate, before = decision.net_gain, decision.estimate, decision.before
    assert net is not None
    assert estimate is not None
    assert before is not None
    if not decision.cost and net.point == 0:
        return "no change nets more than {}"
    gains = net.point + (decision.cost or 0.0)
    return (
        f"nothing nets more than {{}}: the best change found costs {decision.cost:.6g}, and a probability of "
        f"{estimate.point:.3f} in place of {before.point:.3f} is worth {gains:.6g}"
    )
