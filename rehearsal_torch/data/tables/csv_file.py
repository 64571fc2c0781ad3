"""Separated text: .csv, .tsv, with semicolons or vertical bars, plain or packed with gzip.

A file is read once, piece by piece, for its size, its encoding and its first lines, and once by pandas.

    encoding     UTF-8, or UTF-16 by its mark or its zeros; of other text, what charset-normalizer says of
                 Windows-1252 (of which Latin-1 is a part) and Mac Roman. Among all encodings it is mostly
                 wrong on a header with some letters beyond ASCII, which are all that a table has
    separator    the comma if the header has one; otherwise that of the semicolon, the tab and the vertical
                 bar which occurs most often in the header. Where the header has a comma and another
                 separator, the one that occurs equally often in every line. Below titles, the one that makes
                 a header of most names (`data.tables.header_and_footer`). csv.Sniffer finds the same one in
                 113 of 124 texts of examples and tests, and none in the others, mostly of one column or two
                 rows
    decimal      beside another separator than the comma: the comma if no fewer of the numbers in the first
                 lines have one than a point

What was detected is noted. A given sign that the text speaks against is one fault, not one for each column:

    separator    the header would be one column, and is several with the one that is detected
    decimal      no number has the given sign, and numbers have the other: all that are written with the comma
                 while the point is given; some that are written with the point while the comma is given
"""

import codecs
import csv
import gzip
import io
import json
import re
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import charset_normalizer
import pandas as pd

from rehearsal_torch.data.tables.header_and_footer import KNOWN, TITLES, filled, header_place
from rehearsal_torch.data.tables.header_checks import (
    NO_DATA_BASE,
    ReadTable,
    TableError,
    bounded,
    few_columns,
    names_of,
    table_of,
    titles_note,
)
from rehearsal_torch.files.redaction import beginning

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
SIGNS = {",": "commas", ".": "points"}
COMMA = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d+")
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")


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
    if separator is not None and separator != seems and len(_cells(lines[:1], separator)[0]) == 1:
        columns = len(_cells(lines[:1], seems)[0])
        if columns > 1:
            header = lines[0].strip()
            short = header if len(header) <= 60 else f"{beginning(header, 57)}..."
            raise TableError(
                f"{file}: with separator: {json.dumps(separator)} the whole header was read as one column, "
                f"{short!r}; the file seems to be separated by {SEPARATORS[seems]}, which make "
                f"{columns} columns: write separator: {json.dumps(seems)}, or leave separator out"
            )
    if decimal is None:
        return
    cells = [cell.strip() for row in _cells(lines[1:], separator or seems) for cell in row]
    commas, points, whole = (
        [cell for cell in cells if kind.fullmatch(cell)] for kind in (COMMA, _POINT, WHOLE)
    )
    given, others, other = (commas, points, ".") if decimal == "," else (points, commas, ",")
    if others and not given and (other == "." or len(others) >= len(whole)):
        raise TableError(
            f"{file}: with decimal: {json.dumps(decimal)} numbers were read as texts; no number in its first "
            f"lines has decimal {SIGNS[decimal]}, and {len(others)} have {SIGNS[other]}, such as {others[0]}"
            f": write decimal: {json.dumps(other)}, or leave decimal out"
        )


def _cells(lines: Sequence[str], separator: str) -> list[list[str]]:
    """The rows of some lines; a quoted cell may hold the separator, and go on in the next line."""
    try:
        text = io.StringIO("\n".join(lines), newline="\n")
        return [*csv.reader(text, delimiter=separator, skipinitialspace=True)]
    except csv.Error:  # a cell of more than 128 KiB
        return [[]]


HEAD = 2**20
# Lines by which separator and decimal sign are detected.
LINES = 500
# Signs that text has not, by which all other kinds of files are known; and those whose names people mistake.
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")
_KINDS = {
    b"PK": "a zip archive or a workbook: unpack the archive, or name the workbook .xlsx",
    b"\x1f\x8b": "packed with gzip: name it .csv.gz",
    b"PAR1": "a Parquet file: name it .parquet",
    b"SQLite": f"an SQLite data base; {NO_DATA_BASE}",
}
# Zeros in front, and more digits than a number holds: as numbers, two names may be one.
_LOST = re.compile(rb'(?:\A|[,;\t|\r\n"]) ?0\d+[,;\t|\r\n"]|\d{16}')
_GUESSED = ["cp1252", "mac_roman"]
_WORDS = {"utf-8-sig": "UTF-8", "cp1252": "Windows-1252", "mac_roman": "Mac Roman"}


