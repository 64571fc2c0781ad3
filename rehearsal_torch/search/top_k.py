"""Top k: the k best single changes, made together.

Each single change is judged as if it were the only one; the k best at k different time steps, as far as they are
improvements, are then made at once. That ignores how changes interact, and how the best action at one step depends on
another change. (Taking the k best pairs of time and action without asking for different time steps would often spend
several changes on one step, and is weaker still.)

Source: baseline of the project; compare Tsirtsis and Gomez-Rodriguez (2023), Eq. 9.
"""

import time as clock
from typing import final

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.counterfactual_process import CounterfactualProcess
from rehearsal_torch.search.greedy_changes import nothing_open
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.sequence import Effort, sequence_decision
from rehearsal_torch.search.single_changes import single_changes


@final
class TopK(Search[CounterfactualReturn]):
    """Makes the k best single changes at k different time steps; keeps the observed actions where the sum of them is worse."""

    def __call__(self, objective: CounterfactualReturn) -> Decision:
        """The changed sequence; its gap is unknown unless nothing may be changed."""
        began, effort = clock.perf_counter(), Effort()
        sequence, gap = objective.observed, 0.0 if nothing_open(objective) else None
        if gap is None:
            values = single_changes(CounterfactualProcess(objective, effort), sequence)
            effort.expanded, effort.generated = 1, int(values.isfinite().sum())
            best, action = values.max(-1)
            times = best.topk(min(objective.changes, len(best))).indices
            # Better by more than rounding, so that a change without effect is not taken for an improvement.
            least = objective.outcome() + objective.rounding(1e-12, max(1.0, abs(objective.outcome())))
            times = times[best[times] > least]
            together = sequence.clone()
            together[times] = action[times]
            sequence = together if float(objective(together)) > least else sequence
        return sequence_decision(objective, sequence, effort, clock.perf_counter() - began, search="top_k", gap=gap)
