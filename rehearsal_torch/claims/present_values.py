"""Decisions compared with the present values of what they set.

No action usually means what usually happens in such a case, P(desired | x): variables then take whatever
their causes make them take. Where a case states the present values c of what a decision sets to a, the
question of the person who decides is another one, whether a is better than leaving it at c:

    estimate      P(desired | x, do(a))
    unchanged     P(desired | x, do(c))
    gain          their difference, with an interval in which what both have in common cancels
                  (`AlterationObjective.contrast`)

All three are by the objective that found the decision. An action that a decision neither sets nor changes
keeps its present value, too, but P(desired | x, do(a)) lets it take what is usual: the decision says so.
"""

from collections.abc import Sequence
from dataclasses import replace

from rehearsal_torch.claims.context import Context
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates


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
        each.told(_unused(objective, case, each))
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
        appraised, gains = one.appraise(kept), one.contrast(chosen, kept)
        for index in mine:
            unchanged, against = appraised[index].estimate, appraised[index].refused
            if unchanged is None or against is not None:
                why = against or "the method has no estimate there"
                text = f"{{}} cannot be compared with it ({why}); it is compared with what is usual"
                where = leaving(objective.cases[index], one.names)
                found[index] = found[index].told([Finding.comparing("present", text, *where)])
            else:
                gain = None if gains is None else gains[index]
                found[index] = replace(found[index], unchanged=unchanged, gain=gain)
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
