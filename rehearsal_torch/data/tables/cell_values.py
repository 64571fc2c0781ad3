"""What people write into columns of numbers, and into columns of dates.

    a column of      is read as                                     only if
    5,125.73         numbers, without the sign between thousands    some cell has two groups, or decimals too
    1 234, 1'234     the same
    45 %, 12 €       numbers (45 % is 45); the unit is kept         all numbers of the column have it
    n.m. k.A. - NA   missing cells                                  most other cells are numbers
    <5 >100          the limit itself                               at most 5 % of the numbers are limits
    True False       truth values; 1 and 0 beside numbers           no cell is another text
    007 and 07       texts: two names that would be one number

What is read otherwise than it is written is told, kind by kind. A value below a limit of detection is neither
missing nor known: left out, or replaced, it biases means and slopes by an amount that grows with their share,
which is small while a few percent are (Helsel, 2012, ch. 1). Where more are limits, or a cell has two
readings (1,234 may be 1234 or 1.234; 45 % beside .45), the text stays, so that whoever needs numbers refuses
it.

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

# What is an empty cell in every column, as pandas has it.
EMPTY = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
        *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)
# The largest share of limits among numbers, and the columns that a note names.
LIMITS, NAMED = 0.05, 5
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
# Of files with decimal commas: as with points, and what has a point becomes no number.
_COMMAS = str.maketrans(",.", ".\0")


def plain_text(text: str) -> str:
    """A text in composed letters, without blanks around it, and with one in place of several."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def unit_of(name: str) -> str:
    """The unit at the end of a name such as ``Temp. (°C)``; empty if there is none."""
    found = _UNIT.search(name)
    return "" if found is None else found[1].strip()


@dataclass
class Told:
    """What was read otherwise than it is written: kind to (column, first such text, cells), and the unit of
    each column whose cells have one.
    """

    kinds: dict[str, list[tuple[str, str, int]]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, column: str, text: str, count: int) -> None:
        """Notes some cells of a column."""
        self.kinds.setdefault(kind, []).append((column, text, count))

    def sentences(self) -> list[str]:
        """A sentence for each kind."""
        made = []
        for kind, parts in self.kinds.items():
            texts = list(dict.fromkeys(repr(beginning(text, 30)) for _, text, _ in parts))[:NAMED]
            more = f" and {len(parts) - NAMED} more columns" if len(parts) > NAMED else ""
            columns = f"{', '.join(name for name, *_ in parts[:NAMED])}{more}"
            count = sum(cells for *_, cells in parts)
            cells = f"{count} cell{'s' * (count > 1)} such as {', '.join(texts)}"
            made.append(f"{cells} {'are' if count > 1 else 'is'} read as {_READ[kind]} ({columns})")
        return made


_READ = {
    "word": "missing; if that is a class, give it another name",
    "missing": "missing among numbers",
    "limit": "the limit itself, though the value lies beyond it",
    "thousands": "numbers with signs between thousands",
    "unit": "numbers with a unit, which is left out",
}


def column_of(cells: pd.Series, name: str, told: Told, sign: str = ".") -> pd.Series:
    """A column of texts and truth values as numbers, truth values or texts, by the rules above.

    Args:
        cells: The column as it was parsed; other columns are returned as they are.
        name: Its name.
        told: Takes what is read otherwise than it is written.
        sign: The decimal sign.
    """
    if cells.dtype.kind in "biufc":
        return _whole(cells)
    codes, different = cells.factorize()
    texts = [plain_text(str(each)) for each in different]
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    values, kinds, unit = _read(texts, counts, sign)
    whole = {text: value for text, value in zip(texts, values, strict=True) if _DIGITS.fullmatch(text)}
    if len(set(whole.values())) < len(whole):
        # Two names that are one number, such as 007 and 07, or of more digits than a number holds.
        kinds = np.where(kinds == "plain", "text", kinds).astype(object)
    rows = {kind: int(counts[kinds == kind].sum()) for kind in np.unique(kinds).tolist()}
    other, truths = rows.get("text", 0), rows.get("truth", 0)
    numbers = sum(rows.get(each, 0) for each in ("plain", "limit", "thousands", "unit"))
    if numbers and not other:
        for kind in _READ:
            for place in np.flatnonzero(kinds == kind)[:1] if kind in rows else ():
                told.add(kind, name, texts[place], rows[kind])
        if "unit" in rows:
            told.units[name] = unit
        found = values
    elif truths and not numbers and not other and "missing" not in rows:
        found = (values == 1.0).astype(object)
        found[np.isnan(values)] = None
    else:
        found = np.array(texts, dtype=object)
        if sign == ",":
            plain = kinds == "plain"
            found[plain] = [text.replace(",", ".") for text in found[plain]]
        gone = kinds == "empty"
        if numbers and numbers >= other and "missing" in rows:
            told.add("missing", name, texts[int((kinds == "missing").argmax())], rows["missing"])
            gone |= kinds == "missing"
        found[gone] = None
    nothing = np.nan if found.dtype.kind == "f" else None
    taken = np.append(found, np.array([nothing], dtype=found.dtype))[codes]
    return _whole(pd.Series(taken.tolist() if taken.dtype.kind == "O" else taken, index=cells.index))


