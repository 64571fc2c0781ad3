"""Data frames that were read from outside: limits, numbering of the rows, and faults of the header.

The index of a frame is the line of the file minus two (the header of a plain file is line 1), so that every
fault is reported with the line, or the row of the sheet, in which it occurs. Lines without any value are left
out, as are columns without name and values: spreadsheets leave both. What is no number and no text, such as a
date, is kept as text, so that it is reported and never taken for a number. Different cells stay different: a
long text ends in its SHA-256.
"""

import hashlib
import math
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.cell_values import EMPTY, Notes, column_of, plain_text, unit_of
from rehearsal_torch.data.tables.header_and_footer import (
    are_remarks,
    footers,
    is_data,
    joined_header,
    units_below,
)
from rehearsal_torch.files.bounded_yaml import repeated
from rehearsal_torch.files.redaction import InputError, beginning
from rehearsal_torch.files.schema import is_number

BYTES = 2 * 2**30
COLUMNS = 10_000
CELLS = 200_000_000
# Whole numbers beyond it are infinite.
HUGE = 10**300
# The longest text of an object in a cell, and the length of its beginning where it is cut.
LONGEST, BEGINNING = 200, 60
# Objects as text, to twenty levels, with sets in order; repr() fails at a thousand levels.
_REPR = reprlib.Repr()
_REPR.maxlevel = 20
_REPR.maxtuple = _REPR.maxlist = _REPR.maxarray = _REPR.maxdict = _REPR.maxset = CELLS
_REPR.maxfrozenset = _REPR.maxdeque = CELLS
_REPR.maxstring = _REPR.maxlong = _REPR.maxother = 2 * BYTES
EXTRA = "pip install 'rehearsal-torch[files]'"
NO_DATA_BASE = (
    "data bases and addresses are not read: in a script of your own, save what the query gives, "
    "pandas.read_sql(query, connection).to_parquet('table.parquet'), and name that file"
)


class TableError(InputError):
    """A table that cannot be used; its message lists every fault."""


@dataclass(frozen=True)
class ReadTable:
    """A table from outside.

    Attributes:
        frame: The rows; the index is the line minus two.
        where: The name of the table in messages.
        notes: What the reader decided by itself (separator, decimal sign, sheet), one sentence each.
        signs: Separator and decimal sign of a text, whose `file` is kept; those of .csv for everything else.
        listed: Of a list in a problem file: the line of each of its members there; empty for everything else.
        units: The unit of each column that says one, in its name, ``Temp. (°C)``, or in its cells.
    """

    frame: pd.DataFrame
    where: str
    notes: tuple[str, ...] = ()
    signs: tuple[str, str] = (",", ".")
    file: Path | None = None
    listed: tuple[int, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)

    def at(self, index: int) -> str:
        """Where a row of `frame` stands: "line 7", or "case 2 (line 10)" of a list in a problem file, whose
        index is its number minus two.
        """
        return f"case {index + 2} (line {self.listed[index + 1]})" if self.listed else line_words(index)


def line_words(index: int) -> str:
    """Where a row of a file stands, in words."""
    return f"line {index + 2}"


def bounded(where: str | Path, size: int, cells: int) -> None:
    """Refuses a table of more than 2 GiB or 200 million cells before it is made, of whatever kind of file."""
    if size > BYTES or cells > CELLS:
        most = f"{BYTES // 2**30} GiB" if BYTES % 2**30 == 0 else f"{BYTES:,} bytes"
        expected = f"expected at most {most} when unpacked, and {CELLS:,} cells"
        raise TableError(f"{where}: {expected}; there are more: keep the columns that are needed")


def few_columns(count: int, where: str) -> None:
    """Refuses a table with more than 10,000 columns."""
    if count > COLUMNS:
        raise TableError(f"{where}: expected at most {COLUMNS} columns; got {count}: is it the right table?")


def names_of(header: Sequence[Any]) -> list[str]:
    """The names of columns: the cells of the header, made unique."""
    names, occurrences = list[str](), Counter[str]()
    for column, cell in enumerate(header):
        name = ("" if cell is None else plain_text(str(cell))) or f"Unnamed: {column}"
        names.append(name if name not in occurrences else f"{name}.{occurrences[name]}")
        occurrences[name] += 1
    return names


def titles_note(where: str, above: int, titled: bool) -> list[str]:
    """The note on titles above the header; none without titles."""
    lines = "1 line above it is" if above == 1 else f"{above} lines above it are"
    return [f"of {where}, the header is line {above + 1}; {lines} left out"] if titled else []


