"""Whether a decision is better than changing nothing, at its cost; it is withdrawn if it is not.

No action usually means what usually happens in such a case, P(desired | x): variables then take whatever
their causes make them take. Where a case states the present values c of what a decision sets to a, the
question of the person who decides is another one, whether a is better than leaving it at c:

    estimate      P(desired | x, do(a))
    unchanged     P(desired | x, do(c))
    gain          their difference, with an interval in which what both have in common cancels
                  (`AlterationObjective.contrast`)

All three are by the objective that found the decision. An action that a decision neither sets nor changes
keeps its present value, too, but P(desired | x, do(a)) lets it take what is usual: the decision says so.

A decision carries its cost, and findings:

    no_path     no directed path leads from the variables that would be set to an outcome: according to the
                graph, setting them has no effect
    no_gain     the method's own estimate is not above its estimate for no action, or, where the present
                values of what would be set are known, not above its estimate for leaving them as they are;
                where costs count, its net value (`objectives.net_value`) is not
    gain        the interval of the estimate contains the estimate for no action, or that of the gain over
                the present values contains zero, so that the gain may be chance

Source: Qin et al. (2023), Sec. 4.2 (refusal as an answer); the rules are ours.
"""

from collections.abc import Sequence
from dataclasses import replace

from rehearsal_torch.claims.claim_context import Context
from rehearsal_torch.data.cost_table import cost_of_setting
from rehearsal_torch.data.costs import CaseCosts
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.estimate import beside, percents, points
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates


def costs(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions with their costs, where the case has some: that of the alteration, none for no action."""
    if not isinstance(context.objective, Candidates):
        return list(decisions)
    return [
        each if case.costs is None else each.changed(cost=_cost(case.costs, each), worth=case.costs.worth)
        for case, each in zip(context.cases, decisions, strict=True)
    ]


def _cost(known: CaseCosts, decision: Decision) -> float | None:
    if decision.alteration is None:
        return None if decision.undecided else 0.0
    return round(cost_of_setting(known, decision.alteration.names, decision.alteration.values.tolist()), 9)


def paid(case: RehearsalCase, decision: Decision) -> float:
    """The cost of an alteration in units of the worth of a desired outcome; 0 where costs do not count."""
    known = case.costs
    if known is None or known.worth is None:
        return 0.0
    return (_cost(known, decision) or 0.0) / known.worth


def changes_nothing(decision: Decision, case: RehearsalCase) -> bool:
    """Whether an alteration leaves everything that it sets at its present value."""
    if decision.alteration is None:
        return False
    now = case.kept(decision.alteration.names)
    return now is not None and now.values.equal(decision.alteration.values)


def leaving(case: RehearsalCase, names: Sequence[str]) -> tuple[str, str]:
    """Words for keeping the present values, "leaving bmi at 30 and bp at 100", and the same without them."""
    stated = case.in_texts({name: case.present[name] for name in names})
    return (
        "leaving " + " and ".join(f"{name} at {text}" for name, text in stated.items()),
        "leaving " + " and ".join(f"{name} as it is" for name in stated),
    )


def present_values(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions with `unchanged` and `gain`, where the present values of what is set are known.

    Present values of which the objective has no estimate, such as those far from all observations, get a
    finding of the kind ``present``.
    """
    if not isinstance(context.objective, Candidates):
        return list(decisions)
    return with_unchanged(context.objective, decisions)


def with_unchanged(
    objective: Candidates[AlterationObjective], decisions: Sequence[Decision]
) -> list[Decision]:
    """See `present_values`; one decision for each case of the objective, in order."""
    found = [
        each.told(_unused(objective, case, each)) if case.present else each
        for case, each in zip(objective.cases, decisions, strict=True)
    ]
    wanted = {
        index: (each.alteration, now)
        for index, (case, each) in enumerate(zip(objective.cases, found, strict=True))
        if each.alteration is not None
        and each.estimate is not None
        and each.unchanged is None
        and (now := case.kept(each.alteration.names)) is not None
    }
    for one in objective.whole:
        mine = {index: pair for index, pair in wanted.items() if pair[0].names == one.names}
        if not mine:
            continue
        chosen, kept = (
            one.with_alterations({index: pair[which] for index, pair in mine.items()}) for which in (0, 1)
        )
        appraised, draws = one.appraise(kept), one.contrast_draws(chosen, kept)
        gains = one.contrast(chosen, kept) if draws is None else [each.estimate() for each in draws]
        for index in mine:
            unchanged, against = appraised[index].estimate, appraised[index].refused
            if unchanged is None or against is not None:
                why = against or "the method has no estimate there"
                text = f"{{}} cannot be compared with it ({why}); it is compared with what is usual"
                where = leaving(objective.cases[index], one.names)
                found[index] = found[index].told([Finding.comparing("present", text, *where)])
            else:
                gain = None if gains is None else gains[index]
                own = None if draws is None else draws[index]
                found[index] = found[index].changed(unchanged=unchanged, gain=gain, draws=own)
    return found


def _unused(
    objective: Candidates[AlterationObjective], case: RehearsalCase, decision: Decision
) -> list[Finding]:
    """That present values of what a decision neither sets nor changes, and that matter, are not used."""
    if decision.alteration is None or not case.present or objective.surrogate is None:
        return []
    left = objective.surrogate.task.left_alone(decision.alteration.names, case.present)
    if not left:
        return []
    stated = case.in_texts({name: case.present[name] for name in left})
    values = " and ".join(f"{name} ({text})" for name, text in stated.items())
    text = (
        "the present value of {} is not used: what is not set is assumed to take what is usual for "
        "such a case"
    )
    return [Finding.comparing("present", text, values, " and ".join(stated))]


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
    return decision.told(untold(decision, case))


def untold(decision: Decision, case: RehearsalCase) -> list[Finding]:
    """That the gain of an alteration is not told from zero, if so."""
    estimate, before, net = decision.estimate, decision.before, decision.net_gain
    if decision.alteration is None or estimate is None or before is None:
        return []
    at_present = decision.unchanged is not None
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
        return []
    where = leaving(case, decision.alteration.names) if at_present else ("no action", "")
    return [Finding.comparing("gain", f"not told apart from {{}}: {doubt}", *where)]


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
