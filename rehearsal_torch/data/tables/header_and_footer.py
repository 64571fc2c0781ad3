"""Where a table begins and ends in a sheet or a text: titles above the header, and footers below the rows.

The header is the first line with a cell, unless lines of titles stand above it: then it is the first line

    of names    each of its cells is a text, no number and no date, and no two are the same
    complete    it has more cells than each line above it, and names every column that has a cell below it
    above data  a column of numbers or dates begins under it

A line of units below the header, such as ``kg, mg/dl``, is no row: all of its cells in columns of numbers, of
which there are some, are units, and it has none in other columns but those in brackets and signs for nothing.

A row at the end is no row of the table if its only cell is a text in a column of numbers, or a remark
(``Source: ...``, ``n = 20``). Rows at the end that begin with names of statistics, such as ``mean``, are none
if each of their numbers is that statistic of the rows above, each name stands once and in no row above, and
one of them is mean, sum, median or standard deviation: a least or largest value, or a number of rows, is
often met by chance, and somebody may be called Max. All others stay rows.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.cell_values import DATE, EMPTY, MISSING, TRUTH, Told, column_of, plain_text

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
_UNIT = (
    r"(?:[kmcdnpM\u00b5\u03bc]?(?:g|m|l|L|s|mol|M|Pa|bar|W|Wh|V|A|Hz|J|N|U|IU|Eq|cal)|mmHg|°[CF]?|%|[$€£]|min|h|hrs?"
    r"|hours?|d|days?|weeks?|months?|y|yrs?|years?|sec|seconds?|minutes?|bpm|rpm|pp[mb]|USD|EUR|CHF|points?|K|ha)"
    r"(?:[²³]|\^?-?\d)?"
)
_UNITS = re.compile(rf"{_UNIT}(?: ?[/*·] ?[\d.]* ?{_UNIT})*|1/{_UNIT}")
_BRACKETS = re.compile(r"\([^()]{1,20}\)|\[[^\[\]]{1,20}\]")
# Those that are met by chance, and names of people.
_CHANCE = ("min", "max", "count")
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


def units_below(frame: pd.DataFrame) -> dict[int, str]:
    """The units of columns, by their places, if the first row below the header has these; else none."""
    found = dict[int, str]()
    for place in range(frame.shape[1] if len(frame) > 2 else 0):
        text = plain_text(str(frame.iloc[0, place])) if frame.iloc[:1, place].notna().all() else ""
        bracketed = _BRACKETS.fullmatch(text) is not None
        if not text or MISSING.fullmatch(text):
            continue
        if not bracketed and not (_UNITS.fullmatch(text) and _of_numbers(frame.iloc[1:, place])):
            return {}
        found[place] = text[1:-1].strip() if bracketed else text
    return found if any(_of_numbers(frame.iloc[1:, place]) for place in found) else {}


def footers(frame: pd.DataFrame, sign: str = ".") -> int:
    """How many rows at the end of a table are none of it."""
    begin, labels, least = len(frame), dict[int, tuple[str, str]](), max(len(frame) - FOOTERS, 1)
    while begin > least:
        row = frame.iloc[begin - 1]
        there = np.flatnonzero(row.notna().to_numpy())
        first = plain_text(str(row.iloc[there[0]]))
        word = _STATISTIC.get(first.casefold().rstrip(":. ="))
        if len(there) > 1 and word is not None:
            labels[begin - 1] = first, word
        else:
            alone = len(there) == 1 < frame.shape[1] and not _numeric(first) and first.casefold() not in TRUTH
            above = frame.iloc[: begin - 1, there[0]]
            if not alone or not (_REMARK.fullmatch(first) or _of_numbers(above)):
                break
        begin -= 1
    if not labels:
        return len(frame) - begin
    above, words = frame.iloc[:begin], [word for _, word in labels.values()]
    met = set(above.iloc[:, 0].dropna().astype(str)) & {first for first, _ in labels.values()}
    sound = not met and len(set(words)) == len(words) and any(word not in _CHANCE for word in words)
    if sound and all(_is(word, above, frame.iloc[place], sign) for place, (_, word) in labels.items()):
        return len(frame) - begin
    return len(frame) - max(labels) - 1


def _is(word: str, above: pd.DataFrame, row: pd.Series, sign: str) -> bool:
    """Whether each number of a row, of which there are some, is a statistic of the rows above it, to the
    digits that it has.
    """
    found = list[bool]()
    for place, cell in enumerate(row):
        column = pd.concat([above.iloc[:, place], pd.Series([cell], dtype=object)])
        cells = pd.to_numeric(column_of(column, "", Told(), sign), errors="coerce").astype(float)
        numbers, value = cells.iloc[:-1].dropna(), cells.iloc[-1]
        if not pd.isna(value):
            made = [float(getattr(numbers, word)())] if len(numbers) > 1 else []
            made += [float(numbers.std(ddof=0))] if word == "std" else []
            digits = len(f"{value:.10f}".rstrip("0").partition(".")[2])
            found.append(any(abs(each - value) <= 0.51 * 10.0**-digits + 1e-9 * abs(each) for each in made))
    return bool(found) and all(found)


def _of_numbers(column: pd.Series) -> bool:
    """Whether all cells of a column, of which there are some, are numbers."""
    cells = column.dropna()
    return len(cells) > 0 and all(_numeric(plain_text(str(cell))) for cell in cells.unique().tolist())


def _numeric(text: str) -> bool:
    """Whether a text is a number, perhaps with signs, or a date."""
    return _NUMBER.fullmatch(text) is not None or DATE.match(text) is not None