@dataclass(frozen=True)
class Text:
    """What a file of text is: its encoding, the number of lines above the header, its first lines from there
    on, its separator, its decimal sign, the names in its header, whether there are titles above it, and
    whether digits of a cell may be lost if it is taken for a number.
    """

    file: Path
    encoding: str
    above: int
    lines: list[str]
    separator: str
    sign: str
    header: list[str]
    titled: bool
    digits: bool

    def parsed(self, **options: Any) -> pd.DataFrame:
        """The rows below the header; the index is the line minus two."""
        reading: dict[str, Any] = {"sep": self.separator, "decimal": self.sign, "encoding": self.encoding}
        reading |= {"header": None, "names": range(len(self.header)), "skiprows": self.above + 1}
        reading |= {"skipinitialspace": True, "skip_blank_lines": False, "index_col": False}
        reading |= {"compression": "gzip" if self.file.suffix == ".gz" else None, "low_memory": False}
        reading |= {"keep_default_na": False, "na_values": [""]}
        reading |= {"dtype": str} if self.digits else {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                made: pd.DataFrame = pd.read_csv(self.file, **reading | options)
        except pd.errors.EmptyDataError:
            made = pd.DataFrame(columns=range(len(self.header)), dtype=object)
        except pd.errors.ParserWarning as error:
            remedy = "name every column, put strings with commas in quotes, and write decimal points"
            raise TableError(f"{self.file}: rows have more fields than the header: {remedy}") from error
        except UnicodeDecodeError as error:
            what = "it is not " + _WORDS.get(self.encoding, "UTF-16")
            raise _unreadable(self.file, f"{what}: save it as 'CSV UTF-8 (comma delimited)'") from error
        except (pd.errors.ParserError, OverflowError) as error:
            reason = f"({' '.join(str(error).split())}): expected .csv or .csv.gz with a header row"
            raise TableError(f"{self.file} cannot be read as a comma-separated table {reason}") from error
        return made.set_axis(pd.RangeIndex(self.above, self.above + len(made)))


def read_separated(
    file: Path, separator: str | None = None, decimal: str | None = None, faults: list[str] | None = None
) -> ReadTable:
    """Reads text of separated values with a header row, plain or packed with gzip (.gz)."""
    if separator not in (None, *SEPARATORS):
        raise TableError(f"separator: expected one of , ; | and the tab; got {separator!r}")
    if decimal not in (None, *SIGNS):
        raise TableError(f"decimal: expected '.' or ','; got {decimal!r}")
    text = _inspected(file, separator, decimal)
    check_given(file, text.lines, separator, decimal)
    few_columns(len(text.header), str(file))
    table = table_of(text.parsed(), text.header, str(file), faults, text.sign)
    told = [] if text.encoding == "utf-8-sig" else [_WORDS.get(text.encoding, "UTF-16") + " text"]
    # Where both signs are the comma, decimals stand in quotes.
    if not text.separator == text.sign == ",":
        if separator is None and text.separator != ",":
            told.append(f"separated by {SEPARATORS[text.separator]}")
        if decimal is None and (text.separator != "," or text.sign != "."):
            told.append(f"written with decimal {SIGNS[text.sign]}")
    notes = [f"{file} is read as {' and '.join(told)}"] if told else []
    notes += titles_note(str(file), text.above, text.titled)
    return replace(table, notes=(*notes, *table.notes), signs=(text.separator, text.sign), file=file)


def cells_as_written(table: ReadTable) -> pd.DataFrame | None:
    """The cells as the file writes them; None if the table is of no text, or that has changed since."""
    if table.file is None:
        return None
    try:
        text = _inspected(table.file, *table.signs)
        cells = text.parsed(dtype=str, na_values=[])
    except (TableError, OSError):
        return None
    found = cells.set_axis(names_of(text.header), axis=1)
    there = set(table.frame.columns) <= set(found.columns) and set(table.frame.index) <= set(found.index)
    return found.loc[table.frame.index, table.frame.columns] if there else None


def _inspected(file: Path, separator: str | None, decimal: str | None) -> Text:
    """What the first lines show, of a file of which each cell has a separator or the end of a line behind it;
    refuses what is no text, or too large.
    """
    packed = file.suffix == ".gz"
    if not packed:
        bounded(file, file.stat().st_size, 0)
    size, ends, head, odd, digits = 0, dict.fromkeys(SEPARATORS, 0), b"", b"", False
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with gzip.open(file) if packed else file.open("rb") as stream:
            while chunk := stream.read(HEAD):
                head, size = head or chunk, size + len(chunk)
                digits = digits or _LOST.search(chunk) is not None
                # Old spreadsheets end lines with \r alone.
                count = chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")
                for sign in ends:
                    ends[sign] += count + chunk.count(sign.encode())
                bounded(file, size, max(ends.values()))
                if not odd:
                    try:
                        decoder.decode(chunk)
                    except UnicodeDecodeError:
                        odd = chunk
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _unreadable(
            file, f"it is no whole gzip archive ({error}): copy or download it again"
        ) from error
    encoding = _encoding(file, head, odd)
    text = head.decode(encoding, errors="replace")
    begun = re.split(r"\r\n|\r|\n", text, maxsplit=2 * LINES)
    if size > HEAD and len(begun) == 1:
        raise TableError(f"{file}: expected a header of at most 1 MiB; it is longer: is it the right table?")
    begun = begun[:-1] if size > HEAD or len(begun) > 2 * LINES else begun
    lines = list[str]()
    for line in begun:
        if lines and lines[-1].count('"') % 2:
            lines[-1] += f"\n{line}"
        else:
            lines.append(line)
    first = next((place for place, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise _unreadable(file, "it is empty; expected .csv or .csv.gz with a header row")
    mark, above = _below_titles(file, lines[first : first + TITLES + KNOWN], separator)
    above += first
    titled, lines = above > first, lines[above : above + LINES]
    mark = separator or mark or separator_of(file, lines)
    sign = decimal or decimal_of(lines[1:], mark)
    # Of a million names, each is an object.
    few_columns(re.sub(r'"[^"]*"', "", lines[0]).count(mark) + 1, str(file))
    header = _cells(lines[:1], mark)[0] or lines[0].split(mark)
    return Text(file, encoding, above, lines, mark, sign, header, titled, digits)


def _below_titles(file: Path, lines: list[str], separator: str | None) -> tuple[str, int]:
    """The separator of a header that stands below titles, and its place; "" and 0 if there are none."""
    first = _cells(lines[:1], separator_of(file, lines) if separator is None else separator)[0]
    found, most = ("", 0), len(filled(first))
    for mark in SEPARATORS if separator is None else (separator,):
        rows = _cells(lines, mark)
        place = header_place(rows)
        if place and len(filled(rows[place])) > most:
            found, most = (mark, place), len(filled(rows[place]))
    return found


def _encoding(file: Path, head: bytes, odd: bytes) -> str:
    """The encoding of a text by its first bytes, and by some that are not UTF-8."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    zeros = head[1:4:2] == b"\0\0", head[0:3:2] == b"\0\0"
    if zeros[0] != zeros[1]:
        return "utf-16-le" if zeros[0] else "utf-16-be"
    if _BINARY.search(head[:2000]):
        kind = next((kind for magic, kind in _KINDS.items() if head.startswith(magic)), "")
        what = kind or "binary data: export the table as CSV"
        raise TableError(f"{file} is not comma-separated text but {what}")
    if not odd:
        return "utf-8-sig"
    lines = [line for line in re.split(rb"[\r\n]+", odd) if re.search(rb"[\x80-\xff]", line)]
    guess = charset_normalizer.from_bytes(b"\n".join(lines[:LINES]), cp_isolation=_GUESSED).best()
    return "cp1252" if guess is None else guess.encoding


def _unreadable(file: Path, reason: str) -> TableError:
    return TableError(f"{file} cannot be read as a comma-separated table: {reason}")
