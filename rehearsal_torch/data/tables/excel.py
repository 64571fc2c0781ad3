"""Excel workbooks (.xlsx, .xlsm): one sheet as a table, with its numbers as the workbook holds them.

The header is the first row with a value; lines in messages are rows of the sheet. Formulas count with the
values that the spreadsheet last computed. Percentages are read as they are shown, 45 % and not .45, as from
the same sheet saved as text. Dates are text, and so refused where numbers are expected. Cells with an error,
such as #DIV/0!, are text too; #N/A is a missing value.

All parts are unpacked and measured once, a piece at a time, before any is parsed: the parser keeps an element
for each mark until the row, or the text, that it belongs to ends, and one for each of these until the end.
Rows, and cells of a row, have to stand in the order of their numbers: what a damaged workbook has after a
number that is too large would be lost, and rows that are left out cost nothing.

The parser scans a mark anew with each 16 KiB of it: in parts of more than a mebibyte, no mark may be as long,
and comments, CDATA sections, document types, and instructions behind the first mark are refused, whose
lengths are seen only at their ends.

Source: ECMA-376 for the format, read by openpyxl.
"""

import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile, ZipFile

from rehearsal_torch.data.tables.header_and_footer import KNOWN, TITLES, header_place
from rehearsal_torch.data.tables.header_checks import EXTRA, ReadTable, TableError, frame_of, titles_note
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import meant

WORKBOOKS = (".xlsx", ".xlsm")
BYTES = 2**29
# What the format allows, and what is kept in memory at a time: marks of a row or a text, and rows and texts.
ROWS, MARKS, ITEMS = 2**20, 2**22, 2**24
PIECE = 2**20
_ITEM = re.compile(rb"<(?:[\w.-]+:)?(?:row|si)\b")
_PROLOGUE = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?[^>]*\?>\s*)*")
_ODD = re.compile(rb"<[!?]")
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")
# What the standard library and openpyxl raise where the parts of a workbook are not what they should be.
DAMAGED = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, RuntimeError, TypeError, ValueError),
    *(BadZipFile, ParseError, zlib.error),
)


def read_workbook(file: Path, sheet: str | None = None, faults: list[str] | None = None) -> ReadTable:
    """Reads a sheet of an Excel workbook of at most 512 MiB, unpacked."""
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
                _measured(archive, file)
            book = load_workbook(stream, read_only=True, data_only=True, keep_links=False)
            # What is hidden is read where it is asked for.
            shown = sorted(book.worksheets, key=lambda each: each.sheet_state != "visible")
            names = [each.title for each in shown]
            table, chosen = _sheet(book, names, sheet, file, faults)
    except (*DAMAGED, InvalidFileException) as error:
        if isinstance(error, TableError):
            raise
        reason = beginning(" ".join(str(error).split()), 100)
        remedy = "save it again, or save the sheet as 'CSV UTF-8 (comma delimited)'"
        raise TableError(f"{file} is not an Excel workbook, or is damaged ({reason}): {remedy}") from error
    note = f"of {file}, the first of {len(names)} sheets is read, {chosen!r}"
    notes = (note,) if sheet is None and len(names) > 1 else ()
    return replace(table, notes=(*notes, *table.notes))


def _sheet(
    book: Any, names: list[str], sheet: str | None, file: Path, faults: list[str] | None
) -> tuple[ReadTable, str]:
    """The table of a sheet, and its name."""
    if not names:
        raise TableError(f"{file}: the workbook has no sheet with cells")
    if sheet is not None and sheet not in names:
        raise TableError(f"{file}: there is no sheet {sheet!r}; {meant(sheet, names)}")
    chosen = sheet or names[0]
    rows = _rows(book[chosen])
    first = [*islice(rows, TITLES + KNOWN)]
    if not first:
        raise TableError(f"{file}, sheet {chosen!r}: it is empty; expected a header row")
    place = header_place([row for _, row in first])
    above, header = first[place]
    below = chain(first[place + 1 :], rows)
    table = frame_of(header, ((number - 1, row) for number, row in below), str(file), faults)
    return replace(table, notes=(*titles_note(str(file), above, place > 0), *table.notes)), chosen


