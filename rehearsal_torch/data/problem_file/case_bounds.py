"""The cases of a problem file: what their columns are for, and the bounds that each has of its own.

    bounds: {bmi: [current - 3, current], dose: [0, 0.5*weight]}

A limit is a number or a linear function of the action's present value in the case, `current`, which stands in
the action's own column, and of columns that the cases (or, without cases, the rows) have. The interval is cut
to the range that all cases share.

A column of the cases is a variable, their name (`identity`), a cost, or part of a bound. Another one does
nothing: a name that is nearly that of a variable is a slip, which would otherwise leave a present value or a
context unread. A `binary` variable has two values, those of the rows.

Source: Du et al. (2026), Sec. 2.1, for actions within a box.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import NO, YES
from rehearsal_torch.data.problem_file.cases_schema import DataForm, ProblemForm, VariableForm
from rehearsal_torch.data.problem_file.diagnostics import Findings, column_faults, key, rows_of
from rehearsal_torch.data.tables.reader import ReadTable, number_faults, numbers_of
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import line_at, meant, suggested
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.inequalities import InequalityError, Linear, linear

# The least similarity of a slip, and the fewest letters of one.
ALIKE, SHORT = 0.8, 3
_WORD = re.compile(r"[^\W\d]\w*|`[^`]*`")


def unused_columns(cases: ReadTable, form: ProblemForm, found: Findings) -> None:
    """Faults of keys of listed cases that are nearly a variable, and warnings of columns that do nothing: of
    a list each, of a file those that are nearly a variable.
    """
    variables = list(form.variables)
    used = {*variables, str(form.identity), *map(str, form.costs.values())}
    limits = [limit for pair in form.bounds.values() for limit in pair]
    used |= {word.strip("`") for limit in limits for word in _WORD.findall(str(limit))}
    listed = isinstance(form.cases, list)
    columns = list(map(str, cases.frame.columns))
    for name in (each for each in columns if each not in used):
        near = _near(name, [each for each in variables if each not in columns])
        if near and listed:
            found.fault("cases", f"{name!r} is no variable; did you mean {near!r}?")
        elif near:
            words = f"column {name!r} of {cases.where} is not used; did you mean {near!r}?"
            found.warn("cases", "unused", words)
        elif listed:
            found.warn("cases", "unused", f"{name!r} is no variable, and not used")


def _near(name: str, choices: Iterable[str]) -> str | None:
    """The choice of which a name is a slip; of short names only upper and lower case may differ."""
    near = suggested(name, choices, ALIKE)
    short = near is not None and min(len(name), len(near)) < SHORT
    return None if near is None or (short and near.casefold() != name.casefold()) else near


def impossible_values(
    cases: ReadTable, rows: pd.DataFrame, variables: Mapping[str, VariableForm], found: Findings
) -> None:
    """Faults of values of binary variables that no row has."""
    for name, about in variables.items():
        if about.kind != "binary" or name not in cases.frame.columns or name not in rows.columns:
            continue
        known = {float(each) for each in _numbers(rows[name]).dropna().unique()}
        values = " and ".join(f"{each:g}" for each in sorted(known))
        for line, value in _numbers(cases.frame[name]).dropna().items():
            if float(value) not in known:
                where = f"{cases.at(int(str(line)))} of {cases.where}"
                words = f"{where}: {name} is {float(value):g}; expected one of its two values, {values}"
                found.fault("cases", words)
                break


def _numbers(column: pd.Series) -> pd.Series:
    return pd.to_numeric(column, errors="coerce")


CURRENT = "current"


def case_rows(
    written: DataForm | Sequence[Mapping[str, Any]] | None, folder: Path, found: Findings
) -> ReadTable | None:
    """The cases; None if there are none of their own, or with a fault."""
    if written is None:
        return None
    if isinstance(written, DataForm):
        return rows_of(written, folder, "cases", found)
    frame = pd.DataFrame([dict(each) for each in written])
    lines = tuple(line_at(found.lines, f"cases[{place}]") or 1 for place in range(len(frame)))
    # Counted from 1, as the lines of a file are from 2.
    return ReadTable(
        frame.set_axis(range(-1, len(frame) - 1)), f"the list of cases in {found.source}", listed=lines
    )


def with_truths(cases: ReadTable, rows: pd.DataFrame) -> ReadTable:
    """Cases with 1 and 0 for true and false, yes and no, where the rows have truth values."""
    frame, codes = cases.frame.copy(), dict.fromkeys(YES, 1.0) | dict.fromkeys(NO, 0.0)
    for name in frame.columns.intersection(rows.columns):
        known = rows[name].dropna().tolist()
        if known and all(isinstance(each, bool | np.bool_) for each in known):
            frame[name] = [codes.get(str(cell).casefold(), cell) for cell in frame[name]]
    return replace(cases, frame=frame)


def identity_faults(name: str, rows: ReadTable, found: Findings) -> None:
    """Faults of the column that names the cases."""
    column_faults([("identity", name)], rows, found)
    if name not in rows.frame.columns:
        return
    column = rows.frame[name]
    if column.isna().any():
        where = rows.at(int(column.index[int(column.isna().to_numpy().argmax())]))
        words = f"column {name!r} of {rows.where} is empty in {where}: every case needs a name"
        found.fault("identity", words)
    elif (twice := column.astype(str).duplicated()).any():
        place = int(twice.to_numpy().argmax())
        found.fault(
            "identity",
            f"column {name!r} of {rows.where} has {beginning(str(column.iloc[place]), 60)!r} again in "
            f"{rows.at(int(column.index[place]))}: every case needs a name of its own, so name another "
            "column",
        )


def ranges_of(
    bounds: Mapping[str, Sequence[str]],
    box: Box,
    rows: ReadTable,
    found: Findings,
    texts: Collection[str] = (),
) -> dict[str, list[tuple[float, float]]]:
    """(lower, upper) of each row, for the actions that have bounds of their own: two limits as text, whose
    names are columns of the rows.
    """
    made = {}
    for name, limits in bounds.items():
        path = key("bounds", name)
        if name not in box.names and name not in texts:
            found.fault(path, f"is no action; {meant(name, box.names)}")
        elif name not in box.names or name in box.levels:
            words = f"{name} is set to some values only, which are the same in all cases: leave it out"
            found.fault(path, words)
        else:
            sums = [linear_sum for text in limits if (linear_sum := _read(text, path, rows, found))]
            used = dict.fromkeys(each for limit in sums for each in limit.weights)
            names = {each: name if each == CURRENT else each for each in used}
            columns = _columns(names, path, rows, found) if len(sums) == len(limits) else None
            if columns is not None:
                made[name] = _intervals(sums, columns, box.bounds()[name], path, rows, found)
    return made


def _read(text: str, path: str, rows: ReadTable, found: Findings) -> Linear | None:
    try:
        made = linear(text)
    except InequalityError as error:
        found.fault(path, str(error))
        return None
    columns = [str(each) for each in rows.frame.columns]
    if odd := [name for name in made.weights if name != CURRENT and name not in columns]:
        expected = f"expected numbers, `current`, the present value, and columns of {rows.where}"
        near = meant(odd[0], [CURRENT, *columns])
        found.fault(path, f"{text!r}: {expected}; got {odd[0]!r}; {near}")
        return None
    return made


def _columns(
    names: Mapping[str, str], path: str, rows: ReadTable, found: Findings
) -> dict[str, np.ndarray] | None:
    """The numbers of each name of a limit in every row; None with a fault."""
    for name, column in names.items():
        what = "the present value" if name == CURRENT else "a limit"
        empty = rows.frame.get(column, pd.Series(dtype=float)).isna().to_numpy(dtype=bool)
        if empty.any():
            first = rows.at(int(rows.frame.index[int(empty.argmax())]))
            noun = "case" if rows.listed else "row"
            remedy = "write its present value" if name == CURRENT else "write its value"
            found.fault(
                path,
                f"{what}: {rows.where}: {column} is missing in {int(empty.sum())} of {len(empty)} {noun}s, "
                f"first in {first}: {remedy}, or leave the {noun} out",
            )
            return None
        if wrong := number_faults(rows.frame, [column], at=rows.at):
            found.fault(path, f"{what}: {rows.where}: {wrong[0]}")
            return None
    return {name: numbers_of(rows.frame[column]) for name, column in names.items()}


def _intervals(
    sums: Sequence[Linear],
    columns: Mapping[str, np.ndarray],
    shared: tuple[float, float],
    path: str,
    rows: ReadTable,
    found: Findings,
) -> list[tuple[float, float]]:
    low, high = (
        np.full(len(rows.frame), limit.constant)
        + sum(weight * columns[name] for name, weight in limit.weights.items())
        for limit in sums
    )
    lower, upper = np.maximum(low, shared[0]), np.minimum(high, shared[1])
    empty = (low > high) | (lower > upper)
    if empty.any():
        first = int(empty.argmax())
        found.fault(
            path,
            f"{rows.at(int(rows.frame.index[first]))} of {rows.where}: [{low[first]:g}, {high[first]:g}] "
            f"has nothing in common with the range [{shared[0]:g}, {shared[1]:g}]: widen one of the two",
        )
    return list(zip(lower.tolist(), upper.tolist(), strict=True))
