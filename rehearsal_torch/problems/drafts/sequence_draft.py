"""A first problem file of episodes from a table: whose rows, when, and which roles.

    time       typed; else the first column with a name such as time, day or week, or of dates
    unit       typed; else the column with the most values that has several rows for each, and no time twice
               for one. It has whole numbers or texts, and units share their times, lie in blocks of the
               table, or have a name such as patient or machine: a measured column is none
    roles      static is constant within each unit and known in its first row; actions are told as in
               `problems.drafts.role_guesses`; what nobody sets or asks for, such as a year, is context;
               other numbers are states

The reward cannot be guessed: the file has a place for it. Steps are those that the reader of episodes finds;
where it finds none, rows are merged into steps of their most frequent distance. Where steps or values lack,
units are dropped while half of them stay, or else the last value is carried over so many steps in a row as
the median unit lacks. Amounts may change by as many levels as they usually did (`data.dose_cuts`).
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from rehearsal_torch.data.dose_cuts import USUAL, DoseCuts, usual_jump
from rehearsal_torch.data.tables.identifiers import PERSONS, identifier
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.files.schema import shown
from rehearsal_torch.problems.drafts.draft_yaml import MARK, filled, flow, scalar, variable
from rehearsal_torch.problems.drafts.role_guesses import (
    BACKGROUND,
    CALENDAR,
    FUNCTION,
    SHIFTED,
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
    of `static` ones with at most one value in each unit; empty where steps are even and no value is missing.
    """
    units, times = pd.factorize(frame[unit])[0], times_of(frame[time])
    order = np.lexsort((times, units))
    rows, units, times = frame.iloc[order], units[order], times[order]
    first_rows = np.r_[True, units[1:] != units[:-1]]
    if first_rows.all():
        return ""
    calendar = in_days(frame[time])
    steps, text = numbered(times, first_rows, None, calendar), ""
    if steps.odd.any():
        step = step_for(steps.length, calendar)
        steps = numbered(times, first_rows, "month" if step == "month" else steps.length, calendar)
        text = filled(STEP, step=step)
    present = rows[[*moving, *static]].notna()
    present.loc[actionless(rows, units, times, actions), list(actions)] = True
    gaps = _longest_gaps(present.groupby([units, steps.steps]).any(), moving, static)
    return text + _missing_policy(frame, gaps, [*moving, *static])


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


RULES = """
# From one row of a unit to the next, $share of the changes of amounts were by at most $jump of $most levels:
# larger ones are not recommended.
rules: {most_levels: $jump}
"""


def rule_lines(frame: pd.DataFrame, unit: str, time: str, amounts: Sequence[str]) -> str:
    """The line of the rule on jumps of amounts; empty where it excludes nothing."""
    rows = frame.iloc[np.lexsort((times_of(frame[time]), pd.factorize(frame[unit])[0]))]
    jump = 0
    for name in amounts:
        known = rows[rows[name].notna()]
        doses, follows = known[name].to_numpy(np.float64), (known[unit] == known[unit].shift()).to_numpy()
        if not (doses < 0).any() and doses.any():
            jump = max(jump, usual_jump(DoseCuts.of(name, doses, LEVELS).levels(doses), follows))
    if not 0 < jump < LEVELS - 1:
        return ""
    return filled(RULES, share=f"{USUAL:.0%}", jump=str(jump), most=str(LEVELS))


def _missing_policy(frame: pd.DataFrame, gaps: np.ndarray, names: Sequence[str]) -> str:
    """What happens to empty cells and missing steps, by the longest gap of each unit; none without gaps."""
    missing = frame[[*names]].isna().sum()
    empty = ", ".join(f"{name}: {count}" for name, count in missing.items() if count)
    complete, carried = int((gaps == 0).sum()), gaps[np.isfinite(gaps) & (gaps > 0)]
    if complete == len(gaps):
        return ""
    rule, left = "drop", complete
    if complete < len(gaps) / 2 and len(carried):
        steps = max(1, int(np.median(carried)))
        rule, left = f"{{carry: {steps}}}", int((gaps <= steps).sum())
    reason = f"Empty cells, by column: {empty}" if empty else "Some units lack steps"
    return filled(MISSING, told=reason, kept=str(left), units=str(len(gaps)), rule=rule)


def _longest_gaps(present: pd.DataFrame, moving: Sequence[str], static: Sequence[str]) -> np.ndarray:
    """For each unit the most steps in a row that lack a row or a value, infinite where the first one does."""
    units, steps = present.index.get_level_values(0), present.index.get_level_values(1)
    after_last = pd.Series(steps, units, dtype=np.float64).groupby(level=0).max() + 1
    longest = pd.Series(0.0, after_last.index)
    for name in moving:
        present_steps = pd.Series(steps, units, dtype=np.float64)[present[name].to_numpy()]
        first = present_steps.groupby(level=0).first().reindex(after_last.index, fill_value=np.inf)
        gaps = pd.concat([present_steps, after_last]).sort_index(kind="stable").groupby(level=0).diff() - 1
        gap = gaps.groupby(level=0).max().where(first == 0, np.inf)
        longest = longest.combine(gap, max)
    for name in static:
        by_unit = present[name].groupby(level=0)
        longest = longest.combine((~by_unit.all()).astype(float).where(by_unit.any(), np.inf), max)
    return longest.to_numpy()


