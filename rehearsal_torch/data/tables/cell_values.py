"""Parsing of cells: numbers, truth values and dates as people write them.

    a column of      is read as                                     only if
    5,125.73         numbers, without the sign between thousands    some cell has two groups, or decimals too
    1 234, 1'234     the same
    45 %, 12 €       numbers (45 % is 45); the unit is kept         all numbers of the column have it
    n.m. k.A. - NA   missing cells                                  most other cells are numbers
    <5 >100          the limit itself                               at most 5 % of the numbers are limits
    True False       truth values; 1 and 0 beside numbers           no cell is another text
    007 and 07       texts: two names that would be one number

What is read otherwise than it is written is noted, by kind. A value below a limit of detection is neither
missing nor known: left out, or replaced, it biases means and slopes by an amount that grows with the share of
such values, and is small while a few percent are (Helsel, 2012, ch. 1). Where more are limits, or a cell has
two readings (1,234 may be 1234 or 1.234; 45 % beside .45), the text stays, and is refused as a number.

Blanks around texts are left out, several of them and line breaks are one, and letters are composed (NFC):
what looks the same is the same.

Source: Unicode Standard Annex 15 for NFC; Helsel (2012), Statistics for Censored Environmental Data.
"""

import re
import unicodedata
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from rehearsal_torch.files.redaction import beginning

# The words for an empty cell in every column, as in pandas.
EMPTY = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
        *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)
