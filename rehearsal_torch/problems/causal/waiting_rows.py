"""Rows of a table of experiments that wait for their result, and proposals as such rows.

    valve,dose,temperature,yield
    0.2,1,24.1,3.9
    0.7,2,,                          proposed, and not measured yet

A row waits if its actions are there and every node that the reward reads is empty; what else was measured in
it is not used. It is pending: no model is fitted to it, and it is not proposed again. A row in which an
action, or some of the nodes of a completed experiment, are empty is a fault.

Source: ours; pending trials as in Ax (Bakshy et al., 2018).
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.reading import number_columns
from rehearsal_torch.data.tables.in_memory import SET

SHOWN = 5


def waiting(frame: pd.DataFrame, task: CausalTask) -> np.ndarray:
    """Which rows wait for their result, (n,) bool; none if a column is missing."""
    names = {str(name) for name in frame.columns}
    if not {*task.actions, *task.reward.names} <= names:
        return np.zeros(len(frame), dtype=bool)
    empty = frame[list(task.reward.names)].isna().all(axis=1)
    return np.asarray((empty & frame[list(task.actions)].notna().all(axis=1)).to_numpy(dtype=bool))


def waiting_actions(frame: pd.DataFrame, task: CausalTask, source: str) -> Tensor:
    """The actions of the rows that wait for their result, (m, k).

    Raises:
        TableError: if an action is no number.
    """
    rows = frame[waiting(frame, task)]
    if not len(rows):
        return torch.zeros(0, len(task.actions), dtype=torch.float64)
    return number_columns(rows, task.actions, source)


def waiting_note(frame: pd.DataFrame, task: CausalTask, source: str) -> str:
    """A sentence on the rows that wait, with their lines (the index plus two); empty if there are none."""
    lines = [int(index) + 2 for index in frame.index[waiting(frame, task)]]
    if not lines:
        return ""
    more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    what, s = " and ".join(task.reward.names), "" if len(lines) == 1 else "s"
    waits, its, they_are = ("waits", "its", "it is") if len(lines) == 1 else ("wait", "their", "they are")
    return (
        f"{source}: {len(lines)} row{s} without a value of {what} {waits} for {its} result (line{s} "
        f"{', '.join(map(str, lines[:SHOWN]))}{more}): {they_are} not learnt from, and not proposed again"
    )


def with_proposals(
    frame: pd.DataFrame,
    task: CausalTask,
    settings: Sequence[Mapping[str, float]],
    written: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The table, with the cells `written` in its file if these are given, and a row for each proposed
    setting, in which everything else is empty; columns of actions and nodes that it lacks are added.
    """
    cells_of = {str(name): frame[name].astype(object).tolist() for name in frame.columns}
    texts = cells_of if written is None else {name: written[name].tolist() for name in cells_of}
    columns = {}
    for name in dict.fromkeys((*cells_of, *task.actions, *task.nodes)):
        cells = cells_of.get(name, [None] * len(frame))
        # What is proposed is set by no hard intervention.
        values = [0.0 if name.startswith(SET) else setting.get(name) for setting in settings]
        columns[name] = pd.Series([*texts.get(name, cells), *map(_as_in(cells), values)], dtype=object)
    return pd.DataFrame(columns)


def as_text(frame: pd.DataFrame, separator: str, decimal: str) -> str:
    """A table as separated text."""
    if decimal != ".":
        # Not by DataFrame.map, which makes numbers with decimals of whole ones beside an empty cell.
        frame = pd.DataFrame(
            {
                name: pd.Series(
                    [str(cell).replace(".", decimal) if _is_number(cell) else cell for cell in frame[name]],
                    dtype=object,
                )
                for name in frame.columns
            }
        )
    return str(frame.to_csv(index=False, lineterminator="\n", sep=separator))


def _as_in(cells: Sequence[object]) -> Callable[[float | None], object]:
    """How a column writes a number: truth values as such, whole numbers without a decimal sign."""
    truth = [cell for cell in cells if not pd.isna(cell)]  # type: ignore[call-overload]
    if truth and all(isinstance(cell, bool | np.bool_) for cell in truth):
        return lambda value: None if value is None else bool(value)
    return lambda value: int(value) if value is not None and float(value).is_integer() else value


def _is_number(cell: object) -> bool:
    return isinstance(cell, float | np.floating) and not math.isnan(cell)