TIMES = "time|date|datetime|timestamp|(?:day|week|month|quarter|year|hour|minute|step|visit|period)s?|t"
UNITS = "unit|machine|pump|plant|device|sensor|vehicle|animal|firm|company|store|shop|station|asset"
# Levels that are the least where an order has to be guessed.
LOWEST = ("none", "no", "off", "never", "nothing", "zero", "0", "false")
LEVELS, ROWS_EACH, FIXED = 5, 3, "constant in each unit"
# The share of missing cells above which a column that changes is left out.
GAPS = 0.5
# A column that leaves its usual value in fewer units, and in less than a quarter of them, may have one value
# among the units to learn from.
FEW_UNITS = 10
# Columns whose names differ in digits alone, more of which may mark times.
MARKS, _DIGITS = 2, re.compile(r"\d")


def episodes(frame: pd.DataFrame, unit: str = "", time: str = "") -> tuple[str, str] | None:
    """The columns of units and of time, of which one or both may be known; None if there are none."""
    names = list(map(str, frame.columns))
    timed = [name for name in names if has_word(name, TIMES)]
    dated = [name for name in names if of_dates(frame[name])]
    for column in [time] if time else [*timed, *dated]:
        times = pd.Series(times_of(frame[column]), frame.index)
        others = [name for name in ([unit] if unit else names) if name != column]
        units = [name for name in others if _repeats_in_order(frame[name], times)]
        units = [name for name in units if unit or _is_unit(frame[name], times)]
        if units and np.isfinite(times).all():
            return max(units, key=lambda name: frame[name].nunique()), column
    return None


def _repeats_in_order(cells: pd.Series, times: pd.Series) -> bool:
    """Whether a column has several rows for each of its values, and none of them twice at a time."""
    repeats = 2 <= cells.nunique() <= len(cells) / ROWS_EACH and not cells.isna().any()
    return repeats and not pd.DataFrame({"cells": cells, "when": times}).duplicated().any()


def _is_unit(cells: pd.Series, times: pd.Series) -> bool:
    """Whether a column identifies units, and is not measured."""
    name, times_shared = str(cells.name), times.nunique() * 2 <= len(times)
    if has_word(name, BACKGROUND[CALENDAR]) or (is_float_dtype(cells) and (cells % 1 != 0).any()):
        return False
    named = has_word(name, f"{'|'.join(PERSONS)}|{UNITS}") or identifier(name, cells) is not None
    blocks = (cells != cells.shift()).sum() == cells.nunique()
    return named or times_shared or bool(blocks and (times.groupby(cells).diff().dropna() > 0).all())


def sequence_draft(source: Source) -> tuple[str, list[str]]:
    """The text of a problem file of sequences, and notes; TableError if there are no columns of units and of
    time, or no column can be used.
    """
    frame = source.table.frame
    typed_unit, typed_time = ("".join(source.typed.get(option, ())) for option in ("unit", "time"))
    unit_and_time = episodes(frame, typed_unit, typed_time)
    if unit_and_time is None:
        expected = "expected a column of time, such as week or date, and one of units that has each time once"
        remedy = "add unit=COLUMN and time=COLUMN, or question=cases"
        sparse = frame[frame.notna().sum(axis=1) <= 1]
        if len(sparse) and episodes(frame.drop(sparse.index), typed_unit, typed_time):
            cells = shown(str([*sparse.iloc[0].dropna(), "nothing"][0]))
            expected = f"line {sparse.index[0] + 2} has {cells} alone"
            remedy = "delete it, it is no row of a unit"
        raise TableError(f"{source.table.where}: {expected}: {remedy}")
    unit, time = unit_and_time
    times_by_unit = pd.Series(times_of(frame[time])).groupby(frame[unit].to_numpy())
    first_and_last = times_by_unit.idxmin().to_numpy(), times_by_unit.idxmax().to_numpy()
    columns = columns_of(frame, most_missing=1.0)
    columns = [column for column in columns if column.name not in unit_and_time]
    columns = [_within_units(column, frame, *unit_and_time, *first_and_last) for column in columns]
    roles = roles_of(columns, source, numbers=True)
    roles.open.pop("outcome", None)
    columns = without_copies(columns, roles)
    lines = [_variable_line(column, roles) for column in columns]
    states, context, actions, static = (
        [column.name for column, (role, _) in zip(columns, lines, strict=True) if role == role_name]
        for role_name in ("state", "context", "action", "static")
    )
    example = [*roles.names["outcome"], *states, ""][0]
    if example not in states:
        expected = f"expected a column of numbers that varies within a {unit}"
        raise TableError(f"{source.table.where}: {expected}{f'; got outcome={example}' if example else ''}")
    written = {column.name: line for column, (_, line) in zip(columns, lines, strict=True)}
    high = np.quantile(next(column.numbers for column in columns if column.name == example), 0.9)
    moving = [*states, *context, *actions]
    return source.fill(
        SEQUENCE,
        roles,
        f"{len(frame)} rows, of {frame[unit].nunique()} of {unit}",
        [line for role, line in lines if role],
        {column.name: why for column, (role, why) in zip(columns, lines, strict=True) if not role},
        unit=scalar(unit),
        time=scalar(time),
        first=scalar(example),
        high=f"{high:.4g}",
        steps=step_lines(frame, unit, time, moving, static, actions),
        rules=rule_lines(frame, unit, time, [name for name in actions if "levels:" not in written[name]]),
    )


