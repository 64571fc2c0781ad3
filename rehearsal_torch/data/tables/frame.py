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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from rehearsal_torch.files.addresses import InputError
from rehearsal_torch.files.plain import repeated
from rehearsal_torch.files.schema import is_number

BYTES = 2 * 2**30
COLUMNS = 10_000
CELLS = 200_000_000
# The largest whole number that is read.
MOST = 10**300
# The longest text that a cell without a text of its own becomes, and its beginning where it is cut.
LONGEST, BEGINNING = 200, 60
# In order, as those of sets, to twenty levels; Python alone would fail at a thousand.
_WHOLE = reprlib.Repr()
_WHOLE.maxlevel = 20
_WHOLE.maxtuple = _WHOLE.maxlist = _WHOLE.maxarray = _WHOLE.maxdict = _WHOLE.maxset = CELLS
_WHOLE.maxfrozenset = _WHOLE.maxdeque = CELLS
_WHOLE.maxstring = _WHOLE.maxlong = _WHOLE.maxother = 2 * BYTES
EXTRA = "pip install 'rehearsal-torch[files]'"
NO_DATA_BASE = (
    "data bases and addresses are not read: in a script of your own, save what the query gives, "
    "pandas.read_sql(query, connection).to_parquet('table.parquet'), and name that file"
)


class TableError(InputError):
    """A table that cannot be used; its message lists every fault."""


@dataclass(frozen=True)
class ReadTable:
    """A table that was read.

    Attributes:
        frame: Its rows; the index is the line minus two.
        where: Its name in messages.
        notes: What the reader decided by itself (separator, decimal sign, sheet), one sentence each.
        signs: Separator and decimal sign of a text; those of .csv for everything else.
        file: The file of text that it was read from; None for everything else.
        listed: Of a list in a problem file: the line of each of its members there; empty for everything else.
    """

    frame: pd.DataFrame
    where: str
    notes: tuple[str, ...] = ()
    signs: tuple[str, str] = (",", ".")
    file: Path | None = None
    listed: tuple[int, ...] = ()

    def at(self, index: int) -> str:
        """Where a row of `frame` stands: "line 7", or "case 2 (line 10)" of a list in a problem file, whose
        index is its number minus two.
        """
        if not self.listed:
            return line_words(index)
        return f"case {index + 2} (line {self.listed[index + 1]})"


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


def header_faults(header: Sequence[str | None], frame: pd.DataFrame) -> list[str]:
    """Faults of duplicate column names, and of several unnamed columns with values."""
    twice = sorted(repeated(name for name in header if name is not None))
    found = [f"several columns are called {', '.join(twice)}: keep one of each"] if twice else []
    nameless = [str(place + 1) for place, some in _unnamed(header, frame).items() if some]
    if len(nameless) > 1:
        found.append(f"columns {', '.join(nameless)} have values and no name: name them, or delete them")
    return found


def without_empty_columns(frame: pd.DataFrame, header: Sequence[str | None]) -> pd.DataFrame:
    """The table without unnamed columns that hold no value."""
    empty = [place for place, some in _unnamed(header, frame).items() if not some]
    return frame.drop(columns=frame.columns[empty]) if empty else frame


def _unnamed(header: Sequence[str | None], frame: pd.DataFrame) -> dict[int, bool]:
    """The places of columns without a name, and whether they have values."""
    places = [place for place, name in enumerate(header[: frame.shape[1]]) if name is None]
    return {place: bool(frame.iloc[:, place].notna().any()) for place in places}


def refused_or_collected(found: Sequence[str], where: str, faults: list[str] | None) -> None:
    """Appends faults to those of the caller, or raises them if there is no list."""
    if faults is not None:
        faults += found
    elif found:
        raise TableError(f"{where}: {'; '.join(found)}")


def frame_of(
    header: Sequence[Any],
    rows: Iterable[tuple[int, Sequence[Any]]],
    where: str,
    faults: list[str] | None = None,
) -> pd.DataFrame:
    """A data frame of the cells of a sheet.

    Args:
        header: The names; None, or text without a letter, for a column without a name.
        rows: The index of each row, and its cells, up to as many as the header has.
    """
    names = [None if cell is None or not str(cell).strip() else str(cell).strip() for cell in header]
    few_columns(len(names), where)
    kept, places, letters = list[list[Any]](), list[int](), 0
    for place, row in rows:
        cells = [plain_cell(cell) for cell in row]
        if all(cell is None for cell in cells):
            continue
        if any(cell is not None for cell in cells[len(names) :]):
            words = "has values beyond the last column with a name: name every column"
            raise TableError(f"{where}: line {place + 2} {words}")
        letters += sum(len(cell) for cell in cells if isinstance(cell, str))
        bounded(where, letters, (len(kept) + 1) * len(names))
        kept.append([*cells[: len(names)], *[None] * (len(names) - len(cells))])
        places.append(place)
    index = pd.Index(places, dtype=np.int64)
    frame = pd.DataFrame(kept, columns=range(len(names)), index=index, dtype=object).infer_objects()
    refused_or_collected(header_faults(names, frame), where, faults)
    columns = [f"Unnamed: {place}" if name is None else name for place, name in enumerate(names)]
    seen: dict[str, int] = {}
    for place, name in enumerate(columns):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            columns[place] = f"{name}.{seen[name] - 1}"
    frame.columns = pd.Index(columns)
    return without_empty_columns(frame, names)


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
        # A whole number beyond all floats, which Python may not even write.
        return (-math.inf if cell < 0 else math.inf) if isinstance(cell, int) and abs(cell) > MOST else cell
    if isinstance(cell, Decimal):
        return math.nan if cell.is_nan() else float(cell)
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return str(cell)
    text = str(cell) if isinstance(cell, UUID | PurePath | Enum) else ""
    if not text or is_number(text):
        # NumPy leaves out the middle of an array.
        text = f"array({cell.tolist()!r})" if isinstance(cell, np.ndarray) else _WHOLE.repr(cell)
    content = text.encode("utf-8", "backslashreplace")
    if len(text) > LONGEST:
        return f"{text[:BEGINNING]}... {hashlib.sha256(content).hexdigest()}"
    return content.decode()
