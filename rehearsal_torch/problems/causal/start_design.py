"""The start design: space-filling experiments before there is a model.

Point n depends on the task, the seed and n alone, so that an interrupted design can be continued, and
extended to any length. The levels of an action occur equally often (`mixed_region`).

Source: Sobol (1967) and Owen (1998), as in `candidate_region`.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask


def start_point(
    task: CausalTask, number: int, initial: int, seed: int, held: Mapping[str, Sequence[float]] | None = None
) -> Tensor:
    """Point `number` (from 0) of the start design, (k,), in the actions' units.

    Args:
        number: Index of the point; the sequence continues beyond `initial`.
        initial: Number of planned experiments.
        held: Actions that are held at one value, see `CausalTask.region`.
    """
    region = task.region(held)
    return region.units(region.spread(max(initial, number + 1), seed)[number])


def open_points(
    task: CausalTask,
    done: Tensor,
    initial: int,
    seed: int,
    near: float = 0.01,
    held: Mapping[str, Sequence[float]] | None = None,
) -> Tensor:
    """The points of the start design that have not been run, (m, k), in the actions' units.

    Args:
        done: Settings that were run, (n, k); at most initial - n points are returned.
        initial: Number of experiments required in all.
        near: A point counts as run if a setting is within this share of each action's range, and at its
            levels.
        held: Actions that are held at one value, see `CausalTask.region`.
    """
    found: list[Tensor] = []
    for number in range(initial):
        point = start_point(task, number, initial, seed, held)
        away = (done.to(point) - point).abs()
        same = (away / task.box.width <= near) & (away <= task.box.near)
        if len(found) < initial - len(done) and not bool(same.all(-1).any()):
            found.append(point)
    return torch.stack(found) if found else done.new_empty(0, len(task.actions))
