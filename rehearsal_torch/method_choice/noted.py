"""Decisions of a method that was chosen from the rows: each says so in its trace."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.method_choice.rule import NOTHING

# Why nothing is done in a case where no method was taken.
UNTAKEN = "no method was taken, as none is told apart from doing nothing"
Claims = Callable[[Sequence[Any], Sequence[Decision]], list[Decision]]


@dataclass(frozen=True)
class Noted:
    """Adds the choice to the trace of decisions, after other claims were made.

    Trace: ``method``, the name of the method that decided, and ``method_choice``, why.

    Attributes:
        method: The method that was taken.
        why: The sentence that says why.
        claims: Replaces the claims of the decisions first; None keeps them.
    """

    method: str
    why: str
    claims: Claims | None = None

    def __call__(self, cases: Sequence[Any], decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions, with the choice in their traces."""
        made = list(decisions) if self.claims is None else self.claims(cases, decisions)
        said = {"method": self.method, "method_choice": self.why}
        if self.method == NOTHING:
            made = [replace(each, reason=UNTAKEN) for each in made]
        return [replace(each, trace=each.trace | said) for each in made]
