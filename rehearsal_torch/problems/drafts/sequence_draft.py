"""A first problem file of episodes from a table: whose rows, when, and which roles.

    time       typed; else the first column with a name such as time, day or week, or of dates
    unit       typed; else the column with the most values that has several rows for each, and no time twice
               for one. It has whole numbers or texts, and units share their times, lie in blocks of the
               table, or have a name such as patient or machine: a measured column is none
    roles      static is constant within each unit; actions are told as in `problems.drafts.role_guesses`;
               what nobody sets or asks for, such as a year, is context; other numbers are states

The reward cannot be guessed: the file has a place for it. Steps are those that the reader of episodes finds;
where it finds none, rows are merged into steps of their most frequent distance. Where steps or values lack,
units are dropped while half of them stay, or else the last value is carried over so many steps in a row as
the median unit lacks.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from rehearsal_torch.data.tables.identifiers import PERSONS, identifier
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.problems.drafts.draft_yaml import MARK, filled, flow, omitted, scalar, variable
from rehearsal_torch.problems.drafts.role_guesses import (
    CALENDAR,
    FUNCTION,
    GIVEN,
    Column,
    Roles,
    Source,
    columns_of,
    has_word,
    of_dates,
    roles_of,
    without_copies,
)
from rehearsal_torch.problems.sequences.time_steps import actionless, in_days, numbered, step_for, times_of


def step_lines(
    frame: pd.DataFrame,
    unit: str,
    time: str,
    moving: Sequence[str],
    static: Sequence[str],
    actions: Sequence[str] = (),
) -> str:
    """The lines of a problem file on steps and missing values of `moving` columns, `actions` among them, and
    of `static` ones with at most one value in each unit; none where nothing has to be said.
    """
    whose, when = pd.factorize(frame[unit])[0], times_of(frame[time])
    order = np.lexsort((when, whose))
    rows, whose, when = frame.iloc[order], whose[order], when[order]
    begins = np.r_[True, whose[1:] != whose[:-1]]
    if begins.all():
        return ""
    calendar = in_days(frame[time])
    found, text = numbered(when, begins, None, calendar), ""
    if found.odd.any():
        step = step_for(found.length, calendar)
        found = numbered(when, begins, "month" if step == "month" else found.length, calendar)
        text = filled(STEP, step=step)
    known = rows[[*moving, *static]].notna()
    known.loc[actionless(rows, whose, when, actions), list(actions)] = True
    lacks = _lacks(known.groupby([whose, found.steps]).any(), moving, static)
    return text + _policy(frame, lacks, [*moving, *static])


STEP = """
# Rows of a unit lie at uneven distances: those within a step of this length are merged.
step: $step
"""
MISSING = """
# $told. They are faults (refuse),
# take their unit out (drop), or take the last value for at most so many steps ({carry: 2}).
# As it is written, $kept of $units units are left.
missing: $rule
"""


def _policy(frame: pd.DataFrame, lacks: np.ndarray, names: Sequence[str]) -> str:
    """What happens to empty cells and missing steps, if there are some."""
    some = ", ".join(f"{name}: {frame[name].isna().sum()}" for name in names if frame[name].isna().any())
    whole, carried = int((lacks == 0).sum()), np.isfinite(lacks) & (lacks > 0)
    if whole == len(lacks):
        return ""
    rule, kept = "drop", whole
    if whole < len(lacks) / 2 and carried.any():
        most = max(1, int(np.median(lacks[carried])))
        rule, kept = f"{{carry: {most}}}", int((lacks <= most).sum())
    told = f"Empty cells, by column: {some}" if some else "Some units lack steps"
    return filled(MISSING, told=told, kept=str(kept), units=str(len(lacks)), rule=rule)


def _lacks(known: pd.DataFrame, moving: Sequence[str], static: Sequence[str]) -> np.ndarray:
    """For each unit the most steps in a row that lack a row or a value, infinite where the first one does."""
    whose, steps = known.index.get_level_values(0), known.index.get_level_values(1)
    ends = pd.Series(steps, whose, dtype=np.float64).groupby(level=0).max() + 1
    found = pd.Series(0.0, ends.index)
    for name in moving:
        there = pd.Series(steps, whose, dtype=np.float64)[known[name].to_numpy()]
        first = there.groupby(level=0).first().reindex(ends.index, fill_value=np.inf)
        apart = pd.concat([there, ends]).sort_index(kind="stable").groupby(level=0).diff() - 1
        lack = apart.groupby(level=0).max().where(first == 0, np.inf)
        found = found.combine(lack, max)
    for name in static:
        by = known[name].groupby(level=0)
        found = found.combine((~by.all()).astype(float).where(by.any(), np.inf), max)
    return found.to_numpy()


TIMES = "time|date|datetime|timestamp|(?:day|week|month|quarter|year|hour|minute|step|visit|period)s?|t"
UNITS = "unit|machine|pump|plant|device|sensor|vehicle|animal|firm|company|store|shop|station|asset"
# Levels that are the least where an order has to be guessed.
LOWEST = ("none", "no", "off", "never", "nothing", "zero", "0", "false")
LEVELS, ROWS_EACH, FIXED = 5, 3, "constant in each unit"
# The share of missing cells above which a column that changes is left out.
GAPS = 0.5
# A column that keeps its usual value in all units but fewer than so many, and than a quarter of them, may
# keep it in all units to learn from.
FEW_UNITS = 10


def episodes(frame: pd.DataFrame, unit: str = "", time: str = "") -> tuple[str, str] | None:
    """The columns of units and of time, of which one or both may be known; None if there are none."""
    names = list(map(str, frame.columns))
    timed = [name for name in names if has_word(name, TIMES)]
    for each in [time] if time else [*timed, *(name for name in names if of_dates(frame[name]))]:
        when = pd.Series(times_of(frame[each]), frame.index)
        units = [
            name for name in ([unit] if unit else names) if name != each and _in_order(frame[name], when)
        ]
        units = [name for name in units if unit or _tells(frame[name], when)]
        if units and np.isfinite(when).all():
            return max(units, key=lambda name: frame[name].nunique()), each
    return None


def _in_order(cells: pd.Series, when: pd.Series) -> bool:
    """Whether a column has several rows for each of its values, and none of them twice at a time."""
    several = 2 <= cells.nunique() <= len(cells) / ROWS_EACH and not cells.isna().any()
    return several and not pd.DataFrame({"cells": cells, "when": when}).duplicated().any()


def _tells(cells: pd.Series, when: pd.Series) -> bool:
    """Whether a column says whose rows they are, and is not measured."""
    name, shared = str(cells.name), when.nunique() * 2 <= len(when)
    if has_word(name, GIVEN[CALENDAR]) or (is_float_dtype(cells) and (cells % 1 != 0).any()):
        return False
    called = has_word(name, f"{'|'.join(PERSONS)}|{UNITS}") or identifier(name, cells) is not None
    blocks = (cells != cells.shift()).sum() == cells.nunique()
    return called or shared or bool(blocks and (when.groupby(cells).diff().dropna() > 0).all())


def sequence_draft(source: Source) -> tuple[str, list[str]]:
    """The text of a problem file that asks for a sequence, and what is to be said; TableError if there are no
    columns of units and of time, or no column can be used.
    """
    frame = source.table.frame
    found = episodes(frame, *("".join(source.typed.get(part, ())) for part in ("unit", "time")))
    if found is None:
        expected = "expected a column of time, such as week or date, and one of units that has each time once"
        remedy = "add unit=COLUMN and time=COLUMN, or question=cases"
        raise TableError(f"{source.table.where}: {expected}: {remedy}")
    unit, time = found
    by = pd.Series(times_of(frame[time])).groupby(frame[unit].to_numpy())
    ends = by.idxmin().to_numpy(), by.idxmax().to_numpy()
    columns = [each for each in columns_of(frame, gaps=1.0) if each.name not in found]
    columns = [_in_units(each, frame, unit, *ends) for each in columns]
    roles = roles_of(columns, source, numbers=True)
    roles.open.pop("outcome", None)
    columns = without_copies(columns, roles)
    lines = [_line(each, roles) for each in columns]
    states, context, actions, static = (
        [each.name for each, (role, _) in zip(columns, lines, strict=True) if role == part]
        for part in ("state", "context", "action", "static")
    )
    shown = [*roles.names["outcome"], *states, ""][0]
    if shown not in states:
        expected = f"expected a column of numbers that varies within a {unit}"
        raise TableError(f"{source.table.where}: {expected}{f'; got outcome={shown}' if shown else ''}")
    high = np.quantile(next(each.numbers for each in columns if each.name == shown), 0.9)
    moving = [*states, *context, *actions]
    return source.fill(
        SEQUENCE,
        [line for _, line in lines] + roles.marks,
        rows=str(len(frame)),
        units=str(frame[unit].nunique()),
        unit=scalar(unit),
        time=scalar(time),
        first=scalar(shown),
        high=f"{high:.4g}",
        steps=step_lines(frame, unit, time, moving, static, actions),
    ), roles.notes


SEQUENCE = """\
# A problem of $rows rows, of $units of $unit. Correct what is guessed, fill in what is marked, then
# type   rehearsal check $written
$notes

