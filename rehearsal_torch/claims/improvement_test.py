"""The gain of a decision over changing nothing, at its cost; a decision without gain is withdrawn.

No action usually means what usually happens in such a case, P(desired | x): variables then follow their
causes. Where a case states the present values c of what a decision sets to a, the question is whether a is
better than leaving it at c:

    estimate      P(desired | x, do(a))
    unchanged     P(desired | x, do(c))
    gain          their difference, with an interval in which what both have in common cancels
                  (`AlterationObjective.contrast`)

All three are by the objective that found the decision. An action that a decision leaves alone keeps its
present value, too: it is held, a part of a and c, where the task says so (`RehearsalTask.holding_present`).
Else P(desired | x, do(a)) lets it take what is usual, which is a finding. Used by `claims.abstention_rules`.
A decision has its cost, and findings:

    no_path     no directed path leads from the variables that would be set to an outcome: according to the
                graph, setting them has no effect
    no_gain     the method's own estimate is not above its estimate for no action, or, where the present
                values of what would be set are known, not above its estimate for leaving them as they are;
                where costs count, its net value (`objectives.net_value`) is not
    score       the model predicts rows that were left out no better than a constant does, and no claim from
                rows that did not choose the action (`claims.cross_fitting`) tells its gain from zero: the
                records cannot tell
    gain        the interval of the estimate contains the estimate for no action, or that of the gain over
                the present values contains zero, so that the gain may be chance

Source: Qin et al. (2023), Sec. 4.2 (refusal as an answer).
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
        decision
        if case.costs is None
        else decision.changed(cost=_cost(case.costs, decision), worth=case.costs.worth)
        for case, decision in zip(context.cases, decisions, strict=True)
    ]


def _cost(costs: CaseCosts, decision: Decision) -> float | None:
    if decision.alteration is None:
        return None if decision.undecided else 0.0
    return round(cost_of_setting(costs, decision.alteration.names, decision.alteration.values.tolist()), 9)


def paid(case: RehearsalCase, decision: Decision) -> float:
    """The cost of an alteration in units of the worth of a desired outcome; 0 where costs do not count."""
    costs = case.costs
    if costs is None or costs.worth is None:
        return 0.0
    return (_cost(costs, decision) or 0.0) / costs.worth


def changes_nothing(decision: Decision, case: RehearsalCase) -> bool:
    """Whether an alteration leaves everything that it sets at its present value."""
    if decision.alteration is None:
        return False
    present = case.kept(decision.alteration.names)
    return present is not None and present.values.equal(decision.alteration.values)


def leaving(case: RehearsalCase, names: Sequence[str]) -> tuple[str, str]:
    """The phrase for keeping present values, "leaving bmi at 30 and bp at 100", with and without values."""
    texts = case.in_texts({name: case.present[name] for name in names})
    return (
        "leaving " + " and ".join(f"{name} at {text}" for name, text in texts.items()),
        "leaving " + " and ".join(f"{name} as it is" for name in texts),
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
    """`present_values`, for one decision per case of the objective, in order."""
    compared = [
        decision.told(_unused(objective, case, decision)) if case.present else decision
        for case, decision in zip(objective.cases, decisions, strict=True)
    ]
    pairs = {
        index: (decision.alteration, present)
        for index, (case, decision) in enumerate(zip(objective.cases, compared, strict=True))
        if decision.alteration is not None
        and decision.estimate is not None
        and decision.unchanged is None
        and (present := case.kept(decision.alteration.names)) is not None
    }
    for group in objective.whole:
        group_pairs = {index: pair for index, pair in pairs.items() if pair[0].names == group.names}
        if not group_pairs:
            continue
        altered, unaltered = (
            group.with_alterations({index: pair[side] for index, pair in group_pairs.items()})
            for side in (0, 1)
        )
        appraised, draws = group.appraise(unaltered), group.contrast_draws(altered, unaltered)
        gains = group.contrast(altered, unaltered) if draws is None else [draw.estimate() for draw in draws]
        for index in group_pairs:
            unchanged, refused = appraised[index].estimate, appraised[index].refused
            if unchanged is None or refused is not None:
                reason = refused or "the method has no estimate there"
                text = f"{{}} cannot be compared with it ({reason}); it is compared with what is usual"
                phrases = leaving(objective.cases[index], group.names)
                compared[index] = compared[index].told([Finding.comparing("present", text, *phrases)])
            else:
                gain = None if gains is None else gains[index]
                gain_draws = None if draws is None else draws[index]
                compared[index] = compared[index].changed(unchanged=unchanged, gain=gain, draws=gain_draws)
    return compared


def _unused(
    objective: Candidates[AlterationObjective], case: RehearsalCase, decision: Decision
) -> list[Finding]:
    """That present values of what a decision neither sets nor changes, and that matter, are not used."""
    if decision.alteration is None or not case.present or objective.surrogate is None:
        return []
    names = objective.surrogate.task.left_alone(decision.alteration.names, case.present)
    if not names:
        return []
    stated = case.in_texts({name: case.present[name] for name in names})
    values = " and ".join(f"{name} ({text})" for name, text in stated.items())
    text = (
        "the present value of {} is not used: what is not set is assumed to take what is usual for "
        "such a case"
    )
    finding = Finding.comparing("present", text, values, " and ".join(stated))
    return [replace(finding, numbers={"unused": len(stated)})]


def paths(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions without those that, by every graph, cannot change an outcome."""
    objective = context.objective
    if not isinstance(objective, Candidates):
        return list(decisions)
    altered = {decision.alteration.names for decision in decisions if decision.alteration is not None}
    unlinked = {names: objective.no_path(names) for names in altered if not objective.linked(names)}
    return [
        decision
        if decision.alteration is None or decision.alteration.names not in unlinked
        else context.against(decision, unlinked[decision.alteration.names])
        for decision in decisions
    ]


