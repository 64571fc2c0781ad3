"""Candidate sets: one objective for each set of variables that may be altered.

A task that leaves open which variables to alter has several candidate sets. Their values are comparable, and
a search returns the best set for each case. An objective defines how it is built for all sets of a task in
`AlterationObjective.for_sets`, and is passed to searches in this class, which is the same for all methods:

    candidates = KernelValue.for_cases(surrogate, cases, caution=2.0)
    decisions  = ProjectedAscent().batch_search(candidates)

Models of other rows, of other graphs and at other levels judge such decisions by `appraisals`.

Levels: objectives of variables that can be set to some values only, for searches that know intervals.

A set of altered variables of which some have levels is replaced by narrower ones, with the same objective:

    all have levels     every combination is evaluated in one batch, and each case keeps the one with the
                        largest `level_value` that the objective accepts (or the largest, if it accepts none):
                        a box that is this point
    some have levels    one box for every combination, in which the variables with levels are held and the
                        others keep their bounds; searches take the best box, as they take the best set

Of the indicators of a variable of classes at most one is 1 in a combination (`codings.class_actions`). So
every search returns a level, or a class, and its objective appraises that level. Objectives whose search does
not look for the largest value (`enumerable` is false: a cost under a chance constraint, information) have one
box for every combination also where all variables have levels.

Source: Du et al. (2026), Eq. (1); Qin et al. (2023), Sec. 4.2 (candidate alterations); exhaustive search;
ours.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor

from rehearsal_torch.data.codings.class_actions import combinations
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.question import Kind
from rehearsal_torch.data.rehearsal_task import SEARCHES
from rehearsal_torch.objectives.guard import guarded
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate

if TYPE_CHECKING:
    from rehearsal_torch.objectives.objective import AlterationObjective

T = TypeVar("T", bound="AlterationObjective")
AT_ONCE = 64


def levelled(sets: Sequence[T]) -> tuple[T, ...]:
    """The objectives that a search is given in place of those of whole sets; those without levels stay.

    Raises:
        ValueError: if a set has too many combinations to be searched one by one.
    """
    return tuple(each for one in sets for each in (_boxes(one) if one.levels else (one,)))


def _boxes(one: T) -> Iterator[T]:
    names = list(one.levels)
    places = [one.names.index(name) for name in names]
    values = combinations(one.levels, one.cases[0].codings)
    if one.enumerable and len(places) == len(one.names):
        best = highest(one, every_combination(one))
        yield one.within(best, best, {})
        return
    if len(values) > SEARCHES:
        raise ValueError(
            f"{', '.join(one.names)}: {len(values)} combinations of values; {type(one).__name__} is searched "
            f"for each by itself, at most {SEARCHES}: offer fewer values, or use a method that maximises the "
            "probability of success, such as decision=cme"
        )
    yield from held(one)


def held(one: T) -> Iterator[T]:
    """One box for every combination of the levels, in which the variables with levels are held."""
    places = [one.names.index(name) for name in one.levels]
    for combination in combinations(one.levels, one.cases[0].codings):
        lower, upper = one.lower.clone(), one.upper.clone()
        lower[:, places] = upper[:, places] = one.lower.new_tensor(combination)
        yield one.within(lower, upper, dict(zip(one.levels, combination, strict=True)))


def every_combination(one: "AlterationObjective") -> Tensor:
    """All combinations of the levels of a set whose variables all have some, (c, k)."""
    names = list(one.levels)
    order = [names.index(name) for name in one.names]
    return one.lower.new_tensor(combinations(one.levels, one.cases[0].codings))[:, order]


@torch.no_grad()
def highest(
    one: "AlterationObjective", actions: Tensor, value: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """The best acceptable of some actions in each case, or the best if none is, (c, k) -> (B, k); the first
    one among equals.

    Args:
        one: The objective of the set.
        value: What is to be largest, (..., B, k) -> (..., B); None takes `level_value`.
    """
    value = one.level_value if value is None else value
    parts = [part.unsqueeze(1).expand(-1, len(one.cases), -1) for part in actions.split(AT_ONCE)]
    values = torch.cat([ranked(value(part)) for part in parts])
    order = values.argsort(dim=0, descending=True, stable=True)
    best, found = actions[order[0]], torch.zeros(order.shape[1], dtype=torch.bool, device=order.device)
    # From the best down, as acceptance may cost more than a value.
    for places in order.split(AT_ONCE):
        ranking = actions[places]
        accepted = one.acceptable(ranking).to(found.device)
        first = accepted.to(torch.long).argmax(0)
        new = accepted.any(0) & ~found
        chosen = ranking[first, torch.arange(len(found), device=order.device)]
        best, found = torch.where(new.unsqueeze(-1), chosen, best), found | new
        if bool(found.all()):
            break
    return best


if TYPE_CHECKING:
    from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal
    from rehearsal_torch.spaces.box import Alteration

# Without a row near for more than this share of such cases, an estimate is the model's form continued.
MOSTLY = 0.5

T_co = TypeVar("T_co", bound="AlterationObjective", covariant=True)


class Candidates(Generic[T_co]):
    """One objective for each candidate set of variables, over B cases.

    Args:
        sets: One objective per candidate set, over the same cases; kept as `whole`.
        surrogate: The surrogate behind them; its graphs and observations determine which answers must be
            refused or need a warning. None skips these checks.

    Attributes:
        whole: The objectives as given.
        kind: The kind of problem that it applies to; see `Objective`.
    """

    kind: Kind | None = "rehearse"

    def __init__(
        self,
        cases: Sequence[RehearsalCase],
        sets: Sequence[T_co],
        surrogate: RehearsalSurrogate | None = None,
    ) -> None:
        self.cases, self.surrogate = tuple(cases), surrogate
        self.whole: tuple[T_co, ...] = tuple(sets)

    @cached_property
    def sets(self) -> tuple[T_co, ...]:
        """What searches maximise over: the objectives as given, those of variables with levels once for every
        combination to be searched, or at the best one (`objectives.candidates`).
        """
        return levelled(self.whole)

    def guarded(self, decisions: list[Decision], declines: bool = True) -> list[Decision]:
        """The decisions, one for each case, after the rule of `objectives.guard`."""
        return guarded(self, decisions, declines)

    def trajectory_record(self, decision: Decision) -> dict[str, Any]:  # noqa: ARG002
        """Empty: an alteration has no steps."""
        return {}


def estimates(
    objective: "Candidates[AlterationObjective]", decisions: Sequence[Decision]
) -> tuple[Tensor, list[int | None]]:
    """The objective's estimates for given decisions, (B,), NaN where nothing is altered, and how many draws
    each is a share of.
    """
    points = torch.full((len(decisions),), math.nan, dtype=torch.float64)
    draws: list[int | None] = [None] * len(decisions)
    for index, each in enumerate(appraisals(objective.whole, decisions)):
        if each is not None and each.estimate is not None:
            points[index], draws[index] = each.estimate.point, each.draws
    return points, draws


def appraisals(
    sets: "Sequence[AlterationObjective]", decisions: Sequence[Decision]
) -> "list[Appraisal | None]":
    """What objectives say of given decisions, each by that of its variables; None where nothing is altered.

    Args:
        sets: One objective per candidate set, for the B cases of the decisions.
    """
    found: list[Appraisal | None] = [None] * len(decisions)
    for one in sets:
        mine = [
            index
            for index, each in enumerate(decisions)
            if each.alteration is not None and each.alteration.names == one.names
        ]
        if not mine:
            continue
        appraised = one.appraise(one.with_alterations({index: decisions[index].alteration for index in mine}))
        for index in mine:
            found[index] = appraised[index]
    return found


def _withdrawn(appraisal: "Appraisal") -> dict[str, str]:
    """Why the method cannot assess an action, and why it would not set it."""
    beyond = appraisal.trace.get("beyond", 0.0) > MOSTLY
    refused = appraisal.refused or (appraisal.unsupported if beyond else None)
    return {"refused": str(refused or ""), "unsupported": str(appraisal.unsupported or "")}


def claimed(
    objective: "Candidates[AlterationObjective]", alterations: "Sequence[Alteration]"
) -> list[Decision | None]:
    """What the method says of alterations that somebody else proposes, as decisions that have been through
    the rule of `objectives.guard` without being withdrawn.

    Args:
        alterations: B alterations.

    Returns:
        B decisions, whose trace has ``refused``: why the method cannot assess one, and ``unsupported``: why
        it may not be recommended, each empty if that is not so; None where there is no estimate.
    """
    found = appraisals(objective.whole, [Decision(each, 0.0) for each in alterations])
    stated = [
        Decision(
            each,
            0.0,
            estimate=None if one is None else one.estimate,
            baseline=None if one is None else one.baseline,
            reason=None if one is None else one.refused or one.unsupported or one.declined,
            findings=() if one is None else one.findings,
            trace={} if one is None else one.trace | _withdrawn(one),
        )
        for each, one in zip(alterations, found, strict=True)
    ]
    judged = objective.guarded(stated, declines=False)
    return [each if each.estimate is not None else None for each in judged]
