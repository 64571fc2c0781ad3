"""Baselines over action sequences: random changes, greedy changes, and the k best single changes.

Random changes. Each of `count` sequences changes min(k, open steps) time steps, chosen uniformly, to other
actions, chosen uniformly; the best of them is the answer, even if it is worse than the observed sequence.

Single changes. Given a sequence a' and the states x_t that it leads to, the return with the action at time t
replaced by b is

    sum_{r < t} R(x_r, a'_r) + R(x_t, b) + (reward-to-go under a' from F_t(x_t, b)).

All H * A of them are rolled out in one growing batch: step t adds A states to those of earlier steps.

Greedy changes. Starting from the observed actions, each round evaluates every sequence that differs from the
current one at one time step and from the observed one in at most k, and moves to the best of them while that
is an improvement. A step that was changed in an earlier round may be changed again or restored. The answer is
a local optimum.

Top k. Each single change is evaluated as if it were the only one; the k best at k different time steps, as
far as they are improvements, are then made jointly. This ignores how changes interact.

Source: compare Tsirtsis and Gomez-Rodriguez (2023), Eq. 9.
"""

from typing import Any, final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.non_finite import UNDEFINED, ranked
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.search import UNLIMITED, Budget, Search
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort, sequence_decision
from rehearsal_torch.seeding import stream


@torch.no_grad()
def single_changes(process: CounterfactualProcess, sequence: Tensor) -> Tensor:
    """Returns of all sequences with a'_t replaced by a, (H, A); minus infinity where no change is allowed.

    A batch has a row for each branch so far, the path that left `sequence` at one step with one action, and
    last the path under `sequence` itself.
    """
    objective = process.objective
    trajectory, H, A = process.trajectory, len(sequence), objective.actions
    state, prefix = process.start, process.start.new_zeros(objective.lanes)
    branches, totals = state[:0], state.new_zeros((0, *objective.lanes))
    for time in range(objective.horizon):
        rewards = process.rewards(torch.cat([branches, state]), time)
        current = rewards[..., sequence[time]] if process.acts else rewards[..., 0]
        totals = totals + current[:-1]
        if time < H:
            totals = torch.cat([totals, prefix + rewards[-1].expand(*objective.lanes, A).movedim(-1, 0)])
        prefix = prefix + current[-1]
        if time == objective.horizon - 1:
            break
        process.effort.network_evaluations += len(branches) + A
        branched = trajectory.branch(state, time)[0]
        moved = trajectory.step(branches, time, sequence[time]) if len(branches) else branches
        branches = torch.cat([moved, branched])
        state = branched[sequence[time]].unsqueeze(0)
    values = ranked(objective.joined(totals).view(H, A))
    # The observed action is allowed, too: it undoes a change.
    kept = torch.arange(A, device=objective.observed.device) == objective.observed.unsqueeze(-1)
    changeable = objective.choices.any(-1, keepdim=True)
    return torch.where(objective.choices | (kept & changeable), values, torch.full_like(values, -torch.inf))


@final
class GreedyChanges(Search[CounterfactualReturn]):
    """Makes the best single change until none is an improvement.

    Args:
        budget_s: See `Search`; a step is a round, which makes one change.
    """

    def __call__(self, objective: CounterfactualReturn) -> Decision:
        """Returns a local optimum; its gap is unknown unless nothing may be changed."""
        budget, effort = Budget(self.budget_s), Effort()
        sequence = greedy_sequence(CounterfactualProcess(objective, effort), budget)
        gap, equal = 0.0 if nothing_open(objective) else None, _rounding(objective)
        reason, name = budget.reason() if budget.ran_out else "", "greedy_changes"
        return sequence_decision(
            objective, sequence, effort, budget, search=name, gap=gap, equal=equal, reason=reason
        )


