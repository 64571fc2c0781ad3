"""Excel workbooks (.xlsx, .xlsm): one sheet as a table, with its numbers as the workbook holds them.

The header is the first row with a value; lines in messages are rows of the sheet. Formulas count with the
values that the spreadsheet last computed. Dates are text, and so refused where numbers are expected. Cells
with an error, such as #DIV/0!, are text too; #N/A is a missing value.

Source: ECMA-376 for the format, read by openpyxl.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile, ZipFile

import pandas as pd

from rehearsal_torch.data.tables.frame import BYTES, EXTRA, ReadTable, TableError, frame_of
from rehearsal_torch.files.schema import meant

WORKBOOKS = (".xlsx", ".xlsm")
# What the standard library and openpyxl raise where the parts of a workbook are not what they should be.
DAMAGED = (
    ArithmeticError,
    AttributeError,
    BadZipFile,
    EOFError,
    LookupError,
    NotImplementedError,
    ParseError,
    RuntimeError,
    TypeError,
    ValueError,
    zlib.error,
)


def read_workbook(file: Path, sheet: str | None = None, faults: list[str] | None = None) -> ReadTable:
    """Reads a sheet of an Excel workbook.

    Args:
        file: The workbook, at most 2 GiB unpacked.
        sheet: The sheet's name; None for the first.
        faults: Collects faults of the header instead of raising for them.

    Raises:
        TableError: if openpyxl is not installed, the file is no workbook, it has no such sheet, or the sheet
            is empty.
        OSError: if the file cannot be read.
    """
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ModuleNotFoundError as error:
        raise TableError(
            f"{file} is an Excel workbook, and openpyxl, which reads it, is not installed: type {EXTRA}, or "
            "save the sheet as 'CSV UTF-8 (comma delimited)'"
        ) from error
    try:
        # Opened here, so that it is closed whatever becomes of it.
        with file.open("rb") as stream:
            with ZipFile(stream) as archive:
                if sum(each.file_size for each in archive.infolist()) > BYTES:
                    raise TableError(
                        f"{file}: expected at most {BYTES // 2**30} GiB when unpacked; it is larger: keep "
                        "the columns that are needed"
                    )
            book = load_workbook(stream, read_only=True, data_only=True, keep_links=False)
            names = [each.title for each in book.worksheets]
            frame, chosen = _sheet(book, names, sheet, file, faults)
    except (*DAMAGED, InvalidFileException) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(
            f"{file} is not an Excel workbook, or is damaged ({' '.join(str(error).split())[:100]}): save it "
            "again, or save the sheet as 'CSV UTF-8 (comma delimited)'"
        ) from error
    note = f"of {file}, the first of {len(names)} sheets is read, {chosen!r}"
    return ReadTable(frame, str(file), (note,) if sheet is None and len(names) > 1 else ())


def _sheet(
    book: Any, names: list[str], sheet: str | None, file: Path, faults: list[str] | None
) -> tuple[pd.DataFrame, str]:
    """The rows of a sheet, and its name."""
    if not names:
        raise TableError(f"{file}: the workbook has no sheet with cells")
    if sheet is not None and sheet not in names:
        raise TableError(f"{file}: there is no sheet {sheet!r}; {meant(sheet, names)}")
    chosen = sheet or names[0]
    rows = _rows(book[chosen])
    first, header = next(
        ((place, row) for place, row in rows if any(cell is not None for cell in row)), (0, None)
    )
    if header is None:
        raise TableError(f"{file}, sheet {chosen!r}: it is empty; expected a header row")
    while header and header[-1] is None:
        header = header[:-1]
    return frame_of(header, (row for _, row in rows), str(file), first, faults), chosen


def _rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """The rows with their positions from 0. The size that a workbook states may be wrong and is not used."""
    sheet.reset_dimensions()
    for place, row in enumerate(sheet.iter_rows(values_only=True)):
        yield place, list(row)
