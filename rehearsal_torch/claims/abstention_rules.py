"""The rules of when not to act, and of what is said of every decision, in their order; then what judges a
decision by models of its own.

Each rule applies to the objectives that it knows: those of alterations (`Candidates`) or of the changes of an
episode (`CounterfactualReturn`); decisions of others, such as those of trials, stay as they are. Applying
them twice changes nothing. After them,

    Judged               claims in place of the method's own: cross-fitted (`claims.cross_fitting`), under the
                         graphs that may be true (`claims.graph_robustness`), or those of a chosen method
    Overturned           what hidden cause would overturn a decision about cases of a table
                         (`surrogates.tipping_strength`), with its certificate where the estimate has no
                         interval
    OverturnedSequences  the same for the changes of an episode (`objectives.sequence_sensitivity`)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal_torch.claims.claim_context import Annotator, Context
from rehearsal_torch.claims.improvement_test import costs, improvement, paths, present_values
from rehearsal_torch.claims.sequence_gains import sequence_gains
from rehearsal_torch.claims.sequence_rules import sequences
from rehearsal_torch.claims.support_warnings import support
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.objective import Appraisal, Candidates
from rehearsal_torch.objectives.sequence_sensitivity import SequenceOverturning
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.tipping_strength import Overturning

RULES: tuple[Annotator, ...] = (present_values, costs, support, paths, improvement, sequences, sequence_gains)

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
            gain=one.gain,
            draws=one.gain_draws,
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


Claims = Callable[[Sequence[Any], Sequence[Decision]], list[Decision]]


@dataclass(frozen=True)
class Judged:
    """The decisions with other claims.

    Attributes:
        claims: Returns the decisions for some cases with its claims.
    """

    claims: Claims

    def __call__(self, context: Context, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions with these claims."""
        return self.claims(context.cases, decisions)


@dataclass(frozen=True)
class Overturned:
    """The decisions about cases with their sensitivity to a hidden cause."""

    known: Overturning

    def __call__(self, context: Context, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions with their sensitivity."""
        certificates = [context.certificate(place, each) for place, each in enumerate(decisions)]
        return self.known.with_sensitivity(decisions, certificates)


@dataclass(frozen=True)
class OverturnedSequences:
    """The decisions for episodes with the hidden cause that would overturn them."""

    known: SequenceOverturning

    def __call__(self, context: Context, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions with what would overturn them."""
        return [self.known.with_hidden_cause(context.objective, each) for each in decisions]