# The largest share of limits among numbers, and the number of columns that a note names.
LIMIT_SHARE, NAMED_COLUMNS = 0.05, 5
MISSING = re.compile(
    "[-\N{EN DASH}\N{EM DASH}\N{MINUS SIGN}]+|" r"[.?]|n\.? ?[abdmv]\.?|n/[abdm]\.?|k\.? ?a\.?", re.IGNORECASE
)
_SIGNED = re.compile(
    r"(?P<limit>[<>]=?|[≤≥])? ?(?P<before>[$€£¥]|CHF|EUR|USD)? ?"
    r"(?P<number>[+-]?\d[\d.,'\u2019 ]*(?:[eE][+-]?\d+)?|[+-]?[.,]\d+) ?(?P<after>[%$€£¥]|CHF|EUR|USD)?"
)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:(?P<blank>[ '\u2019]\d{3})+|(?P<sign>,\d{3})+)(?P<rest>\.\d+)?")
TRUTH = {"true": 1.0, "false": 0.0}
_DIGITS = re.compile(r"[+-]?\d+")
_UNIT = re.compile(r"[(\[]([^()\[\]=,;]{1,20})[)\]]\Z")
LIMIT = re.compile(r"\s*(?:[<>]=?|[≤≥])\s*[.,\d]")
# From decimal commas to points, and points to a sign that makes a text no number; and both exchanged.
_COMMAS, _SWAPPED = str.maketrans(",.", ".\0"), str.maketrans(",.", ".,")


def plain_text(text: str) -> str:
    """A text in composed letters, without blanks around it, and with one in place of several."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def unit_of(name: str) -> str:
    """The unit at the end of a name such as ``Temp. (°C)``; empty if there is none."""
    unit = _UNIT.search(name)
    return "" if unit is None else unit[1].strip()


@dataclass
class Notes:
    """What was read otherwise than it is written: each kind, a key of `_NOTES`, with (column, first text,
    count), and the unit of each column whose cells have one.
    """

    kinds: dict[str, list[tuple[str, str, int]]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, column: str, text: str, count: int) -> None:
        """Notes that `count` cells of a column are read so, of which `text` is the first."""
        self.kinds.setdefault(kind, []).append((column, text, count))

    def sentences(self) -> list[str]:
        """A sentence for each kind."""
        sentences = []
        for kind, columns in self.kinds.items():
            texts = list(dict.fromkeys(repr(beginning(text, 30)) for _, text, _ in columns))[:NAMED_COLUMNS]
            more = f" and {len(columns) - NAMED_COLUMNS} more columns" if len(columns) > NAMED_COLUMNS else ""
            column_words = f"{', '.join(name for name, *_ in columns[:NAMED_COLUMNS])}{more}"
            count = sum(cells for *_, cells in columns)
            cells = f"{count} cell{'s' * (count > 1)} such as {', '.join(texts)}"
            sentences.append(
                f"{cells} {'are' if count > 1 else 'is'} read as {_NOTES[kind]} ({column_words})"
            )
        return sentences


_NOTES = {
    "word": "missing; if that is a class, give it another name",
    "missing": "missing among numbers",
    "limit": "the limit itself, though the value lies beyond it",
    "thousands": "numbers with signs between thousands",
    "unit": "numbers with a unit, which is left out",
}


def column_of(cells: pd.Series, name: str, notes: Notes, sign: str = ".") -> pd.Series:
    """A column of texts and truth values as numbers, truth values or texts, by the rules above; other columns
    as they are. `notes` takes what is read otherwise than it is written; `sign` is the decimal sign.
    """
    if cells.dtype.kind in "biufc":
        return _as_integers(cells)
    codes, distinct = cells.factorize()
    texts = [plain_text(str(text)) for text in distinct]
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    values, kinds, unit = _parse_texts(texts, counts, sign)
    integers = {text: value for text, value in zip(texts, values, strict=True) if _DIGITS.fullmatch(text)}
    if len(set(integers.values())) < len(integers):
        # Two names that are one number, such as 007 and 07, or of more digits than a number holds.
        kinds = np.where(kinds == "plain", "text", kinds).astype(object)
    cell_counts = {kind: int(counts[kinds == kind].sum()) for kind in np.unique(kinds).tolist()}
    text_cells, truth_cells = cell_counts.get("text", 0), cell_counts.get("truth", 0)
    number_cells = sum(cell_counts.get(kind, 0) for kind in ("plain", "limit", "thousands", "unit"))
    if number_cells and not text_cells:
        for kind in _NOTES:
            if kind in cell_counts:
                notes.add(kind, name, texts[int((kinds == kind).argmax())], cell_counts[kind])
        if "unit" in cell_counts:
            notes.units[name] = unit
        readings = values
    elif truth_cells and not number_cells and not text_cells and "missing" not in cell_counts:
        readings = (values == 1.0).astype(object)
        readings[np.isnan(values)] = None
    else:
        readings = np.array(texts, dtype=object)
        if sign == ",":
            with_comma = kinds == "plain"
            readings[with_comma] = [text.replace(",", ".") for text in readings[with_comma]]
        missing = kinds == "empty"
        if number_cells and number_cells >= text_cells and "missing" in cell_counts:
            notes.add("missing", name, texts[int((kinds == "missing").argmax())], cell_counts["missing"])
            missing |= kinds == "missing"
        readings[missing] = None
    empty = np.nan if readings.dtype.kind == "f" else None
    column = np.append(readings, np.array([empty], dtype=readings.dtype))[codes]
    return _as_integers(pd.Series(column.tolist() if column.dtype.kind == "O" else column, index=cells.index))


def _parse_texts(texts: list[str], counts: np.ndarray, sign: str) -> tuple[np.ndarray, np.ndarray, str]:
    """The number of each different text, (n,), NaN where it is none; its kind, (n,): a key of `_NOTES`,
    "plain", "truth", "empty" or "text"; and the unit of all numbers.
    """
    texts = [text.replace("\N{MINUS SIGN}", "-") for text in texts]
    with_points = [text.translate(_COMMAS) for text in texts] if sign == "," else texts
    values = np.array(pd.to_numeric(pd.Series(with_points, dtype=object), errors="coerce"), dtype=np.float64)
    kinds = np.where(np.isnan(values), "text", "plain").astype(object)
    units = {""} if (kinds == "plain").any() else set[str]()
    with_unit, comma_groups, groups_certain = list[int](), list[int](), False
    for index in np.flatnonzero(kinds == "text").tolist():
        text = texts[index]
        if text in EMPTY:
            kinds[index] = "empty"
        elif text.casefold() in TRUTH:
            values[index], kinds[index] = TRUTH[text.casefold()], "truth"
        elif MISSING.fullmatch(text):
            kinds[index] = "missing"
        elif (parts := _SIGNED.fullmatch(text)) is not None and not (parts["before"] and parts["after"]):
            unit, number = parts["before"] or parts["after"] or "", parts["number"].strip()
            in_points = number.translate(_SWAPPED) if sign == "," else number
            groups = _GROUPED.fullmatch(in_points)
            digits = in_points if groups is None else re.sub(r"[,'\u2019 ]", "", in_points)
            try:
                values[index] = float(digits)
            except ValueError:
                continue
            kinds[index] = "limit" if parts["limit"] else "unit" if unit else "thousands"
            units.add(unit)
            with_unit += [index] if unit else []
            if groups is not None and groups["sign"]:
                comma_groups.append(index)
                groups_certain |= groups["rest"] is not None or in_points.count(",") > 1
    if len(units) > 1:
        kinds[with_unit] = "text"
    if not groups_certain:
        kinds[comma_groups] = "text"
    limits = kinds == "limit"
    numbers = np.isin(kinds, ["plain", "limit", "thousands", "unit"])
    if counts[limits].sum() > LIMIT_SHARE * counts[numbers].sum():
        kinds[limits] = "text"
    values[np.isin(kinds, ["text", "missing", "empty"])] = np.nan
    return values, kinds, next(iter(units), "")


def _as_integers(column: pd.Series) -> pd.Series:
    """A column of floats as int64 if all are whole numbers below 2^53; other columns as they are."""
    if column.dtype.kind != "f":
        return column
    numbers = column.to_numpy()
    with np.errstate(invalid="ignore"):
        all_whole = bool((numbers == np.floor(numbers)).all() and (np.abs(numbers) < 2**53).all())
    return column.astype(np.int64) if all_whole and len(column) else column


# The beginning of a date as text.
DATE = re.compile(r"\s*\d{4}[-/]\d{1,2}[-/]\d{1,2}(?!\d)|\s*\d{1,2}[./]\d{1,2}[./]\d{2,4}(?!\d)")
_DAY = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?!\d)(.*)", re.DOTALL)
_YEAR = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})(?!\d)(.*)", re.DOTALL)
_CLOCK = re.compile(r"[T ,]*(\d{1,2}):(\d\d)(.*?)(?: ?([ap])\.?m\.?)?", re.IGNORECASE)


def dates_of(column: pd.Series) -> pd.Series:
    """Dates as times in UTC, (n,), NaT where a cell is none.

    Dates are 2024-03-01, 01.03.2024 and 1.3.24, or with / or -, 31/12/2024 or 12/31/2024, whose order a day
    above 12 has to show somewhere in the column. A time of day may follow.
    """
    codes, distinct = column.factorize()
    texts = [plain_text(str(cell)) for cell in distinct]
    day_first = [_DAY.fullmatch(text) for text in texts]
    slashed = [date for date in day_first if date is not None and date[2] != "."]
    day_leads, month_leads = (any(int(date[group]) > 12 for date in slashed) for group in (1, 3))
    iso_texts = list[str | None]()
    for text, match in zip(texts, day_first, strict=True):
        if match is None:
            year_first = _YEAR.fullmatch(text)
            iso_texts.append(text if year_first is None else _iso(*year_first.group(1, 3, 4, 5)))
        elif match[2] != "." and day_leads == month_leads:
            iso_texts.append(None)
        else:
            day, month = (match[3], match[1]) if match[2] != "." and month_leads else (match[1], match[3])
            century = "" if len(match[4]) == 4 else "19" if int(match[4]) > 68 else "20"
            iso_texts.append(_iso(century + match[4], month, day, match[5]))
    dates = pd.to_datetime(
        pd.Series([*iso_texts, None], dtype=object), errors="coerce", format="ISO8601", utc=True
    )
    return dates.iloc[codes].set_axis(column.index)


def order_unknown(column: pd.Series) -> bool:
    """Whether a column has dates such as 01/02/2024 alone, of which none shows whether the day or the month
    comes first.
    """
    cells = column.dropna().astype(str)
    day_first = cells.str.fullmatch(_DAY.pattern, flags=re.DOTALL)
    return bool(len(cells) and day_first.all() and dates_of(column).isna().all())


def _iso(year: str, month: str, day: str, time_of_day: str) -> str:
    """A date with its time of day, which may be 9:30 or 1:30 PM, in ISO 8601."""
    if (match := _CLOCK.fullmatch(time_of_day)) is not None:
        hour = int(match[1]) if match[4] is None else int(match[1]) % 12 + 12 * (match[4] in "pP")
        time_of_day = f"T{hour:02}:{match[2]}{match[3]}"
    return f"{year}-{month:0>2}-{day:0>2}{time_of_day}"
