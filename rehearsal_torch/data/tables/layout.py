"""Where a table begins and ends in a sheet or a text: titles above the header, and footers below the rows.

The header is the first line with a cell, unless lines of titles stand above it: then it is the first line

    of names    each of its cells is a text, no number and no date, and no two are the same
    complete    it has more cells than each line above it, and names every column that has a cell below it
    above data  a column of numbers or dates begins under it

A row at the end is no row of the table if its only cell is a text in a column of numbers, or a remark
(``Source: ...``, ``n = 20``); or if it begins with the name of a statistic, such as ``mean``, in a column of
numbers, or in one of texts in which no row above has it, and one of its numbers is that statistic of the rows
above. Where none is, nobody knows what the row is, and the table is refused.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.cells import DATE, EMPTY, MISSING, TRUTH, Told, column_of, plain_text

# Lines that may be titles, lines by which the header is known, and rows that may be footers.
TITLES, KNOWN, FOOTERS = 20, 60, 10
_NUMBER = re.compile(r"(?:[<>]=?|[≤≥])? ?[$€£]? ?[+-]?[\d.,'\u2019 ]*\d(?:[eE][+-]?\d+)? ?[%$€£]?")
_REMARK = re.compile(
    r"(?:\*|†|(?:source|note|remark|quelle|hinweis|anmerkung|bemerkung|legend|legende)s?\b.*:|n ?= ?\d).*",
    re.IGNORECASE | re.DOTALL,
)
_STATISTICS = {
    "mean": ("mean", "average", "avg", "mittelwert", "mittel", "durchschnitt"),
    "sum": ("sum", "total", "summe", "gesamt", "grand total"),
    "std": ("std", "sd", "stdev", "std dev", "standard deviation", "standardabweichung"),
    "median": ("median",),
    "min": ("min", "minimum"),
    "max": ("max", "maximum"),
    "count": ("n", "count", "anzahl"),
}
# Those that may as well be the name of somebody, or an answer.
_NAMES = ("min", "max", "count")
_STATISTIC = {word: name for name, words in _STATISTICS.items() for word in words}


def filled(row: Sequence[Any]) -> list[int]:
    """The places of the cells that say something."""
    return [at for at, cell in enumerate(row) if cell is not None and str(cell).strip() not in EMPTY]


def header_place(rows: Sequence[Sequence[Any]]) -> int:
    """The place of the header among the first rows of cells, which are texts, numbers or None."""
    there = {place: some for place, row in enumerate(rows[: TITLES + KNOWN]) if (some := filled(row))}
    top = next(iter(there), 0)
    most = len(there.get(top, ()))
    for place in [*there][1 : TITLES + 1]:
        columns, above = there[place], most
        most = max(above, len(columns))
        if len(columns) <= above or there[top] == columns[1:]:
            # No more names than above; or above is a header without a name for its first column, the index.
            continue
        names = [plain_text(str(rows[place][at])) for at in columns]
        below = [each for each in there if each > place]
        unnamed = {at for each in below for at in there[each]} - {*columns}
        if unnamed or len(set(names)) < len(names):
            continue
        if any(_numeric(name) or MISSING.fullmatch(name) is not None for name in names):
            continue
        for at in columns:
            cells = [plain_text(str(rows[each][at])) for each in below if at in there[each]]
            numbers = [*map(_numeric, cells)]
            if numbers and numbers[0] and 2 * sum(numbers) >= len(numbers):
                return place
    return top


def footers(frame: pd.DataFrame, sign: str = ".") -> tuple[int, list[str]]:
    """How many rows at the end of a table are none of it; or, after 0, the fault of a row that may be one."""
    begin, labels, least = len(frame), list[tuple[int, str]](), max(len(frame) - FOOTERS, 1)
    while begin > least:
        row = frame.iloc[begin - 1]
        there = np.flatnonzero(row.notna().to_numpy())
        first = plain_text(str(row.iloc[there[0]]))
        word = _STATISTIC.get(first.casefold().rstrip(":. ="))
        if len(there) > 1 and word is not None:
            labels.append((begin - 1, word))
        else:
            alone = len(there) == 1 < frame.shape[1] and not _numeric(first) and first.casefold() not in TRUTH
            above = frame.iloc[: begin - 1, there[0]]
            if not alone or not (_REMARK.fullmatch(first) or _of_numbers(above)):
                break
        begin -= 1
    above, faults = frame.iloc[:begin], list[str]()
    for place, word in labels:
        row = frame.iloc[place]
        at = int(row.notna().to_numpy().argmax())
        label = plain_text(str(row.iloc[at]))
        if _of_numbers(above.iloc[:, at]):
            continue
        known = any(_is(word, frame.iloc[[*range(begin), place], each], sign) for each in range(len(row)))
        if label in set(above.iloc[:, at].dropna().astype(str)) or (word in _NAMES and not known):
            begin = place + 1
            break
        if not known:
            what = f"line {int(frame.index[place]) + 2} begins with {label!r}, and none of its numbers is"
            remedy = "delete it, or give it another name if it is a row"
            faults.append(f"{what} the {word} of the rows above it: {remedy}")
    return (0, faults) if faults else (len(frame) - begin, [])


def _is(word: str, column: pd.Series, sign: str) -> bool:
    """Whether the last cell of a column is a statistic of those above it, to the digits that it has."""
    cells = pd.to_numeric(column_of(column, "", Told(), sign), errors="coerce").astype(float)
    numbers, value = cells.iloc[:-1].dropna(), cells.iloc[-1]
    if len(numbers) < 2 or pd.isna(value):
        return False
    made = [float(getattr(numbers, word)())]
    made += [float(numbers.std(ddof=0))] if word == "std" else []
    digits = len(f"{value:.10f}".rstrip("0").partition(".")[2])
    return any(abs(each - value) <= 0.51 * 10.0**-digits + 1e-9 * abs(each) for each in made)


def _of_numbers(column: pd.Series) -> bool:
    """Whether all cells of a column, of which there are some, are numbers."""
    cells = column.dropna()
    return len(cells) > 0 and all(_numeric(plain_text(str(cell))) for cell in cells.unique().tolist())


def _numeric(text: str) -> bool:
    """Whether a text is a number, perhaps with signs, or a date."""
    return _NUMBER.fullmatch(text) is not None or DATE.match(text) is not None
