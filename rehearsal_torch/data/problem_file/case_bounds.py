"""The cases of a problem file: which rows are cases, what their columns are for, and the bounds of each.

    bounds: {bmi: [current - 3, current], dose: [0, 0.5*weight]}

A limit is a number or a linear function of the action's present value in the case, `current`, which stands in
the action's own column, and of columns that the cases (or, without cases, the rows) have. The interval is cut
to the range that all cases share, and to the values that may be set, if these are some only. Where nothing is
left, the action stays at its present value, or at that end of the case's own interval which is next to what
may be set. A case that does not say what is needed of it, its context and what its limits depend on, is left
out, unless all are so.

A column of the cases is a variable, their name (`identity`), a cost, or part of a bound. Others are not used:
a name that is nearly that of a variable is a slip, by which a present value or a context would be lost.

Rows of the data are cases by a condition, `cases: where age > 60 and smoker = yes`:

    where      = all { "or" all }
    all        = condition { "and" condition }
    condition  = sum sign sum { sign sum }  |  name ("=" | "!=") text  |  name "in" "{" text, ... "}"
    sign       = "<" | "<=" | ">" | ">=" | "=" | "!="

Sums are those of `spaces.inequalities`, linear in columns of numbers; texts with blanks or signs need quotes.
An empty cell fulfils no condition.

Source: Du et al. (2026), Sec. 2.1, for actions within a box.
"""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import NO, YES
from rehearsal_torch.data.problem_file.cases_schema import DataForm, ProblemForm, VariableForm, WhereForm
from rehearsal_torch.data.problem_file.diagnostics import (
    MOST_ROWS,
    Findings,
    Opened,
    column_faults,
    first_row,
    key,
    marked_rows,
    missing_words,
)
from rehearsal_torch.data.tables.reader import ReadTable, number_faults, numbers_of
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import line_at, meant, suggested
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.inequalities import InequalityError, Linear, Reader, linear

CURRENT = "current"
# The least similarity of a slip, and the fewest letters of one.
_SIMILAR, _SHORT = 0.8, 3
_WORD = re.compile(r"[^\W\d]\w*|`[^`]*`")
_SIGNS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    **dict.fromkeys(("<=", "=<", "≤"), operator.le),
    **dict.fromkeys((">=", "=>", "≥"), operator.ge),
    **dict.fromkeys(("=", "=="), operator.eq),
    **dict.fromkeys(("!=", "≠"), operator.ne),
    "<": operator.lt,
    ">": operator.gt,
}


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


def with_needed(cases: ReadTable, form: ProblemForm, found: Findings) -> ReadTable:
    """The cases that say what is needed of them, with a finding for the others; all if none does."""
    words = {name: _WORD.findall(" ".join(map(str, limits))) for name, limits in form.bounds.items()}
    in_limits = [name if word == CURRENT else word.strip("`") for name in words for word in words[name]]
    context = [name for name, variable in form.variables.items() if variable.role == "context"]
    needed = [name for name in dict.fromkeys((*context, *in_limits)) if name in cases.frame.columns]
    empty = cases.frame[needed].isna()
    lacking = empty.any(axis=1)
    if not lacking.any() or lacking.all():
        return cases
    for name in needed:
        if missing := missing_words(cases, name, "case"):
            text = f"{missing}: nothing is decided for these; measure it, and ask again"
            found.warn("cases", "rows", text, cases=int(empty[name].sum()))
    return replace(cases, frame=cases.frame[~lacking])


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
                cell_texts = ", ".join(f"{value:g}" for value in cells[unknown].unique()[:MOST_ROWS])
                got = f"{marked_rows(cases, unknown)} of {cases.where}: {name} is {cell_texts}"
                expected = " and ".join(f"{value:g}" for value in sorted(values))
                found.fault("cases", f"{got}; expected one of its two values, {expected}")


