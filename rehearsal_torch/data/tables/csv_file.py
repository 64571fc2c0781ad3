"""Separated text: .csv, .tsv, with semicolons or vertical bars, plain or packed with gzip.

A file is read once, piece by piece, for its size, its encoding and its first lines, and once by pandas.

    encoding     UTF-8, or UTF-16 by its mark or its zeros; of other text, what charset-normalizer says of
                 Windows-1252 (of which Latin-1 is a part) and Mac Roman. Among all encodings it is mostly
                 wrong on a header with some letters beyond ASCII, which are all that a table has
    separator    the comma if the header has one; otherwise that of the semicolon, the tab and the vertical
                 bar which occurs most often in the header. Where the header has a comma and another
                 separator, the one that occurs equally often in every line. Below titles, the one that makes
                 a header of most names (`data.tables.header_and_footer`). csv.Sniffer finds none in 11 of
                 124 texts of examples and tests, mostly of one column or two rows
    decimal      beside another separator than the comma: the comma if no fewer of the numbers in the first
                 lines have one than a point

What was detected is noted. A given sign that contradicts the text is one fault, not one for each column:

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

from rehearsal_torch.data.tables.header_and_footer import (
    KNOWN,
    TITLES,
    filled_columns,
    header_place,
    joined_header,
)
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
_COMMA = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"[+-]?\d+")
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
HEAD = 2**20
# Lines by which separator and decimal sign are detected.
LINES = 500
# Bytes that no text has; and the first bytes of files that people take for a table of text.
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")
_FILE_KINDS = {
    b"PK": "a zip archive or a workbook: unpack the archive, or name the workbook .xlsx",
    b"\x1f\x8b": "packed with gzip: name it .csv.gz",
    b"PAR1": "a Parquet file: name it .parquet",
    b"SQLite": f"an SQLite data base; {NO_DATA_BASE}",
}
# Zeros in front, and more digits than a number holds: as numbers, two names may be one.
_LOSSY = re.compile(rb'(?:\A|[,;\t|\r\n"]) ?0\d+[,;\t|\r\n"]|\d{16}')
_CANDIDATES = ["cp1252", "mac_roman"]
_ENCODING_NAMES = {"utf-8-sig": "UTF-8", "cp1252": "Windows-1252", "mac_roman": "Mac Roman"}


def separator_of(file: Path, lines: list[str]) -> str:
    """The separator that the first lines show."""
    unquoted = [re.sub(r'"[^"]*"', "", line) for line in lines if line.strip()]
    header, rows = unquoted[0], unquoted[1:]
    present = [separator for separator in SEPARATORS if separator != "," and separator in header]
    candidates = [separator for separator in present if not rows or any(separator in line for line in rows)]
    if not candidates:
        return ","
    if "\t" in candidates and ".tsv" in file.suffixes:
        return "\t"
    best = max(candidates, key=header.count)
    if "," not in header:
        return best
    commas, counts = ({line.count(separator) for line in unquoted} for separator in (",", best))
    return best if len(counts) == 1 < len(commas) else ","


def decimal_of(rows: list[str], separator: str) -> str:
    """The decimal sign: a point beside separating commas, else what more numbers have."""
    if separator == ",":
        return "."
    cells = [cell.strip().strip('"') for line in rows for cell in line.split(separator)]
    commas, points, _ = _numbers_in(cells)
    return "," if commas and len(commas) >= len(points) else "."


def _numbers_in(cells: Sequence[str]) -> list[list[str]]:
    """The cells with a decimal comma, those with a point, and those with whole numbers."""
    return [[cell for cell in cells if form.fullmatch(cell)] for form in (_COMMA, _POINT, _INTEGER)]


def check_given(file: Path, lines: list[str], separator: str | None, decimal: str | None) -> None:
    """Refuses a given separator or decimal sign that contradicts the text."""
    detected = separator_of(file, lines)
    if separator is not None and separator != detected and len(_cells(lines[:1], separator)[0]) == 1:
        columns = len(_cells(lines[:1], detected)[0])
        if columns > 1:
            header = lines[0].strip()
            shortened = header if len(header) <= 60 else f"{beginning(header, 57)}..."
            raise TableError(
                f"{file}: with separator: {json.dumps(separator)} the whole header was read as one column, "
                f"{shortened!r}; the file seems to be separated by {SEPARATORS[detected]}, which make "
                f"{columns} columns: write separator: {json.dumps(detected)}, or leave separator out"
            )
    if decimal is None:
        return
    cells = [cell.strip() for row in _cells(lines[1:], separator or detected) for cell in row]
    agreeing, against, integers = _numbers_in(cells)
    sign = "."
    if decimal == ".":
        agreeing, against, sign = against, agreeing, ","
    if against and not agreeing and (sign == "." or len(against) >= len(integers)):
        raise TableError(
            f"{file}: with decimal: {json.dumps(decimal)} numbers were read as texts; no number in its first "
            f"lines has decimal {SIGNS[decimal]}, and {len(against)} have {SIGNS[sign]}, such as {against[0]}"
            f": write decimal: {json.dumps(sign)}, or leave decimal out"
        )


def _cells(lines: Sequence[str], separator: str) -> list[list[str]]:
    """The cells of lines, row by row; a quoted cell may hold the separator, and go on in the next line."""
    try:
        text = io.StringIO("\n".join(lines), newline="\n")
        return [*csv.reader(text, delimiter=separator, skipinitialspace=True)]
    except csv.Error:  # a cell of more than 128 KiB
        return [[]]


@dataclass(frozen=True)
class Text:
    """How a file of text is written: its encoding, the number of lines above the header, the first lines from
    there on, separator and decimal sign, the names in the header, whether titles stand above it, and whether
    cells may lose digits as numbers.
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
        settings: dict[str, Any] = {
            **{"sep": self.separator, "decimal": self.sign, "encoding": self.encoding},
            **{"header": None, "names": range(len(self.header)), "skiprows": self.above + 1},
            **{"skipinitialspace": True, "skip_blank_lines": False, "index_col": False},
            **{"compression": "gzip" if self.file.suffix == ".gz" else None, "low_memory": False},
            **{"keep_default_na": False, "na_values": [""], "dtype": str if self.digits else None},
        }
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                frame: pd.DataFrame = pd.read_csv(self.file, **settings | options)
        except pd.errors.EmptyDataError:
            frame = pd.DataFrame(columns=range(len(self.header)), dtype=object)
        except pd.errors.ParserWarning as error:
            remedy = "name every column, put strings with commas in quotes, and write decimal points"
            raise TableError(f"{self.file}: rows have more fields than the header: {remedy}") from error
        except UnicodeDecodeError as error:
            fault = "it is not " + _ENCODING_NAMES.get(self.encoding, "UTF-16")
            raise _unreadable(self.file, f"{fault}: save it as 'CSV UTF-8 (comma delimited)'") from error
        except (pd.errors.ParserError, OverflowError) as error:
            reason = f"({' '.join(str(error).split())}): expected .csv or .csv.gz with a header row"
            raise TableError(f"{self.file} cannot be read as a comma-separated table {reason}") from error
        return frame.set_axis(pd.RangeIndex(self.above, self.above + len(frame)))


