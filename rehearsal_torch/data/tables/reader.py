"""Reading of tables from files, and of their numeric columns, with all faults reported at once.

    .csv .tsv .txt, and .gz of them     separated text; separator and decimal sign are detected
    .xlsx .xlsm                         a sheet of an Excel workbook       (extra `files`)
    .parquet                            also a folder of such files        (extra `files`)

What the reader decides by itself (separator, decimal sign, sheet) is noted.
"""

import datetime
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.cell_values import DATE, LIMIT
from rehearsal_torch.data.tables.csv_file import read_separated
from rehearsal_torch.data.tables.excel import WORKBOOKS, read_workbook
from rehearsal_torch.data.tables.header_checks import HUGE, NO_DATA_BASE, ReadTable, TableError, line_words
from rehearsal_torch.data.tables.parquet import Needed, read_parquet
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import LARGEST, Fault, listed, meant

__all__ = ["ReadTable", "TableError", "TableWarning", "number_columns", "read_table", "table_file"]
# The number of rows that are looked at for a column of two texts.
TEXT_ROWS = 10_000
# The beginning of bytes, tensors, arrays, lists and other objects as text.
OBJECT = re.compile(r"b['\"]|(tensor|array|bytearray|np\.bytes_|Fraction)\(|[\[({<]")
DIGITS = re.compile(r"\s*[+-]?[.\d]")
WITH_UNIT = re.compile(r"\s*[+-]?\d+(?:[.,]\d+)?(?:\s*[%$€£]|\s+[^\W\d]{1,5})\s*\Z|\s*[$€£]\s*\d")
COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*\Z")
ENCODE = "encode strings as numbers, or leave the variable out"
# How cells of each form may be written as numbers, the first that fits.
REMEDIES = {
    DATE: "write dates and durations as numbers, such as days since the first, or leave the variable out",
    LIMIT: "a limit says that the value lies beyond it: where few values do, write the limit itself, or leave"
    " the variable out",
    OBJECT: "write a plain number into every cell (such as .item() of a tensor), or leave the variable out",
    COMMA: "write a decimal point, or leave out signs between thousands",
    WITH_UNIT: "write all of its numbers without a unit",
}


class TableWarning(UserWarning):
    """What the reader of a table decided by itself."""


def table_file(path: str | Path | None, needed: Needed | None = None) -> pd.DataFrame:
    """The rows of `read_table`, with a TableWarning for each note."""
    table = read_table(path, needed=needed)
    for note in table.notes:
        warnings.warn(note, TableWarning, stacklevel=2)
    return table.frame


def read_table(
    path: str | Path | None,
    role: str = "path",
    faults: list[str] | None = None,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    needed: Needed | None = None,
) -> ReadTable:
    """Reads a table from a file of at most 2 GiB unpacked; its ending decides how. Of text, separator (, ; |
    or the tab) and decimal sign may be given; of a workbook, the sheet; of Parquet, which columns to read.
    `faults` takes faults of the header; all others, and a setting for another kind of file, are a TableError.
    """
    if path is None:
        raise TableError(f"no table is given: set {role}=table.csv, a comma-separated file with a header row")
    if "://" in str(path):
        raise TableError(f"{role}: {NO_DATA_BASE}")
    file = Path(path)
    try:
        folder = file.is_dir() and any(path.suffix.lower() == ".parquet" for path in file.iterdir())
        if not file.is_file() and not folder:
            remedy = f"check {role}=, which is relative to the current folder"
            raise TableError(f"there is no file {file}: {remedy}")
        ending = file.suffix.lower()
        if sheet is not None and ending not in WORKBOOKS:
            raise TableError(f"{file} is no workbook: leave sheet out")
        if ending in (".feather", ".arrow"):
            raise TableError(f"{file} is a Feather file, which is not read: write it as Parquet or CSV")
        if (separator is not None or decimal is not None) and ending in (*WORKBOOKS, ".parquet"):
            raise TableError(f"{file} is no text file: leave separator and decimal out")
        if ending in WORKBOOKS:
            return read_workbook(file, sheet, faults)
        if ending == ".parquet" or folder:
            return read_parquet(file, faults, needed)
        return read_separated(file, separator, decimal, faults)
    except OSError as error:
        raise TableError(f"{file} cannot be read ({error.strerror or error})") from error


def number_columns(
    frame: pd.DataFrame,
    names: Sequence[str],
    source: str,
    min_rows: int = 1,
    varying: bool = False,
    keep: Iterable[int] | None = None,
) -> np.ndarray:
    """The named columns as float64, (n, len(names)); all `number_faults` as a TableError."""
    rows = frame if keep is None else frame.iloc[list(keep)]
    if faults := number_faults(rows, names, min_rows, varying):
        raise TableError(listed(source, faults))
    columns = [numbers_of(rows[name]) for name in names]
    return np.stack(columns, -1) if columns else np.empty((len(rows), 0))


