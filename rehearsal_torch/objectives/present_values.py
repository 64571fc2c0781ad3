"""Decisions compared with the present values of what they set.

No action usually means what usually happens in such a case, P(desired | x): variables then take whatever
their causes make them take. Where a case states the present values c of what a decision sets to a, the
question of the person who decides is another one, whether a is better than leaving it at c:

    estimate      P(desired | x, do(a))
    unchanged     P(desired | x, do(c))
    gain          their difference, with an interval in which what both have in common cancels
                  (`AlterationObjective.contrast`)

All three are by the objective that found the decision.

An action that a decision neither sets nor changes keeps its present value, too, but P(desired | x, do(a))
lets it take what is usual. If a candidate set on offer holds both, it is searched instead (`better_judged`):
it can leave the one where it is. Otherwise the decision has a warning.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, Estimate, RehearsalCase
from rehearsal_torch.data.finding import Finding, joined
from rehearsal_torch.spaces.box import Alteration

if TYPE_CHECKING:
    from rehearsal_torch.objectives.candidates import Candidates
    from rehearsal_torch.objectives.objective import AlterationObjective


def kept(case: RehearsalCase, names: Sequence[str]) -> Alteration | None:
    """The present values of variables; None if some are unknown."""
    if not names or not set(names) <= set(case.present):
        return None
    return Alteration(tuple(names), torch.tensor([case.present[name] for name in names], dtype=torch.float64))


def changes_nothing(decision: Decision, case: RehearsalCase) -> bool:
    """Whether an alteration leaves everything that it sets at its present value."""
    now = None if decision.alteration is None else kept(case, decision.alteration.names)
    return (
        now is not None and decision.alteration is not None and now.values.equal(decision.alteration.values)
    )


def leaving(case: RehearsalCase, names: Sequence[str]) -> str:
    """Words for keeping the present values: "leaving bmi at 30 and bp at 100"."""
    stated = case.in_texts({name: case.present[name] for name in names})
    return "leaving " + " and ".join(f"{name} at {each}" for name, each in stated.items())


def better_judged(
    objective: "Candidates[AlterationObjective]", sets: "Sequence[AlterationObjective]"
) -> Tensor:
    """Which sets another one judges better in a case, (sets, B) bool: one that also holds the actions which
    the first leaves at known present values, within their bounds.

    Args:
        sets: Its sets, or the first ones.
    """
    offered = {frozenset(one.names) for one in sets}
    found = torch.zeros(len(sets), len(objective.cases), dtype=torch.bool)
    stated = [(index, case) for index, case in enumerate(objective.cases) if case.present]
    for place, one in enumerate(sets):
        for index, case in stated:
            left = left_alone(objective, case, one.names)
            both = frozenset((*one.names, *left))
            found[place, index] = bool(left) and both in offered and all(_within(case, name) for name in left)
    return found


def _within(case: RehearsalCase, name: str) -> bool:
    """Whether a variable may be left at its present value."""
    lower, upper = case.feasible[name]
    value, levels = case.present[name], case.levels.get(name)
    return lower <= value <= upper and (levels is None or value in levels)


def left_alone(
    objective: "Candidates[AlterationObjective]", case: RehearsalCase, names: Sequence[str]
) -> tuple[str, ...]:
    """The actions of known present value that an alteration neither sets nor changes, and that matter."""
    if not case.present or objective.surrogate is None:
        return ()
    return objective.surrogate.task.left_alone(names, case.present)


def with_unchanged(
    objective: "Candidates[AlterationObjective]", decisions: Sequence[Decision]
) -> list[Decision]:
    """The decisions with `unchanged` and `gain`, where the present values of what is set are known.

    Present values of which the objective has no estimate, such as those far from all observations, get a
    finding of the kind ``present``.

    Args:
        decisions: One decision for each of its cases, in order.
    """
    found = [
        _warned_of_others(objective, case, each)
        for case, each in zip(objective.cases, decisions, strict=True)
    ]
    wanted = {
        index: (each.alteration, now)
        for index, (case, each) in enumerate(zip(objective.cases, found, strict=True))
        if each.alteration is not None
        and each.estimate is not None
        and each.unchanged is None
        and (now := kept(case, each.alteration.names)) is not None
    }
    for one in objective.whole:
        mine = {index: pair for index, pair in wanted.items() if pair[0].names == one.names}
        if not mine:
            continue
        chosen, kept_as_is = (
            one.with_alterations({index: pair[which] for index, pair in mine.items()}) for which in (0, 1)
        )
        appraised, gains = one.appraise(kept_as_is), one.contrast(chosen, kept_as_is)
        for index in mine:
            gain = None if gains is None else gains[index]
            told = appraised[index]
            found[index] = _with(found[index], objective.cases[index], told.estimate, gain, told.refused)
    return found


def _warned_of_others(
    objective: "Candidates[AlterationObjective]", case: RehearsalCase, decision: Decision
) -> Decision:
    if decision.alteration is None:
        return decision
    left = left_alone(objective, case, decision.alteration.names)
    if not left:
        return decision
    stated = case.in_texts({name: case.present[name] for name in left})
    each = " and ".join(f"{name} ({text})" for name, text in stated.items())
    said = (
        f"the present value of {each} is not used: what is not set is assumed to take what is usual "
        "for such a case"
    )
    return replace(decision, findings=joined(decision.findings, [Finding("present", said)]))


def _with(
    decision: Decision,
    case: RehearsalCase,
    unchanged: Estimate | None,
    gain: Estimate | None,
    against: Finding | None,
) -> Decision:
    assert decision.alteration is not None
    if unchanged is None or against:
        where = leaving(case, decision.alteration.names)
        why = against or "the method has no estimate there"
        said = f"{where} cannot be compared with it ({why}); it is compared with what is usual"
        return replace(decision, findings=joined(decision.findings, [Finding("present", said)]))
    return replace(decision, unchanged=unchanged, gain=gain)
