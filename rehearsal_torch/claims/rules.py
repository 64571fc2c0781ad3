"""The rules of when not to act, and of what is said of every decision, in their order.

Each applies to the objectives that it knows: those of alterations (`Candidates`) or of the changes of an
episode (`CounterfactualReturn`); decisions of others, such as those of trials, stay as they are. Applying
them twice changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal_torch.claims.context import Annotator, Context
from rehearsal_torch.claims.costs import costs
from rehearsal_torch.claims.improvement import improvement, paths
from rehearsal_torch.claims.present_values import present_values
from rehearsal_torch.claims.sequences import sequences
from rehearsal_torch.claims.support import support
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.objective import Appraisal, Candidates
from rehearsal_torch.spaces.box import Alteration

RULES: tuple[Annotator, ...] = (present_values, costs, support, paths, improvement, sequences)

# Without a row near for more than this share of such cases, an estimate is the model's form continued.
MOSTLY = 0.5


def annotated(
    context: Context, decisions: Sequence[Decision], annotators: Sequence[Annotator] = RULES
) -> list[Decision]:
    """The decisions with what the annotators say, one after the other."""
    found = list(decisions)
    for each in annotators:
        found = each(context, found)
    return found


def ruled(objective: Any, decisions: Sequence[Decision], declines: bool = True) -> list[Decision]:
    """The decisions that a search found for an objective, after the rules.

    Args:
        declines: Whether a decision may be withdrawn; see `Context`.
    """
    cases = objective.cases if isinstance(objective, Candidates) else [objective.case] * len(decisions)
    return annotated(Context(objective, cases, declines), decisions)


@dataclass(frozen=True)
class Claimed:
    """What the method says of an alteration that somebody else proposes.

    Attributes:
        decision: The decision with its estimate, which has been through the rules without being withdrawn.
        refused: Why the method cannot assess the alteration; None if it can.
        unsupported: Why it would not set it; None if it would.
    """

    decision: Decision
    refused: Finding | None = None
    unsupported: Finding | None = None


def claimed(objective: Candidates[Any], alterations: Sequence[Alteration]) -> list[Claimed | None]:
    """What the method says of one alteration in each of B cases; None where it has no estimate."""
    appraisals = objective.appraisals([Decision(each, 0.0) for each in alterations])
    stated = [
        Decision(each, 0.0)
        if one is None
        else Decision(
            each,
            0.0,
            estimate=one.estimate,
            baseline=one.baseline,
            reason=one.refused or one.unsupported or one.declined,
            findings=one.findings,
            trace=one.trace,
        )
        for each, one in zip(alterations, appraisals, strict=True)
    ]
    judged = ruled(objective, stated, declines=False)
    return [
        None if one is None or each.estimate is None else Claimed(each, _refused(one), one.unsupported)
        for each, one in zip(judged, appraisals, strict=True)
    ]


def _refused(appraisal: Appraisal) -> Finding | None:
    """Why the method cannot assess an action."""
    beyond = appraisal.trace.get("beyond", 0.0) > MOSTLY
    return appraisal.refused or (appraisal.unsupported if beyond else None)