SEQUENCE = """
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
$rules
"""


def _within_units(
    column: Column, frame: pd.DataFrame, unit: str, time: str, first_rows: np.ndarray, last_rows: np.ndarray
) -> Column:
    """A column as it is within units, of which the places of the first and last rows are given: nobody sets
    what is constant; what time says, or where only some units say much to learn from, is left out.
    """
    cells, count = frame[column.name], len(first_rows)
    if column.left_out:
        return column
    if (cells.groupby(frame[unit]).nunique() <= 1).all():
        known = cells.notna().groupby(frame[unit]).any().sum()
        late = int(known - cells.iloc[first_rows].notna().sum())
        reason = f"known only later, as an outcome is: {late} of {known} units lack it in their first row"
        return replace(column, background=FIXED, left_out=reason if late > GAPS * known else "")
    if {type(each) for each in cells.dropna().unique().tolist()} == {bool}:
        column = replace(column, levels=("False", "True"))
    numbered = [_DIGITS.sub("", str(name)) for name in frame].count(_DIGITS.sub("", column.name))
    values, usual = np.unique(column.numbers), cells.value_counts().index[0]
    missing_first, deviates = int(cells.iloc[first_rows].isna().sum()), cells.notna() & (cells != usual)
    # Nothing is learnt of what follows the last step.
    deviates.iloc[last_rows] = False
    deviating_units, reason = frame[unit][deviates].nunique(), ""
    if column.background == CALENDAR or column.background.startswith(FUNCTION):
        reason = f"{column.background}: the time says it"
    elif column.background == SHIFTED:
        reason = f"{column.background}: other steps say it"
    elif numbered > MARKS and frame[time][deviates].nunique() == 1:
        reason = f"one of {numbered} columns that mark a {time} each"
    elif column.missing > GAPS * len(cells):
        reason = f"{column.missing} of {len(cells)} values are missing"
    elif missing_first > GAPS * count:
        reason = f"the first step of {missing_first} of {count} units lacks it"
    elif deviating_units < min(FEW_UNITS, count / 4):
        reason = f"only {deviating_units} of {count} units have another value than {usual}"
    levels_known = column.levels or values[0] == 0 or len(values) <= LEVELS or column.named_role == "outcome"
    return replace(column, left_out=reason, named_role=column.named_role if levels_known else "")


def _variable_line(column: Column, roles: Roles) -> tuple[str, str]:
    """The role of a column and its line; of one that is left out "", and why."""
    if column.left_out:
        return "", column.left_out
    default_role = "static" if column.background == FIXED else "context" if column.background else "state"
    role, note = roles.of(column.name, default_role).replace("outcome", "state"), roles.note(column)
    levels = flow(sorted(column.levels, key=lambda each: each.casefold() not in LOWEST))
    if column.levels and role == "static":
        return role, variable(column.name, note, role, kind="categorical", levels=flow(column.levels))
    if column.levels and role == "action":
        note = note if column.kind == "ordinal" else f"{note}; put the levels in order, from least to most"
        return role, variable(column.name, note, role, levels=levels)
    if column.levels:
        remedy = f"where it is chosen, write {{role: action, levels: {levels}}}, from least to most"
        return "", f"texts that change; {remedy}"
    values = np.unique(column.numbers)
    if role == "action" and len(values) <= LEVELS and not (values % 1).any():
        counted = np.array_equal(values, np.arange(len(values)))
        written_levels = str(len(values)) if counted else f"[{', '.join(f'{each:g}' for each in values)}]"
        return role, variable(column.name, note, role, levels=written_levels)
    never = f"; {MARK}: amounts start at 0: subtract the usual one, or give levels" if values.min() else ""
    note = f"{note}; amounts{never}" if role == "action" else note
    return role, variable(column.name, note, role, unit=roles.unit(column))
