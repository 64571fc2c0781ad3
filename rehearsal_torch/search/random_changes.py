"""Random changes: what picking at random would have come to.

Each of `count` sequences changes min(k, open steps) time steps, chosen uniformly, to other actions, chosen uniformly;
the best of them is the answer, even where doing what was done is better. With the default of one sequence this is the
plain baseline, and its mean over episodes is usually a loss.

Source: baseline of the project; compare Tsirtsis and Gomez-Rodriguez (2023), Eq. 9.
"""

import time as clock
from typing import final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finite import UNDEFINED, ranked
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.greedy_changes import nothing_open
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.sequence import Effort, sequence_decision
from rehearsal_torch.search.stream import stream


@final
class RandomChanges(Search[CounterfactualReturn]):
    """The best of `count` random sequences.

    Args:
        count: How many sequences are drawn.
        seed: With the episode's identity, fixes the draws.

    Raises:
        ValueError: if count is below 1.
    """

    declines = False  # what picking at random comes to, losses included

    def __init__(self, count: int = 1, seed: int = 0) -> None:
        if count < 1:
            raise ValueError(f"expected at least 1 sequence; got count={count}")
        self.count, self.seed = count, seed

    @torch.no_grad()
    def __call__(self, objective: CounterfactualReturn) -> Decision:
        """The best draw; its gap is unknown unless nothing may be changed."""
        began, effort, observed = clock.perf_counter(), Effort(), objective.observed
        if nothing_open(objective):
            return sequence_decision(objective, observed, effort, clock.perf_counter() - began, search="random_changes", gap=0.0, draws=self.count)
        draws = stream(self.seed, objective.situation.identity)
        free = objective.open
        order = torch.rand(self.count, len(free), generator=draws).argsort(-1)
        times = free[order[:, : objective.changes]].to(observed.device)
        sequences = observed.repeat(self.count, 1)
        sequences.scatter_(1, times, _others(objective, times, draws))
        effort.generated, effort.network_evaluations = self.count, self.count * (objective.horizon - 1)
        values = ranked(objective(sequences))
        drawn, reason = sequences[int(values.argmax())], ""
        if not bool(values.isfinite().any()):
            drawn, reason = observed, f"{UNDEFINED}: none of {self.count} random sequences can be compared with what was done"
        spent = clock.perf_counter() - began
        return sequence_decision(objective, drawn, effort, spent, search="random_changes", gap=None, reason=reason, declines=self.declines, draws=self.count)


def _others(objective: CounterfactualReturn, times: Tensor, draws: torch.Generator) -> Tensor:
    """For each time step, one of the actions that its own may be changed to, (n, k) long -> (n, k) long."""
    choices = objective.choices[times]
    if int(choices.sum(-1).min()) == objective.actions - 1:
        # Adding 1 ... A - 1 modulo A reaches each other action once, so the draw is uniform over them.
        shift = torch.randint(1, objective.actions, times.shape, generator=draws).to(times.device)
        return (objective.observed[times] + shift) % objective.actions
    return torch.multinomial(choices.flatten(0, 1).to(torch.float64).cpu(), 1, generator=draws).view(times.shape).to(times.device)
