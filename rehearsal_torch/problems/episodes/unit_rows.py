"""The rows of a table of (unit, time) as numbers, and the faults of its cells.

Numbers are read as they are, named levels as 0 ... L - 1, named values of a static column as columns of 0 and
1. Time is a number, or a date in ISO 8601, which counts in days. An empty cell is missing; whether that is a
fault is the task's to say (`problems.episodes.steps`). Each fault is reported once for a column, with the
first line of the file that has it (the header is line 1), and its unit.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rehearsal_torch.data.reading import numbers_of
from rehearsal_torch.files.schema import LARGEST, Fault, meant, shown
from rehearsal_torch.problems.episodes.roles import Action, Column, EpisodeRoles

UNIT, TIME, LINE = "\x1funit", "\x1ftime", "\x1fline"
"""The columns of the result beside those of the episodes; no task can name such columns."""
SECONDS_OF_A_DAY = 86400.0
REMEDY = "add them, or say what to do with `missing: drop` or `missing: {carry: 1}`"
"""What to do about missing values and steps."""


def unit_rows(frame: pd.DataFrame, roles: EpisodeRoles, faults: list[str]) -> pd.DataFrame:
    """The rows, sorted by unit and time, of a table whose index is the line number minus two.

    Returns:
        The columns of the episodes as float64, NaN where a cell is missing or has a fault; `UNIT` as text,
        `TIME` as float64 and `LINE`. Empty if unit or time cannot be read.
    """
    names = [str(name) for name in frame.columns]
    wanted = dict.fromkeys((roles.unit, roles.time, *roles.columns))
    absent = [name for name in wanted if name not in names]
    faults += [Fault("", f"no column {name!r}; {meant(name, names)}", "unknown") for name in absent]
    if not len(frame):
        faults.append("expected rows; the table has none")
        return pd.DataFrame()
    lines = frame.index.to_numpy(np.int64) + 2
    if roles.unit in absent:
        units = None
    else:
        units = _units(frame[roles.unit], lines, roles, faults)
    whose = _Lines(lines, units, roles.words.unit)
    columns: dict[str, np.ndarray] = {}
    for each in (*roles.varying, *roles.static, *roles.contextual):
        if each.name in absent:
            continue
        cells = frame[each.name]
        if each.values:
            codes = _codes(each.name, cells, each.values, whose, faults)
            for place, name in enumerate(each.names, 1):
                columns[name] = np.where(np.isnan(codes), np.nan, codes == place)
        else:
            columns[each.name] = _within(each, cells, whose, faults)
    for action in roles.actions:
        if action.name in absent:
            continue
        cells = frame[action.name]
        columns[action.name] = (
            _codes(action.name, cells, action.levels, whose, faults)
            if action.levels
            else _doses(action, cells, whose, faults)
        )
    if roles.missing.rule == "refuse":
        for name in roles.columns:
            empty = np.zeros(0, bool) if name in absent else frame[name].isna().to_numpy()
            if empty.any():
                faults.append(
                    f"{name}: {int(empty.sum())} of {len(frame)} values are missing, the first"
                    f"{whose.at(empty)}: {REMEDY}"
                )
    time = None if roles.time in absent else _times(frame[roles.time], whose, roles, faults)
    if units is None or time is None:
        return pd.DataFrame()
    rows = pd.DataFrame({**columns, UNIT: units, TIME: time, LINE: lines}, copy=False)
    del columns
    order = np.lexsort((time, _order(frame[roles.unit], units)))
    if (order[1:] < order[:-1]).any():
        rows = rows.iloc[order].reset_index(drop=True)
    twice = rows.duplicated([UNIT, TIME]).to_numpy()
    if twice.any():
        first = rows.iloc[int(twice.argmax())]
        faults.append(
            f"{roles.time}: {int(twice.sum())} rows repeat a time of the same {roles.words.unit}, the first "
            f"in line {first[LINE]} ({roles.words.unit} {first[UNIT]}): keep one of each"
        )
        return pd.DataFrame()
    return rows


class _Lines:
    """The first line of a fault, and its unit, in words."""

    def __init__(self, lines: np.ndarray, units: np.ndarray | None, called: str) -> None:
        self.lines, self.units, self.called = lines, units, called

    def at(self, bad: np.ndarray) -> str:
        """Where the first bad row is."""
        place = int(bad.argmax())
        whose = "" if self.units is None else f" ({self.called} {self.units[place]})"
        return f" in line {self.lines[place]}{whose}"


def _units(column: pd.Series, lines: np.ndarray, roles: EpisodeRoles, faults: list[str]) -> np.ndarray | None:
    """The units as text, also "7" for 7.0."""
    nobody = column.isna().to_numpy()
    if nobody.any():
        faults.append(
            f"{roles.unit}: {int(nobody.sum())} rows name no {roles.words.unit}, the first in line "
            f"{lines[int(nobody.argmax())]}: fill them in, or delete the rows"
        )
        return None
    codes, different = pd.factorize(column)
    names = pd.Series(different)
    if pd.api.types.is_float_dtype(names) and (names % 1 == 0).all():
        names = names.astype(np.int64)
    # One text for each unit, and not for each row.
    return np.asarray(names.astype(str).str.strip(), dtype=object)[codes]


def _order(column: pd.Series, units: np.ndarray) -> np.ndarray:
    """Ranks of the units: numbers by size, others by text."""
    keys = column.to_numpy() if pd.api.types.is_numeric_dtype(column) else units.astype(str)
    return np.unique(keys, return_inverse=True)[1]


def of_dates(column: pd.Series) -> bool:
    """Whether a column of time is read as dates, which count in days."""
    return not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)


def times_of(column: pd.Series) -> np.ndarray:
    """A column of time as numbers, (n,): dates in ISO 8601 in days, NaN where a cell is neither."""
    if not of_dates(column):
        return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    dates = pd.to_datetime(column.astype("string"), errors="coerce", format="ISO8601", utc=True)
    known = dates.notna().to_numpy()
    time = np.full(len(column), np.nan)
    since = dates[known] - pd.Timestamp("1970-01-01", tz="UTC")
    time[known] = since.dt.total_seconds().to_numpy(np.float64) / SECONDS_OF_A_DAY
    return time


def _times(column: pd.Series, whose: _Lines, roles: EpisodeRoles, faults: list[str]) -> np.ndarray | None:
    """Time as numbers; dates in days."""
    time = times_of(column)
    bad = ~np.isfinite(time)
    if bad.any():
        cell = column.iloc[int(bad.argmax())]
        faults.append(
            f"{roles.time}: expected numbers, or dates such as 2024-03-01; got "
            f"{'an empty cell' if pd.isna(cell) else shown(str(cell))}{whose.at(bad)}, {int(bad.sum())} such "
            "rows"
        )
        return None
    return time


def _codes(
    name: str, cells: pd.Series, levels: Sequence[str], whose: _Lines, faults: list[str]
) -> np.ndarray:
    """0 ... L - 1 for named levels."""
    if pd.api.types.is_numeric_dtype(cells) and not pd.api.types.is_bool_dtype(cells):
        texts = cells.map(lambda each: f"{each:.12g}", na_action="ignore")
    else:
        texts = cells.astype("string").str.strip()
    codes = texts.map({level: float(place) for place, level in enumerate(levels)})
    found = np.asarray(codes.to_numpy(np.float64, na_value=np.nan))
    wrong = np.isnan(found) & cells.notna().to_numpy()
    if wrong.any():
        word = str(texts.iloc[int(wrong.argmax())])
        faults.append(
            f"{name}: expected {', '.join(levels[:10])}; got {shown(word)}{whose.at(wrong)}, "
            f"{int(wrong.sum())} such rows"
        )
    return found


def _numbers(name: str, cells: pd.Series, whose: _Lines, faults: list[str]) -> np.ndarray:
    """A column of numbers; NaN where a cell is empty."""
    found = numbers_of(cells).copy()
    text = np.isnan(found) & cells.notna().to_numpy()
    if text.any():
        cell = str(cells.iloc[int(text.argmax())])
        faults.append(
            f"{name}: expected numbers; got {shown(cell)}{whose.at(text)}, {int(text.sum())} such rows: "
            "write numbers with a decimal point, or name the values in the task"
        )
    with np.errstate(invalid="ignore"):
        large = np.abs(found) > LARGEST
    if large.any():
        faults.append(f"{name}: expected finite numbers up to {LARGEST:g}{whose.at(large)}")
        found[large] = np.nan
    return found


def _within(each: Column, cells: pd.Series, whose: _Lines, faults: list[str]) -> np.ndarray:
    """A column of numbers in their range."""
    found = _numbers(each.name, cells, whose, faults)
    low, high = -np.inf if each.low is None else each.low, np.inf if each.high is None else each.high
    with np.errstate(invalid="ignore"):
        outside = (found < low) | (found > high)
    if outside.any():
        unit = f" {each.unit}" if each.unit else ""
        first = found[int(outside.argmax())]
        faults.append(
            f"{each.name}: expected {_ends(low, high)}{unit}; got {first:g}{whose.at(outside)}, "
            f"{int(outside.sum())} such rows: correct them, leave the cells empty, or "
            "widen the range in the task"
        )
    return found


def _ends(low: float, high: float) -> str:
    """A range in words."""
    if low == -np.inf:
        return f"at most {high:g}"
    return f"at least {low:g}" if high == np.inf else f"{low:g} to {high:g}"


def _doses(each: Action, cells: pd.Series, whose: _Lines, faults: list[str]) -> np.ndarray:
    """A column of doses."""
    found = _numbers(each.name, cells, whose, faults)
    with np.errstate(invalid="ignore"):
        negative = found < 0
    if negative.any():
        faults.append(
            f"{each.name}: expected amounts of at least 0; got {found[int(negative.argmax())]:g}"
            f"{whose.at(negative)}, {int(negative.sum())} such rows: settings that may be negative are given "
            "levels, {levels: [-1, 0, 1]}"
        )
    return found
