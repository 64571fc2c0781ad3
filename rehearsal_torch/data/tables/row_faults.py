"""Faults of the columns beside the variables of a task: marks of what a decision set, and units of rows."""

from collections.abc import Sequence

import pandas as pd

from rehearsal_torch.data.tables.in_memory import SET
from rehearsal_torch.files.schema import meant


def set_faults(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """The faults of variables with values that a decision set, by the columns that mark these."""
    found = []
    for name in names:
        column = f"{SET}{name}"
        marks = frame[column] if column in frame.columns else pd.Series(dtype=float)
        if count := int((marks.fillna(1) != 0).sum()):
            found.append(
                f"{column}: expected observations; {count} rows have a value of {name} that was set by a "
                "decision: leave those rows out"
            )
    return found


def unit_faults(frame: pd.DataFrame, unit: str | None) -> list[str]:
    """The faults of the column that says which rows belong together."""
    if unit is None:
        return []
    if unit not in frame.columns:
        return [f"unit: no column {unit!r}; {meant(unit, [str(name) for name in frame.columns])}"]
    column = frame[unit]
    if empty := column.index[column.isna()].tolist():
        return [f"unit: {unit!r} is missing in line {empty[0] + 2}: name the unit of every row"]
    if (count := column.nunique()) < 2:
        return [f"unit: {unit!r} is the same in all rows; expected at least 2 units, got {count}"]
    return []
