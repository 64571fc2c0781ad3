"""The start design: space-filling experiments before there is a model.

Point n depends on the task, the seed and n alone, so that an interrupted design can be continued, and
extended to any length.

Source: Sobol (1967) and Owen (1998), as in `candidate_region`.
"""

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.spaces.candidate_region import CandidateRegion


def start_point(task: CausalTask, number: int, initial: int, seed: int) -> Tensor:
    """Point `number` (from 0) of the start design, (k,), in the actions' units.

    Args:
        task: Bounds and constraints.
        number: Index of the point; the sequence continues beyond `initial`.
        initial: Number of planned experiments.
        seed: Scrambles the sequence.
    """
    region = CandidateRegion.within(task.box.lower, task.box.upper, task.limits)
    return region.units(region.spread(max(initial, number + 1), seed)[number])


def open_points(task: CausalTask, done: Tensor, initial: int, seed: int, near: float = 0.01) -> Tensor:
    """The points of the start design that have not been run, (m, k), in the actions' units.

    Args:
        task: Bounds and constraints.
        done: Settings that were run, (n, k); at most initial - n points are returned.
        initial: Number of experiments required in all.
        seed: Scrambles the sequence.
        near: A point counts as run if a setting is within this share of each action's range.
    """
    found: list[Tensor] = []
    for number in range(initial):
        point = start_point(task, number, initial, seed)
        away = (done.to(point) - point).abs() / task.box.width
        if len(found) < initial - len(done) and not bool((away <= near).all(-1).any()):
            found.append(point)
    return torch.stack(found) if found else done.new_empty(0, len(task.actions))