def _read(texts: list[str], counts: np.ndarray, sign: str) -> tuple[np.ndarray, np.ndarray, str]:
    """The number of each different text, (n,), NaN where it is none; its kind, (n,): a key of `_READ`,
    "plain", "truth", "empty" or "text"; and the unit of all numbers.
    """
    texts = [text.replace("\N{MINUS SIGN}", "-") for text in texts]
    pointed = [text.translate(_COMMAS) for text in texts] if sign == "," else texts
    values = np.array(pd.to_numeric(pd.Series(pointed, dtype=object), errors="coerce"), dtype=np.float64)
    kinds = np.where(np.isnan(values), "text", "plain").astype(object)
    units, groups, sure = {""} if (kinds == "plain").any() else set[str](), list[int](), False
    with_unit = list[int]()
    for place in np.flatnonzero(kinds == "text").tolist():
        text = texts[place]
        if text in EMPTY:
            kinds[place] = "empty"
        elif text.casefold() in TRUTH:
            values[place], kinds[place] = TRUTH[text.casefold()], "truth"
        elif MISSING.fullmatch(text):
            kinds[place] = "missing"
        elif (parts := _parts(text)) is not None:
            limit, unit, number = parts
            written = number.translate(str.maketrans(",.", ".,")) if sign == "," else number
            grouped = _GROUPED.fullmatch(written)
            plain = written if grouped is None else re.sub(r"[,'\u2019 ]", "", written)
            try:
                values[place] = float(plain)
            except ValueError:
                continue
            kinds[place] = "limit" if limit else "unit" if unit else "thousands"
            units.add(unit)
            with_unit += [place] if unit else []
            if grouped is not None and grouped["sign"]:
                groups.append(place)
                sure |= grouped["rest"] is not None or written.count(",") > 1
    if len(units) > 1:
        kinds[with_unit] = "text"
    if not sure:
        kinds[groups] = "text"
    limits = kinds == "limit"
    numbers = np.isin(kinds, ["plain", "limit", "thousands", "unit"])
    if counts[limits].sum() > LIMITS * counts[numbers].sum():
        kinds[limits] = "text"
    values[np.isin(kinds, ["text", "missing", "empty"])] = np.nan
    return values, kinds, next(iter(units), "")


def _parts(text: str) -> tuple[str, str, str] | None:
    """The limit, the unit and the number of a text; None if it is none of these."""
    found = _SIGNED.fullmatch(text)
    if found is None or (found["before"] and found["after"]):
        return None
    return found["limit"] or "", found["before"] or found["after"] or "", found["number"].strip()


def _whole(column: pd.Series) -> pd.Series:
    """Whole numbers as such, however they were written."""
    if column.dtype.kind != "f":
        return column
    numbers = column.to_numpy()
    with np.errstate(invalid="ignore"):
        whole = bool((numbers == np.floor(numbers)).all() and (np.abs(numbers) < 2**53).all())
    return column.astype(np.int64) if whole and len(column) else column


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
    codes, different = column.factorize()
    texts = [plain_text(str(each)) for each in different]
    parts = [_DAY.fullmatch(text) for text in texts]
    signed = [each for each in parts if each is not None and each[2] != "."]
    first, second = (any(int(each[place]) > 12 for each in signed) for place in (1, 3))
    made = list[str | None]()
    for text, found in zip(texts, parts, strict=True):
        if found is None:
            year = _YEAR.fullmatch(text)
            made.append(text if year is None else _iso(year[1], year[3], year[4], year[5]))
        elif found[2] != "." and first == second:
            made.append(None)
        else:
            day, month = (found[3], found[1]) if found[2] != "." and second else (found[1], found[3])
            century = "" if len(found[4]) == 4 else "19" if int(found[4]) > 68 else "20"
            made.append(_iso(century + found[4], month, day, found[5]))
    dates = pd.to_datetime(
        pd.Series([*made, None], dtype=object), errors="coerce", format="ISO8601", utc=True
    )
    return dates.iloc[codes].set_axis(column.index)


def order_unknown(column: pd.Series) -> bool:
    """Whether a column has dates such as 01/02/2024 alone, of which none shows whether the day or the month
    comes first.
    """
    cells = column.dropna().astype(str)
    days = cells.str.fullmatch(_DAY.pattern, flags=re.DOTALL)
    return bool(len(cells) and days.all() and dates_of(column).isna().all())


def _iso(year: str, month: str, day: str, rest: str) -> str:
    """A date with its time of day, which may be 9:30 or 1:30 PM, in ISO 8601."""
    if (clock := _CLOCK.fullmatch(rest)) is not None:
        hour = int(clock[1]) if clock[4] is None else int(clock[1]) % 12 + 12 * (clock[4] in "pP")
        rest = f"T{hour:02}:{clock[2]}{clock[3]}"
    return f"{year}-{month:0>2}-{day:0>2}{rest}"