def header_faults(header: Sequence[str | None], frame: pd.DataFrame) -> list[str]:
    """Faults of duplicate column names, and of unnamed columns with values but one in front, the index."""
    duplicates = sorted(repeated(name for name in header if name is not None))
    faults = [f"several columns are called {', '.join(duplicates)}: keep one of each"] if duplicates else []
    has_values = frame.notna().any().to_numpy()
    unnamed = [str(column + 1) for column, name in enumerate(header) if name is None and has_values[column]]
    if unnamed not in ([], ["1"]):
        what = "columns" if len(unnamed) > 1 else "column"
        faults.append(f"values without a name in {what} {', '.join(unnamed)}: name each, or delete it")
    return faults


def raise_or_collect(found: Sequence[str], where: str, faults: list[str] | None) -> None:
    """Appends faults to those of the caller, or raises them if there is no list."""
    if faults is not None:
        faults += found
    elif found:
        raise TableError(f"{where}: {'; '.join(found)}")


def table_of(
    cells: pd.DataFrame, header: Sequence[Any], where: str, faults: list[str] | None = None, sign: str = "."
) -> ReadTable:
    """The table of the cells below a header, as many columns as it has cells, with a note for each kind of
    cells that are read otherwise than they are written. The index is the line minus two.
    """
    frame, empty_words = _split_empty_words(cells.set_axis(range(cells.shape[1]), axis=1))
    frame = frame.dropna(how="all")
    joined, rows, described = joined_header(header, frame)
    names = [name or None for name in joined]
    notes, reading_notes = list[str](), Notes()
    if rows:
        what = f"its header goes on to {line_words(int(frame.index[rows - 1]))}"
        notes.append(f"of {where}, {what} ({beginning(', '.join(filter(None, names)), 60)})")
        frame = frame.iloc[rows:]
    # A column of numbers repeats no name.
    texts = frame[frame[0] == joined[0]] if all(dtype.kind == "O" for dtype in frame.dtypes) else frame[:0]
    if len(repeats := texts.index[(texts == joined).all(axis=1)]):
        notes.append(f"of {where}, the header stands again in {line_words(int(repeats[0]))}, and is left out")
        frame = frame.drop(index=repeats)
    if is_data(joined, frame):
        got = ", ".join(repr(beginning(name, 20)) for name in joined[:3])
        remedy = "write a row of names above it; a name that is a number needs a letter, such as y2020"
        raise TableError(
            f"{where}: expected the names of columns in the first row; got data ({got}): {remedy}"
        )
    if remarks := [column for column, name in enumerate(names) if not name and are_remarks(frame, column)]:
        line = line_words(int(frame[remarks].dropna(how="all").index[0]))
        notes.append(f"of {where}, remarks without a column name, first in {line}, are left out")
        frame = frame.copy(deep=False)
        frame[remarks] = None
    table_faults = header_faults(names, frame)
    if described:
        line = line_words(int(frame.index[0]))
        remedy = "delete it if it describes the columns, or give each column one name in one line"
        table_faults.append(f"{line} has texts alone, above numbers: {remedy}")
    if count := footers(frame, sign):
        frame, footer = frame.iloc[:-count], frame.iloc[-count:]
        first, last = int(footer.index[0]) + 2, int(footer.index[-1]) + 2
        lines = f"line {first} is" if count == 1 else f"lines {first} to {last} are"
        label = beginning(plain_text(str(footer.iloc[0].dropna().iloc[0])), 120)
        notes.append(f"of {where}, {lines} no row of the table and left out ({label!r})")
    columns, units = dict[str, pd.Series](), dict[str, str]()
    if stated_units := units_below(frame):
        what = f"{line_words(int(frame.index[0]))} has units and is no row of the table"
        notes.append(f"of {where}, {what} ({', '.join(stated_units.values())[:60]})")
        frame = frame.iloc[1:]
    for column, name in enumerate(names_of(joined)):
        if names[column] is None and not frame[column].notna().any():
            continue
        columns[name] = column_of(frame[column], name, reading_notes, sign)
        if columns[name].dtype.kind == "O" and (words := empty_words[column]):
            reading_notes.add("word", name, words[0], len(words))
        if unit := unit_of(name) or stated_units.get(column, "") or reading_notes.units.get(name, ""):
            units[name] = unit
        if sign == ",":
            table_faults += _mixed_sign_faults(name, frame[column], columns[name])
    raise_or_collect(table_faults, where, faults)
    notes += [f"of {where}, {sentence}" for sentence in reading_notes.sentences()]
    frame = pd.DataFrame(columns, index=frame.index, copy=False)
    return ReadTable(frame, where, tuple(notes), units=units)


