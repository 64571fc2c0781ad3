"""Reading of comma-separated files and of their numeric columns, with all faults reported at once.

A file is inspected before it is parsed: its type, encoding, separator, and unpacked size. Artefacts of
spreadsheets and other programs are skipped: lines without any value, and columns without name and values. The
index of the data frame is the line number in the file minus two, so that every fault is reported with the
first line in which it occurs.

Source: ours.
"""

import datetime
import gzip
import json
import re
import shlex
import warnings
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.files.schema import LARGEST, listed, meant

BYTES = 2 * 2**30
COLUMNS = 10_000
HEAD = 2**20
KINDS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook (.xlsx): unpack it, or save the sheet as 'CSV UTF-8 "
    "(comma delimited)'",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls): save the sheet as 'CSV UTF-8 (comma delimited)'",
    b"PAR1": "a Parquet file: write it as CSV",
    b"BZh": "packed with bzip2: unpack it, or pack it with gzip",
    b"\xfd7zXZ": "packed with xz: unpack it, or pack it with gzip",
    b"\x28\xb5\x2f\xfd": "packed with zstd: unpack it, or pack it with gzip",
    b"%PDF": "a PDF: export the table as CSV",
    b"SQLite format 3": "an SQLite data base: export the table as CSV",
    b"\x1f\x8b": "packed with gzip: name it .csv.gz",
}
# The beginning of a date as text.
DATE = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}(?!\d)|\s*\d{1,2}[./]\d{1,2}[./]\d{2,4}(?!\d)")
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


class TableError(ValueError):
    """A table that cannot be used; its message lists every fault."""


def table_file(path: str | Path | None, role: str = "path", faults: list[str] | None = None) -> pd.DataFrame:
    """Reads a comma-separated file.

    Args:
        path: A .csv or .csv.gz with a header row, at most 2 GiB unpacked.
        role: The name of the argument, for messages.
        faults: A list to which duplicate column names are appended instead of raising an error, so that they
            are reported with the other faults.

    Returns:
        The table. Lines and unnamed columns without any value are left out; the index is the line number
        minus two.

    Raises:
        TableError: if no file is given, there is no such file, it cannot be read as comma-separated UTF-8
            text, or two columns have the same name.
    """
    if path is None:
        raise TableError(f"no table is given: set {role}=table.csv, a comma-separated file with a header row")
    file = Path(path)
    try:
        if not file.is_file():
            raise TableError(
                f"there is no file {file}: check {role}=, which is relative to the current folder"
            )
        head, packed = _head(file)
        blank = _checked(file, head)
        header = _parsed(file, packed, header=None, nrows=1, dtype=str, skiprows=blank).iloc[0]
        if len(header) > COLUMNS:
            raise TableError(
                f"{file}: expected at most {COLUMNS} columns; got {len(header)}: is it the right table?"
            )
        frame = _parsed(file, packed, index_col=False, low_memory=False, skiprows=blank)
    except OSError as error:
        raise TableError(f"{file} cannot be read ({error.strerror or error})") from error
    found = _twice([None if pd.isna(name) else str(name) for name in header], frame)
    frame = _with_values(file, packed, blank, frame, header)
    if faults is not None:
        faults += found
    elif found:
        raise TableError(f"{file}: {'; '.join(found)}")
    return frame


def _head(file: Path) -> tuple[bytes, bool]:
    """The first bytes, unpacked, and whether the file is packed with gzip; checks the unpacked size."""
    with file.open("rb") as stream:
        head = stream.read(HEAD)
    if file.suffix != ".gz":
        if file.stat().st_size > BYTES:
            raise TableError(
                f"{file}: expected at most {BYTES // 2**30} GiB; it is larger: keep the columns that are "
                "needed"
            )
        return head, False
    if head[:2] != b"\x1f\x8b":
        raise TableError(f"{file} has the suffix .gz but is not packed with gzip: rename it to {file.stem}")
    size = 0
    try:
        with gzip.open(file) as stream:
            first = chunk = stream.read(HEAD)
            while chunk:
                size += len(chunk)
                if size > BYTES:
                    raise TableError(
                        f"{file}: expected at most {BYTES // 2**30} GiB when unpacked; it is larger: keep "
                        "the columns that are needed"
                    )
                chunk = stream.read(HEAD)
    except EOFError as error:
        raise TableError(f"{file} is an incomplete gzip archive: copy or download it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{file} is a damaged gzip archive ({error}): copy or download it again") from error
    return first, True


