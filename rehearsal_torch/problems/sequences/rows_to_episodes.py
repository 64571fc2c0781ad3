"""From the rows of units to episodes: steps of equal length, missing values, and what is left out.

The rows of a unit fall into steps (`problems.sequences.time_steps`). Of several rows in a step, the first
known value of a state counts, and actions are added up, averaged, or the largest counts, as the task says. An
action belongs to the state at the beginning of its step. In the last row of a unit all actions may be empty:
its state came after the last action. The lowest levels stand there, which cost nothing and stay.

Missing values and missing steps have one policy, that of the task:

    refuse      faults
    drop        the unit is left out
    carry: m    the last value is kept for at most m steps in a row, of states and of actions; a unit that has
                more missing, or misses a value from its first step on, is left out

What was merged, carried and left out is counted. A static column must have one value in all rows of a unit;
under ``carry`` an empty cell of it takes that value.

Numbers are read as they are, named levels as 0 ... L - 1, named values of a static column as columns of 0 and
1. Each fault is reported once for a column, with the first line of the file that has it (the header is line
1), and its unit.
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
    units = None if roles.unit in absent else _units(frame[roles.unit], lines, roles, faults)
    whose = _Lines(lines, units, roles.words.unit)
    columns: dict[str, np.ndarray] = {}
    for each in roles.features:
        if each.name in absent:
            continue
        cells = frame[each.name]
        if each.values:
            codes = _codes(each.name, cells, each.values, whose, faults)
            for place, name in enumerate(each.names, 1):
                columns[name] = np.where(np.isnan(codes), np.nan, codes == place)
        else:
            columns[each.name] = _within(each, cells, whose, faults)
    for action in (each for each in roles.actions if each.name not in absent):
        cells = frame[action.name]
        if action.levels:
            columns[action.name] = _codes(action.name, cells, action.levels, whose, faults)
        else:
            columns[action.name] = _doses(action, cells, whose, faults)
    time = None if roles.time in absent else _times(frame[roles.time], whose, roles, faults)
    if roles.missing.rule == "refuse":
        acts = [each.name for each in roles.actions if each.name not in absent]
        bare = np.zeros(len(frame), bool)
        if units is not None and time is not None:
            bare = actionless(frame, units, time, acts)
        for name in (each for each in roles.columns if each not in absent):
            empty = frame[name].isna().to_numpy() & ~(bare & (name in acts))
            if empty.any():
                count = f"{int(empty.sum())} of {len(frame)} values are missing"
                faults.append(f"{name}: {count}, the first{whose.at(empty)}: {REMEDY}")
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

    def such(self, bad: np.ndarray) -> str:
        """Where the first bad row is, and how many there are."""
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


def _times(column: pd.Series, whose: _Lines, roles: EpisodeRoles, faults: list[str]) -> np.ndarray | None:
    """Time as numbers; dates in days."""
    time = times_of(column)
    bad = ~np.isfinite(time)
    if bad.any():
        cell = column.iloc[int(bad.argmax())]
        got = f"{'an empty cell' if pd.isna(cell) else shown(str(cell))}{whose.such(bad)}"
        expected = "expected numbers, or dates such as 2024-03-01 or 31.12.2024"
        odd = "" if "/" not in got else " (day and month are told apart where one day is above 12)"
        faults.append(f"{roles.time}: {expected}{odd}; got {got}")
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
        word = shown(str(texts.iloc[int(wrong.argmax())]))
        faults.append(f"{name}: expected {', '.join(levels[:10])}; got {word}{whose.such(wrong)}")
    return found


def _numbers(name: str, cells: pd.Series, whose: _Lines, faults: list[str]) -> np.ndarray:
    """A column of numbers; NaN where a cell is empty."""
    found = numbers_of(cells).copy()
    text = np.isnan(found) & cells.notna().to_numpy()
    if text.any():
        cell = shown(str(cells.iloc[int(text.argmax())]))
        remedy = "write numbers with a decimal point, or name the values in the task"
        faults.append(f"{name}: expected numbers; got {cell}{whose.such(text)}: {remedy}")
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
        got = f"got {found[int(outside.argmax())]:g}{whose.such(outside)}"
        remedy = "correct them, leave the cells empty, or widen the range in the task"
        faults.append(f"{each.name}: expected {_ends(low, high)}{unit}; {got}: {remedy}")
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
        got = f"got {found[int(negative.argmax())]:g}{whose.such(negative)}"
        remedy = "settings that may be negative are given levels, {levels: [-1, 0, 1]}"
        faults.append(f"{each.name}: expected amounts of at least 0; {got}: {remedy}")
    return found


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
        first: The time of the first step, where it is the same whole number for all units and a step is 1
            long: step t then has time first + t. None elsewhere.
        above: Action to the number of steps with more of it, added up, than any row; the most of a row, and
            of a step.
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
        own = self.times[episode.identity][: episode.horizon]
        return EpisodeCase(
            episode, fixed, {}, self.first, tuple(moment_text(each, self.dated) for each in own)
        )


def read_episodes(
    frame: pd.DataFrame,
    roles: EpisodeRoles,
    source: str,
    min_length: int = 2,
    max_length: int | None = None,
    length: float | None = None,
    mask: bool = False,
) -> UnitEpisodes:
    """The episodes of a table; `length` is that of a step, if other rows of the same table have told it (the
    task's own counts before it), and `mask` whether what was carried is marked.

    Raises:
        TableError: with all faults: columns that are missing, cells that cannot be read, are outside their
            range or, unless the task says otherwise, missing, static columns that change, uneven steps.
        ValueError: if a length is out of range.
    """
    if min_length < 2 or (max_length is not None and max_length < min_length):
        raise ValueError(f"expected 2 <= min_length <= max_length; got {min_length} and {max_length}")
    faults: list[str] = []
    rows = unit_rows(frame, roles, faults)
    found, first = 0.0, None
    counts: Counter[str] = Counter()
    dated = roles.time in frame and in_days(frame[roles.time])
    if len(rows):
        faults += _changing(rows, roles)
        found, beside = _numbered(rows, roles, faults, dated, length)
        first = _first(rows, found)
        _count(counts, f"rows up to {JITTER:.0%} of a step beside it", beside)
    if faults:
        raise TableError(listed(source, faults, "nothing was read"))
    acts = [each.name for each in roles.actions]
    most = rows[acts].max()
    if roles.step is not None:
        rows = _merged(rows, roles, counts)
    above = {
        name: (int((rows[name] > most[name] * (1 + SLACK)).sum()), float(most[name]), float(rows[name].max()))
        for name in acts
    }
    rows[BARE] = actionless(rows, rows[UNIT].to_numpy(), rows[TIME].to_numpy(), acts)
    for name in acts:
        rows[name] = np.where(rows[BARE], 0.0, rows[name])
    rows = _settled(rows, roles, counts, mask)
    episodes, times = _cut(rows, roles, min_length, max_length, counts)
    step = step_text(found, dated, roles)
    return UnitEpisodes(episodes, found, step, dict(counts), first, above, times, dated)


def _numbered(
    rows: pd.DataFrame, roles: EpisodeRoles, faults: list[str], dated: bool, known: float | None = None
) -> tuple[float, int]:
    """Adds the number of each row's step; returns the length of a step, and how many rows jitter."""
    unit, time = rows[UNIT].to_numpy(), rows[TIME].to_numpy(np.float64)
    begins = np.r_[True, unit[1:] != unit[:-1]]
    rows[STEP] = 0
    if isinstance(roles.step, str) and not dated:
        what = f"`step: {roles.step}` counts those of the calendar, and this column has no dates"
        faults.append(f"{roles.time}: {what}: write the length of a step as a number")
        return 0.0, 0
    if roles.step is None and known is None and begins.all():
        faults.append(f"{roles.time}: expected several rows for each {roles.words.unit}; every one has one")
        return 0.0, 0
    found = numbered(time, begins, roles.step, dated, known or 0.0)
    rows[STEP], odd, length = found.steps, found.odd, found.length
    if odd.any():
        place = int(odd.argmax())
        apart, step = time_text(time[place] - time[place - 1], dated), step_for(length, dated)
        faults.append(
            f"{roles.time}: expected steps of {time_text(length, dated)}, the most frequent one; "
            f"{roles.words.unit} {unit[place]} has {apart} between lines "
            f"{rows[LINE][place - 1]} and {rows[LINE][place]}, {int(odd.sum())} such rows: correct them, "
            f"or merge rows into steps with `step: {step}` in the task"
            f"{' (in days)' * (dated and step != 'month')}"
        )
    jump = np.where(begins | odd, 1, np.diff(found.steps, prepend=0))
    if (jump > 1).any() and roles.missing.rule == "refuse":
        place = int((jump > 1).argmax())
        faults.append(
            f"{roles.time}: {int((jump > 1).sum())} gaps; {roles.words.unit} {unit[place]} lacks "
            f"{int(jump[place]) - 1} steps between lines {rows[LINE][place - 1]} and {rows[LINE][place]}: "
            f"{REMEDY}"
        )
    return length, int(found.beside.sum())


def _first(rows: pd.DataFrame, length: float) -> int | None:
    """The whole number at which the time of every unit begins; None if there is none, or it is a date."""
    begins = rows[TIME].to_numpy(np.float64)[(rows[UNIT] != rows[UNIT].shift()).to_numpy()]
    if length != 1 or (begins != begins[0]).any() or begins[0] != np.round(begins[0]):
        return None
    return int(begins[0]) if abs(begins[0]) < DATES else None


def _changing(rows: pd.DataFrame, roles: EpisodeRoles) -> list[str]:
    """The faults of static columns with several values within a unit."""
    faults = []
    for each in roles.static:
        for name in (name for name in each.names if name in rows):
            first = rows.groupby(UNIT, sort=False)[name].transform("first")
            other = (rows[name].notna() & (rows[name] != first)).to_numpy()
            if other.any():
                at = rows.iloc[int(other.argmax())]
                faults.append(
                    f"{each.name}: expected one value for each {roles.words.unit}; {at[UNIT]} has "
                    f"another one in line {at[LINE]}: name it under varying or contextual"
                )
                break
    return faults


def _merged(rows: pd.DataFrame, roles: EpisodeRoles, counts: Counter[str]) -> pd.DataFrame:
    """One row for each step that has rows."""
    groups = rows.groupby([UNIT, STEP], sort=False)
    kept = groups[[name for name in rows.columns if name not in (UNIT, STEP)]].first()
    for each in roles.actions:
        column = groups[each.name]
        if each.combine == "sum":
            kept[each.name] = column.sum(min_count=1)
        else:
            kept[each.name] = column.agg(each.combine)
    if len(kept) < len(rows):
        counts["rows merged into steps"] = len(rows) - len(kept)
    return kept.reset_index()


def _settled(rows: pd.DataFrame, roles: EpisodeRoles, counts: Counter[str], mask: bool) -> pd.DataFrame:
    """The rows after the policy for missing values and steps."""
    names, most = list(roles.names), roles.missing.steps
    begins = (rows[UNIT] != rows[UNIT].shift()).to_numpy()
    jump = np.where(begins, 1, rows[STEP].diff().fillna(1).to_numpy())
    if roles.missing.rule == "refuse":
        return rows
    reason = f"{roles.words.units} left out for missing values or steps"
    if roles.missing.rule == "drop":
        wrong = (jump > 1) | rows[names].isna().any(axis=1).to_numpy()
        bad = rows[UNIT].isin(set(rows[UNIT][wrong]))
        _count(counts, reason, rows[UNIT][bad].nunique())
        return rows[~bad]
    long = set(rows[UNIT][jump - 1 > most])
    rows = rows[~rows[UNIT].isin(long)]
    if not len(rows):
        _count(counts, reason, len(long))
        return rows
    ends = rows.groupby(UNIT, sort=False)[STEP].max()
    steps = (ends + 1).to_numpy(np.int64)
    numbers = np.concatenate([np.arange(count) for count in steps])
    grid = pd.DataFrame({UNIT: np.repeat(ends.index.to_numpy(), steps), STEP: numbers})
    whole = grid.merge(rows, how="left", on=[UNIT, STEP])
    inserted = whole[LINE].isna()
    static = [name for each in roles.static for name in each.names]
    filled = whole[names].copy()
    moving = [name for name in names if name not in static]
    filled[moving] = whole.groupby(UNIT, sort=False)[moving].ffill(limit=most)
    for name in static:
        known = whole.groupby(UNIT, sort=False)[name].transform("first")
        filled[name] = whole[name].fillna(known)
    lost = set(whole[UNIT][filled.isna().any(axis=1)])
    kept = ~whole[UNIT].isin(lost)
    carried = whole[names].isna() & kept.to_numpy()[:, None]
    _count(counts, "missing steps filled by carrying forward", int((inserted & kept).sum()))
    for name in names:
        _count(counts, f"values of {name} carried forward", int((carried[name] & ~inserted).sum()))
    _count(counts, reason, len(long | lost))
    whole[names] = filled
    if mask:
        whole[[FILLED + name for name in names]] = carried.to_numpy()
    return whole[kept]


def _cut(
    rows: pd.DataFrame, roles: EpisodeRoles, min_length: int, max_length: int | None, counts: Counter[str]
) -> tuple[tuple[Episode, ...], dict[str, np.ndarray]]:
    """One episode for each unit that is long enough, and the times of its steps."""
    unit, names, time = rows[UNIT].to_numpy(), roles.names, rows[TIME].to_numpy(np.float64)
    bare = rows[BARE].to_numpy()
    columns = [rows[name].to_numpy(np.float64) for name in names]
    marks = [rows[FILLED + name].to_numpy(bool) for name in names if FILLED + name in rows]
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
        filled = np.stack([each[begin:end] for each in marks], -1) if marks else None
        episodes.append(Episode(identity, names, values, not bare[end - 1], filled))
        times[identity] = time[begin:end].copy()
    return tuple(episodes), times


def _count(counts: Counter[str], reason: str, number: int) -> None:
    if number:
        counts[reason] += int(number)
