"""Separated text: .csv, .tsv, with semicolons or vertical bars, plain or packed with gzip.

A file is inspected before it is parsed: its type, encoding, separator, decimal sign, and unpacked size.
Separator and decimal sign are detected in its first lines, with a note, or given and held against it.

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
import gzip
import json
import re
import shlex
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.frame import (
    NO_DATA_BASE,
    ReadTable,
    TableError,
    bounded,
    few_columns,
    header_faults,
    refused_or_collected,
    without_empty_columns,
)
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
    """The separator that the first lines show."""
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines if line.strip()]
    header, rows = bare[0], bare[1:]
    there = [mark for mark in SEPARATORS if mark != "," and mark in header]
    others = [mark for mark in there if not rows or any(mark in line for line in rows)]
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
    """The decimal sign: a point beside separating commas, else what more numbers have."""
    if separator == ",":
        return "."
    cells = [cell.strip().strip('"') for line in rows for cell in line.split(separator)]
    commas, points = (sum(bool(kind.fullmatch(cell)) for cell in cells) for kind in (COMMA, _POINT))
    return "," if commas and commas >= points else "."


def check_given(file: Path, lines: list[str], separator: str | None, decimal: str | None) -> None:
    """Refuses a given separator or decimal sign that the text speaks against."""
    seems = separator_of(file, lines)
    if separator is not None and separator != seems and len(_cells(lines[0], separator)) == 1:
        columns = len(_cells(lines[0], seems))
        if columns > 1:
            header = lines[0].strip()
            short = header if len(header) <= 60 else f"{beginning(header, 57)}..."
            raise TableError(
                f"{file}: with separator: {_typed(separator)} the whole header was read as one column, "
                f"{short!r}; the file seems to be separated by {SEPARATORS[seems]}, which make "
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


def _cells(line: str, separator: str) -> list[str]:
    """The cells of a line; a quoted one may hold the separator."""
    try:
        return [cell.strip() for row in csv.reader([line], delimiter=separator) for cell in row]
    except csv.Error:  # a cell of more than 128 KiB
        return []


def _typed(sign: str) -> str:
    """A sign as a problem file has it."""
    return _TYPED.get(sign, f"'{sign}'")


HEAD = 2**20
# Lines by which separator and decimal sign are detected.
LINES = 500
KINDS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook: unpack the archive, or name the workbook .xlsx",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls): save the sheet as .xlsx, or as 'CSV UTF-8 (comma "
    "delimited)'",
    b"PAR1": "a Parquet file: name it .parquet",
    b"ARROW1": "a Feather file: name it .feather",
    b"BZh": "packed with bzip2: unpack it, or pack it with gzip",
    b"\xfd7zXZ": "packed with xz: unpack it, or pack it with gzip",
    b"\x28\xb5\x2f\xfd": "packed with zstd: unpack it, or pack it with gzip",
    b"%PDF": "a PDF: export the table as CSV",
    b"SQLite format 3": f"an SQLite data base; {NO_DATA_BASE}",
    b"\x1f\x8b": "packed with gzip: name it .csv.gz",
}


def read_separated(
    file: Path, separator: str | None = None, decimal: str | None = None, faults: list[str] | None = None
) -> ReadTable:
    """Reads UTF-8 text of separated values with a header row, plain or packed with gzip (.gz)."""
    if separator not in (None, *SEPARATORS):
        raise TableError(f"separator: expected one of , ; | and the tab; got {separator!r}")
    if decimal not in (None, *SIGNS):
        raise TableError(f"decimal: expected '.' or ','; got {decimal!r}")
    head, packed = _head(file)
    blank, lines = _checked(file, head)
    check_given(file, lines, separator, decimal)
    found, sign, notes = _detected(file, lines, separator, decimal)
    if found == sign == ",":
        # Both signs are the comma: decimals stand in quotes.
        notes = []
    options: dict[str, Any] = {"sep": found, "decimal": sign, "packed": packed}
    # Counted in the text: pandas takes a minute, and gigabytes, for a header of a million names.
    few_columns(len(re.sub(r'"[^"]*"', "", lines[0]).split(found)), str(file))
    header = _parsed(file, **options, header=None, nrows=1, dtype=str, skiprows=blank).iloc[0]
    few_columns(len(header), str(file))
    frame = _parsed(file, **options, index_col=False, low_memory=False, skiprows=blank)
    names = [None if pd.isna(name) else str(name) for name in header]
    wrong = header_faults(names, frame)
    frame = without_empty_columns(_with_values(file, options, blank, frame), names)
    if sign == ",":
        wrong += _mixed_signs(frame)
        frame = _with_points(frame)
    refused_or_collected(wrong, str(file), faults)
    return ReadTable(frame, str(file), tuple(notes), (found, sign), file=file)


def cells_as_written(table: ReadTable) -> pd.DataFrame | None:
    """The cells as the file writes them; None if the table is of no text, or that has changed since."""
    if table.file is None:
        return None
    try:
        head, packed = _head(table.file)
        blank, _ = _checked(table.file, head)
        options: dict[str, Any] = {"sep": table.signs[0], "packed": packed, "skiprows": blank}
        found = _parsed(table.file, **options, index_col=False, dtype=str, keep_default_na=False)
    except (TableError, OSError):
        return None
    found.index = pd.RangeIndex(blank, blank + len(found))
    there = set(table.frame.columns) <= set(found.columns) and set(table.frame.index) <= set(found.index)
    return found.loc[table.frame.index, table.frame.columns] if there else None


def _head(file: Path) -> tuple[bytes, bool]:
    """The first bytes, unpacked, and whether the file is packed; checks its size, and the number of its
    cells, of which each has a separator or the end of a line behind it.
    """
    with file.open("rb") as stream:
        head = stream.read(HEAD)
    packed = file.suffix == ".gz"
    if packed and head[:2] != b"\x1f\x8b":
        raise TableError(f"{file} has the suffix .gz but is not packed with gzip: rename it to {file.stem}")
    if not packed:
        bounded(file, file.stat().st_size, 0)
    size, ends = 0, dict.fromkeys(SEPARATORS, 0)
    try:
        with gzip.open(file) if packed else file.open("rb") as stream:
            first = chunk = stream.read(HEAD)
            while chunk:
                size += len(chunk)
                # Old spreadsheets end lines with \r alone.
                lines = chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")
                for sign in ends:
                    ends[sign] += lines + chunk.count(sign.encode())
                bounded(file, size, max(ends.values()))
                chunk = stream.read(HEAD)
    except EOFError as error:
        raise TableError(f"{file} is an incomplete gzip archive: copy or download it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{file} is a damaged gzip archive ({error}): copy or download it again") from error
    return first, packed


def _checked(file: Path, head: bytes) -> tuple[int, list[str]]:
    """The number of blank lines before the header, and the first lines, of a file that is UTF-8 text."""
    kind = next((kind for magic, kind in KINDS.items() if head.startswith(magic)), None)
    if kind is not None or head[257:262] == b"ustar":
        raise TableError(f"{file} is not comma-separated text but {kind or 'a tar archive: unpack it'}")
    marked = head[:2] in (b"\xff\xfe", b"\xfe\xff")
    if marked or b"\0" in head[:2000]:
        little, big = head[1:4:2] == b"\0\0", head[0:3:2] == b"\0\0"
        if not (marked or little or big):
            raise TableError(f"{file} is not comma-separated text: it holds binary data")
        command = _rewritten(file, "utf-16" if marked else "utf-16-le" if little else "utf-16-be")
        remedy = "save it as 'CSV UTF-8 (comma delimited)', or type"
        raise TableError(f"{file} is UTF-16, not UTF-8: {remedy}\n  {command}")
    if len(head) == HEAD and b"\n" not in head and b"\r" not in head:
        raise TableError(f"{file}: expected a header of at most 1 MiB; it is longer: is it the right table?")
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    if len(head) == HEAD:
        lines = lines[:-1] or lines
    blank = next((place for place, line in enumerate(lines) if line.strip()), None)
    if blank is None:
        expected = "it is empty; expected .csv or .csv.gz with a header row"
        raise TableError(f"{file} cannot be read as a comma-separated table: {expected}")
    return blank, lines[blank : blank + LINES]


def _detected(
    file: Path, lines: list[str], separator: str | None, decimal: str | None
) -> tuple[str, str, list[str]]:
    """Separator, decimal sign, and a note of what was detected."""
    found = separator_of(file, lines) if separator is None else separator
    sign = decimal_of(lines[1:], found) if decimal is None else decimal
    told = []
    if separator is None and found != ",":
        told.append(f"separated by {SEPARATORS[found]}")
    if decimal is None and (found != "," or sign != "."):
        told.append(f"written with decimal {SIGNS[sign]}")
    return found, sign, [f"{file} is read as {' and '.join(told)}"] if told else []


def _mixed_signs(frame: pd.DataFrame) -> list[str]:
    """Faults of columns of numbers with decimal commas in which some have a point: thousands, or another
    decimal sign. Dates and versions, such as 01.02.2024, are texts.
    """
    found = []
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind not in "OTSU":
            continue
        cells = column.dropna().astype(str).str.strip()
        points = cells.str.fullmatch(POINTS.pattern).to_numpy(dtype=bool)
        others = cells[~points]
        rest = others.str.fullmatch(f"{COMMA.pattern}|{WHOLE.pattern}").to_numpy(dtype=bool)
        if points.any() and rest.all():
            place = int(points.argmax())
            found.append(
                f"{name}: expected decimal commas, without signs between thousands; got "
                f"{cells.iloc[place]!r} in line {int(cells.index[place]) + 2}: write it as the others"
            )
    return found


def _with_points(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with decimal points in columns that also hold text, so that the text alone is reported."""
    for name in frame.columns[[frame[name].dtype.kind in "OTSU" for name in frame.columns]]:
        cells = frame[name].astype(object)
        numbers = cells.notna() & cells.astype(str).str.strip().str.fullmatch(COMMA.pattern)
        if numbers.any():
            frame[name] = cells.where(~numbers, cells.astype(str).str.strip().str.replace(",", "."))
    return frame


