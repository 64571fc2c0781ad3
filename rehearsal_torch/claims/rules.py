"""The rules of when not to act, and of what is said of every decision, in their order.

Each applies to the objectives that it knows: those of alterations (`Candidates`) or of the changes of an
episode (`CounterfactualReturn`); decisions of others, such as those of trials, stay as they are. Applying
them twice changes nothing.
"""

from collections.abc import Sequence
from typing import Any

from rehearsal_torch.claims.context import Annotator, Context
from rehearsal_torch.claims.costs import costs
from rehearsal_torch.claims.improvement import improvement, paths
from rehearsal_torch.claims.present_values import present_values
from rehearsal_torch.claims.sequences import sequences
from rehearsal_torch.claims.support import support
from rehearsal_torch.data.decision import Decision
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


def claimed(objective: Candidates[Any], alterations: Sequence[Alteration]) -> list[Decision | None]:
    """What the method says of alterations that somebody else proposes, as decisions that have been through
    the rules without being withdrawn.

    Args:
        alterations: B alterations.

    Returns:
        B decisions, whose trace has ``refused``: why the method cannot assess one, and ``unsupported``: why
        it may not be recommended, each empty if that is not so; None where there is no estimate.
    """
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
            trace=one.trace | _withdrawn(one),
        )
        for each, one in zip(alterations, appraisals, strict=True)
    ]
    judged = ruled(objective, stated, declines=False)
    return [each if each.estimate is not None else None for each in judged]


def _withdrawn(appraisal: Appraisal) -> dict[str, str]:
    """Why the method cannot assess an action, and why it would not set it."""
    beyond = appraisal.trace.get("beyond", 0.0) > MOSTLY
    refused = appraisal.refused or (appraisal.unsupported if beyond else None)
    return {"refused": str(refused or ""), "unsupported": str(appraisal.unsupported or "")}
