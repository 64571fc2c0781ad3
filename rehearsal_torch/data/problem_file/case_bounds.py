"""The cases of a problem file: what their columns are for, and the bounds that each has of its own.

    bounds: {bmi: [current - 3, current], dose: [0, 0.5*weight]}

A limit is a number or a linear function of the action's present value in the case, `current`, which stands in
the action's own column, and of columns that the cases (or, without cases, the rows) have. The interval is cut
to the range that all cases share.

A column of the cases is a variable, their name (`identity`), a cost, or part of a bound. Others are not used:
a name that is nearly that of a variable is a slip, by which a present value or a context would be lost.

Source: Du et al. (2026), Sec. 2.1, for actions within a box.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import NO, YES
from rehearsal_torch.data.problem_file.cases_schema import DataForm, ProblemForm, VariableForm
from rehearsal_torch.data.problem_file.diagnostics import (
    Findings,
    Opened,
    column_faults,
    first_row,
    key,
    missing_words,
)
from rehearsal_torch.data.tables.reader import ReadTable, number_faults, numbers_of
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import line_at, meant, suggested
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.inequalities import InequalityError, Linear, linear

CURRENT = "current"
# The least similarity of a slip, and the fewest letters of one.
_SIMILAR, _SHORT = 0.8, 3
_WORD = re.compile(r"[^\W\d]\w*|`[^`]*`")


def unused_columns(cases: ReadTable, form: ProblemForm, found: Findings) -> None:
    """Collects columns that are not used: of listed cases all, as a fault if nearly a variable, else as a
    finding; of a file those that are nearly a variable, as a finding.
    """
    used = {*form.variables, str(form.identity), *map(str, form.costs.values())}
    for limits in form.bounds.values():
        used |= {word.strip("`") for limit in limits for word in _WORD.findall(str(limit))}
    listed, columns = isinstance(form.cases, list), list(map(str, cases.frame.columns))
    for name in [name for name in columns if name not in used]:
        near = _slip_of(name, [variable for variable in form.variables if variable not in columns])
        if near and listed:
            found.fault("cases", f"{name!r} is no variable; did you mean {near!r}?")
        elif near:
            words = f"column {name!r} of {cases.where} is not used; did you mean {near!r}?"
            found.warn("cases", "unused", words)
        elif listed:
            found.warn("cases", "unused", f"{name!r} is no variable, and not used")


def _slip_of(name: str, choices: Iterable[str]) -> str | None:
    """The choice of which a name is a slip; of short names only upper and lower case may differ."""
    near = suggested(name, choices, _SIMILAR)
    short = near is not None and min(len(name), len(near)) < _SHORT
    return None if near is None or (short and near.casefold() != name.casefold()) else near


def impossible_values(
    cases: ReadTable, rows: pd.DataFrame, variables: Mapping[str, VariableForm], found: Findings
) -> None:
    """Collects a fault for each binary variable of which a case has a value that no row has."""
    for name, variable in variables.items():
        if variable.kind == "binary" and name in cases.frame.columns and name in rows.columns:
            values = pd.to_numeric(rows[name], errors="coerce").dropna().unique()
            cells = pd.to_numeric(cases.frame[name], errors="coerce")
            unknown = cells.notna() & ~cells.isin(values)
            if unknown.any():
                got = f"{first_row(cases, unknown)} of {cases.where}: {name} is {cells[unknown].iloc[0]:g}"
                expected = " and ".join(f"{value:g}" for value in sorted(values))
                found.fault("cases", f"{got}; expected one of its two values, {expected}")


def case_rows(cases: DataForm | Sequence[Mapping[str, Any]] | None, file: Opened) -> ReadTable | None:
    """The table of the cases; None if there are none of their own, or with a fault."""
    if cases is None:
        return None
    if isinstance(cases, DataForm):
        return file.table(cases, "cases")
    frame = pd.DataFrame([dict(case) for case in cases])
    lines = tuple(line_at(file.found.lines, f"cases[{place}]") or 1 for place in range(len(frame)))
    # Cases are counted from 1, and the lines of a file from 2.
    frame = frame.set_axis(range(-1, len(frame) - 1))
    return ReadTable(frame, f"the list of cases in {file.found.source}", listed=lines)


def with_truths(cases: ReadTable, rows: pd.DataFrame) -> ReadTable:
    """Cases with 1 and 0 for true and false, yes and no, where the rows have truth values."""
    frame, codes = cases.frame.copy(), dict.fromkeys(YES, 1.0) | dict.fromkeys(NO, 0.0)
    for name in frame.columns.intersection(rows.columns):
        if pd.api.types.infer_dtype(rows[name], skipna=True) == "boolean":
            frame[name] = [codes.get(str(cell).casefold(), cell) for cell in frame[name]]
    return replace(cases, frame=frame)


def identity_faults(name: str, rows: ReadTable, found: Findings) -> None:
    """Collects faults of the column that names the cases."""
    column_faults([("identity", name)], rows, found)
    if name not in rows.frame.columns:
        return
    cells, where = rows.frame[name], f"column {name!r} of {rows.where}"
    empty, again = cells.isna(), cells.astype(str).duplicated()
    if empty.any():
        found.fault("identity", f"{where} is empty in {first_row(rows, empty)}: every case needs a name")
    elif again.any():
        what = f"{beginning(str(cells[again].iloc[0]), 60)!r} again in {first_row(rows, again)}"
        remedy = "every case needs a name of its own, so name another column"
        found.fault("identity", f"{where} has {what}: {remedy}")


def ranges_of(
    bounds: Mapping[str, Sequence[str]],
    box: Box,
    rows: ReadTable,
    found: Findings,
    texts: Collection[str] = (),
) -> dict[str, list[tuple[float, float]]]:
    """The (lower, upper) of each row, for each action that has bounds of its own.

    Args:
        bounds: Action to two limits as text, whose names are columns of the rows.
        texts: Actions of texts, which have no bounds.
    """
    ranges = {}
    for name, limits in bounds.items():
        path = key("bounds", name)
        if name not in box.names and name not in texts:
            found.fault(path, f"is no action; {meant(name, box.names)}")
        elif name not in box.names or name in box.levels:
            words = f"{name} is set to some values only, which are the same in all cases: leave it out"
            found.fault(path, words)
        else:
            parsed = [limit for text in limits if (limit := _parse_limit(text, path, rows, found))]
            used = dict.fromkeys(word for limit in parsed for word in limit.weights)
            names = {word: name if word == CURRENT else word for word in used}
            columns = _columns(names, path, rows, found) if len(parsed) == len(limits) else None
            if columns is not None:
                ranges[name] = _intervals(parsed, columns, box.bounds()[name], path, rows, found)
    return ranges


def _parse_limit(text: str, path: str, rows: ReadTable, found: Findings) -> Linear | None:
    try:
        limit = linear(text)
    except InequalityError as error:
        found.fault(path, str(error))
        return None
    choices = [CURRENT, *map(str, rows.frame.columns)]
    if unknown := [name for name in limit.weights if name not in choices]:
        expected = f"expected numbers, `current`, the present value, and columns of {rows.where}"
        got = f"got {unknown[0]!r}; {meant(unknown[0], choices)}"
        found.fault(path, f"{text!r}: {expected}; {got}")
        return None
    return limit


def _columns(
    columns: Mapping[str, str], path: str, rows: ReadTable, found: Findings
) -> dict[str, np.ndarray] | None:
    """The numbers of each word of a limit in every row; None with a fault."""
    noun = "case" if rows.listed else "row"
    for word, column in columns.items():
        value = "present value" if word == CURRENT else "value"
        faults = list[str](number_faults(rows.frame, [column], at=rows.at))
        if missing := missing_words(rows, column, noun):
            faults = [f"{missing}: write its {value}, or leave the {noun} out"]
        if faults:
            what = "the present value" if word == CURRENT else "a limit"
            found.fault(path, f"{what}: {rows.where}: {faults[0]}")
            return None
    return {word: numbers_of(rows.frame[column]) for word, column in columns.items()}


def _intervals(
    limits: Sequence[Linear],
    columns: Mapping[str, np.ndarray],
    shared: tuple[float, float],
    path: str,
    rows: ReadTable,
    found: Findings,
) -> list[tuple[float, float]]:
    """The interval of each row between two limits, cut to the range that all share."""
    low, high = (
        np.full(len(rows.frame), limit.constant)
        + sum(weight * columns[word] for word, weight in limit.weights.items())
        for limit in limits
    )
    lower, upper = np.maximum(low, shared[0]), np.minimum(high, shared[1])
    empty = (low > high) | (lower > upper)
    if empty.any():
        where, first = f"{first_row(rows, empty)} of {rows.where}", int(empty.argmax())
        words = f"has nothing in common with the range [{shared[0]:g}, {shared[1]:g}]: widen one of the two"
        found.fault(path, f"{where}: [{low[first]:g}, {high[first]:g}] {words}")
    return list(zip(lower.tolist(), upper.tolist(), strict=True))
