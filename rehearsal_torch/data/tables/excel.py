"""Excel workbooks (.xlsx, .xlsm): one sheet as a table, with its numbers as the workbook holds them.

The header is the first row with a value; lines in messages are rows of the sheet. The value of merged cells,
which the workbook has in the first of them alone, counts in all rows that they span. Formulas count with the
values that the spreadsheet last computed; a program that writes a workbook leaves these out, or writes 0 and
asks for a calculation, and then nothing is read. Percentages are read as they are shown, 45 % and not .45, as
from the same sheet saved as text. Dates are text, and so refused where numbers are expected. Cells with an
error, such as #DIV/0!, are text too; #N/A is a missing value.

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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
_MERGED = re.compile(rb'<(?:[\w.-]+:)?mergeCell\b[^<>]*?\bref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
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
                merged, calculates = _inspect(archive, file)
            book = load_workbook(stream, read_only=True, data_only=True, keep_links=False)
            return _read_sheet(book, sheet, file, faults, merged, calculates)
    except (*DAMAGED, InvalidFileException) as error:
        if isinstance(error, TableError):
            raise
        reason = beginning(" ".join(str(error).split()), 100)
        remedy = "save it again, or save the sheet as 'CSV UTF-8 (comma delimited)'"
        raise TableError(f"{file} is not an Excel workbook, or is damaged ({reason}): {remedy}") from error


def _read_sheet(
    book: Any,
    sheet: str | None,
    file: Path,
    faults: list[str] | None,
    merged: Mapping[str, Sequence[bytes]],
    calculates: bool,
) -> ReadTable:
    """The table of a sheet, by default of the first that is not hidden."""
    from openpyxl.utils import range_boundaries

    names = [each.title for each in sorted(book.worksheets, key=lambda each: each.sheet_state != "visible")]
    if not names:
        raise TableError(f"{file}: the workbook has no sheet with cells")
    if sheet is not None and sheet not in names:
        raise TableError(f"{file}: there is no sheet {sheet!r}; {meant(sheet, names)}")
    chosen = sheet or names[0]
    areas = [range_boundaries(area.decode()) for area in merged.get(book[chosen]._worksheet_path, ())]
    rows = _rows(book[chosen], file, calculates)
    first = [*islice(rows, TITLES + KNOWN)]
    if not first:
        raise TableError(f"{file}, sheet {chosen!r}: it is empty; expected a header row")
    place = header_place([row for _, row in first])
    above, header = first[place]
    # The next line may name what the last cell of the header spans.
    width = max((right for _, top, right, _ in areas if top == above + 1), default=0)
    below = _filled_down(chain(first[place + 1 :], rows), areas)
    header += [None] * (width - len(header))
    table = frame_of(header, ((index - 1, row) for index, row in below), str(file), faults)
    notes = [f"of {file}, the first of {len(names)} sheets is read, {chosen!r}"]
    notes = notes if sheet is None and len(names) > 1 else []
    if lines := sorted(top for _, top, *_ in areas if top - 2 in table.frame.index):
        what = f"cells that are merged ({len(lines)}, first in line {lines[0]})"
        notes.append(f"of {file}, {what} count in each row, and in their first column")
    return replace(table, notes=(*notes, *titles_note(str(file), above, place > 0), *table.notes))


def _filled_down(
    rows: Iterable[tuple[int, list[Any]]], areas: Iterable[tuple[int, int, int, int]]
) -> Iterator[tuple[int, list[Any]]]:
    """The rows, with the value of merged cells in the first column of each row that they span."""
    begin, values = dict[int, list[tuple[int, int]]](), dict[int, tuple[int, Any]]()
    for left, top, _, bottom in areas:
        begin.setdefault(top - 1, []).append((left - 1, bottom - 1))
    for index, row in rows:
        values = {column: (last, value) for column, (last, value) in values.items() if index <= last}
        row += [None] * (max(values, default=-1) + 1 - len(row))
        for column, (_, value) in values.items():
            row[column] = value if row[column] is None else row[column]
        values |= {column: (last, row[column]) for column, last in begin.get(index, ()) if column < len(row)}
        yield index, row


def _rows(sheet: Any, file: Path, calculates: bool) -> Iterator[tuple[int, list[Any]]]:
    """The index from 0, and the cells, of each row with a cell; a workbook may state a wrong size. Formulas
    without a result are a TableError, as are zeros alone where a calculation is asked for.
    """
    from openpyxl.styles.numbers import BUILTIN_FORMATS, BUILTIN_FORMATS_MAX_SIZE
    from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

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
        parse_cell, empty, zero, other = parser.parse_cell, list[str](), list[str](), list[str]()

        def parse_formula(element: Any) -> Any:
            cell = parse_cell(element)
            if element.find(FORMULA_TAG) is not None:
                # An empty text is a result.
                has_none = cell["value"] is None and element.get("t") != "str"
                kind = empty if has_none else zero if cell["value"] == 0 else other
                kind.append(str(element.get("r")))
            return cell

        parser.parse_cell = parse_formula
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
    if missing := empty + zero * (calculates and not other):
        expected = f"expected the results of formulas; {len(missing)} have none, first in {missing[0]}"
        remedy = "open the workbook in your spreadsheet program, and save it there"
        raise TableError(f"{file}: {expected}: {remedy}")


# What a number format shows as it stands there: a percent sign in it scales nothing.
_LITERAL = re.compile(r'"[^"]*"|\\.')


def _as_shown(cell: Mapping[str, Any], percent: Collection[int]) -> Any:
    """The value of a cell; a percentage as text."""
    value = cell["value"]
    is_percentage = (
        cell["style_id"] in percent and isinstance(value, int | float) and not isinstance(value, bool)
    )
    return f"{100 * value:.15g}%" if is_percentage else value


def _inspect(archive: ZipFile, file: Path) -> tuple[Mapping[str, Sequence[bytes]], bool]:
    """Refuses a workbook that would take too much memory to parse; its parts are read piece by piece. Returns
    the merged cells of each part, and whether it asks to be calculated.
    """
    merged, calculates = dict[str, list[bytes]](), False
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
                merged.setdefault(part.filename, []).extend(_MERGED.findall(complete))
                calculates |= b'fullCalcOnLoad="1"' in complete
                first, *later = (item.count(b"<") for item in _ITEM.split(complete))
                items += len(later)
                if items > ITEMS or max(marks + first, *later, 0) > MARKS:
                    raise too_large
                marks = later[-1] if later else marks + first
    return merged, calculates