def read_separated(
    file: Path, separator: str | None = None, decimal: str | None = None, faults: list[str] | None = None
) -> ReadTable:
    """Reads text of separated values with a header row, plain or packed with gzip (.gz)."""
    if separator not in (None, *SEPARATORS):
        raise TableError(f"separator: expected one of , ; | and the tab; got {separator!r}")
    if decimal not in (None, *SIGNS):
        raise TableError(f"decimal: expected '.' or ','; got {decimal!r}")
    text = _inspect(file, separator, decimal)
    check_given(file, text.lines, separator, decimal)
    few_columns(len(text.header), str(file))
    table = table_of(text.parsed(), text.header, str(file), faults, text.sign)
    encoding = _ENCODING_NAMES.get(text.encoding, "UTF-16")
    properties = [f"{encoding} text"] if encoding != "UTF-8" else []
    # Where both signs are the comma, decimals stand in quotes.
    if not text.separator == text.sign == ",":
        if separator is None and text.separator != ",":
            properties.append(f"separated by {SEPARATORS[text.separator]}")
        if decimal is None and (text.separator != "," or text.sign != "."):
            properties.append(f"written with decimal {SIGNS[text.sign]}")
    notes = [f"{file} is read as {' and '.join(properties)}"] if properties else []
    notes += titles_note(str(file), text.above, text.titled)
    return replace(table, notes=(*notes, *table.notes), signs=(text.separator, text.sign), file=file)


def cells_as_written(table: ReadTable) -> pd.DataFrame | None:
    """The cells as the file writes them; None if the table is of no text, or that has changed since."""
    if table.file is None:
        return None
    try:
        text = _inspect(table.file, *table.signs)
        cells = text.parsed(dtype=str, na_values=[])
    except (TableError, OSError):
        return None
    names, *_ = joined_header(text.header, cells.replace("", None).dropna(how="all"))
    cells = cells.set_axis(names_of(names), axis=1)
    unchanged = set(table.frame.columns) <= set(cells.columns) and set(table.frame.index) <= set(cells.index)
    return cells.loc[table.frame.index, table.frame.columns] if unchanged else None