def _checked(file: Path, head: bytes) -> int:
    """The number of blank lines before the header; refuses a file that, by its first bytes, is not
    comma-separated UTF-8 text.
    """
    kind = next((kind for magic, kind in KINDS.items() if head.startswith(magic)), None)
    if kind is not None or head[257:262] == b"ustar":
        raise TableError(f"{file} is not comma-separated text but {kind or 'a tar archive: unpack it'}")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:2000]:
        wide = (
            "utf-16"
            if head[:2] in (b"\xff\xfe", b"\xfe\xff")
            else "utf-16-le"
            if head[1:2] == b"\0" == head[3:4]
            else "utf-16-be"
        )
        if wide == "utf-16-be" and not head[:1] == b"\0" == head[2:3]:
            raise TableError(f"{file} is not comma-separated text: it holds binary data")
        raise TableError(
            f"{file} is UTF-16, not UTF-8: save it as 'CSV UTF-8 (comma delimited)', or type\n  "
            f"{_rewritten(file, encoding=wide)}"
        )
    text = head.decode("utf-8-sig", errors="replace")
    lines = text.splitlines()
    blank = next((place for place, line in enumerate(lines) if line.strip()), None)
    if blank is None:
        raise TableError(
            f"{file} cannot be read as a comma-separated table: it is empty; expected .csv or .csv.gz with a "
            "header row"
        )
    header = re.sub(r'"[^"]*"', "", lines[blank])
    if "," not in header:
        other = max(SEPARATORS, key=header.count)
        if header.count(other):
            decimal = "," if any(re.search(r"\d,\d", line) for line in lines[blank + 1 : blank + 50]) else "."
            also = " and written with decimal commas" if decimal == "," else ""
            raise TableError(
                f"{file} is separated by {SEPARATORS[other]}{also}; expected commas and decimal points: save "
                "it as 'CSV UTF-8 (comma delimited)', "
                f"or type\n  {_rewritten(file, sep=other, decimal=decimal)}"
            )
    return blank


def _rewritten(file: Path, **reading: str) -> str:
    """A command that converts the file to commas, decimal points and UTF-8; pandas detects a separator that
    is not given.
    """
    given = {key: json.dumps(value) for key, value in reading.items()}
    options = ", ".join(
        f"{key}={value}"
        for key, value in (
            given if "sep" in given else {**given, "sep": "None", "engine": '"python"'}
        ).items()
    )
    name, target = (
        json.dumps(each, ensure_ascii=False) for each in (str(file), f"{file.name.split('.')[0]}_commas.csv")
    )
    return "python -c " + shlex.quote(
        f"import pandas as pd; pd.read_csv({name}, {options}).to_csv({target}, index=False)"
    )


def _parsed(file: Path, packed: bool, **options: Any) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            reading: dict[str, Any] = {
                "skipinitialspace": True,
                "skip_blank_lines": False,
                "encoding": "utf-8-sig",
                "compression": "gzip" if packed else None,
            }
            made: pd.DataFrame = pd.read_csv(file, **reading, **options)
    except UnicodeDecodeError as error:
        raise TableError(
            f"{file} cannot be read as a comma-separated table: it is not UTF-8 (byte "
            f"0x{error.object[error.start]:02x}), as spreadsheets save it: save "
            f"it as 'CSV UTF-8 (comma delimited)', or type\n  {_rewritten(file, encoding='cp1252')}"
        ) from error
    except pd.errors.ParserWarning as error:
        raise TableError(
            f"{file}: rows have more fields than the header: name every column, put strings with commas in "
            "quotes, and write decimal points"
        ) from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, OverflowError) as error:
        raise TableError(
            f"{file} cannot be read as a comma-separated table ({' '.join(str(error).split())}): expected "
            ".csv or .csv.gz with a header row"
        ) from error
    return made


def _twice(header: list[str | None], frame: pd.DataFrame) -> list[str]:
    """Faults of duplicate column names, and of several unnamed columns with values."""
    named = [name for name in header if name is not None]
    twice = sorted({name for name in named if named.count(name) > 1}) if len(set(named)) < len(named) else []
    found = [f"several columns are called {', '.join(twice)}: keep one of each"] if twice else []
    nameless = [
        place
        for place, name in enumerate(header)
        if name is None and place < frame.shape[1] and frame.iloc[:, place].notna().any()
    ]
    if len(nameless) > 1:
        found.append(
            f"columns {', '.join(str(place + 1) for place in nameless)} have values and no name: name them, "
            "or delete them"
        )
    return found


def _with_values(
    file: Path, packed: bool, blank: int, frame: pd.DataFrame, header: pd.Series
) -> pd.DataFrame:
    """The table without lines and unnamed columns that hold no value."""
    frame.index = pd.RangeIndex(blank, blank + len(frame))
    # Only lines with an empty first cell can be entirely empty.
    some = np.flatnonzero(frame.iloc[:, 0].isna().to_numpy()) if frame.shape[1] else np.empty(0, int)
    blank_rows = some[frame.iloc[some].isna().all(axis=1).to_numpy()] if len(some) else some
    if len(blank_rows):
        kept = frame.drop(frame.index[blank_rows])
        # Read again without these lines, so that whole numbers stay whole.
        without = [*range(blank), *(blank + 1 + blank_rows).tolist()]
        again = _parsed(file, packed, index_col=False, low_memory=False, skiprows=without)
        if len(again) == len(kept):
            again.index = kept.index
            frame = again
        else:
            frame = kept
    empty = [
        place
        for place, name in enumerate(header)
        if pd.isna(name) and place < frame.shape[1] and frame.iloc[:, place].isna().all()
    ]
    return frame.drop(columns=frame.columns[empty]) if empty else frame


