"""What cases and rows say of costs: costs per unit of each case, and the usual values of actions.

The usual value of an action is the median of the rows, or the most frequent one of its levels: changes are
counted from it where a case has no present value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from rehearsal_torch.data.costs.action_cost import ActionCost
from rehearsal_torch.data.reading import TableError, number_faults, numbers_of
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.frame import line_words
from rehearsal_torch.files.schema import listed, meant


def column_faults(
    frame: pd.DataFrame, origin: str, name: str, column: str, at: Callable[[int], str] = line_words
) -> list[str]:
    """Faults of a column that should hold the cost of an action in each case."""
    if column not in frame.columns:
        return [f"no column {column!r} for the cost of {name}; {meant(column, map(str, frame.columns))}"]
    found = number_faults(frame, [column], min_rows=0, at=at)
    if found:
        return [f"the cost of {name}: {found[0]}"]
    numbers = numbers_of(frame[column])
    negative = numbers < 0
    if not negative.any():
        return []
    place = int(negative.argmax())
    return [
        f"the cost of {name}: column {column!r} of {origin} has {numbers[place]:g} in "
        f"{at(int(frame.index[place]))}: expected costs of at least 0"
    ]


def costs_in(
    frame: pd.DataFrame, origin: str, costs: Mapping[str, ActionCost]
) -> Sequence[Mapping[str, float]]:
    """The costs per unit that cases state, for the actions whose cost names a column; one mapping per case.

    Raises:
        TableError: if a column is missing, or a cell is no number of at least 0; all faults are listed.
    """
    columns = {name: each.column for name, each in costs.items() if each.column is not None}
    faults = [each for name, column in columns.items() for each in column_faults(frame, origin, name, column)]
    if faults:
        raise TableError(listed(origin, faults))
    numbers = {name: numbers_of(frame[column]).tolist() for name, column in columns.items()}
    return [{name: values[row] for name, values in numbers.items()} for row in range(len(frame))]


def with_usual(task: RehearsalTask, rows: Table) -> RehearsalTask:
    """The task, with the usual value of every action that has a cost.

    Args:
        task: The task; usual values that it states stay.
    """
    if all(each.usual is not None for each in task.costs.values()):
        return task
    made = {
        name: each if each.usual is not None else replace(each, usual=_usual(task, rows, name, each))
        for name, each in task.costs.items()
    }
    return replace(task, costs=made)


def _usual(task: RehearsalTask, rows: Table, name: str, cost: ActionCost) -> float:
    if cost.levels is not None:
        return cost.levels.usual(rows.columns(cost.levels.columns))
    column = rows.columns((name,)).squeeze(-1)
    known = column[column.isfinite()]
    if name in task.box.levels:
        # The smallest of the most frequent ones.
        values, counts = known.unique(return_counts=True)
        return float(values[counts.argmax()])
    return float(known.quantile(0.5))
