"""Rows as cases: the contexts of observed rows, for which models decide and by which they are judged.

Claims (`claims`) and the choice of a method (`methods.method_choice`) fit models to some rows, and let them
decide for, and predict, others.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.costs import CaseCosts
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates, objective_for
from rehearsal_torch.surrogates.surrogate import Surrogate

AT_ONCE = 256


def part_of(table: Table, rows: Tensor) -> Table:
    """Some rows of a table.

    Args:
        table: n rows.
        rows: Their numbers, (m,) long.
    """
    return table.rows(rows)


def row_cases(table: Table, task: RehearsalTask, rows: Tensor, priced: bool = False) -> list[RehearsalCase]:
    """Rows as cases: their contexts, and the actions of the task.

    Args:
        table: n rows.
        rows: The numbers of the rows, (m,) long.
        priced: Whether the cases have the costs of the task, from the usual values (`weighed`).
    """
    costs = CaseCosts.of(task.costs, task.worth, {}, {}) if priced else None
    contexts = table.columns(task.context)[rows]
    return [
        RehearsalCase(
            f"row {int(row)}",
            dict(zip(task.context, context.unbind(), strict=True)),
            task.box.bounds(),
            levels=task.box.levels,
            codings=task.codings,
            costs=costs,
        )
        for row, context in zip(rows.tolist(), contexts, strict=True)
    ]


def weighed(task: RehearsalTask) -> bool:
    """Whether rows can be decided for by net value: what costs are weighed against is known, and no cost is
    stated by each case, which rows do not.
    """
    return (
        task.worth is not None
        and not all(each.free for each in task.costs.values())
        and all(each.column is None and each.usual is not None for each in task.costs.values())
    )


def alterations_for(
    objective: Callable[..., Any], model: Surrogate, cases: Sequence[RehearsalCase]
) -> Candidates[AlterationObjective]:
    """The objective of a batch of cases under a fitted model.

    Args:
        objective: Builds the objective (`objectives.objective.objective_for`).

    Raises:
        TypeError: if it cannot appraise a given action.
    """
    made = objective_for(objective, model, cases)
    if not isinstance(made, Candidates):
        raise TypeError(
            f"judging actions by other rows needs an objective that appraises given actions (an "
            f"AlterationObjective); got {type(made).__name__}: use claims=in_sample, and name the method"
        )
    return made


def in_batches(cases: Sequence[RehearsalCase], size: int) -> Iterator[Sequence[RehearsalCase]]:
    """The cases, at most `size` at a time, in order."""
    return (cases[start : start + size] for start in range(0, len(cases), size))


@dataclass(frozen=True)
class Untouched:
    """The rows under no action, each predicted by a model that has not seen it.

    Attributes:
        rows: Number of each row in the observations, (n,).
        desired: Whether its outcome is desired, (n,), 0 or 1.
        predicted: Predicted probability of a desired outcome, (n,).
        constant: The share of desired rows among those that the model has seen, (n,).
    """

    rows: Tensor
    desired: Tensor
    predicted: Tensor
    constant: Tensor

    def brier(self) -> tuple[float, float]:
        """Mean squared difference of prediction and outcome, and that of the constant."""
        own, constant = (
            float((each - self.desired).square().mean()) for each in (self.predicted, self.constant)
        )
        return own, constant


def untouched_rows(
    model: Surrogate, objective: Callable[..., Any], table: Table, task: RehearsalTask, constant: float
) -> Untouched:
    """Rows that a model has not seen, each predicted under no action; NaN where the method has no estimate.

    Args:
        objective: Builds its objective (`objectives.objective.objective_for`).
        table: The rows, in which nothing was altered.
        constant: The share of desired rows among those that the model has seen.

    Raises:
        TypeError: if the objective cannot appraise a given action.
    """
    predicted: list[float] = []
    rows = torch.arange(len(table))
    for batch in in_batches(row_cases(table, task, rows), AT_ONCE):
        one = alterations_for(objective, model, batch).whole[0]
        baselines = [each.baseline for each in one.appraise(one.starts(1)[0])]
        predicted += [math.nan if each is None else each.point for each in baselines]
    return Untouched(
        rows,
        task.region.contains(table.columns(task.outcomes)).to(torch.float64),
        torch.tensor(predicted, dtype=torch.float64),
        torch.full((len(table),), constant, dtype=torch.float64),
    )
