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
    """The rows of a table with the indices `rows`, (m,) long."""
    return table.rows(rows)


def row_cases(table: Table, task: RehearsalTask, rows: Tensor, priced: bool = False) -> list[RehearsalCase]:
    """Rows as cases: their contexts, and the actions of the task.

    Args:
        rows: Indices of the rows, (m,) long.
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
    """Whether rows can be decided for by net value: worth is known, and no cost is stated case by case."""
    return (
        task.worth is not None
        and not all(cost.free for cost in task.costs.values())
        and all(cost.column is None and cost.usual is not None for cost in task.costs.values())
    )


def alterations_for(
    objective: Callable[..., Any], model: Surrogate, cases: Sequence[RehearsalCase]
) -> Candidates[AlterationObjective]:
    """The objective of a batch of cases under a fitted model, built by `objective` (see `objective_for`).

    Raises:
        TypeError: if it cannot appraise a given action.
    """
    built = objective_for(objective, model, cases)
    if not isinstance(built, Candidates):
        raise TypeError(
            f"judging actions by other rows needs an objective that appraises given actions (an "
            f"AlterationObjective); got {type(built).__name__}: use claims=in_sample, and name the method"
        )
    return built


def in_batches(cases: Sequence[RehearsalCase], size: int) -> Iterator[Sequence[RehearsalCase]]:
    """The cases, at most `size` at a time, in order."""
    return (cases[start : start + size] for start in range(0, len(cases), size))


@dataclass(frozen=True)
class Untouched:
    """Held-out predictions of rows under no action.

    Attributes:
        rows: Index of each row in the observations, (n,).
        desired: Whether its outcome is desired, (n,), 0 or 1.
        predicted: Predicted probability of a desired outcome, (n,).
        constant: The share of desired rows among the training rows of the model, (n,).
    """

    rows: Tensor
    desired: Tensor
    predicted: Tensor
    constant: Tensor

    def brier(self) -> tuple[float, float]:
        """Mean squared difference of prediction and outcome, and that of the constant."""
        predicted, constant = (
            float((probability - self.desired).square().mean())
            for probability in (self.predicted, self.constant)
        )
        return predicted, constant


def untouched_rows(
    model: Surrogate, objective: Callable[..., Any], table: Table, task: RehearsalTask, constant: float
) -> Untouched:
    """Predictions of the rows of a table that a model has not seen; NaN where the method has no estimate.

    Raises:
        TypeError: if the objective cannot appraise a given action.
    """
    predicted: list[float] = []
    rows = torch.arange(len(table))
    for batch in in_batches(row_cases(table, task, rows), AT_ONCE):
        group = alterations_for(objective, model, batch).whole[0]
        baselines = [appraised.baseline for appraised in group.appraise(group.starts(1)[0])]
        predicted += [math.nan if baseline is None else baseline.point for baseline in baselines]
    return Untouched(
        rows,
        task.region.contains(table.columns(task.outcomes)).to(torch.float64),
        torch.tensor(predicted, dtype=torch.float64),
        torch.full((len(table),), constant, dtype=torch.float64),
    )
