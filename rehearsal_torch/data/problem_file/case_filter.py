"""Rows of a table that are its cases, by a condition: `cases: where age > 60 and smoker = yes`.

    where      = all { "or" all }
    all        = condition { "and" condition }
    condition  = sum sign sum { sign sum }  |  name ("=" | "!=") text  |  name "in" "{" text, ... "}"
    sign       = "<" | "<=" | ">" | ">=" | "=" | "!="

Sums are those of `spaces.inequalities`, linear in columns of numbers; texts with blanks or signs need quotes.
An empty cell fulfils no condition.
"""

import operator
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rehearsal_torch.data.codings.coding import NO, YES
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.tables.reader import ReadTable, numbers_of
from rehearsal_torch.files.schema import meant
from rehearsal_torch.spaces.inequalities import InequalityError, Linear, Reader

_SIGNS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    **dict.fromkeys(("<=", "=<", "≤"), operator.le),
    **dict.fromkeys((">=", "=>", "≥"), operator.ge),
    **dict.fromkeys(("=", "=="), operator.eq),
    **dict.fromkeys(("!=", "≠"), operator.ne),
    "<": operator.lt,
    ">": operator.gt,
}


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