def improvement(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions without those that are no better than changing nothing."""
    if not isinstance(context.objective, Candidates):
        return list(decisions)
    pairs = zip(decisions, context.cases, strict=True)
    return [_improves(context, decision, case) for decision, case in pairs]


def _improves(context: Context, decision: Decision, case: RehearsalCase) -> Decision:
    estimate, before = decision.estimate, decision.before
    if decision.alteration is None or estimate is None or before is None:
        return decision
    at_present = decision.unchanged is not None
    phrases = leaving(case, decision.alteration.names) if at_present else ("doing nothing", "")
    net_gain = decision.net_gain
    better = estimate.point > before.point if net_gain is None else net_gain.point > 0
    if not better:
        text = f"predicted no better than {{}} ({beside(estimate.point, before.point)})"
        finding = Finding.comparing("no_gain", text if net_gain is None else nets_no_more(decision), *phrases)
        if net_gain is not None and context.declines and changes_nothing(decision, case):
            return replace(decision, alteration=None, reason=finding, cost=0.0)
        return context.against(decision, finding)
    return decision.told(untold(decision, case))


def informed(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions without those of a model that predicts no better than a constant, after all claims."""
    reason = Finding(
        "score",
        "the records cannot tell: the model predicts rows that were left out no better than a constant does, "
        "and no rows that did not choose this action tell its gain from zero",
    )
    return [
        decision.withdrawn(reason)
        if context.declines
        and decision.alteration is not None
        and any(finding.kind == "score" for finding in decision.findings)
        else decision
        for decision in decisions
    ]


def untold(decision: Decision, case: RehearsalCase) -> list[Finding]:
    """That the gain of an alteration is not told from zero, if so."""
    estimate, before, net_gain = decision.estimate, decision.before, decision.net_gain
    if decision.alteration is None or estimate is None or before is None:
        return []
    at_present = decision.unchanged is not None
    difference, doubt = decision.gain if net_gain is None else net_gain, ""
    if difference is not None and difference.lower is not None and difference.upper is not None:
        if difference.lower <= 0:
            interval = f"{difference.lower:+.4g} to {difference.upper:+.4g}"
            if net_gain is None:
                interval = " to ".join(points([difference.lower, difference.upper])) + " percentage points"
            quantity = "difference" if net_gain is None else "net gain"
            doubt = f"the interval of the {quantity}, {interval}, contains zero"
    elif estimate.lower is not None and estimate.upper is not None and estimate.lower <= before.point:
        baseline = "leaving it gives" if at_present else "no action gives"
        lower, upper, base = percents([estimate.lower, estimate.upper, before.point])
        doubt = f"the interval of the estimate, {lower} to {upper}, contains what {baseline}, {base}"
    if not doubt:
        return []
    phrases = leaving(case, decision.alteration.names) if at_present else ("no action", "")
    return [Finding.comparing("gain", f"not told apart from {{}}: {doubt}", *phrases)]


def nets_no_more(decision: Decision) -> str:
    """Why an alteration is not worth its cost, in a sentence for `Finding.comparing`."""
    net_gain, estimate, before = decision.net_gain, decision.estimate, decision.before
    assert net_gain is not None
    assert estimate is not None
    assert before is not None
    if not decision.cost and net_gain.point == 0:
        return "no change nets more than {}"
    worth = net_gain.point + (decision.cost or 0.0)
    return (
        f"nothing nets more than {{}}: the best change found costs {decision.cost:.6g}, and a probability of "
        f"{estimate.point:.3f} in place of {before.point:.3f} is worth {worth:.6g}"
    )