def _split_empty_words(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[list[str]]]:
    """The cells without words for an empty one, such as None and NA; and these, by column."""
    columns, words = dict[int, pd.Series](), list[list[str]]()
    for column in range(frame.shape[1]):
        values = frame[column]
        is_word = values.isin(EMPTY) if values.dtype.kind not in "biufc" else np.zeros(len(values), bool)
        words.append([str(word) for word in values[is_word] if str(word).strip()])
        columns[column] = values.mask(is_word, None) if is_word.any() else values
    return pd.DataFrame(columns, index=frame.index, copy=False), words


# Numbers with a point, between thousands or before decimals; dates and versions have points elsewhere.
_POINTS = r"[+-]?(?:\d*\.\d+|\d{1,3}(?:\.\d{3})+|\d+(?:\.\d+)+,\d+)"
_COMMAS = r"[+-]?\d+(?:,\d+(?:[eE][+-]?\d+)?)?"


def _mixed_sign_faults(name: str, cells: pd.Series, column: pd.Series) -> list[str]:
    """The fault of a column of numbers with decimal commas in which some have a point that may be another
    decimal sign. Dates and versions, such as 01.02.2024, are texts.
    """
    if column.dtype.kind in "biufc":
        return []
    texts = cells.dropna().astype(str).str.strip()
    with_point = texts.str.fullmatch(_POINTS).to_numpy(dtype=bool)
    if not with_point.any() or not texts[~with_point].str.fullmatch(_COMMAS).all():
        return []
    first = int(with_point.argmax())
    got = f"{texts.iloc[first]!r} in {line_words(int(texts.index[first]))}: write it as the others"
    return [f"{name}: expected decimal commas, without signs between thousands; got {got}"]


def frame_of(
    header: Sequence[Any],
    rows: Iterable[tuple[int, Sequence[Any]]],
    where: str,
    faults: list[str] | None = None,
) -> ReadTable:
    """The `table_of` rows of a sheet, each with its index; where they go on behind the header, it has no
    names.
    """
    width = len(header)
    table_rows, indices, letters = list[list[Any]](), list[int](), 0
    for index, row in rows:
        cells = [plain_cell(cell) for cell in row]
        width = max(width, *(column + 1 for column, cell in enumerate(cells) if cell is not None), 0)
        few_columns(width, where)
        letters += sum(len(cell) for cell in cells if isinstance(cell, str))
        bounded(where, letters, (len(table_rows) + 1) * width)
        table_rows.append(cells)
        indices.append(index)
    columns = {
        column: _column_values([row[column] if column < len(row) else None for row in table_rows])
        for column in range(width)
    }
    frame = pd.DataFrame(columns, index=pd.Index(indices, dtype=np.int64))
    return table_of(frame, [*header, *[None] * (width - len(header))], where, faults)


def _column_values(cells: list[Any]) -> Any:
    """The cells of a column: numbers where there is nothing else, and texts as a file would have them."""
    if not any(isinstance(cell, str | bool | np.bool_) for cell in cells):
        return np.array([math.nan if cell is None else cell for cell in cells], dtype=np.float64)
    texts = [
        "" if cell is None else f"{cell:.15g}" if isinstance(cell, float) else str(cell) for cell in cells
    ]
    return np.array([text or None for text in texts], dtype=object)


def plain_cell(cell: Any) -> Any:
    """A cell as a number, a truth value, text or None; anything else becomes text that is no number: bytes
    such as b"3" and tensors were never written as numbers.
    """
    if isinstance(cell, str):
        text = cell.strip()
        return None if not text or text == "#N/A" else text
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return None
    if isinstance(cell, bool | int | float | np.number | np.bool_):
        # Beyond all floats; Python may refuse to write such a number.
        return (-math.inf if cell < 0 else math.inf) if isinstance(cell, int) and abs(cell) > HUGE else cell
    if isinstance(cell, Decimal):
        return math.nan if cell.is_nan() else float(cell)
    if isinstance(cell, date | time):
        return cell.isoformat().removesuffix("T00:00:00")
    if isinstance(cell, timedelta):
        return str(cell)
    text = str(cell) if isinstance(cell, UUID | PurePath | Enum) else ""
    if not text or is_number(text):
        # NumPy leaves out the middle of an array.
        text = f"array({cell.tolist()!r})" if isinstance(cell, np.ndarray) else _REPR.repr(cell)
    content = text.encode("utf-8", "backslashreplace")
    if len(text) > LONGEST:
        return f"{text[:BEGINNING]}... {hashlib.sha256(content).hexdigest()}"
    return content.decode()
