"""The present values of actions in cases: what they stay at if nothing is done.

    cases: [{age: 50, sex: 1, bmi: 30, bp: 100}]        bmi and bp may be set, and are 30 and 100 at present

A decision is then compared with the present values of what it sets (`claims.present_values`). The other
actions are assumed to take what is usual for such a case, as everything is that a decision does not set.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rehearsal_torch.data.reading import TableError, number_faults, numbers_of
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.files.schema import listed


def present_in(frame: pd.DataFrame, origin: str, names: Sequence[str]) -> list[dict[str, float]]:
    """The present values in each row; without those that have no column or an empty cell.

    Raises:
        TableError: if a cell is neither empty nor a number; all faults are listed.
    """
    there = [name for name in names if name in frame.columns]
    faults = [
        each for name in there for each in number_faults(frame[frame[name].notna()], [name], min_rows=0)
    ]
    if faults:
        raise TableError(listed(origin, [f"the present value of {each}" for each in faults]))
    columns = {name: numbers_of(frame[name]) for name in there}
    return [
        {name: float(column[row]) for name, column in columns.items() if not np.isnan(column[row])}
        for row in range(len(frame))
    ]


def assumed_usual(task: RehearsalTask, present: Sequence[Mapping[str, float]]) -> str:
    """One sentence if candidate sets leave actions alone whose present values are known, and no set on offer
    holds both; empty otherwise.
    """
    known = {name for each in present for name in each}
    offered = {frozenset(names) for names in task.candidates}
    found: dict[str, list[str]] = {}
    for names in task.candidates:
        left = task.left_alone(names, known)
        if left and frozenset((*names, *left)) not in offered:
            left, names = task.variables(left), task.variables(names)
            found.setdefault(" and ".join(left), []).append(" and ".join(names))
    if not found:
        return ""
    parts = [f"{left} where only {' or '.join(each)} is set" for left, each in found.items()]
    return (
        "what is not set is assumed to take what is usual for such a case, not its present value: "
        f"{', '.join(parts)}; offer a candidate set of both to use it"
    )