def greedy_sequence(process: CounterfactualProcess, budget: Budget = UNLIMITED) -> Tensor:
    """The greedy sequence, (H,) long; each round expands one sequence. A step of the budget is a round."""
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
        changed = sequence != observed
        counts = changed.sum() - changed.long().unsqueeze(-1) + (actions != observed.unsqueeze(-1)).long()
        values = values.masked_fill(counts > objective.changes, -torch.inf)
        best = int(values.argmax())
        # Better by more than rounding, so that the search terminates.
        if not float(values.flatten()[best]) > value + objective.rounding(1e-12, max(1.0, abs(value))):
            return sequence
        value = float(values.flatten()[best])
        sequence = sequence.clone()
        sequence[best // len(actions)] = best % len(actions)
        if budget.out():
            return sequence


def _rounding(objective: CounterfactualReturn) -> float:
    """The difference up to which two returns count as equal: that of rounding."""
    return objective.rounding(1e-12, max(1.0, abs(objective.outcome())))


def nothing_open(objective: CounterfactualReturn) -> bool:
    """Whether the observed sequence is the only one: no change allowed, no open step, or no other action."""
    return objective.changes == 0 or objective.actions == 1 or not len(objective.open)


@final
class TopK(Search[CounterfactualReturn]):
    """Makes the k best single changes at k different time steps; keeps the observed actions if making them
    jointly is no improvement.

    Args:
        budget_s: See `Search`; there is a single step, which is always completed.
    """

    def __call__(self, objective: CounterfactualReturn) -> Decision:
        """Returns the changed sequence; its gap is unknown unless nothing may be changed."""
        budget, effort, equal = Budget(self.budget_s), Effort(), _rounding(objective)
        sequence, gap = objective.observed, 0.0 if nothing_open(objective) else None
        if gap is None:
            values = single_changes(CounterfactualProcess(objective, effort), sequence)
            effort.expanded, effort.generated = 1, int(values.isfinite().sum())
            best, action = values.max(-1)
            times = best.topk(min(objective.changes, len(best))).indices
            # Better by more than rounding, so that a change without effect is not taken for an improvement.
            threshold = objective.outcome() + equal
            times = times[best[times] > threshold]
            combined = sequence.clone()
            combined[times] = action[times]
            sequence = combined if float(objective(combined)) > threshold else sequence
        return sequence_decision(objective, sequence, effort, budget, search="top_k", gap=gap, equal=equal)


@final
class RandomChanges(Search[CounterfactualReturn]):
    """The best of `count` random sequences.

    Args:
        count: Number of sequences drawn.
        seed: Together with the identity of the episode, determines the draws.
        budget_s: See `Search`; all draws are evaluated in a single step, which is always completed.
    """

    declines = False  # the baseline includes its losses

    def __init__(self, count: int = 1, seed: int = 0, budget_s: float | None = None) -> None:
        super().__init__(budget_s)
        self.count, self.seed = count, seed
        self.check_sizes("count", expected="at least 1 sequence")

    @torch.no_grad()
    def __call__(self, objective: CounterfactualReturn) -> Decision:
        """Returns the best draw; its gap is unknown unless nothing may be changed."""
        budget, effort, observed = Budget(self.budget_s), Effort(), objective.observed
        best, gap, reason = observed, 0.0 if nothing_open(objective) else None, ""
        if gap is None:
            draws = stream(self.seed, objective.case.identity)
            open_steps = objective.open
            permutations = torch.rand(self.count, len(open_steps), generator=draws).argsort(-1)
            times = open_steps[permutations[:, : objective.changes]].to(observed.device)
            sequences = observed.repeat(self.count, 1)
            sequences.scatter_(1, times, _draw_others(objective, times, draws))
            effort.generated, effort.network_evaluations = self.count, self.count * (objective.horizon - 1)
            values = ranked(objective(sequences))
            if bool(values.isfinite().any()):
                best = sequences[int(values.argmax())]
            else:
                cause = f"none of {self.count} random sequences can be compared with the observed one"
                reason = f"{UNDEFINED}: {cause}"
        facts: dict[str, Any] = {"reason": reason, "declines": self.declines, "draws": self.count}
        return sequence_decision(objective, best, effort, budget, search="random_changes", gap=gap, **facts)


def _draw_others(objective: CounterfactualReturn, times: Tensor, draws: torch.Generator) -> Tensor:
    """For each time step, one of the allowed other actions, (n, k) long -> (n, k) long."""
    choices = objective.choices[times]
    if int(choices.sum(-1).min()) == objective.actions - 1:
        # Adding 1 ... A - 1 modulo A reaches each other action once, so the draw is uniform over them.
        shift = torch.randint(1, objective.actions, times.shape, generator=draws).to(times.device)
        return (objective.observed[times] + shift) % objective.actions
    weights = choices.flatten(0, 1).to(torch.float64).cpu()
    return torch.multinomial(weights, 1, generator=draws).view(times.shape).to(times.device)