def _rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """The rows with a cell, with their positions from 0; the size that a workbook states may be wrong."""
    from openpyxl.worksheet._reader import WorkSheetParser

    book, last = sheet.parent, 0
    percent = {place for place, style in enumerate(book._cell_styles) if "%" in _format(book, style.numFmtId)}
    with sheet._get_source() as source:
        parser = WorkSheetParser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        for number, cells in parser.parse():
            if not last < number <= ROWS:
                raise ValueError(f"row {number} stands after row {last}")
            last = number
            columns = [0, *(cell["column"] for cell in cells)]
            ordered = all(earlier < later for earlier, later in pairwise(columns))
            if not ordered or any(cell["row"] != number for cell in cells):
                raise ValueError(f"the cells of row {number} are numbered wrongly")
            filled = {cell["column"]: _shown(cell, percent) for cell in cells if cell["value"] is not None}
            if filled:
                yield number - 1, [filled.get(column) for column in range(1, max(filled) + 1)]


def _format(book: Any, number: int) -> str:
    """The format of a style; those below 164 are of the standard."""
    from openpyxl.styles.numbers import BUILTIN_FORMATS, BUILTIN_FORMATS_MAX_SIZE

    if number < BUILTIN_FORMATS_MAX_SIZE:
        return str(BUILTIN_FORMATS.get(number, ""))
    own = book._number_formats
    place = number - BUILTIN_FORMATS_MAX_SIZE
    return str(own[place]) if place < len(own) else ""


def _shown(cell: Mapping[str, Any], percent: Collection[int]) -> Any:
    """The value of a cell; a percentage as text."""
    value = cell["value"]
    shown = cell["style_id"] in percent and isinstance(value, int | float) and not isinstance(value, bool)
    return f"{100 * value:.15g}%" if shown else value


def _measured(archive: ZipFile, file: Path) -> None:
    """Refuses a workbook that would take too much memory to parse; its parts are looked at piece by piece."""
    unpacked = sum(each.file_size for each in archive.infolist())
    most = 0
    for part in archive.infolist() if unpacked <= BYTES else ():
        items = marks = 0
        rest, strict, begun = b"", part.file_size > PIECE, False
        with archive.open(part) as stream:
            while piece := stream.read(PIECE):
                if not items + marks and piece[:2] in _WIDE:
                    raise ValueError(f"{part.filename[:40]} is not UTF-8")
                if b"<!ENTITY" in rest + piece:
                    raise ValueError(f"{part.filename[:40]} defines entities")
                begin = 0
                if not begun and (head := _PROLOGUE.match(piece)):
                    begun, begin = True, head.end()
                    # Pictures begin otherwise.
                    strict &= piece[begin : begin + 1] in (b"", b"<")
                # A mark at the end may go on in the next piece.
                whole, sign, rest = (rest + piece).rpartition(b"<")
                if strict and (len(rest) > PIECE or _ODD.search(whole, begin)):
                    raise ValueError(f"{part.filename[:40]} has comments, or marks of a mebibyte")
                rest = sign + rest[-PIECE:]
                counts = [each.count(b"<") for each in _ITEM.split(whole)]
                items += len(counts) - 1
                most = max(most, marks + counts[0], *counts[1:])
                marks = counts[-1] + (marks if len(counts) == 1 else 0)
                if most > MARKS or items > ITEMS:
                    break
        if most > MARKS or items > ITEMS:
            unpacked = BYTES + 1
            break
    if unpacked > BYTES:
        raise TableError(
            f"{file}: expected at most {BYTES // 2**20} MiB when unpacked, and {ROWS} rows; there is more: "
            "keep what is needed, or save the sheet as CSV"
        )
