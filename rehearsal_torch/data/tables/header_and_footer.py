"""Where a table begins and ends in a sheet or a text: titles above the header, and footers below the rows.

The header is the first line with a cell, unless lines of titles stand above it: then it is the first line

    of names    each of its cells is a text, no number and no date, and no two are the same
    complete    it has more cells than each line above it, and names every column that has a cell below it
    above data  a column of numbers or dates begins under it

A header of groups goes on in the next line: ``Temperature | | Yield`` over ``set | actual | ``. Where that
line has texts above columns of numbers, and no number, and the first has repeated names or none in some of
its columns, both are the header. Beside a header that names each column, such a line describes the columns.

A first row of data is no header: names are numbers above numbers, not in order as years are, or two names, or
one beside such a number, are cells of their column, or written as all of these (``B0`` above ``B1, B2``).

A line of units below the header, such as ``kg, mg/dl``, is no row: it has units in columns of numbers, and
nothing else there; in other columns it has only units in brackets, and signs for nothing.

A column without a name, behind the first, that has texts in at most half of the rows, and no number, has
remarks (``late``, ``see mail``) and is none of the table.

A row at the end is no row of the table if its only cell is a text in a column of numbers, a remark (``Source:
...``, ``n = 20``), or a label of a sum, a number or a date (``Total: 20``). Rows at the end that begin with
names of statistics, such as ``mean``, are none if each of their numbers is that statistic of the rows above,
each name stands once and in no row above, and one of them is mean, sum, median or standard deviation: a least
or largest value, or a number of rows, is often met by chance, and somebody may be called Max. All others stay
rows.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.cell_values import DATE, EMPTY, MISSING, TRUTH, Notes, column_of, plain_text
from rehearsal_torch.files.bounded_yaml import repeated

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
_LABEL = re.compile(
    rf"(?:{'|'.join(word for name in ('sum', 'mean') for word in _STATISTICS[name])})\b(?:\W*|.*\d\W*)"
    r"|(?:number of|anzahl|count)\b.*\d\W*|(?:stand|as of|printed|exported|gedruckt|erstellt)\b.*\d.*",
    re.IGNORECASE,
)
_UNIT = (
    r"(?:[kmcdnpM\u00b5\u03bc]?(?:g|m|l|L|s|mol|M|Pa|bar|W|Wh|V|A|Hz|J|N|U|IU|Eq|cal)|mmHg|°[CF]?|%|[$€£]|min|h|hrs?"
    r"|hours?|d|days?|weeks?|months?|y|yrs?|years?|sec|seconds?|minutes?|bpm|rpm|pp[mb]|USD|EUR|CHF|points?|K|ha)"
    r"(?:[²³]|\^?-?\d)?"
)
_UNITS = re.compile(rf"{_UNIT}(?: ?[/*·] ?[\d.]* ?{_UNIT})*|1/{_UNIT}")
_BRACKETS = re.compile(r"\([^()]{1,20}\)|\[[^\[\]]{1,20}\]")
# Statistics that rows match by chance, or that are names of people.
_CHANCE = {"min", "max", "count"}
_STATISTIC = {word: name for name, words in _STATISTICS.items() for word in words}


def filled_columns(row: Sequence[Any]) -> list[int]:
    """The places of the cells of a row that are not empty."""
    return [column for column, cell in enumerate(row) if cell is not None and str(cell).strip() not in EMPTY]


def header_place(rows: Sequence[Sequence[Any]]) -> int:
    """The place of the header among the first rows of cells, which are texts, numbers or None."""
    first_rows = enumerate(rows[: TITLES + KNOWN])
    filled = {line: columns for line, row in first_rows if (columns := filled_columns(row))}
    top = next(iter(filled), 0)
    widest = len(filled.get(top, ()))
    for line in [*filled][1 : TITLES + 1]:
        columns, widest_above = filled[line], widest
        widest = max(widest, len(columns))
        if len(columns) <= widest_above or filled[top] == columns[1:]:
            # No more names than above; or above is a header without a name for its first column, the index.
            continue
        names = [plain_text(str(rows[line][column])) for column in columns]
        below = [later for later in filled if later > line]
        unnamed = {column for later in below for column in filled[later]} - {*columns}
        if unnamed or len(set(names)) < len(names):
            continue
        if any(_is_number(name) or MISSING.fullmatch(name) is not None for name in names):
            continue
        for column in columns:
            cells = [plain_text(str(rows[later][column])) for later in below if column in filled[later]]
            numeric = [*map(_is_number, cells)]
            if numeric and numeric[0] and 2 * sum(numeric) >= len(numeric):
                above = max(earlier for earlier in filled if earlier < line)
                groups = len(filled[above]) > 1 and filled[above][0] > columns[0]
                return above if groups else line
    return top


def _texts_above_numbers(frame: pd.DataFrame) -> tuple[dict[int, str], list[int]]:
    """The texts of the first row by column, and those above columns of numbers; none if it has a number."""
    row = [plain_text(str(cell)) for cell in frame.iloc[0]]
    texts = {column: row[column] for column in filled_columns(row)}
    if any(
        _is_number(text) or MISSING.fullmatch(text) or text.casefold() in TRUTH for text in texts.values()
    ):
        return {}, []
    # Units may follow.
    return texts, [column for column in texts if _all_numbers(frame.iloc[2:, column])]


def joined_header(header: Sequence[Any], frame: pd.DataFrame) -> tuple[list[str], int, bool]:
    """The names of a header with those of the lines below it, how many rows of the frame these are, and
    whether the next row describes the columns.
    """
    names, rows = ["" if cell is None else plain_text(str(cell)) for cell in header], 0
    while len(frame) > rows + 2 and not units_below(frame.iloc[rows:]):
        texts, above_numbers = _texts_above_numbers(frame.iloc[rows:])
        if rows and texts and all(not names[column] for column in texts):
            # The name of the index, which pandas writes in a line of its own.
            names, rows = [name or texts.get(column, "") for column, name in enumerate(names)], rows + 1
            continue
        groups = any(not names[column] for column in texts if column) or repeated(filter(None, names))
        if not above_numbers or not groups:
            return names, rows, len(above_numbers) > 1
        group = ""
        for column, name in enumerate(names):
            group, text = name or group, texts.get(column, "")
            if text:
                names[column] = group if text == group else f"{group} {text}".strip()
        rows += 1
    return names, rows, False


def is_data(names: Sequence[str], frame: pd.DataFrame) -> bool:
    """Whether the names of a header are a row of data."""
    numbers, recurring = list[float](), 0
    for column, name in enumerate(names):
        cells = frame.iloc[:KNOWN, column].dropna().astype(str)
        if not len(cells) or not name or DATE.match(name):
            continue
        if (number := pd.to_numeric(name, errors="coerce")) == number:
            numbers += [float(number)] if _all_numbers(cells) else []
        else:
            written = re.sub(r"\d", "0", name)
            alike = written != name and (cells.str.replace(r"\d", "0", regex=True) == written).all()
            recurring += bool(alike or (cells == name).any())
    steps = np.diff(numbers)
    ordered = bool((steps > 0).all() or (steps < 0).all())
    return recurring > 1 or bool(numbers and (recurring or not ordered))


def units_below(frame: pd.DataFrame) -> dict[int, str]:
    """The units of columns, by their places, if the first row below the header has these; else none."""
    units = dict[int, str]()
    for column in range(frame.shape[1] if len(frame) > 2 else 0):
        text = plain_text(str(frame.iloc[0, column])) if frame.iloc[:1, column].notna().all() else ""
        bracketed = _BRACKETS.fullmatch(text) is not None
        unit = text[1:-1].strip() if bracketed else text
        if not unit or MISSING.fullmatch(unit):
            continue
        if not bracketed and not (_UNITS.fullmatch(text) and _all_numbers(frame.iloc[1:, column])):
            return {}
        units[column] = unit
    return units if any(_all_numbers(frame.iloc[1:, column]) for column in units) else {}


def are_remarks(frame: pd.DataFrame, column: int) -> bool:
    """Whether a column without a name has remarks alone."""
    cells = frame[column].dropna()
    texts = not any(_is_number(plain_text(str(cell))) for cell in cells.unique().tolist())
    return column > 0 and 0 < len(cells) <= len(frame) / 2 and texts


def footers(frame: pd.DataFrame, sign: str = ".") -> int:
    """How many rows at the end of a table are none of it."""
    end, statistics = len(frame), dict[int, tuple[str, str]]()
    while end > max(len(frame) - FOOTERS, 1):
        row = frame.iloc[end - 1]
        columns = np.flatnonzero(row.notna().to_numpy())
        label = plain_text(str(row.iloc[columns[0]]))
        statistic = _STATISTIC.get(label.casefold().rstrip(":. ="))
        if len(columns) > 1 and statistic is not None:
            statistics[end - 1] = label, statistic
        else:
            above = frame.iloc[: end - 1, columns[0]]
            text = not _is_number(label) and label.casefold() not in TRUTH
            alone = text and len(columns) == 1 < frame.shape[1]
            if not alone or not (_REMARK.fullmatch(label) or _LABEL.fullmatch(label) or _all_numbers(above)):
                break
        end -= 1
    if not statistics:
        return len(frame) - end
    above, (labels, names) = frame.iloc[:end], zip(*statistics.values(), strict=True)
    labels_above = set(above.iloc[:, 0].dropna().astype(str))
    once = len(set(names)) == len(names) and labels_above.isdisjoint(labels)
    matches = (_is_statistic(name, above, frame.iloc[row], sign) for row, (_, name) in statistics.items())
    if once and not set(names) <= _CHANCE and all(matches):
        return len(frame) - end
    return len(frame) - max(statistics) - 1


def _is_statistic(name: str, above: pd.DataFrame, row: pd.Series, sign: str) -> bool:
    """Whether a row has numbers, and each is a statistic of the rows above it, to the digits that it has."""
    agreements = list[bool]()
    for column, cell in enumerate(row):
        cells = pd.concat([above.iloc[:, column], pd.Series([cell], dtype=object)])
        parsed = pd.to_numeric(column_of(cells, "", Notes(), sign), errors="coerce").astype(float)
        numbers, value = parsed.iloc[:-1].dropna(), parsed.iloc[-1]
        if not pd.isna(value):
            computed = [float(getattr(numbers, name)())] if len(numbers) > 1 else []
            computed += [float(numbers.std(ddof=0))] if name == "std" else []
            digits = len(f"{value:.10f}".rstrip("0").partition(".")[2])
            agreements.append(bool(np.isclose(value, computed, 1e-9, 0.51 * 10.0**-digits).any()))
    return bool(agreements) and all(agreements)


def _all_numbers(column: pd.Series) -> bool:
    """Whether a column has cells, and all of them are numbers."""
    cells = column.dropna()
    return len(cells) > 0 and all(_is_number(plain_text(str(cell))) for cell in cells.unique().tolist())


def _is_number(text: str) -> bool:
    """Whether a text is a number, perhaps with signs, or a date."""
    return _NUMBER.fullmatch(text) is not None or DATE.match(text) is not None
