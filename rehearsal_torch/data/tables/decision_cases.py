"""Cases to decide for: what they say of texts, present values and costs, and which rows are held out as some.

    cases: [{age: 50, sex: 1, bmi: 30, bp: 100}]        bmi and bp may be set, and are 30 and 100 at present

A decision is compared with the present values of what it sets (`claims.present_values`). The other actions
are assumed to take what is usual for such a case, as everything is that a decision does not set. Where a case
has no present value, costs of changes are counted from the usual one: the median of the rows, or the most
frequent one of its levels.

Rows that belong together (a patient, a store) are held out together, so that a held-out row has no relative
among the rows to learn from. Only complete rows are held out, since what is predicted there is compared with
what was recorded; where missing cells are imputed, all others are learnt from but those of units held out.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import NEW, coded
from rehearsal_torch.data.costs import ActionCost
from rehearsal_torch.data.records import Records
from rehearsal_torch.data.rehearsal_task import MIN_ROWS, RehearsalTask
from rehearsal_torch.data.tables.header_checks import line_words
from rehearsal_torch.data.tables.reader import TableError, number_faults, numbers_of
from rehearsal_torch.files.schema import listed, meant
from rehearsal_torch.seeding import numpy_generator


def price_faults(
    frame: pd.DataFrame, origin: str, name: str, column: str, at: Callable[[int], str] = line_words
) -> list[str]:
    """Faults of a column that should hold the cost of an action in each case."""
    if column not in frame.columns:
        return [f"no column {column!r} for the cost of {name}; {meant(column, map(str, frame.columns))}"]
    if found := number_faults(frame, [column], min_rows=0, at=at):
        return [f"the cost of {name}: {found[0]}"]
    numbers = numbers_of(frame[column])
    if not (negative := numbers < 0).any():
        return []
    place = int(negative.argmax())
    got = f"column {column!r} of {origin} has {numbers[place]:g} in {at(int(frame.index[place]))}"
    return [f"the cost of {name}: {got}: expected costs of at least 0"]


def costs_in(
    frame: pd.DataFrame, origin: str, costs: Mapping[str, ActionCost]
) -> Sequence[Mapping[str, float]]:
    """The costs per unit of each case, for the actions whose cost names a column; faults as a TableError."""
    columns = {name: each.column for name, each in costs.items() if each.column is not None}
    faults = [each for name, column in columns.items() for each in price_faults(frame, origin, name, column)]
    if faults:
        raise TableError(listed(origin, faults))
    numbers = {name: numbers_of(frame[column]).tolist() for name, column in columns.items()}
    return [{name: values[row] for name, values in numbers.items()} for row in range(len(frame))]


def with_usual(task: RehearsalTask, rows: Records) -> RehearsalTask:
    """The task, with the usual value of every action that has a cost."""
    if all(each.usual is not None for each in task.costs.values()):
        return task
    made = {
        name: each if each.usual is not None else replace(each, usual=_usual(task, rows, name, each))
        for name, each in task.costs.items()
    }
    return replace(task, costs=made)


def _usual(task: RehearsalTask, rows: Records, name: str, cost: ActionCost) -> float:
    if cost.levels is not None:
        return cost.levels.usual(rows.columns(cost.levels.columns))
    column = rows.columns((name,))[:, 0]
    known = column[np.isfinite(column)]
    if name in task.box.levels:
        # The smallest of the most frequent ones.
        values, counts = np.unique(known, return_counts=True)
        return float(values[counts.argmax()])
    return float(np.median(known))


def cases_in_codes(frame: pd.DataFrame, origin: str, task: RehearsalTask) -> pd.DataFrame:
    """Cases with codes in place of texts; a TableError lists missing columns and unknown texts."""
    known = set(task.context)
    read = coded(frame, task.coded, {each.name for each in task.codings if known & {*each.columns}}, NEW)
    faults = [*read.faults, *_missing(frame, known, task)]
    if faults:
        raise TableError(listed(origin, faults, "nothing was decided"))
    return read.frame


def _missing(frame: pd.DataFrame, known: set[str], task: RehearsalTask) -> list[str]:
    """A fault for each variable of texts of the context that is missing in some case."""
    faults = []
    for coding in task.codings:
        empty = frame.get(coding.name, pd.Series(dtype=object)).isna()
        if known & {*coding.columns} and empty.any():
            line = int(frame.index[int(empty.to_numpy().argmax())]) + 2
            what = f"it is missing in {int(empty.sum())} of {len(frame)} cases, first in line {line}"
            remedy = "a case needs every variable of its context; measure it, or leave the case out"
            faults.append(f"{coding.name}: {what}: {remedy}")
    return faults


def present_in(frame: pd.DataFrame, origin: str, names: Sequence[str]) -> list[dict[str, float]]:
    """The present values in each row, without empty cells; what is no number, as a TableError."""
    there = [name for name in names if name in frame.columns]
    checked = (number_faults(frame[frame[name].notna()], [name], min_rows=0) for name in there)
    if faults := [f"the present value of {each}" for some in checked for each in some]:
        raise TableError(listed(origin, faults))
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
    parts = ", ".join(f"{left} where only {' or '.join(each)} is set" for left, each in found.items())
    what = "what is not set is assumed to take what is usual for such a case, not its present value"
    return f"{what}: {parts}; offer a candidate set of both to use it"


SHARE = 0.2


def parted(
    complete: np.ndarray,
    validation: float | None,
    kept: str,
    seed: int,
    elsewhere: bool,
    units: Sequence[str] | None,
    order: np.ndarray,
) -> tuple[list[int], list[int]]:
    """Positions of the rows to learn from, in a given order, and of the held-out rows, in the file's order.

    Args:
        complete: Which of the n rows have no missing cell, (n,) bool.
        validation: The share that is held out; None for a fifth, ten rows at least, or none if the cases are
            elsewhere.
        kept: "random", or the "last" of the file.
        elsewhere: Whether the cases to decide for are others than held-out rows.
        units: The unit of each row; None if every row stands alone.
        order: The positions of all rows, in an order that does not depend on the file's (`content_order`);
            from it rows are drawn at random.
    """
    whole = np.flatnonzero(complete).tolist() if kept == "last" else order[complete[order]].tolist()
    known = None if units is None else [units[place] for place in whole]
    held = sorted(whole[each] for each in _held_out(len(whole), validation, kept, seed, elsewhere, known))
    away, aside = set[str]() if units is None else {units[place] for place in held}, set(held)
    past = [
        place
        for place in order.tolist()
        if place not in aside and (units is None or units[place] not in away)
    ]
    return past, held


def _held_out(
    rows: int, validation: float | None, kept: str, seed: int, elsewhere: bool, units: Sequence[str] | None
) -> list[int]:
    """Positions of the held-out rows, in order; units as a whole, as few as make up the share."""
    count = int((validation or 0.0) * rows)
    if validation is None and not elsewhere:
        count = max(int(SHARE * rows), MIN_ROWS)
    if not count:
        return []
    order = np.arange(rows) if kept == "last" else numpy_generator(seed, rows).permutation(rows)
    found = [int(place) for place in order[rows - count :]]
    if units is not None:
        # The units of the rows that would be held out, from the end, until there are enough.
        size = Counter(units)
        chosen: dict[str, None] = {}
        for place in order[::-1]:
            if sum(size[unit] for unit in chosen) >= count:
                break
            chosen[units[int(place)]] = None
        found = [place for place, unit in enumerate(units) if unit in chosen]
    if len(found) < MIN_ROWS or rows - len(found) < MIN_ROWS:
        what = "" if units is None else f" in {len(set(units))} units, which are held out as a whole"
        raise ValueError(
            f"{rows} rows{what}: {len(found)} held out and {rows - len(found)} to learn from; expected at "
            f"least {MIN_ROWS} of each: name the cases in a second file with dataset.contexts=FILE and "
            "dataset.validation=0, or add rows"
        )
    return sorted(found)