# Which actions, step by step, should have been others?
question: sequence
# The table, relative to the folder of this file.
data: $file
# Whose row it is, and when.
unit: $unit
time: $time

# Every variable, with its role: a state changes and a model predicts it, static is constant, context varies
# and no action changes it, an action was chosen in each step, other is anything else. Levels of an action
# stand in order, from least to most; amounts have a unit.
variables:
$variables

# What a step is worth: weights of states, points beyond limits (a score), costs of actions.
reward:  $mark, such as
#   weights: {$first: -1}
#   score: {too high: {$first: {"> $high": 1}}}
$steps
"""


def _in_units(column: Column, frame: pd.DataFrame, unit: str, first: np.ndarray, last: np.ndarray) -> Column:
    """A column as it is within units, of which the places of the first and last rows are given: nobody sets
    what is constant; what time says, or where only some units say much to learn from, is left out.
    """
    cells, count = frame[column.name], len(first)
    if column.left_out:
        return column
    if (cells.groupby(frame[unit]).nunique() <= 1).all():
        return replace(column, given=FIXED)
    if {type(each) for each in cells.dropna().unique().tolist()} == {bool}:
        column = replace(column, levels=("False", "True"))
    values, often = np.unique(column.numbers), cells.value_counts().index[0]
    lack, other = int(cells.iloc[first].isna().sum()), cells.notna() & (cells != often)
    # Nothing is learnt of what follows the last step.
    other.iloc[last] = False
    others, why = frame[unit][other].nunique(), ""
    if column.given == CALENDAR or column.given.startswith(FUNCTION):
        why = f"{column.given}: the time says it"
    elif column.gaps > GAPS * len(cells):
        why = f"{column.gaps} of {len(cells)} values are missing"
    elif lack > GAPS * count:
        why = f"the first step of {lack} of {count} units lacks it"
    elif others < min(FEW_UNITS, count / 4):
        why = f"only {others} of {count} units have another value than {often}"
    known = column.levels or values[0] == 0 or len(values) <= LEVELS or column.named == "outcome"
    return replace(column, left_out=why, named=column.named if known else "")


def _line(column: Column, roles: Roles) -> tuple[str, str]:
    """The role of a column, empty if it is left out, and its line."""
    if column.left_out:
        return "", omitted(column.name, column.left_out)
    other = "static" if column.given == FIXED else "context" if column.given else "state"
    role, seen = roles.of(column.name, other).replace("outcome", "state"), roles.seen(column)
    levels = flow(sorted(column.levels, key=lambda each: each.casefold() not in LOWEST))
    if column.levels and role == "static":
        return role, variable(column.name, seen, role, kind="categorical", levels=flow(column.levels))
    if column.levels and role == "action":
        note = seen if column.kind == "ordinal" else f"{seen}; put the levels in order, from least to most"
        return role, variable(column.name, note, role, levels=levels)
    if column.levels:
        remedy = f"where it is chosen, write {{role: action, levels: {levels}}}, from least to most"
        return "", omitted(column.name, f"texts that change; {remedy}")
    values = np.unique(column.numbers)
    if role == "action" and len(values) <= LEVELS and not (values % 1).any():
        counted = np.array_equal(values, np.arange(len(values)))
        said = str(len(values)) if counted else f"[{', '.join(f'{each:g}' for each in values)}]"
        return role, variable(column.name, seen, role, levels=said)
    never = f"; {MARK}: amounts start at 0: subtract the usual one, or give levels" if values.min() else ""
    return role, variable(column.name, f"{seen}; amounts{never}" if role == "action" else seen, role)
