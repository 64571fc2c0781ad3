"""Searches that answer for many situations at once.

Starts and situations share one tensor; the answer for a situation does not depend on the others that it was computed
with (up to the last bits of floating-point sums).

Source: Du et al. (2026), Alg. 1 (phase 3), batched over contexts.
"""

import time
from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.alternatives import Alternatives
from rehearsal_torch.search.search import Search, Sought
from rehearsal_torch.spaces.alteration import Alteration


class ManySearch(Search[Sought]):
    """A search over B situations.

    Attributes:
        together: How many situations the loop hands over at once.
    """

    together: int = 256

    @abstractmethod
    def many(self, objective: Sought) -> list[Decision]:
        """A decision for each situation of the objective, in order."""

    def __call__(self, objective: Sought) -> Decision:
        """The decision of an objective with one situation."""
        (decision,) = self.many(objective)
        return decision


def chosen(objective: Alternatives, actions: Sequence[Tensor], values: Tensor, name: str, began: float, facts: Sequence[dict] | None = None) -> list[Decision]:
    """Decisions of the best set for each situation.

    Args:
        objective: What was searched.
        actions: For each set its best actions, (B, k) each.
        values: (sets, B), what they are worth; the largest wins, the first of equals. A set that is minus infinity throughout refuses.
        name: The search's name, for the evidence.
        began: `time.perf_counter()` at the start.
        facts: More evidence, one dictionary a situation.

    Returns:
        B decisions. Evidence: ``search``, ``altered``, what the objective says of the action, `facts`.
    """
    best = values.argmax(0).tolist()
    sets = objective.objectives()
    said = [one.evidence(each) for one, each in zip(sets, actions, strict=True)]
    seconds = (time.perf_counter() - began) / max(len(objective.situations), 1)
    decisions = []
    for index, which in enumerate(best):
        value = float(values[which, index])
        evidence = {"search": name, "altered": list(sets[which].names), **said[which][index], **(facts[index] if facts else {})}
        refused = str(evidence.pop("refused", ""))
        if value == -float("inf") and not refused:
            refused = "no candidate alteration qualifies"
        alteration = None if refused else Alteration(sets[which].names, actions[which][index].detach().to("cpu", torch.float64))
        if refused:
            evidence["would_set"] = dict(zip(sets[which].names, actions[which][index].tolist(), strict=True))
        decisions.append(Decision(alteration, value, evidence, refused or "; ".join(evidence.get("warnings", [])), seconds))
    return decisions