def _inspect(file: Path, separator: str | None, decimal: str | None) -> Text:
    """How a file is written, by its first lines; refuses what is no text, or too large: cells are counted by
    the separators and the ends of lines behind them.
    """
    gzipped = file.suffix == ".gz"
    if not gzipped:
        bounded(file, file.stat().st_size, 0)
    size, cell_ends, head, invalid, digits = 0, dict.fromkeys(SEPARATORS, 0), b"", b"", False
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with gzip.open(file) if gzipped else file.open("rb") as stream:
            while chunk := stream.read(HEAD):
                head, size = head or chunk, size + len(chunk)
                digits = digits or _LOSSY.search(chunk) is not None
                # Old spreadsheets end lines with \r alone.
                line_ends = chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")
                for sign in cell_ends:
                    cell_ends[sign] += line_ends + chunk.count(sign.encode())
                bounded(file, size, max(cell_ends.values()))
                if not invalid:
                    try:
                        decoder.decode(chunk)
                    except UnicodeDecodeError:
                        invalid = chunk
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _unreadable(
            file, f"it is no whole gzip archive ({error}): copy or download it again"
        ) from error
    encoding = _encoding(file, head, invalid)
    text = head.decode(encoding, errors="replace")
    raw_lines = re.split(r"\r\n|\r|\n", text, maxsplit=2 * LINES)
    if size > HEAD and len(raw_lines) == 1:
        raise TableError(f"{file}: expected a header of at most 1 MiB; it is longer: is it the right table?")
    raw_lines = raw_lines[:-1] if size > HEAD or len(raw_lines) > 2 * LINES else raw_lines
    lines = list[str]()
    for line in raw_lines:
        if lines and lines[-1].count('"') % 2:
            lines[-1] += f"\n{line}"
        else:
            lines.append(line)
    first = next((place for place, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise _unreadable(file, "it is empty; expected .csv or .csv.gz with a header row")
    below_titles, titles = _below_titles(file, lines[first : first + TITLES + KNOWN], separator)
    above = first + titles
    lines = lines[above : above + LINES]
    separator = separator or below_titles or separator_of(file, lines)
    sign = decimal or decimal_of(lines[1:], separator)
    # Before a million names become objects.
    few_columns(re.sub(r'"[^"]*"', "", lines[0]).count(separator) + 1, str(file))
    header = _cells(lines[:1], separator)[0] or lines[0].split(separator)
    return Text(file, encoding, above, lines, separator, sign, header, titles > 0, digits)


def _below_titles(file: Path, lines: list[str], separator: str | None) -> tuple[str, int]:
    """The separator of a header that stands below titles, and its place; "" and 0 if there are none."""
    first = _cells(lines[:1], separator_of(file, lines) if separator is None else separator)[0]
    best, most_names = ("", 0), len(filled_columns(first))
    for candidate in SEPARATORS if separator is None else (separator,):
        rows = _cells(lines, candidate)
        line = header_place(rows)
        if line and len(filled_columns(rows[line])) > most_names:
            best, most_names = (candidate, line), len(filled_columns(rows[line]))
    return best


def _encoding(file: Path, head: bytes, invalid: bytes) -> str:
    """The encoding of a text by its first bytes, and by a piece of it that is no UTF-8, if there is one."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    little, big = head[1:4:2] == b"\0\0", head[0:3:2] == b"\0\0"
    if little != big:
        return "utf-16-le" if little else "utf-16-be"
    if _BINARY.search(head[:2000]):
        kind = next((kind for magic, kind in _FILE_KINDS.items() if head.startswith(magic)), "")
        kind = kind or "binary data: export the table as CSV"
        raise TableError(f"{file} is not comma-separated text but {kind}")
    if not invalid:
        return "utf-8-sig"
    lines = [line for line in re.split(rb"[\r\n]+", invalid) if re.search(rb"[\x80-\xff]", line)]
    guess = charset_normalizer.from_bytes(b"\n".join(lines[:LINES]), cp_isolation=_CANDIDATES).best()
    if guess is None:
        return "cp1252"
    # The dash and the quotes of Windows are letters of Mac Roman: it must have more letters in words.
    letters = {
        name: len(_IN_WORD.findall(invalid.decode(name, "replace"))) for name in ("cp1252", "mac_roman")
    }
    is_mac = letters["mac_roman"] > letters["cp1252"]
    return "cp1252" if guess.encoding == "mac_roman" and not is_mac else guess.encoding


_IN_WORD = re.compile(r"(?<=[A-Za-z])[À-ÖØ-öø-ÿ]|[À-ÖØ-öø-ÿ](?=[A-Za-z])")


def _unreadable(file: Path, reason: str) -> TableError:
    return TableError(f"{file} cannot be read as a comma-separated table: {reason}")
