"""Rows of a CSV that a program of ours wrote, line by line, read back strictly.

A last line that was cut off when its writer was killed is left out. Everything else that is not of the form
it was written in is refused with the file, the line, what was expected and what to do: such files are
records, and nobody guesses in a record.

Source: ours.
"""

import csv
from collections.abc import Collection, Sequence
from pathlib import Path

from rehearsal_torch.files.plain import PlainFileError, text_of
from rehearsal_torch.files.schema import shown

BYTES = 2**30
_REMEDY = "restore the file from a copy, or move it away and make it anew"


def read_rows(
    path: str | Path,
    columns: Collection[str] = (),
    numbers: Collection[str] = (),
    whole: Collection[str] = (),
) -> list[dict[str, str]]:
    """A file's whole rows, column to text; none where there is no such file.

    Args:
        path: A CSV with a header row.
        columns: Columns that it must have.
        numbers: Columns of numbers, where it has them; a cell may be empty where nothing is known.
        whole: Columns of whole numbers, where it has them.

    Raises:
        PlainFileError: if it cannot be read, lacks a column, or a row is not of its form.
    """
    file = Path(path)
    if not file.exists():
        return []
    text = text_of(file, BYTES)
    lines = text[: text.rfind("\n") + 1].splitlines()
    if not lines:
        return []
    found: list[dict[str, str]] = []
    header: Sequence[str] = ()
    reader = csv.reader(lines, strict=True)
    try:
        header = next(reader, [])
        missing = [name for name in columns if name not in header]
        if missing or len(set(header)) < len(header):
            what = f"the columns {', '.join(missing)}" if missing else "each column once"
            raise PlainFileError(f"{file}: expected {what}; got {shown(','.join(header))}: {_REMEDY}")
        for cells in reader:
            if not cells:
                continue
            if "\0" in "".join(cells):
                raise PlainFileError(
                    f"{file}, line {reader.line_num}: expected text; got NUL bytes, which a disk leaves: "
                    f"{_REMEDY}"
                )
            if len(cells) != len(header):
                expected = f"expected {len(header)} cells, as many as the header has"
                raise PlainFileError(
                    f"{file}, line {reader.line_num}: {expected}; got {len(cells)}: {_REMEDY}"
                )
            row = dict(zip(header, cells, strict=True))
            for name, cell in row.items():
                kind = "a whole number" if name in whole else "a number" if name in numbers else ""
                if kind and not _is(cell, name in whole):
                    raise PlainFileError(
                        f"{file}, line {reader.line_num}, {name}: expected {kind}; got {shown(cell)}: "
                        f"{_REMEDY}"
                    )
            found.append(row)
    except csv.Error as error:
        raise PlainFileError(
            f"{file}, line {reader.line_num}: expected comma-separated cells; {error}: {_REMEDY}"
        ) from error
    return found


def torn(path: str | Path) -> bool:
    """Whether a file ends within a line, as a writer that was killed leaves it."""
    file = Path(path)
    return file.is_file() and file.read_bytes()[-1:] not in (b"", b"\n")


def _is(cell: str, whole: bool) -> bool:
    """Whether a cell holds a number, or may stay empty."""
    if whole:
        return len(cell) < 20 and cell.removeprefix("-").isascii() and cell.removeprefix("-").isdigit()
    try:
        float(cell or 0)
    except ValueError:
        return False
    return True