def number_faults(
    rows: pd.DataFrame,
    names: Sequence[str],
    min_rows: int = 1,
    varying: bool = False,
    at: Callable[[int], str] = line_words,
    two_texts: str = "write 0 and 1",
) -> list[Fault]:
    """The faults of the named columns, each at its column: it is missing, not numeric, has values that are
    missing, infinite or beyond 1e150, or is constant though it should be `varying`; or there are too few
    rows.
    """

    def line(mask: np.ndarray) -> str:
        return at(int(rows.index[int(mask.argmax())]))

    columns = [str(column) for column in rows.columns]
    unknown = [name for name in names if name not in rows.columns]
    faults = [Fault("", f"no column {name!r}; {meant(name, columns)}", "unknown") for name in unknown]
    if len(rows) < min_rows:
        got = f"got {len(rows)}: no model can be fitted to so few"
        faults.append(Fault("", f"expected at least {min_rows} rows; {got}"))
    for name in [name for name in names if name in rows.columns]:
        numbers = numbers_of(rows[name])
        text = np.isnan(numbers) & rows[name].notna().to_numpy()
        missing = ~np.isfinite(numbers) & ~text
        large = np.isfinite(numbers) & (np.abs(numbers) > LARGEST)
        if text.any():
            cell = rows[name][text].iloc[0]
            two = _two_texts(rows[name])
            remedy = f"it has two values, {two[0]!r} and {two[1]!r}: {two_texts}" if two else as_number(cell)
            got = f"got {beginning(str(cell), 60)!r} in {line(text)}: {remedy}"
            encodable = bool(two) or remedy == ENCODE
            faults.append(Fault(name, f"expected numbers; {got}", "texts" if encodable else ""))
        if missing.any():
            got = f"{int(missing.sum())} of {len(rows)} values are missing or infinite in {line(missing)}"
            faults.append(Fault(name, f"{got}: drop or impute those rows"))
        if large.any():
            got = f"{numbers[int(large.argmax())]:g} in {line(large)} is too large to compute with"
            faults.append(Fault(name, f"{got}: expected values up to {LARGEST:g}, so use another unit"))
        if varying and len(rows) > 1 and not text.any() and not missing.any():
            if (numbers == numbers[0]).all():
                remedy = "a constant carries no information, take the variable out"
                faults.append(Fault(name, f"all {len(rows)} values are {numbers[0]:g}: {remedy}"))
            elif np.ptp(numbers) < 1 / LARGEST:
                got = f"all {len(rows)} values lie within {np.ptp(numbers):g}, too close to compute with"
                faults.append(Fault(name, f"{got}: use another unit"))
    return faults


def _two_texts(column: pd.Series) -> list[str]:
    """The two texts of a column that has two; empty for other columns."""
    cells = column.dropna().head(TEXT_ROWS).tolist()
    texts = sorted({beginning(cell, 30) for cell in cells if isinstance(cell, str)})
    if len(texts) != 2 or not all(isinstance(cell, str) for cell in cells):
        return []
    numeric = any(pattern.match(cell) for pattern in (DATE, OBJECT, DIGITS) for cell in texts)
    return [] if numeric else texts


def as_number(cell: object) -> str:
    """How a cell that is not a number may be written as one."""
    if isinstance(cell, datetime.date | datetime.timedelta | np.datetime64 | pd.Period):
        return REMEDIES[DATE]
    if isinstance(cell, complex):
        return "split complex numbers into two columns, or leave the variable out"
    return next((remedy for pattern, remedy in REMEDIES.items() if pattern.match(str(cell))), ENCODE)


def misspelt_number(text: str) -> bool:
    """Whether a text is a date, or a number with a unit or a decimal comma."""
    return any(pattern.match(text) is not None for pattern in (DATE, WITH_UNIT, COMMA))


def numbers_of(column: pd.Series) -> np.ndarray:
    """A column as float64, NaN where a cell is not a number; truth values are 1 and 0."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if isinstance(column.dtype, pd.PeriodDtype) or column.dtype.kind in "mMc":
        # pandas would count microseconds, also for a missing date, and drop imaginary parts.
        return np.full(len(column), np.nan)
    try:
        numbers = pd.to_numeric(column, errors="coerce")
    except OverflowError:  # a whole number of hundreds of digits
        column = column.map(lambda cell: np.inf if isinstance(cell, int) and abs(cell) > HUGE else cell)
        numbers = pd.to_numeric(column, errors="coerce")
    return np.asarray(numbers.to_numpy(np.float64, na_value=np.nan))


def are_whole(numbers: np.ndarray) -> bool:
    """Whether all numbers are finite and whole."""
    return bool(np.isfinite(numbers).all() and (numbers == np.round(numbers)).all())
