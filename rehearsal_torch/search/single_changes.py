"""Single changes: every neighbour of a sequence at once.

Given a sequence a' and the states x_t that it leads to, the return with the action at time t replaced by b is

    sum_{r < t} R(x_r, a'_r) + R(x_t, b) + (reward-to-go under a' from F_t(x_t, b)).

All H * A of them are rolled out in one growing batch: step t adds A states to those already on their way.
"""

import torch
from torch import Tensor

from rehearsal_torch.data.finite import ranked
from rehearsal_torch.search.counterfactual_process import CounterfactualProcess


@torch.no_grad()
def single_changes(process: CounterfactualProcess, sequence: Tensor) -> Tensor:
    """Returns after one replacement.

    Args:
        process: The episode's process, which counts the evaluations.
        sequence: a', (H,) long.

    Returns:
        (H, A): the return with the action at time t replaced by a; -inf where that is neither the observed action
        nor one that it may be changed to, and at steps that are not open to change.
    """
    objective = process.objective
    course, H, A = process.course, len(sequence), objective.actions
    state, prefix = process.start, process.start.new_zeros(())
    moving, totals = state[:0], state[:0, 0]
    for time in range(objective.horizon):
        rewards = process.rewards(torch.cat([moving, state]))
        own = rewards[:, sequence[time]] if process.acts else rewards[:, 0]
        totals = totals + own[:-1]
        if time < H:
            totals = torch.cat([totals, prefix + rewards[-1].expand(A)])
        prefix = prefix + own[-1]
        if time == objective.horizon - 1:
            break
        process.effort.network_evaluations += len(moving) + A
        branched = course.branch(state, time)[0]
        moving = torch.cat([course.step(moving, time, sequence[time]) if len(moving) else moving, branched])
        state = branched[sequence[time]].unsqueeze(0)
    values = ranked(totals.view(H, A))
    kept = torch.arange(A, device=objective.observed.device) == objective.observed.unsqueeze(-1)
    open_ = objective.choices.any(-1, keepdim=True)
    return torch.where(objective.choices | (kept & open_), values, torch.full_like(values, -torch.inf))
