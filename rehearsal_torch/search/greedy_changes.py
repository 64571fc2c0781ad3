"""Greedy changes: the best single change, again and again.

Starting from the observed actions, each round looks at every sequence that differs from the current one at one time
step and from the observed one in at most k, and moves to the best of them while that is an improvement. A step that
was changed in an earlier round may be changed once more, or put back, when that pays. Nothing is proven: the answer is
a local optimum, though where actions hardly interact it is close to the best.

Source: baseline of the project; compare Tsirtsis and Gomez-Rodriguez (2023), Eq. 9.
"""

import time as clock
from typing import final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.counterfactual_process import CounterfactualProcess
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.sequence import Effort, sequence_decision
from rehearsal_torch.search.single_changes import single_changes


@final
class GreedyChanges(Search[CounterfactualReturn]):
    """Adds the best single change until none helps or k are made."""

    def __call__(self, objective: CounterfactualReturn) -> Decision:
        """A local optimum; its gap is unknown unless nothing may be changed."""
        began, effort = clock.perf_counter(), Effort()
        sequence = climb(CounterfactualProcess(objective, effort))
        gap = 0.0 if nothing_open(objective) else None
        return sequence_decision(objective, sequence, effort, clock.perf_counter() - began, search="greedy_changes", gap=gap)


def climb(process: CounterfactualProcess) -> Tensor:
    """The greedy sequence, (H,) long; each round expands the current sequence and generates its neighbours."""
    objective = process.objective
    observed = objective.observed
    sequence, value = observed, objective.outcome()
    if nothing_open(objective):
        return sequence
    actions = torch.arange(objective.actions, device=observed.device)
    while True:
        values = single_changes(process, sequence)
        process.effort.expanded += 1
        process.effort.generated += int(torch.isfinite(values).sum())
        differs = sequence != observed
        after = differs.sum() - differs.long().unsqueeze(-1) + (actions != observed.unsqueeze(-1)).long()
        values = values.masked_fill(after > objective.changes, -torch.inf)
        best = int(values.argmax())
        # Strictly better by more than rounding, so that the climb ends.
        if not float(values.flatten()[best]) > value + objective.rounding(1e-12, max(1.0, abs(value))):
            return sequence
        value = float(values.flatten()[best])
        sequence = sequence.clone()
        sequence[best // len(actions)] = best % len(actions)


def nothing_open(objective: CounterfactualReturn) -> bool:
    """Whether the observed sequence is the only one: no change allowed, no open step, or no other action."""
    return objective.changes == 0 or objective.actions == 1 or not len(objective.open)