def _rewritten(file: Path, encoding: str) -> str:
    """A command that writes the same text in UTF-8, with its separator and decimal sign, unpacked."""
    ending = "".join(each for each in file.suffixes[-2:] if each != ".gz")
    name, target = (
        json.dumps(each, ensure_ascii=False)
        for each in (str(file), f"{file.name.partition('.')[0]}_utf8{ending}")
    )
    packed = file.suffix == ".gz"
    read = f"gzip.open({name}).read()" if packed else f"Path({name}).read_bytes()"
    return "python -c " + shlex.quote(
        f"{'import gzip; ' if packed else ''}from pathlib import Path; "
        f'Path({target}).write_bytes({read}.decode("{encoding}").encode())'
    )


def _parsed(file: Path, packed: bool, **options: Any) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            reading: dict[str, Any] = {"skipinitialspace": True, "skip_blank_lines": False}
            reading |= {"encoding": "utf-8-sig", "compression": "gzip" if packed else None}
            made: pd.DataFrame = pd.read_csv(file, **reading, **options)
    except UnicodeDecodeError as error:
        raise TableError(
            f"{file} cannot be read as a comma-separated table: it is not UTF-8 (byte "
            f"0x{error.object[error.start]:02x}), as spreadsheets save it: save "
            f"it as 'CSV UTF-8 (comma delimited)', or type\n  {_rewritten(file, 'cp1252')}"
        ) from error
    except pd.errors.ParserWarning as error:
        remedy = "name every column, put strings with commas in quotes, and write decimal points"
        raise TableError(f"{file}: rows have more fields than the header: {remedy}") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, OverflowError) as error:
        reason = f"({' '.join(str(error).split())}): expected .csv or .csv.gz with a header row"
        raise TableError(f"{file} cannot be read as a comma-separated table {reason}") from error
    return made


def _with_values(file: Path, options: dict[str, Any], blank: int, frame: pd.DataFrame) -> pd.DataFrame:
    """The table without lines that hold no value, numbered like the file."""
    frame.index = pd.RangeIndex(blank, blank + len(frame))
    # Only lines with an empty first cell can be entirely empty.
    some = np.flatnonzero(frame.iloc[:, 0].isna().to_numpy()) if frame.shape[1] else np.empty(0, int)
    blank_rows = some[frame.iloc[some].isna().all(axis=1).to_numpy()] if len(some) else some
    if not len(blank_rows):
        return frame
    kept = frame.drop(frame.index[blank_rows])
    # Read again without these lines, so that whole numbers stay whole.
    without = [*range(blank), *(blank + 1 + blank_rows).tolist()]
    again = _parsed(file, **options, index_col=False, low_memory=False, skiprows=without)
    return again.set_axis(kept.index) if len(again) == len(kept) else kept