__all__ = ["number_columns", "number_faults", "table_file"]


def number_columns(
    frame: pd.DataFrame,
    names: Sequence[str],
    source: str,
    min_rows: int = 1,
    varying: bool = False,
    keep: Iterable[int] | None = None,
) -> Tensor:
    """The named columns as float64, (n, len(names)).

    Args:
        frame: The table.
        names: The columns.
        source: The table's name in messages.
        min_rows: The minimum number of rows.
        varying: Refuses constant columns as well.
        keep: Positions of the rows to use; None for all.

    Raises:
        TableError: if a column is missing, not numeric, has values that are missing, infinite or beyond
            1e150, or is constant, or there are too few rows; all faults are listed.
    """
    rows = frame if keep is None else frame.iloc[list(keep)]
    if faults := number_faults(rows, names, min_rows, varying):
        raise TableError(listed(source, faults))
    found = [_numbers(rows[name]) for name in names]
    return torch.from_numpy(np.stack(found, -1) if found else np.empty((len(rows), 0)))


def number_faults(
    rows: pd.DataFrame, names: Sequence[str], min_rows: int = 1, varying: bool = False
) -> list[str]:
    """The faults of the named columns.

    Args:
        rows: The table.
        names: The columns.
        min_rows: The minimum number of rows.
        varying: Whether a constant column is a fault.
    """
    faults = [
        f"no column {name!r}; {meant(name, [str(each) for each in rows.columns])}"
        for name in names
        if name not in rows.columns
    ]
    if len(rows) < min_rows:
        faults.append(f"expected at least {min_rows} rows; got {len(rows)}: no model can be fitted to so few")
    for name in [name for name in names if name in rows.columns]:
        numbers = _numbers(rows[name])
        text = np.isnan(numbers) & rows[name].notna().to_numpy()
        bad = ~np.isfinite(numbers) & ~text
        large = np.isfinite(numbers) & (np.abs(numbers) > LARGEST)
        if text.any():
            cell = rows[name][text].iloc[0]
            faults.append(
                f"{name}: expected numbers; got {str(cell)[:60]!r}{_at(rows, text)}: {_as_number(cell)}"
            )
        if bad.any():
            faults.append(
                f"{name}: {int(bad.sum())} of {len(rows)} values are missing or infinite{_at(rows, bad)}: "
                "drop or impute those rows"
            )
        if large.any():
            first = numbers[int(large.argmax())]
            faults.append(
                f"{name}: {first:g}{_at(rows, large)} is too large to compute with: expected values up to "
                f"{LARGEST:g}, so use another unit"
            )
        if varying and len(rows) > 1 and not text.any() and not bad.any():
            if (numbers == numbers[0]).all():
                faults.append(
                    f"{name}: all {len(rows)} values are {numbers[0]:g}: a constant carries no information, "
                    "take the variable out"
                )
            elif np.ptp(numbers) < 1 / LARGEST:
                faults.append(
                    f"{name}: all {len(rows)} values lie within {np.ptp(numbers):g}, too close to compute "
                    "with: use another unit"
                )
    return faults


def _as_number(cell: object) -> str:
    """How a cell that is not a number may be written as one."""
    if isinstance(cell, datetime.date | datetime.timedelta | np.datetime64 | pd.Period) or DATE.match(
        str(cell)
    ):
        return "write dates and durations as numbers, such as days since the first, or leave the variable out"
    if isinstance(cell, complex):
        return "split complex numbers into two columns, or leave the variable out"
    if re.match(r"\s*[+-]?\d+,\d+\s*\Z", str(cell)):
        return "write a decimal point"
    return "encode strings as numbers, or leave the variable out"


def _numbers(column: pd.Series) -> np.ndarray:
    """A column as float64, NaN where a cell is not a number; truth values are 1 and 0."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if isinstance(column.dtype, pd.PeriodDtype) or column.dtype.kind in "mMc":
        # pandas would count microseconds, also for a missing date, and drop imaginary parts.
        return np.full(len(column), np.nan)
    try:
        numbers = pd.to_numeric(column, errors="coerce")
    except OverflowError:  # a whole number of hundreds of digits
        numbers = pd.to_numeric(
            column.map(lambda cell: np.inf if isinstance(cell, int) and abs(cell) > 10**300 else cell),
            errors="coerce",
        )
    return np.asarray(numbers.to_numpy(np.float64, na_value=np.nan))


def _at(rows: pd.DataFrame, where: np.ndarray) -> str:
    """The first line of the file with a fault; the header is line 1."""
    return f" in line {int(rows.index[int(where.argmax())]) + 2}"
