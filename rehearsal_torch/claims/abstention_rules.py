"""The rules that annotate or withdraw decisions, in their order, and annotators with models of their own.

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
from rehearsal_torch.claims.sequence_rules import sequence_gains, sequences
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
    """The decisions after the annotators, one after the other."""
    current = list(decisions)
    for annotator in annotators:
        current = annotator(context, current)
    return current


def ruled(objective: Any, decisions: Sequence[Decision], declines: bool = True) -> list[Decision]:
    """The decisions that a search found for an objective, after the rules; `declines` as in `Context`."""
    cases = objective.cases if isinstance(objective, Candidates) else [objective.case] * len(decisions)
    return annotated(Context(objective, cases, declines), decisions)


@dataclass(frozen=True)
class Claimed:
    """The method's assessment of an alteration that somebody else proposes.

    Attributes:
        decision: The decision with its estimate, which has been through the rules without being withdrawn.
        refused: Why the method cannot assess the alteration; None if it can.
        unsupported: Why it would not set it; None if it would.
    """

    decision: Decision
    refused: Finding | None = None
    unsupported: Finding | None = None


def claimed(objective: Candidates[Any], alterations: Sequence[Alteration]) -> list[Claimed | None]:
    """The assessment of one alteration in each of B cases; None where the method has no estimate."""
    appraisals = objective.appraisals([Decision(alteration, 0.0) for alteration in alterations])
    stated = [
        Decision(alteration, 0.0)
        if appraisal is None
        else Decision(
            alteration,
            0.0,
            estimate=appraisal.estimate,
            baseline=appraisal.baseline,
            gain=appraisal.gain,
            draws=appraisal.gain_draws,
            reason=appraisal.refused or appraisal.unsupported or appraisal.declined,
            findings=appraisal.findings,
            trace=appraisal.trace,
        )
        for alteration, appraisal in zip(alterations, appraisals, strict=True)
    ]
    judged = ruled(objective, stated, declines=False)
    return [
        None
        if appraisal is None or decision.estimate is None
        else Claimed(decision, _refused(appraisal), appraisal.unsupported)
        for decision, appraisal in zip(judged, appraisals, strict=True)
    ]


def _refused(appraisal: Appraisal) -> Finding | None:
    beyond = appraisal.trace.get("beyond", 0.0) > MOSTLY
    return appraisal.refused or (appraisal.unsupported if beyond else None)


Claims = Callable[[Sequence[Any], Sequence[Decision]], list[Decision]]


@dataclass(frozen=True)
class Judged:
    """An annotator that replaces the claims of decisions by those of other models."""

    claims: Claims

    def __call__(self, context: Context, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions with these claims."""
        return self.claims(context.cases, decisions)


@dataclass(frozen=True)
class Overturned:
    """An annotator that adds the sensitivity of decisions about cases to a hidden cause."""

    known: Overturning

    def __call__(self, context: Context, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions with their sensitivity."""
        certificates = [context.certificate(index, decision) for index, decision in enumerate(decisions)]
        return self.known.with_sensitivity(decisions, certificates)


@dataclass(frozen=True)
class OverturnedSequences:
    """An annotator that adds to decisions for episodes the hidden cause that would overturn them."""

    known: SequenceOverturning

    def __call__(self, context: Context, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions with what would overturn them."""
        return [self.known.with_hidden_cause(context.objective, decision) for decision in decisions]