def case_rows(
    cases: DataForm | WhereForm | Sequence[Mapping[str, Any]] | None, file: Opened, rows: ReadTable | None
) -> ReadTable | None:
    """The table of the cases; None if there are none of their own, or with a fault."""
    if cases is None:
        return None
    if isinstance(cases, WhereForm):
        return None if rows is None else rows_where(cases.where, rows, file.found)
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
        elif name not in box.names:
            words = f"{name} is set to texts, which are the same in all cases: leave it out"
            found.fault(path, words)
        else:
            parsed = [limit for text in limits if (limit := _parse_limit(text, path, rows, found))]
            used = dict.fromkeys(word for limit in parsed for word in limit.weights)
            names = {word: name if word == CURRENT else word for word in used}
            columns = _columns(names, path, rows, found) if len(parsed) == len(limits) else None
            if columns is not None:
                choices = np.array(box.levels.get(name, box.bounds()[name]))
                ranges[name] = _intervals(parsed, columns, choices, name in box.levels, path, rows, found)
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
    noun, complete = "case" if rows.listed else "row", True
    for word, column in columns.items():
        value = "present value" if word == CURRENT else "value"
        faults = list[str](number_faults(rows.frame, [column], at=rows.at))
        if missing := missing_words(rows, column, noun):
            faults = [f"{missing}: write its {value}, or leave the {noun} out"]
        for fault in faults:
            what = "the present value" if word == CURRENT else "a limit"
            found.fault(path, f"{what}: {rows.where}: {fault}")
            complete = False
    if not complete:
        return None
    return {word: numbers_of(rows.frame[column]) for word, column in columns.items()}


def _intervals(
    limits: Sequence[Linear],
    columns: Mapping[str, np.ndarray],
    choices: np.ndarray,
    several: bool,
    path: str,
    rows: ReadTable,
    found: Findings,
) -> list[tuple[float, float]]:
    """The interval of each row between two limits, cut to the range of `choices`, or to `several` values."""
    low, high = (
        np.full(len(rows.frame), limit.constant)
        + sum(weight * columns[word] for word, weight in limit.weights.items())
        for limit in limits
    )
    if (empty := low > high).any():
        first = int(empty.argmax())
        got = f"{marked_rows(rows, empty)} of {rows.where}: [{low[first]:g}, {high[first]:g}]"
        found.fault(path, f"{got} has no number: its lower limit is above the upper one")
    lower, upper = np.maximum(low, choices.min()), np.minimum(high, choices.max())
    if several:
        slack = 1e-9 * (1 + np.abs(choices).max())
        within = (choices >= low[:, None] - slack) & (choices <= high[:, None] + slack)
        lower = np.where(within, choices, np.inf).min(1)
        upper = np.where(within, choices, -np.inf).max(1)
    beyond = (lower > upper) & ~empty
    if beyond.all() and CURRENT not in columns:
        shared = f"[{choices.min():g}, {choices.max():g}]"
        words = f"has nothing in common with the range {shared}: widen one of the two"
        found.fault(path, f"{marked_rows(rows, beyond)} of {rows.where}: [{low[0]:g}, {high[0]:g}] {words}")
    elif beyond.any():
        nearest = np.clip(columns.get(CURRENT, np.where(low > choices.min(), low, high)), low, high)
        lower, upper = (np.where(beyond, nearest, ends) for ends in (lower, upper))
        shared = f"from {choices.min():g} to {choices.max():g}"
        words = f"its own bounds hold nothing that may be set ({shared}), so that it stays as it is"
        found.warn(
            path, "range", f"{marked_rows(rows, beyond)} of {rows.where}: {words}", cases=int(beyond.sum())
        )
    return list(zip(lower.tolist(), upper.tolist(), strict=True))


def rows_where(condition: str, rows: ReadTable, found: Findings) -> ReadTable | None:
    """The rows that fulfil a condition; None with a fault, also where there are none."""
    try:
        mask = _Condition(condition, rows).mask()
    except InequalityError as error:
        found.fault("cases", str(error))
        return None
    if not mask.any():
        found.fault("cases", f"no row of {rows.where} is such that {condition}: widen the condition")
        return None
    return replace(rows, frame=rows.frame[mask], notes=())


