"""Candidate sets: one objective for each set of variables that may be altered.

A task that leaves open which variables to alter has several candidate sets. Their values are comparable, and
a search returns the best set for each case. An objective defines how it is built for all sets of a task in
`AlterationObjective.for_sets`, and is passed to searches in this class, which is the same for all methods:

    candidates = KernelValue.for_cases(surrogate, cases, caution=2.0)
    decisions  = ProjectedAscent().batch_search(candidates)

Models of other rows, of other graphs and at other levels judge such decisions by `appraisals`.

Source: Du et al. (2026), Eq. (1); Qin et al. (2023), Sec. 4.2 (candidate alterations).
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.question import Kind
from rehearsal_torch.objectives.guard import guarded
from rehearsal_torch.objectives.levels import levelled
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate

if TYPE_CHECKING:
    from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal
    from rehearsal_torch.spaces.box import Alteration

# Without a row near for more than this share of such cases, an estimate is the model's form continued.
MOSTLY = 0.5

T_co = TypeVar("T_co", bound="AlterationObjective", covariant=True)


class Candidates(Generic[T_co]):
    """One objective for each candidate set of variables, over B cases.

    Args:
        cases: The B cases.
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
        combination to be searched, or at the best one (`objectives.levels`).
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
        decisions: B decisions.
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
    refused = appraisal.refused or (appraisal.unsupported if beyond else "")
    return {"refused": refused, "unsupported": appraisal.unsupported}


def claimed(
    objective: "Candidates[AlterationObjective]", alterations: "Sequence[Alteration]"
) -> list[Decision | None]:
    """What the method says of alterations that somebody else proposes, as decisions that have been through
    the rule of `objectives.guard` without being withdrawn.

    Args:
        objective: For the B cases.
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
            reason="" if one is None else one.refused or one.unsupported or one.declined,
            warnings=() if one is None else one.warnings,
            trace={} if one is None else one.trace | _withdrawn(one),
        )
        for each, one in zip(alterations, found, strict=True)
    ]
    judged = objective.guarded(stated, declines=False)
    return [each if each.estimate is not None else None for each in judged]
