"""Excel workbooks (.xlsx, .xlsm): one sheet as a table, with its numbers as the workbook holds them.

The header is the first row with a value; lines in messages are rows of the sheet. Formulas count with the
values that the spreadsheet last computed. Percentages are read as they are shown, 45 % and not .45, as from
the same sheet saved as text. Dates are text, and so refused where numbers are expected. Cells with an error,
such as #DIV/0!, are text too; #N/A is a missing value.

All parts are unpacked and measured once, a piece at a time, before any is parsed: the parser keeps an element
for each mark (XML tag) until the end of its row, or text, and one for each row and text until the end.
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
# Limits: rows, by the format; marks (XML tags) of a row or text, and rows and texts, which stay in memory.
ROWS, MARKS, ITEMS = 2**20, 2**22, 2**24
PIECE = 2**20
_ITEM = re.compile(rb"<(?:[\w.-]+:)?(?:row|si)\b")
_PROLOGUE = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?[^>]*\?>\s*)*")
_DECLARATION = re.compile(rb"<[!?]")
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")
# What the standard library and openpyxl raise for a damaged workbook.
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
        # Opened here, so that it is closed after errors, too.
        with file.open("rb") as stream:
            with ZipFile(stream) as archive:
                _check_size(archive, file)
            book = load_workbook(stream, read_only=True, data_only=True, keep_links=False)
            return _read_sheet(book, sheet, file, faults)
    except (*DAMAGED, InvalidFileException) as error:
        if isinstance(error, TableError):
            raise
        reason = beginning(" ".join(str(error).split()), 100)
        remedy = "save it again, or save the sheet as 'CSV UTF-8 (comma delimited)'"
        raise TableError(f"{file} is not an Excel workbook, or is damaged ({reason}): {remedy}") from error


def _read_sheet(book: Any, sheet: str | None, file: Path, faults: list[str] | None) -> ReadTable:
    """The table of a sheet, by default of the first that is not hidden."""
    names = [each.title for each in sorted(book.worksheets, key=lambda each: each.sheet_state != "visible")]
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
    table = frame_of(header, ((index - 1, row) for index, row in below), str(file), faults)
    notes = [f"of {file}, the first of {len(names)} sheets is read, {chosen!r}"]
    notes = notes if sheet is None and len(names) > 1 else []
    return replace(table, notes=(*notes, *titles_note(str(file), above, place > 0), *table.notes))


def _rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """The index from 0, and the cells, of each row with a cell; a workbook may state a wrong size."""
    from openpyxl.styles.numbers import BUILTIN_FORMATS, BUILTIN_FORMATS_MAX_SIZE
    from openpyxl.worksheet._reader import WorkSheetParser

    book, previous = sheet.parent, 0
    custom = enumerate(book._number_formats, BUILTIN_FORMATS_MAX_SIZE)
    percents = {
        number for number, form in (*BUILTIN_FORMATS.items(), *custom) if "%" in _LITERAL.sub("", form)
    }
    percent = {place for place, style in enumerate(book._cell_styles) if style.numFmtId in percents}
    with sheet._get_source() as source:
        parser = WorkSheetParser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        for row_number, cells in parser.parse():
            if not previous < row_number <= ROWS:
                raise ValueError(f"row {row_number} stands after row {previous}")
            previous = row_number
            columns = [0, *(cell["column"] for cell in cells)]
            ordered = all(earlier < later for earlier, later in pairwise(columns))
            if not ordered or any(cell["row"] != row_number for cell in cells):
                raise ValueError(f"the cells of row {row_number} are numbered wrongly")
            filled = {cell["column"]: _as_shown(cell, percent) for cell in cells if cell["value"] is not None}
            if filled:
                yield row_number - 1, [filled.get(column) for column in range(1, max(filled) + 1)]


# What a number format shows as it stands there: a percent sign in it scales nothing.
_LITERAL = re.compile(r'"[^"]*"|\\.')


def _as_shown(cell: Mapping[str, Any], percent: Collection[int]) -> Any:
    """The value of a cell; a percentage as text."""
    value = cell["value"]
    is_percentage = (
        cell["style_id"] in percent and isinstance(value, int | float) and not isinstance(value, bool)
    )
    return f"{100 * value:.15g}%" if is_percentage else value


def _check_size(archive: ZipFile, file: Path) -> None:
    """Refuses a workbook that would take too much memory to parse; its parts are read piece by piece."""
    too_large = TableError(
        f"{file}: expected at most {BYTES // 2**20} MiB when unpacked, and {ROWS} rows; there is more: "
        "keep what is needed, or save the sheet as CSV"
    )
    if sum(part.file_size for part in archive.infolist()) > BYTES:
        raise too_large
    for part in archive.infolist():
        items = marks = 0
        rest, is_xml, in_prologue = b"", part.file_size > PIECE, True
        with archive.open(part) as stream:
            while piece := stream.read(PIECE):
                if not items + marks and piece[:2] in _UTF16:
                    raise ValueError(f"{part.filename[:40]} is not UTF-8")
                if b"<!ENTITY" in rest + piece:
                    raise ValueError(f"{part.filename[:40]} defines entities")
                start = 0
                if in_prologue and (prologue := _PROLOGUE.match(piece)):
                    in_prologue, start = False, prologue.end()
                    # Pictures begin otherwise.
                    is_xml &= piece[start : start + 1] in (b"", b"<")
                # A mark at the end may go on in the next piece.
                complete, bracket, rest = (rest + piece).rpartition(b"<")
                if is_xml and (len(rest) > PIECE or _DECLARATION.search(complete, start)):
                    raise ValueError(f"{part.filename[:40]} has comments, or marks of a mebibyte")
                rest = bracket + rest[-PIECE:]
                first, *later = (item.count(b"<") for item in _ITEM.split(complete))
                items += len(later)
                if items > ITEMS or max(marks + first, *later, 0) > MARKS:
                    raise too_large
                marks = later[-1] if later else marks + first
