"""A first problem file of episodes from a table: whose rows, when, and roles are guessed.

    time       a column with a name such as time, day or week, of numbers or dates; where a sequence is asked
               for, else the only column of dates, or of numbers that rise from row to row of each unit
    unit       the column that has several rows for each of its values, and no time twice for one; of several
               such columns that with the most values
    static     constant within each unit
    action     a name such as dose, price or treatment, texts, or 0 to at most 4
    state      all other columns of numbers

Columns of free texts are left out. The reward cannot be guessed: the file has a place for it, with an
example. Steps are those that the reader of episodes finds (`problems.episodes.step_numbers`); where it finds
none, rows are merged into steps of their most frequent distance. Of each unit the draft counts the steps in a
row that lack a row or a value:

    nothing lacks                          nothing is written: what lacks is a fault
    half of the units lack nothing         missing: drop
    fewer do, and carrying keeps more      missing: {carry: m}, m the median of the units that lack something
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from rehearsal_torch.data.reading import ReadTable, TableError, numbers_of
from rehearsal_torch.problems.episodes.step_numbers import in_days, numbered, step_for, times_of
from rehearsal_torch.problems.episodes.steps import actionless
from rehearsal_torch.problems.written.draft_columns import (
    ACTIONS,
    MARK,
    TextColumn,
    commented,
    has_word,
    of_dates,
    scalar,
    text_column,
    writable,
)


def step_lines(
    frame: pd.DataFrame,
    unit: str,
    time: str,
    moving: Sequence[str],
    static: Sequence[str],
    actions: Sequence[str] = (),
) -> list[str]:
    """The lines of a problem file on steps and missing values of `moving` columns, `actions` among them, and
    of `static` ones with at most one value in each unit; none where nothing has to be said.
    """
    whose, when = pd.factorize(frame[unit])[0], times_of(frame[time])
    order = np.lexsort((when, whose))
    rows, whose, when = frame.iloc[order], whose[order], when[order]
    begins = np.r_[True, whose[1:] != whose[:-1]]
    if begins.all():
        return []
    calendar = in_days(frame[time])
    found, lines = numbered(when, begins, None, calendar), list[str]()
    if found.odd.any():
        step = step_for(found.length, calendar)
        why = "# Rows of a unit lie at uneven distances: those within a step of this length are merged."
        lines = ["", why, f"step: {step}"]
        found = numbered(when, begins, "month" if step == "month" else found.length, calendar)
    known = rows[[*moving, *static]].notna()
    known.loc[actionless(rows, whose, when, actions), list(actions)] = True
    lacks = _lacks(known.groupby([whose, found.steps]).any(), moving, static)
    return [*lines, *_policy(frame, lacks, [*moving, *static])]


def _policy(frame: pd.DataFrame, lacks: np.ndarray, names: Sequence[str]) -> list[str]:
    """What happens to empty cells and missing steps, if there are some."""
    some = [f"{name}: {int(frame[name].isna().sum())}" for name in names if frame[name].isna().any()]
    whole, carried = int((lacks == 0).sum()), np.isfinite(lacks) & (lacks > 0)
    if whole == len(lacks):
        return []
    rule, kept = "drop", whole
    if whole < len(lacks) / 2 and carried.any():
        most = max(1, int(np.median(lacks[carried])))
        rule, kept = f"{{carry: {most}}}", int((lacks <= most).sum())
    told = f"Empty cells, by column: {', '.join(some)}" if some else "Some units lack steps"
    return [
        "",
        f"# {told}. They are faults (refuse), take their unit out (drop),",
        "# or take the last value for at most so many steps ({carry: 2}). As it is written, "
        f"{kept} of {len(lacks)} units are left.",
        f"missing: {rule}",
    ]


def _lacks(known: pd.DataFrame, moving: Sequence[str], static: Sequence[str]) -> np.ndarray:
    """For each unit the most steps in a row that lack a row or a value, infinite where the first one does."""
    numbers = known.index.get_level_values(1).to_numpy()
    begins = np.diff(known.index.get_level_values(0).to_numpy(), prepend=-1) > 0
    lacking = ~known.all(axis=1).to_numpy() | (~begins & (np.diff(numbers, prepend=0) > 1))
    found = np.zeros(int(begins.sum()))
    places = np.cumsum(begins) - 1
    for place in np.unique(places[lacking]):
        rows = known[places == place]
        steps = rows.index.get_level_values(1).to_numpy(np.float64)
        lack = float(max((after - before - 1 for before, after in pairwise(steps)), default=0.0))
        for name in moving:
            there = steps[rows[name].to_numpy()]
            if len(there) == 0 or there[0] > 0:
                lack = np.inf
            else:
                ends = [*there.tolist(), steps[-1] + 1]
                lack = max(lack, *(after - before - 1 for before, after in pairwise(ends)))
        for name in static:
            cells = rows[name].to_numpy()
            lack = np.inf if not cells.any() else max(lack, float(not cells.all()))
        found[place] = lack
    return found


TIMES = "time|date|datetime|timestamp|day|week|month|quarter|year|hour|minute|step|visit|period|t"
# Levels that are the least where an order has to be guessed.
LOWEST = ("none", "no", "off", "never", "nothing", "zero", "0")
MANY_LEVELS, ROWS_EACH, COLUMNS = 5, 3, 60
# The share of missing cells above which a column that changes is left out.
GAPS = 0.5
# A column that keeps its usual value in all units but fewer than so many, and than a quarter of them, may
# keep it in all units to learn from.
FEW_UNITS = 10


@dataclass(frozen=True)
class UnitAndTime:
    """The columns that say whose row it is, and when, and the number of units."""

    unit: str
    time: str
    units: int


def unit_and_time(frame: pd.DataFrame) -> UnitAndTime | None:
    """The columns of units and of time, by the name of the latter; None if there are none."""
    named = (name for name in _names(frame) if has_word(name, TIMES) and _in_time(frame[name]))
    return next((found for time in named if (found := _of_time(frame, time, rising=False))), None)


def by_values(frame: pd.DataFrame) -> list[UnitAndTime]:
    """The columns that can be time whatever their name, each with that of units: columns of dates, or, if
    there are none, of numbers that rise from row to row of each unit.
    """
    known = list[UnitAndTime]()
    for numbers in (False, True):
        fits = pd.api.types.is_numeric_dtype if numbers else of_dates
        able = [name for name in _names(frame) if fits(frame[name])]
        timed = [name for name in able if np.isfinite(times_of(frame[name])).all()]
        found = () if known else (_of_time(frame, name, rising=numbers) for name in timed)
        known += [each for each in found if each is not None]
    # In a sorted table, units rise at each time as times do in each unit: there are more units than times.
    return [
        each for each in known if not any(one.unit == each.time and one.units > each.units for one in known)
    ]


def dated(frame: pd.DataFrame) -> UnitAndTime | None:
    """The only column of dates that can be time, and that of units; None if there is none, or several."""
    found = [each for each in by_values(frame) if of_dates(frame[each.time])]
    return found[0] if len(found) == 1 else None


def _names(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame.columns if writable(str(name))]


def _of_time(frame: pd.DataFrame, time: str, *, rising: bool) -> UnitAndTime | None:
    """The column of units with the most values for which a column can be time; None if there is none."""
    found = []
    for unit in _names(frame):
        cells = frame[unit]
        count = cells.nunique()
        several = 2 <= count <= len(frame) / ROWS_EACH
        if unit == time or not several or cells.isna().any() or _fractions(cells):
            continue
        if frame.duplicated([unit, time]).any():
            continue
        if not rising or bool((frame[time].astype(float).groupby(cells).diff().dropna() > 0).all()):
            found.append(UnitAndTime(unit, time, count))
    return max(found, key=lambda each: each.units, default=None)


def sequence_draft(table: ReadTable, file: str, written: str, found: UnitAndTime | None = None) -> str:
    """The text of a problem file that asks for a sequence; without columns of units and of time these are
    looked for, whatever the name of the latter. TableError if there are none, or no column can be used.
    """
    frame = table.frame
    found = _looked_for(table) if found is None else found
    names = [str(name) for name in frame.columns if str(name) not in (found.unit, found.time)]
    lines = [_line(frame, name, found.unit) for name in names[:COLUMNS]]
    states = [each.name for each in lines if each.role == "state"]
    if not states:
        raise TableError(f"{table.where}: expected a column of numbers that varies within a {found.unit}")
    actions = [each for each in lines if each.role == "action"]
    high = float(np.nanquantile(numbers_of(frame[states[0]]), 0.9))
    moving = [each.name for each in lines if each.role in ("state", "action")]
    static = [each.name for each in lines if each.role == "static"]
    written_lines = [
        f"# A problem of {len(frame)} rows, of {found.units} of {found.unit}. Correct what is guessed, fill",
        f"# in what is marked, then type   rehearsal check {written}",
        *commented(table.notes),
        "",
        "# Which actions, step by step, should have been others?",
        "question: sequence",
        "# The table, relative to the folder of this file.",
        f"data: {scalar(file)}",
        "# Whose row it is, and when (guessed).",
        f"unit: {scalar(found.unit)}",
        f"time: {scalar(found.time)}",
        "",
        "# Every variable, with its role (guessed): a state changes and a model predicts it, static is",
        "# constant, context varies and no action changes it, an action was chosen in each step, other",
        "# is anything else. Levels of an action stand in order, from least to most; amounts have a unit.",
        "variables:",
        *(each.text for each in lines),
        *([] if actions else [f"  # no column looks like an action: write the role of one  {MARK}"]),
        "",
        "# What a step is worth: weights of states, points beyond limits (a score), costs of actions.",
        f"reward:  {MARK}, such as",
        f"#   weights: {{{scalar(states[0])}: -1}}",
        f'#   score: {{too high: {{{scalar(states[0])}: {{"> {high:.4g}": 1}}}}}}',
        *step_lines(frame, found.unit, found.time, moving, static, [each.name for each in actions]),
    ]
    return "\n".join(written_lines) + "\n"


def _looked_for(table: ReadTable) -> UnitAndTime:
    """The columns of units and of time."""
    found = unit_and_time(table.frame)
    able = [found] if found else by_values(table.frame)
    if len(able) == 1:
        return able[0]
    what = f"{', '.join(each.time for each in able)} can all be time" if able else "found none"
    unit, time = (scalar(able[0].unit), scalar(able[0].time)) if able else ("COLUMN", "COLUMN")
    raise TableError(
        f"{table.where}: expected a column of time, such as week or date, and one of units that has each "
        f"time once; {what}: name the one of time so, or write the problem file by hand, with its two lines\n"
        f"  unit: {unit}\n  time: {time}\nor draft the file for cases"
    )


@dataclass(frozen=True)
class _Line:
    name: str
    role: str
    text: str


def _line(frame: pd.DataFrame, name: str, unit: str) -> _Line:
    """A variable with its guessed role, as the file has it."""
    column = frame[name]
    texts = text_column(frame, name)
    if not writable(name):
        return _Line(name, "other", f"  # {name[:40]!r}: left out: a name of 1 to 200 letters is needed")
    if of_dates(column):
        return _left_out(name, "it has dates: write them as numbers, such as days since the first")
    if isinstance(texts, str):
        return _left_out(name, texts)
    constant = bool((column.groupby(frame[unit]).nunique() <= 1).all())
    if not constant and (why := _little(column, frame[unit])):
        return _left_out(name, why)
    if not constant and _of_truth(column):
        return _variable(name, "action", "levels: ['False', 'True']", "write context, if nobody chooses it")
    if isinstance(texts, TextColumn):
        levels = sorted(texts.levels, key=lambda each: each.casefold() not in LOWEST)
        said = f"levels: [{', '.join(map(scalar, levels))}]"
        if constant:
            return _variable(name, "static", f"kind: categorical, {said}", "")
        note = "levels, sorted by name: put them in order, from least to most"
        return _variable(name, "action", said, "" if texts.kind == "ordinal" else note)
    numbers = numbers_of(column)
    known = np.unique(numbers[~np.isnan(numbers)])
    if len(known) < 2 or np.isnan(numbers[column.notna().to_numpy()]).any():
        return _left_out(name, "it has one value" if len(known) < 2 else "it has texts among numbers")
    seen = f"{known[0]:.6g} to {known[-1]:.6g}"
    if constant:
        return _variable(name, "static", "", seen)
    whole = bool((known == np.round(known)).all())
    if whole and 2 <= len(known) <= MANY_LEVELS and known[0] == 0 and known[-1] == len(known) - 1:
        note = f"{seen}; write context alone, if nobody chooses it"
        return _variable(name, "action", f"levels: {len(known)}", note)
    if has_word(name, ACTIONS) and known[0] == 0:
        return _variable(name, "action", "", f"{seen}; amounts, or write levels")
    return _variable(name, "state", "", seen)


def _left_out(name: str, why: str) -> _Line:
    return _Line(name, "other", f"  # {scalar(name)}: left out: {why}")


def _little(column: pd.Series, units: pd.Series) -> str:
    """Why a column says too little where only some units are learnt from; empty if it does not."""
    missing, often = int(column.isna().sum()), column.value_counts()
    if missing > GAPS * len(column):
        return f"{missing} of {len(column)} values are missing"
    other = column.notna() & (column != often.index[0])
    count, every = units[other].nunique(), units.nunique()
    if len(often) < 2 or count >= min(FEW_UNITS, every / 4):
        return ""
    return f"only {count} of {every} units have another value than {often.index[0]}"


def _of_truth(column: pd.Series) -> bool:
    """Whether all cells are true or false, which are read as texts."""
    return column.dtype.kind in "bO" and all(isinstance(each, bool | np.bool_) for each in column.dropna())


def _variable(name: str, role: str, said: str, note: str) -> _Line:
    about = f"{{role: {role}{', ' if said else ''}{said}}}" if said else role
    return _Line(name, role, f"  {scalar(name)}: {about}{f'  # {note}' if note else ''}")


def _in_time(column: pd.Series) -> bool:
    """Whether a column can be one of time: numbers, or dates."""
    return len(column) > 0 and bool(np.isfinite(times_of(column)).all())


def _fractions(column: pd.Series) -> bool:
    """Whether a column has numbers that are not whole."""
    numbers = numbers_of(column)
    known = numbers[~np.isnan(numbers)]
    return bool(len(known)) and not bool((known == np.round(known)).all())
