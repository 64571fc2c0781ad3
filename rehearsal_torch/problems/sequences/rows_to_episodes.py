"""Episodes from the rows of units: merging rows into steps of equal length, and filling missing values.

The rows of a unit fall into steps (`problems.sequences.time_steps`). Of several rows in a step, the first
known value of a state counts, and actions are added up, averaged, or the largest counts, as the task says. An
action belongs to the state at the beginning of its step. In the last row of a unit all actions may be empty:
its state came after the last action. The lowest levels stand there, which cost nothing and stay.

Missing values and missing steps have one policy, that of the task:

    refuse      faults
    drop        the unit is left out
    carry: m    the last value is kept for at most m steps in a row, of states and of actions; a unit that has
                more missing, or misses a value from its first step on, is left out

What was merged, carried and left out is counted. A static column must have one value in all rows of a unit,
and at least half of the units must have it in their first row: what is known at the end only, such as an
outcome, would be a cause of itself. Under ``carry`` an empty cell of it takes that value, also before it was
known, and such units are counted. Named levels are read as 0 ... L - 1, named values of a
static column as columns of 0 and 1. Each fault is reported once for a column, with its first line (the header
is line 1) and its unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.tables.reader import TableError, numbers_of
from rehearsal_torch.files.schema import LARGEST, Fault, listed, meant, shown
from rehearsal_torch.problems.sequences.column_roles import Action, Column, EpisodeRoles
from rehearsal_torch.problems.sequences.time_steps import (
    JITTER,
    SLACK,
    actionless,
    in_days,
    moment_text,
    numbered,
    step_for,
    time_text,
    times_of,
)

if TYPE_CHECKING:
    from rehearsal_torch.data.decision import EpisodeCase

# The columns of the result beside those of the episodes; no task can name such columns.
UNIT, TIME, LINE, BARE, FILLED = "\x1funit", "\x1ftime", "\x1fline", "\x1fbare", "\x1ffilled "
REMEDY = "add them, or say what to do with `missing: drop` or `missing: {carry: 1}`"


def unit_rows(frame: pd.DataFrame, roles: EpisodeRoles, faults: list[str]) -> pd.DataFrame:
    """The rows, sorted by unit and time, of a table whose index is the line number minus two: the columns of
    the episodes, NaN where a cell is missing or has a fault; `UNIT` as text, `TIME` and `LINE`. Empty if unit
    or time cannot be read.
    """
    names = [str(name) for name in frame.columns]
    required = dict.fromkeys((roles.unit, roles.time, *roles.columns))
    absent = [name for name in required if name not in names]
    faults += [Fault("", f"no column {name!r}; {meant(name, names)}", "unknown") for name in absent]
    if not len(frame):
        faults.append("expected rows; the table has none")
        return pd.DataFrame()
    lines = frame.index.to_numpy(np.int64) + 2
    units = None if roles.unit in absent else _units(frame[roles.unit], lines, roles, faults)
    locator = _Locator(lines, units, roles.words.unit)
    columns: dict[str, np.ndarray] = {}
    for column in roles.features:
        if column.name in absent:
            continue
        cells = frame[column.name]
        if column.values:
            codes = _codes(column.name, cells, column.values, locator, faults)
            for code, name in enumerate(column.names, 1):
                columns[name] = np.where(np.isnan(codes), np.nan, codes == code)
        else:
            columns[column.name] = _range_checked(column, cells, locator, faults)
    for action in (candidate for candidate in roles.actions if candidate.name not in absent):
        cells = frame[action.name]
        if action.levels:
            columns[action.name] = _codes(action.name, cells, action.levels, locator, faults)
        else:
            columns[action.name] = _doses(action, cells, locator, faults)
    time = None if roles.time in absent else _times(frame[roles.time], locator, roles, faults)
    if roles.missing.rule == "refuse":
        action_names = [action.name for action in roles.actions if action.name not in absent]
        no_action = np.zeros(len(frame), bool)
        if units is not None and time is not None:
            no_action = actionless(frame, units, time, action_names)
        for name in (name for name in roles.columns if name not in absent):
            empty = frame[name].isna().to_numpy() & ~(no_action & (name in action_names))
            if empty.any():
                count = f"{int(empty.sum())} of {len(frame)} values are missing"
                faults.append(f"{name}: {count}, the first{locator.at(empty)}: {REMEDY}")
    if units is None or time is None:
        return pd.DataFrame()
    rows = pd.DataFrame({**columns, UNIT: units, TIME: time, LINE: lines}, copy=False)
    del columns
    order = np.lexsort((time, _order(frame[roles.unit], units)))
    if (order[1:] < order[:-1]).any():
        rows = rows.iloc[order].reset_index(drop=True)
    copies = rows.duplicated([UNIT, TIME]).to_numpy()
    if copies.any():
        row = rows.iloc[int(copies.argmax())]
        faults.append(
            f"{roles.time}: {int(copies.sum())} rows repeat a time of the same {roles.words.unit}, the first "
            f"in line {row[LINE]} ({roles.words.unit} {row[UNIT]}): keep one of each"
        )
        return pd.DataFrame()
    return rows


class _Locator:
    """The first bad row as text for a message: its line and its unit."""

    def __init__(self, lines: np.ndarray, units: np.ndarray | None, called: str) -> None:
        self.lines, self.units, self.called = lines, units, called

    def at(self, bad: np.ndarray) -> str:
        position = int(bad.argmax())
        unit = "" if self.units is None else f" ({self.called} {self.units[position]})"
        return f" in line {self.lines[position]}{unit}"

    def such(self, bad: np.ndarray) -> str:
        """`at`, and the number of bad rows."""
        return f"{self.at(bad)}, {int(bad.sum())} such rows"


def step_text(length: float, dated: bool, roles: EpisodeRoles) -> str:
    """The length of a step with its unit, such as ``1 hour``, or ``1 in week`` where times are numbers."""
    if dated:
        return time_text(length, dated)
    if length == 1 and roles.words.step:
        return f"1 {roles.words.step}"
    return f"{length:g} in {roles.time}"


def _units(column: pd.Series, lines: np.ndarray, roles: EpisodeRoles, faults: list[str]) -> np.ndarray | None:
    """The units as text, also "7" for 7.0."""
    unnamed = column.isna().to_numpy()
    if unnamed.any():
        faults.append(
            f"{roles.unit}: {int(unnamed.sum())} rows name no {roles.words.unit}, the first in line "
            f"{lines[int(unnamed.argmax())]}: fill them in, or delete the rows"
        )
        return None
    codes, distinct = pd.factorize(column)
    names = pd.Series(distinct)
    if pd.api.types.is_float_dtype(names) and (names % 1 == 0).all():
        names = names.astype(np.int64)
    # One text for each unit, and not for each row.
    return np.asarray(names.astype(str).str.strip(), dtype=object)[codes]


def _order(column: pd.Series, units: np.ndarray) -> np.ndarray:
    """Ranks of the units: numbers by size, others by text."""
    keys = column.to_numpy() if pd.api.types.is_numeric_dtype(column) else units.astype(str)
    return np.unique(keys, return_inverse=True)[1]


def _times(column: pd.Series, locator: _Locator, roles: EpisodeRoles, faults: list[str]) -> np.ndarray | None:
    """Time as numbers; dates in days."""
    time = times_of(column)
    bad = ~np.isfinite(time)
    if bad.any():
        cell = column.iloc[int(bad.argmax())]
        got = f"{'an empty cell' if pd.isna(cell) else shown(str(cell))}{locator.such(bad)}"
        expected = "expected numbers, or dates such as 2024-03-01 or 31.12.2024"
        hint = "" if "/" not in got else " (day and month are told apart where one day is above 12)"
        faults.append(f"{roles.time}: {expected}{hint}; got {got}")
        return None
    return time


def _codes(
    name: str, cells: pd.Series, levels: Sequence[str], locator: _Locator, faults: list[str]
) -> np.ndarray:
    """0 ... L - 1 for named levels."""
    if pd.api.types.is_numeric_dtype(cells) and not pd.api.types.is_bool_dtype(cells):
        texts = cells.map(lambda number: f"{number:.12g}", na_action="ignore")
    else:
        texts = cells.astype("string").str.strip()
    codes = texts.map({level: float(code) for code, level in enumerate(levels)})
    values = np.asarray(codes.to_numpy(np.float64, na_value=np.nan))
    unknown = np.isnan(values) & cells.notna().to_numpy()
    if unknown.any():
        word = shown(str(texts.iloc[int(unknown.argmax())]))
        faults.append(f"{name}: expected {', '.join(levels[:10])}; got {word}{locator.such(unknown)}")
    return values


def _numbers(name: str, cells: pd.Series, locator: _Locator, faults: list[str]) -> np.ndarray:
    numbers = numbers_of(cells).copy()
    not_numeric = np.isnan(numbers) & cells.notna().to_numpy()
    if not_numeric.any():
        cell = shown(str(cells.iloc[int(not_numeric.argmax())]))
        remedy = "write numbers with a decimal point, or name the values in the task"
        faults.append(f"{name}: expected numbers; got {cell}{locator.such(not_numeric)}: {remedy}")
    with np.errstate(invalid="ignore"):
        too_large = np.abs(numbers) > LARGEST
    if too_large.any():
        faults.append(f"{name}: expected finite numbers up to {LARGEST:g}{locator.at(too_large)}")
        numbers[too_large] = np.nan
    return numbers


def _range_checked(column: Column, cells: pd.Series, locator: _Locator, faults: list[str]) -> np.ndarray:
    numbers = _numbers(column.name, cells, locator, faults)
    low, high = -np.inf if column.low is None else column.low, np.inf if column.high is None else column.high
    with np.errstate(invalid="ignore"):
        outside = (numbers < low) | (numbers > high)
    if outside.any():
        unit = f" {column.unit}" if column.unit else ""
        got = f"got {numbers[int(outside.argmax())]:g}{locator.such(outside)}"
        remedy = "correct them, leave the cells empty, or widen the range in the task"
        faults.append(f"{column.name}: expected {_range_text(low, high)}{unit}; {got}: {remedy}")
    return numbers


def _range_text(low: float, high: float) -> str:
    if low == -np.inf:
        return f"at most {high:g}"
    return f"at least {low:g}" if high == np.inf else f"{low:g} to {high:g}"


def _doses(action: Action, cells: pd.Series, locator: _Locator, faults: list[str]) -> np.ndarray:
    doses = _numbers(action.name, cells, locator, faults)
    with np.errstate(invalid="ignore"):
        negative = doses < 0
    if negative.any():
        got = f"got {doses[int(negative.argmax())]:g}{locator.such(negative)}"
        remedy = "settings that may be negative are given levels, {levels: [-1, 0, 1]}"
        faults.append(f"{action.name}: expected amounts of at least 0; {got}: {remedy}")
    return doses


STEP = "\x1fstep"
# A time that begins so late is a date in numbers.
DATES = 10_000


@dataclass(frozen=True)
class UnitEpisodes:
    """Episodes of a table, one for each unit.

    Attributes:
        length: The length of a step, in the unit of time; in days for dates, on average for months.
        step: The same in words, such as ``1 hour``.
        counts: What was merged, carried and left out, reason to count.
        first: The time of step 0, if one whole number for all units and steps are 1 long; else None.
        above: Action to the number of steps above any row, as rows are added up; most of a row, of a step.
        times: Unit to the time of each step, (T,), NaN where the table has no row.
        dated: Whether they are dates, in days since 1970.
    """

    episodes: tuple[Episode, ...]
    length: float
    step: str
    counts: Mapping[str, int]
    first: int | None = None
    above: Mapping[str, tuple[int, float, float]] = field(default_factory=dict)
    times: Mapping[str, np.ndarray] = field(default_factory=dict)
    dated: bool = False

    def case(self, episode: Episode, keep_last: int) -> EpisodeCase:
        """One of the episodes, or its first steps, in retrospect: the last `keep_last` actions stay."""
        import torch

        from rehearsal_torch.data.decision import EpisodeCase

        fixed = torch.zeros(episode.horizon if keep_last else 0, dtype=torch.bool)
        fixed[max(episode.horizon - keep_last, 0) :] = True
        times = self.times[episode.identity][: episode.horizon]
        moments = tuple(moment_text(time, self.dated) for time in times)
        return EpisodeCase(episode, fixed, {}, self.first, moments)


def read_episodes(
    frame: pd.DataFrame,
    roles: EpisodeRoles,
    source: str,
    min_length: int = 2,
    max_length: int | None = None,
    length: float | None = None,
    mask: bool = False,
) -> UnitEpisodes:
    """The episodes of a table; TableError lists all faults. `length` is that of a step, if other rows of the
    same table set it (the task's own comes first); `mask` says whether carried values are marked.
    """
    if min_length < 2 or (max_length is not None and max_length < min_length):
        raise ValueError(f"expected 2 <= min_length <= max_length; got {min_length} and {max_length}")
    faults: list[str] = []
    rows = unit_rows(frame, roles, faults)
    step_length, first = 0.0, None
    counts: Counter[str] = Counter()
    dated = roles.time in frame and in_days(frame[roles.time])
    if len(rows):
        faults += _static_faults(rows, roles)
        if length is None:
            faults += _late_statics(rows, roles, counts)
        step_length, beside = _number_steps(rows, roles, faults, dated, length)
        first = _first_time(rows, step_length)
        _count(counts, f"rows up to {JITTER:.0%} of a step beside it", beside)
    if faults:
        raise TableError(listed(source, faults, "nothing was read"))
    action_names = [action.name for action in roles.actions]
    peak = rows[action_names].max()
    if roles.step is not None:
        rows = _merge_rows(rows, roles, counts)
    above = {
        name: (int((rows[name] > peak[name] * (1 + SLACK)).sum()), float(peak[name]), float(rows[name].max()))
        for name in action_names
    }
    rows[BARE] = actionless(rows, rows[UNIT].to_numpy(), rows[TIME].to_numpy(), action_names)
    for name in action_names:
        rows[name] = np.where(rows[BARE], 0.0, rows[name])
    rows = _fill_or_drop(rows, roles, counts, mask)
    episodes, times = _split_units(rows, roles, min_length, max_length, counts)
    step = step_text(step_length, dated, roles)
    return UnitEpisodes(episodes, step_length, step, dict(counts), first, above, times, dated)


def _number_steps(
    rows: pd.DataFrame, roles: EpisodeRoles, faults: list[str], dated: bool, known_length: float | None = None
) -> tuple[float, int]:
    """Adds the number of each row's step; returns the length of a step, and how many rows jitter."""
    unit, time = rows[UNIT].to_numpy(), rows[TIME].to_numpy(np.float64)
    begins = np.r_[True, unit[1:] != unit[:-1]]
    rows[STEP] = 0
    if isinstance(roles.step, str) and not dated:
        fault = f"`step: {roles.step}` counts those of the calendar, and this column has no dates"
        faults.append(f"{roles.time}: {fault}: write the length of a step as a number")
        return 0.0, 0
    if roles.step is None and known_length is None and begins.all():
        faults.append(f"{roles.time}: expected several rows for each {roles.words.unit}; every one has one")
        return 0.0, 0
    numbering = numbered(time, begins, roles.step, dated, known_length or 0.0)
    rows[STEP], uneven, length = numbering.steps, numbering.odd, numbering.length
    if uneven.any():
        row = int(uneven.argmax())
        distance, step = time_text(time[row] - time[row - 1], dated), step_for(length, dated)
        faults.append(
            f"{roles.time}: expected steps of {time_text(length, dated)}, the most frequent one; "
            f"{roles.words.unit} {unit[row]} has {distance} between lines "
            f"{rows[LINE][row - 1]} and {rows[LINE][row]}, {int(uneven.sum())} such rows: correct them, "
            f"or merge rows into steps with `step: {step}` in the task"
            f"{' (in days)' * (dated and step != 'month')}"
        )
    jump = np.where(begins | uneven, 1, np.diff(numbering.steps, prepend=0))
    if (jump > 1).any() and roles.missing.rule == "refuse":
        row = int((jump > 1).argmax())
        faults.append(
            f"{roles.time}: {int((jump > 1).sum())} gaps; {roles.words.unit} {unit[row]} lacks "
            f"{int(jump[row]) - 1} steps between lines {rows[LINE][row - 1]} and {rows[LINE][row]}: "
            f"{REMEDY}"
        )
    return length, int(numbering.beside.sum())


def _first_time(rows: pd.DataFrame, length: float) -> int | None:
    """The whole number at which the time of every unit begins; None if there is none, or it is a date."""
    begins = rows[TIME].to_numpy(np.float64)[(rows[UNIT] != rows[UNIT].shift()).to_numpy()]
    if length != 1 or (begins != begins[0]).any() or begins[0] != np.round(begins[0]):
        return None
    return int(begins[0]) if abs(begins[0]) < DATES else None


def _static_faults(rows: pd.DataFrame, roles: EpisodeRoles) -> list[str]:
    """The faults of static columns with several values within a unit."""
    faults = []
    for column in roles.static:
        for name in (name for name in column.names if name in rows):
            first = rows.groupby(UNIT, sort=False)[name].transform("first")
            changed = (rows[name].notna() & (rows[name] != first)).to_numpy()
            if changed.any():
                row = rows.iloc[int(changed.argmax())]
                faults.append(
                    f"{column.name}: expected one value for each {roles.words.unit}; {row[UNIT]} has "
                    f"another one in line {row[LINE]}: name it under varying or contextual"
                )
                break
    return faults


def _late_statics(rows: pd.DataFrame, roles: EpisodeRoles, counts: Counter[str]) -> list[str]:
    """The faults of static columns that most units lack in their first row; fewer such units are counted."""
    faults, units = [], roles.words.units
    for name, column in ((column.names[0], column) for column in roles.static):
        if roles.missing.rule == "refuse" or name not in rows:
            continue
        first = rows[~rows[UNIT].duplicated()].set_index(UNIT)[name].notna()
        known = rows[name].notna().groupby(rows[UNIT], sort=False).any()
        late = int((known & ~first).sum())
        if late * 2 > known.sum():
            fault = f"{late} of {int(known.sum())} {units} with a value lack it in their first row"
            remedy = "what is known later is no static, give it the role other"
            faults.append(f"{column.name}: {fault}: {remedy}")
        elif roles.missing.rule == "carry":
            _count(counts, f"{units} for whom {column.name} was first known after steps that use it", late)
    return faults


def _merge_rows(rows: pd.DataFrame, roles: EpisodeRoles, counts: Counter[str]) -> pd.DataFrame:
    """One row for each step that has rows."""
    groups = rows.groupby([UNIT, STEP], sort=False)
    merged = groups[[name for name in rows.columns if name not in (UNIT, STEP)]].first()
    for action in roles.actions:
        group = groups[action.name]
        summed = action.combine == "sum"
        merged[action.name] = group.sum(min_count=1) if summed else group.agg(action.combine)
    if len(merged) < len(rows):
        counts["rows merged into steps"] = len(rows) - len(merged)
    return merged.reset_index()


def _fill_or_drop(rows: pd.DataFrame, roles: EpisodeRoles, counts: Counter[str], mask: bool) -> pd.DataFrame:
    """The rows after the policy for missing values and steps."""
    names, limit = list(roles.names), roles.missing.steps
    begins = (rows[UNIT] != rows[UNIT].shift()).to_numpy()
    jump = np.where(begins, 1, rows[STEP].diff().fillna(1).to_numpy())
    if roles.missing.rule == "refuse":
        return rows
    reason = f"{roles.words.units} left out for missing values or steps"
    if roles.missing.rule == "drop":
        incomplete = (jump > 1) | rows[names].isna().any(axis=1).to_numpy()
        dropped = rows[UNIT].isin(set(rows[UNIT][incomplete]))
        _count(counts, reason, rows[UNIT][dropped].nunique())
        return rows[~dropped]
    long_gaps = set(rows[UNIT][jump - 1 > limit])
    rows = rows[~rows[UNIT].isin(long_gaps)]
    if not len(rows):
        _count(counts, reason, len(long_gaps))
        return rows
    ends = rows.groupby(UNIT, sort=False)[STEP].max()
    steps = (ends + 1).to_numpy(np.int64)
    numbers = np.concatenate([np.arange(count) for count in steps])
    grid = pd.DataFrame({UNIT: np.repeat(ends.index.to_numpy(), steps), STEP: numbers})
    full = grid.merge(rows, how="left", on=[UNIT, STEP])
    inserted = full[LINE].isna()
    static = [name for column in roles.static for name in column.names]
    filled = full[names].copy()
    moving = [name for name in names if name not in static]
    filled[moving] = full.groupby(UNIT, sort=False)[moving].ffill(limit=limit)
    for name in static:
        filled[name] = full[name].fillna(full.groupby(UNIT, sort=False)[name].transform("first"))
    unfilled = set(full[UNIT][filled.isna().any(axis=1)])
    keep = ~full[UNIT].isin(unfilled)
    carried = full[names].isna() & keep.to_numpy()[:, None]
    _count(counts, "missing steps filled by carrying forward", int((inserted & keep).sum()))
    for name in names:
        _count(counts, f"values of {name} carried forward", int((carried[name] & ~inserted).sum()))
    _count(counts, reason, len(long_gaps | unfilled))
    full[names] = filled
    if mask:
        full[[FILLED + name for name in names]] = carried.to_numpy()
    return full[keep]


def _split_units(
    rows: pd.DataFrame, roles: EpisodeRoles, min_length: int, max_length: int | None, counts: Counter[str]
) -> tuple[tuple[Episode, ...], dict[str, np.ndarray]]:
    """One episode for each unit that is long enough, and the times of its steps."""
    unit, names, time = rows[UNIT].to_numpy(), roles.names, rows[TIME].to_numpy(np.float64)
    no_action = rows[BARE].to_numpy()
    columns = [rows[name].to_numpy(np.float64) for name in names]
    masks = [rows[FILLED + name].to_numpy(bool) for name in names if FILLED + name in rows]
    begins = [*np.flatnonzero(np.r_[True, unit[1:] != unit[:-1]]).tolist(), len(unit)] if len(unit) else []
    episodes, times = list[Episode](), dict[str, np.ndarray]()
    for begin, end in pairwise(begins):
        if max_length is not None and end - begin > max_length:
            counts["steps behind the longest horizon"] += end - begin - max_length
            end = begin + max_length
        if end - begin < min_length:
            counts[f"{roles.words.units} with fewer than {min_length} steps"] += 1
            continue
        # Numbers of its own: a view would carry the whole table into every process.
        values = np.stack([column[begin:end] for column in columns], -1)
        identity = str(unit[begin])
        filled = np.stack([mask[begin:end] for mask in masks], -1) if masks else None
        episodes.append(Episode(identity, names, values, not no_action[end - 1], filled))
        times[identity] = time[begin:end].copy()
    return tuple(episodes), times


def _count(counts: Counter[str], reason: str, number: int) -> None:
    if number:
        counts[reason] += int(number)