class _Condition(Reader):
    """A parser of conditions on the rows of a table."""

    def __init__(self, text: str, rows: ReadTable) -> None:
        frame, self.rows = rows.frame, rows
        numeric = {name: numbers_of(frame[name]) for name in frame.columns}
        self.numbers = {
            str(name): numbers
            for name, numbers in numeric.items()
            if frame[name].dtype != bool and (np.isfinite(numbers) == frame[name].notna().to_numpy()).all()
        }
        # Braces are read only where some column has texts.
        super().__init__(text, {str(name): () for name in frame.columns})

    def mask(self) -> np.ndarray:
        """Whether each row fulfils the condition, (n,) bool."""
        mask = self._all()
        while self.take("or") is not None:
            mask |= self._all()
        self.end("expected 'and', 'or' or the end")
        return mask

    def _all(self) -> np.ndarray:
        mask = self._condition()
        while self.take("and") is not None:
            mask &= self._condition()
        return mask

    def _condition(self) -> np.ndarray:
        name, sign = self.next, self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        is_column = name.kind in ("word", "name") and name.value in self.levels
        compared = sign.kind == "sign" and name.value not in self.numbers
        if is_column and (compared or sign.value == "in"):
            self.at += 1
            return self._of_texts(name.value)
        mask, left = np.ones(len(self.rows.frame), dtype=bool), self._sum()
        if self.next.kind != "sign":
            raise self.error("expected a sign, such as > or =")
        while self.next.kind == "sign":
            compare = _SIGNS[self.next.value]
            self.at += 1
            right = self._sum()
            mask &= compare(left, right) & np.isfinite(left) & np.isfinite(right)
            left = right
        return mask

    def _sum(self) -> np.ndarray:
        start = self.next.place
        form: Linear = self.sum()
        for name in form.weights:
            if name not in self.levels:
                raise InequalityError(self.text, start, f"no column {name!r}; {meant(name, self.levels)}")
            if name not in self.numbers:
                words = f"{name} has texts: compare it alone, as {name} = TEXT or {name} in {{TEXT, ...}}"
                raise InequalityError(self.text, start, words)
        total = np.full(len(self.rows.frame), form.constant)
        return total + sum(weight * self.numbers[name] for name, weight in form.weights.items())

    def _of_texts(self, name: str) -> np.ndarray:
        """Whether the column has one of some texts; the next token is the sign."""
        sign = self.next
        if sign.value not in ("in", "=", "==", "!=", "≠"):
            raise self.error(f"{name} has texts, which have no order: expected =, != or in")
        self.at += 1
        texts = [self._cell()] if sign.value != "in" else []
        if sign.value == "in":
            if self.take("{") is None:
                raise self.error("expected { after in, and values with commas")
            texts.append(self._cell())
            while self.take(",") is not None:
                texts.append(self._cell())
            if self.take("}") is None:
                raise self.error("expected , or }")
        column = self.rows.frame[name]
        cells, known = column.map(_as_text).to_numpy(), column.notna().to_numpy()
        unknown = [text for text in texts if text not in cells]
        if unknown:
            choices = dict.fromkeys(str(text) for text in cells[known])
            raise InequalityError(
                self.text, sign.place, f"{name} is never {unknown[0]!r}; {meant(unknown[0], choices)}"
            )
        inside = np.isin(cells, texts)
        return (~inside if sign.value in ("!=", "≠") else inside) & known

    def _cell(self) -> str:
        token = self.next
        if token.kind not in ("word", "name", "number"):
            raise self.error("expected a value, in quotes if it has blanks or signs")
        self.at += 1
        return _as_text(token.value)


def _as_text(cell: object) -> str:
    """A cell as it is compared: 2.0 is 2, and yes is true."""
    text = str(cell).strip()
    if text.casefold() in YES | NO:
        return "yes" if text.casefold() in YES else "no"
    try:
        return f"{float(text):.15g}"
    except ValueError:
        return text
