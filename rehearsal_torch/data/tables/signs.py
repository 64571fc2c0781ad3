"""Separators and decimal signs of separated text: detected in its first lines, or given and held against it.

The separator is the comma if the header has one; otherwise that of the semicolon, the tab and the vertical
bar which occurs most often in the header. Where the header has a comma and another separator, the one that
occurs equally often in every line is taken. Beside another separator than the comma, the decimal sign is the
comma if no fewer of the numbers in the first lines have one than a point.

A given sign that the text speaks against is one fault, not one for each column:

    separator    the header would be one column, and is several with the one that is detected
    decimal      no number has the given sign, and numbers have the other: all that are written with the comma
                 while the point is given; some that are written with the point while the comma is given
"""

import csv
import re
from pathlib import Path

from rehearsal_torch.data.tables.frame import TableError
from rehearsal_torch.files.addresses import beginning

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
SIGNS = {",": "commas", ".": "points"}
COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d+")
# Numbers with a point, between thousands or before decimals; dates and versions have points elsewhere.
POINTS = re.compile(r"[+-]?(?:\d*\.\d+|\d{1,3}(?:\.\d{3})+|\d+(?:\.\d+)+,\d+)")
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
_TYPED = {"\t": '"\\t"'}


def separator_of(file: Path, lines: list[str]) -> str:
    """The separator that the first lines show.

    Args:
        file: The file, whose name counts, too.
        lines: The header and the lines behind it.
    """
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines if line.strip()]
    header, rows = bare[0], bare[1:]
    others = [
        mark for mark in SEPARATORS if mark != "," and mark in header and (not rows or _some(rows, mark))
    ]
    if not others:
        return ","
    if "\t" in others and ".tsv" in file.suffixes:
        return "\t"
    best = max(others, key=header.count)
    if "," not in header:
        return best
    commas, even = ({line.count(mark) for line in bare} for mark in (",", best))
    return best if len(even) == 1 < len(commas) else ","


def decimal_of(rows: list[str], separator: str) -> str:
    """The decimal sign: a point beside separating commas, else what more numbers have.

    Args:
        rows: The lines behind the header.
    """
    if separator == ",":
        return "."
    cells = [cell.strip().strip('"') for line in rows for cell in line.split(separator)]
    commas, points = (sum(bool(kind.fullmatch(cell)) for cell in cells) for kind in (COMMA, _POINT))
    return "," if commas and commas >= points else "."


def check_given(file: Path, lines: list[str], separator: str | None, decimal: str | None) -> None:
    """Refuses a given separator or decimal sign that the text speaks against.

    Args:
        lines: The header and the lines behind it.
        separator: The given separator; None if it is detected.
        decimal: The given decimal sign; None if it is detected.

    Raises:
        TableError: with the sign that the text seems to have.
    """
    seems = separator_of(file, lines)
    if separator is not None and separator != seems and len(_cells(lines[0], separator)) == 1:
        columns = len(_cells(lines[0], seems))
        if columns > 1:
            raise TableError(
                f"{file}: with separator: {_typed(separator)} the whole header was read as one column, "
                f"{_short(lines[0])}; the file seems to be separated by {SEPARATORS[seems]}, which make "
                f"{columns} columns: write separator: {_typed(seems)}, or leave separator out"
            )
    if decimal is None:
        return
    cells = [cell for line in lines[1:] for cell in _cells(line, separator or seems)]
    commas, points, whole = (
        [cell for cell in cells if kind.fullmatch(cell)] for kind in (COMMA, _POINT, WHOLE)
    )
    given, others, other = (commas, points, ".") if decimal == "," else (points, commas, ",")
    if others and not given and (other == "." or len(others) >= len(whole)):
        raise TableError(
            f"{file}: with decimal: {_typed(decimal)} numbers were read as texts; no number in its first "
            f"lines has decimal {SIGNS[decimal]}, and {len(others)} have {SIGNS[other]}, such as {others[0]}"
            f": write decimal: {_typed(other)}, or leave decimal out"
        )


def _some(rows: list[str], mark: str) -> bool:
    return any(mark in line for line in rows)


def _cells(line: str, separator: str) -> list[str]:
    """The cells of a line; a quoted one may hold the separator."""
    try:
        return [cell.strip() for row in csv.reader([line], delimiter=separator) for cell in row]
    except csv.Error:  # a cell of more than 128 KiB
        return []


def _typed(sign: str) -> str:
    """A sign as a problem file has it."""
    return _TYPED.get(sign, f"'{sign}'")


def _short(header: str) -> str:
    text = header.strip()
    return repr(text if len(text) <= 60 else f"{beginning(text, 57)}...")
