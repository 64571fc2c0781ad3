"""CSV files that this package writes: read strictly, with texts that a spreadsheet does not compute.

An incomplete last line, left by a killed writer, is ignored. Any other deviation from the format is refused
with the file, the line, what was expected and what to do: such files are records, never guessed.

A spreadsheet takes a cell that begins with = + - @, a tab or a line break for a formula, also where it is
the name of a case or a column, and a formula may fetch pages or start programs (OWASP, CSV injection). Such a
text gets an apostrophe in front; numbers are written as they are. A text that begins with apostrophes before
such a sign gets one more, so that `as_written` finds every text again.
"""

import csv
import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal_torch.files.bounded_yaml import PlainFileError, text_of
from rehearsal_torch.files.schema import is_number, shown

BYTES = 2**30
_REMEDY = "restore the file from a copy, or move it away and create it again"


def read_rows(
    path: str | Path, columns: Collection[str] = (), numbers: Collection[str] = ()
) -> list[dict[str, str]]:
    """The complete rows of a file, column to text; empty without a file. PlainFileError if it cannot be read,
    lacks a column, or a row has another format; `numbers` are columns of numbers or empty cells.
    """
    file = Path(path)
    if not file.exists():
        return []
    text = text_of(file, BYTES)
    lines = text[: text.rfind("\n") + 1].splitlines()
    if not lines:
        return []
    rows = list[dict[str, str]]()
    reader = csv.reader(lines, strict=True)

    def invalid(fault: str) -> PlainFileError:
        return PlainFileError(f"{file}, line {reader.line_num}{fault}: {_REMEDY}")

    try:
        header = next(reader, [])
        absent = [name for name in columns if name not in header]
        if absent or len(set(header)) < len(header):
            fault = f"the columns {', '.join(absent)}" if absent else "each column once"
            raise PlainFileError(f"{file}: expected {fault}; got {shown(','.join(header))}: {_REMEDY}")
        for cells in reader:
            if not cells:
                continue
            if "\0" in "".join(cells):
                raise invalid(": expected text; got NUL bytes, which a crash leaves")
            if len(cells) != len(header):
                raise invalid(f": expected {len(header)} cells, as many as the header has; got {len(cells)}")
            row = dict(zip(header, map(as_written, cells), strict=True))
            for name, cell in row.items():
                if name in numbers and cell and not is_number(cell):
                    raise invalid(f", {name}: expected a number; got {shown(cell)}")
            rows.append(row)
    except csv.Error as error:
        raise invalid(f": expected comma-separated cells; {error}") from error
    return rows


_FORMULA, _MARKED = re.compile(r"'*[=+\-@\t\r\n]"), re.compile(r"'+[=+\-@\t\r\n]")


def cell(value: Any) -> Any:
    """A value as a cell: a text that would be a formula begins with an apostrophe; all else stays."""
    if not isinstance(value, str) or not _FORMULA.match(value) or (value[0] in "+-" and is_number(value)):
        return value
    return f"'{value}"


def as_written(text: str) -> str:
    """The text of which `cell` has made a cell."""
    return text[1:] if _MARKED.match(text) else text


def as_csv(rows: Sequence[Mapping[str, Any]], nan: str = "") -> str:
    """Rows with the union of their columns, numbers in full precision, and empty cells if missing."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(cell, columns))
    for row in rows:
        values = [row.get(name, "") for name in columns]
        writer.writerow(
            [nan if isinstance(value, float) and math.isnan(value) else cell(value) for value in values]
        )
    return text.getvalue()
