"""Cases to decide for: their codes, present values and costs, and which rows are held out as cases.

    cases: [{age: 50, sex: 1, bmi: 30, bp: 100}]        bmi and bp may be set, and are 30 and 100 at present

A decision is compared with the present values of what it sets (`claims.improvement_test`). Other actions are
held at theirs; what is not stated takes what is usual for such a case, or follows its causes. Where a case
has no present value, costs of changes are counted from the usual one: the median of the rows, or the most
frequent one of its levels.

Rows that belong together (a patient, a store) are held out together, so that a held-out row has no relative
among the rows to learn from. Only complete rows are held out, since what is predicted there is compared with
what was recorded; where missing cells are imputed, all others are learnt from but those of units held out.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

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
    if faults := number_faults(frame, [column], min_rows=0, at=at):
        return [f"the cost of {name}: {faults[0]}"]
    numbers = numbers_of(frame[column])
    if not (negative := numbers < 0).any():
        return []
    index = int(negative.argmax())
    got = f"column {column!r} of {origin} has {numbers[index]:g} in {at(int(frame.index[index]))}"
    return [f"the cost of {name}: {got}: expected costs of at least 0"]


def costs_in(
    frame: pd.DataFrame, origin: str, costs: Mapping[str, ActionCost]
) -> Sequence[Mapping[str, float]]:
    """The costs per unit of each case, for the actions whose cost names a column; faults as a TableError."""
    columns = {name: cost.column for name, cost in costs.items() if cost.column is not None}
    faults = [
        fault for name, column in columns.items() for fault in price_faults(frame, origin, name, column)
    ]
    if faults:
        raise TableError(listed(origin, faults))
    numbers = {name: numbers_of(frame[column]).tolist() for name, column in columns.items()}
    return [{name: values[row] for name, values in numbers.items()} for row in range(len(frame))]


def with_usual(task: RehearsalTask, rows: Records) -> RehearsalTask:
    """The task, with the usual value of every action that has a cost."""
    if all(cost.usual is not None for cost in task.costs.values()):
        return task
    costs = {
        name: cost if cost.usual is not None else replace(cost, usual=_usual(task, rows, name, cost))
        for name, cost in task.costs.items()
    }
    return replace(task, costs=costs)


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
    context = set(task.context)
    names = [coding.name for coding in task.codings if context & {*coding.columns}]
    encoded = coded(frame, task.coded, set(names), NEW)
    faults = list(encoded.faults)
    for name in names:
        missing = frame.get(name, pd.Series(dtype=object)).isna().to_numpy()
        if missing.any():
            line = line_words(int(frame.index[int(missing.argmax())]))
            got = f"it is missing in {missing.sum()} of {len(frame)} cases, first in {line}"
            remedy = "a case needs every variable of its context; measure it, or leave the case out"
            faults.append(f"{name}: {got}: {remedy}")
    if faults:
        raise TableError(listed(origin, faults, "nothing was decided"))
    return encoded.frame


def present_in(frame: pd.DataFrame, origin: str, names: Sequence[str]) -> list[dict[str, float]]:
    """The present values in each row, without empty cells; TableError if one is no number."""
    present = [name for name in names if name in frame.columns]
    fault_lists = (number_faults(frame[frame[name].notna()], [name], min_rows=0) for name in present)
    if faults := [f"the present value of {fault}" for fault in chain(*fault_lists)]:
        raise TableError(listed(origin, faults))
    columns = {name: numbers_of(frame[name]) for name in present}
    return [
        {name: float(column[row]) for name, column in columns.items() if not np.isnan(column[row])}
        for row in range(len(frame))
    ]


def assumed_usual(task: RehearsalTask, present: Sequence[Mapping[str, float]]) -> str:
    """One sentence if candidate sets leave actions alone whose present values are known, and no set on offer
    holds both; empty otherwise.
    """
    present_names = {name for row in present for name in row}
    offered = {frozenset(names) for names in task.candidates}
    apart: dict[str, list[str]] = {}
    for names in task.candidates:
        alone = task.left_alone(names, present_names)
        if alone and frozenset((*names, *alone)) not in offered:
            alone, names = task.variables(alone), task.variables(names)
            apart.setdefault(" and ".join(alone), []).append(" and ".join(names))
    if not apart:
        return ""
    parts = ", ".join(f"{alone} where only {' or '.join(sets)} is set" for alone, sets in apart.items())
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
    """Positions of the rows to learn from, in a given `order` that does not depend on the file's
    (`content_order`), and of the held-out rows, in the file's order: of the `complete` ones, (n,) bool, a
    share, a fifth by default, or ten rows; "random" ones, or the "last" of the file; none by default if the
    cases are `elsewhere`.
    """
    usable = np.flatnonzero(complete).tolist() if kept == "last" else order[complete[order]].tolist()
    groups: Sequence[Hashable] = range(len(complete)) if units is None else units
    places = _held_out([groups[row] for row in usable], validation, kept, seed, elsewhere)
    held_out = sorted(usable[place] for place in places)
    held_groups = {groups[row] for row in held_out}
    return [row for row in order.tolist() if groups[row] not in held_groups], held_out


def _held_out(
    units: Sequence[Hashable], validation: float | None, kept: str, seed: int, elsewhere: bool
) -> list[int]:
    """Positions of the held-out rows, by the unit of each; units as a whole, as few as make up the share."""
    rows = len(units)
    count = int((validation or 0.0) * rows)
    if validation is None and not elsewhere:
        count = max(int(SHARE * rows), MIN_ROWS)
    if not count:
        return []
    order = np.arange(rows) if kept == "last" else numpy_generator(seed, rows).permutation(rows)
    # The units of the rows at the end, until they have enough rows.
    sizes, chosen, total = Counter(units), set[Hashable](), 0
    for unit in (units[place] for place in order[::-1].tolist()):
        if total < count and unit not in chosen:
            chosen.add(unit)
            total += sizes[unit]
    if total < MIN_ROWS or rows - total < MIN_ROWS:
        whole = "" if len(sizes) == rows else f" in {len(sizes)} units, which are held out as a whole"
        raise ValueError(
            f"{rows} rows{whole}: {total} held out and {rows - total} to learn from; expected at "
            f"least {MIN_ROWS} of each: name the cases in a second file with dataset.contexts=FILE and "
            "dataset.validation=0, or add rows"
        )
    return [place for place, unit in enumerate(units) if unit in chosen]
