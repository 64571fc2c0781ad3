"""Annotators that judge decisions by models of their own, after the rules.

judged      claims in place of the method's own: cross-fitted (`claims.cross_fitting`), under the graphs
that may be true (`claims.member_graphs`), or those of a chosen method (`methods.choice`)
overturned  what hidden cause would overturn a decision about cases of a table
(`surrogates.overturning`), with its certificate where the estimate has no interval
sequences   the same for the changes of an episode (`objectives.sequences.sequence_overturning`)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal_torch.claims.context import Context
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.sequences.sequence_overturning import SequenceOverturning
from rehearsal_torch.surrogates.overturning import Overturning

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
        return [
            self.known.with_sensitivity(each, context.certificate(place, each))
            for place, each in enumerate(decisions)
        ]


@dataclass(frozen=True)
class OverturnedSequences:
    """The decisions for episodes with the hidden cause that would overturn them."""

    known: SequenceOverturning

    def __call__(self, context: Context, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions with what would overturn them."""
        return [self.known.with_hidden_cause(context.objective, each) for each in decisions]
