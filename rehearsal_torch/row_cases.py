"""Rows as cases: the contexts of observed rows, for which models decide and by which they are judged.

Claims (`claims`) and the choice of a method (`method_choice`) fit models to some rows, and let them decide
for, and predict, others.

Source: ours.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.objective import AlterationObjective, objective_for
from rehearsal_torch.surrogates.surrogate import Surrogate


def part_of(table: Table, rows: Tensor) -> Table:
    """Some rows of a table.

    Args:
        table: n rows.
        rows: Their numbers, (m,) long.
    """
    return Table(table.names, table.values[rows], table.altered[rows])


def row_cases(table: Table, task: RehearsalTask, rows: Tensor) -> list[RehearsalCase]:
    """Rows as cases: their contexts, and the actions of the task.

    Args:
        table: n rows.
        task: The roles of the variables.
        rows: The numbers of the rows, (m,) long.
    """
    contexts = table.columns(task.context)[rows]
    return [
        RehearsalCase(
            f"row {int(row)}",
            dict(zip(task.context, context.unbind(), strict=True)),
            task.box.bounds(),
            levels=task.box.levels,
        )
        for row, context in zip(rows.tolist(), contexts, strict=True)
    ]


def alterations_for(
    objective: Callable[..., Any], model: Surrogate, cases: Sequence[RehearsalCase]
) -> Candidates[AlterationObjective]:
    """The objective of a batch of cases under a fitted model.

    Args:
        objective: Builds the objective (`objectives.objective.objective_for`).
        model: The fitted model.
        cases: The cases.

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
