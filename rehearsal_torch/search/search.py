"""Searches: finding a good action.

Given an objective, a search answers with a decision; it knows nothing of surrogates or data sets.

Searches that answer for many situations at once.

Starts and situations share one tensor; the answer for a situation does not depend on the others that it was
computed with (up to the last bits of floating-point sums).

Source: Du et al. (2026), Alg. 1 (phase 3), batched over contexts.

Refraining: nothing is altered; what every other method is compared with.

Source: Du et al. (2026), Table 1 (no action).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.objective import AlterationObjective, Objective
from rehearsal_torch.search.budget import Budget, checked_budget
from rehearsal_torch.search.guard import declined, guarded, linked, no_path
from rehearsal_torch.spaces.box import Alteration

Sought = TypeVar("Sought", bound=Objective | Candidates[Any], contravariant=True)
Candidate = TypeVar("Candidate")


class Search(ABC, Generic[Sought]):
    """A way to make an objective large.

    Attributes:
        declines: Whether an answer may be "no" where its own estimate speaks against acting (`search.guard`);
            otherwise it bears a warning. Random baselines, presets that reproduce a publication and rounds
            that learn set it to False.
        budget_s: Seconds after which a call answers with the best found so far (`search.budget`); None for no
            limit.
    """

    declines: bool = True
    budget_s: float | None = None

    @abstractmethod
    def __call__(self, objective: Sought) -> Decision:
        """The best action found, and how."""


class BatchSearch(Search[Sought]):
    """A search over B situations.

    Attributes:
        batch_size: How many situations the loop hands over at once.
    """

    batch_size: int = 256

    @abstractmethod
    def batch_search(self, objective: Sought) -> list[Decision]:
        """A decision for each situation of the objective, in order."""

    def __call__(self, objective: Sought) -> Decision:
        """The decision of an objective with one situation."""
        (decision,) = self.batch_search(objective)
        return decision


def chosen(
    objective: Candidates[AlterationObjective],
    actions: Sequence[Tensor],
    values: Tensor,
    name: str,
    budget: Budget,
    facts: Sequence[dict[str, Any]] | None = None,
    declines: bool = True,
) -> list[Decision]:
    """Decisions of the best set for each situation, after the rule of `search.guard`.

    Args:
        objective: What was searched.
        actions: For each set its best actions, (B, k) each; of the first sets alone where the time was out
            before the others.
        values: (sets, B), what they are worth; the largest wins, the first of equals. A set that is minus
            infinity throughout refuses, and so does one whose values are no numbers.
        name: The search's name, for the trace.
        budget: The call's.
        facts: More for the trace, one dictionary a situation; a sentence under ``refused`` takes the
            recommendation back.
        declines: See `Search`.

    Returns:
        B decisions. Trace: ``search``, ``altered``, what the objective adds, `facts`, and what is said of a
        budget that ended the search.
    """
    every = objective.sets
    sets, connected = every[: len(actions)], any(linked(objective, one.names) for one in every)
    reaching = [linked(objective, one.names) for one in sets]
    values = values.nan_to_num(nan=-math.inf, posinf=-math.inf, neginf=-math.inf)
    if declines and any(reaching):
        values = values.masked_fill(~torch.tensor(reaching, device=values.device).unsqueeze(-1), -math.inf)
    best = values.argmax(0).tolist()
    appraisals = [one.appraise(each) for one, each in zip(sets, actions, strict=True)]
    seconds = budget.spent() / max(len(objective.cases), 1)
    decisions = []
    for index, which in enumerate(best):
        value, found = float(values[which, index]), appraisals[which][index]
        trace = {
            "search": name,
            "altered": list(sets[which].names),
            **found.trace,
            **(facts[index] if facts else {}),
            **budget.facts(),
        }
        refused = str(trace.pop("refused", "")) or found.refused
        if value == -math.inf and not refused:
            refused = "no candidate alteration qualifies" + (
                " of those looked at before the budget was spent" if budget.ran_out else ""
            )
        where = actions[which][index].detach().to("cpu", torch.float64)
        if not bool(where.isfinite().all()):
            refused, where = refused or "the search found no finite alteration", torch.zeros_like(where)
        decision = Decision(
            Alteration(sets[which].names, where),
            value,
            estimate=found.estimate,
            baseline=found.baseline,
            warnings=found.warnings,
            reason=str(trace.pop("note", "")),
            trace=trace,
            seconds=seconds,
        )
        if declines and not connected:
            refused = no_path(objective, task_actions(objective))
        if refused or found.declined:
            decision = declined(decision, "refused" if refused else "no_action", refused or found.declined)
        decisions.append(decision)
    return guarded(objective, decisions, declines)


def in_time(sets: Sequence[Candidate], budget: Budget) -> Iterator[Candidate]:
    """The candidate sets that there is time for, in order; the first always."""
    for place, one in enumerate(sets):
        if place and budget.out():
            return
        yield one


def task_actions(objective: Candidates[AlterationObjective]) -> tuple[str, ...]:
    """Every variable of the candidate sets, each once."""
    return tuple(dict.fromkeys(name for one in objective.sets for name in one.names))


class NoAction(BatchSearch[Candidates[AlterationObjective]]):
    """Alters nothing.

    Args:
        budget_s: See `Search`; there is nothing to end.

    Raises:
        ValueError: if the budget is not positive.
    """

    def __init__(self, budget_s: float | None = None) -> None:
        self.budget_s = checked_budget(budget_s)

    def batch_search(self, objective: Candidates[AlterationObjective]) -> list[Decision]:
        """A decision to do nothing, for each situation."""
        budget = Budget(self.budget_s)
        count = len(objective.cases)
        each = budget.spent() / max(count, 1)
        return [
            Decision(
                None,
                0.0,
                status="no_action",
                reason="nothing is altered by choice",
                trace={"search": "none", "altered": []},
                seconds=each,
            )
            for _ in range(count)
        ]
