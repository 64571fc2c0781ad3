"""Rows of a table that name a trial of a campaign by its number, in a column ``trial``.

    trial,valve,dose,temperature,yield,state,reason
    7,0.7,2,24.1,3.9,,
    8,0.63,5,31.0,,failed,the pump stopped
    9,0.2,1,,,,                                  nothing to report yet

Empty cells are as recorded, or else as proposed: a row says only what is new, or what was wrong. Rows without
a number are those of `user_experiments`, and so are all where a variable of the graph is called ``trial``.

A table that a campaign begins with has no such column: of its rows `lines_of` says which trials they are, and
`beside` writes the trials among its other columns.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.codings.coding import with_level_places
from rehearsal_torch.data.tables.header_checks import line_words
from rehearsal_torch.data.tables.in_memory import SET
from rehearsal_torch.data.tables.reader import ReadTable, TableError, numbers_of
from rehearsal_torch.data.trials.trial import Trial
from rehearsal_torch.data.trials.trial_log import TrialLog, rows_of
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import suggested
from rehearsal_torch.problems.trials.user_experiments import (
    MOST_LINES,
    REASON,
    STATE,
    as_short,
    experiments_of,
    states_of,
)

TRIAL = "trial"


def not_read(frame: pd.DataFrame, task: CausalTask) -> list[str]:
    """A note of columns that are not read: where a node has no column all others, else those whose name is
    much like that of a node without values, or of the numbers or reasons.
    """
    filled = [str(name) for name in frame if SET not in str(name) and frame[name].notna().any()]
    unread = [name for name in filled if name not in (*task.graph.names, TRIAL, STATE, REASON)]
    empty = [node for node in task.nodes if node not in filled]
    if {*task.nodes} <= {*frame.columns}:
        unread = [name for name in unread if suggested(name, [*empty, TRIAL, REASON])]
    lacking = f"; there are no values of {', '.join(empty)}" if empty else ""
    return [f"not read: {', '.join(unread)}{lacking}"] if unread else []


def numbered_rows(table: ReadTable, task: CausalTask, log: TrialLog) -> tuple[list[Trial], ReadTable]:
    """The rows of a table that name a trial of a log and say something of it, as trials with its number, and
    the table of the rows that name none. A TableError for a number that no trial has, or has twice.
    """
    frame = table.frame
    if TRIAL not in frame.columns or TRIAL in task.graph.names:
        return [], table
    named, known = frame[TRIAL].notna(), {trial.id: trial for trial in log.trials}
    numbers = numbers_of(frame[TRIAL][named])
    repeated = pd.Series(numbers).duplicated()
    faults = [
        f"{beginning(repr(as_short(cell)), 60)} in {line_words(line)}"
        for line, cell, number, again in zip(
            frame.index[named].tolist(), frame[TRIAL][named], numbers, repeated, strict=True
        )
        if again or number not in known
    ]
    if faults:
        expected = f"expected numbers of trials, of which there are {len(known)}, each once"
        raise TableError(f"{table.where}: {TRIAL}: {expected}; got {', '.join(faults[:MOST_LINES])}")
    rows = frame[named].astype(object).assign(**{TRIAL: numbers.astype(int)})
    reported = [name for name in (*task.nodes, STATE) if name in rows.columns]
    rows = rows[rows[reported].notna().any(axis=1)]
    for name in task.columns:
        kept = [{**known[number].settings, **known[number].nodes}.get(name) for number in rows[TRIAL]]
        recorded = pd.Series(kept, rows.index, dtype=object if name in task.coded else float)
        rows[name] = rows[name].where(rows[name].notna(), recorded) if name in rows.columns else recorded
    for name in task.settable:
        recorded = pd.Series([float(name in known[number].settings) for number in rows[TRIAL]], rows.index)
        mark = f"{SET}{name}"
        rows[mark] = rows[mark].where(rows[mark].notna(), recorded) if mark in rows.columns else recorded
    rows = rows.infer_objects()
    states = states_of(rows, task, table.where)
    completed, others = experiments_of(replace(table, frame=rows), task)
    trials = [*rows_of(completed, task), *others]
    order = [*rows[TRIAL][states == "completed"], *(rows[TRIAL][trial.id - 2] for trial in others)]
    trials = [trial.with_changes(id=int(number)) for trial, number in zip(trials, order, strict=True)]
    rest = frame[~named] if not named.all() else pd.DataFrame(columns=list(task.columns), dtype=float)
    return trials, replace(table, frame=rest)


def lines_of(table: ReadTable, task: CausalTask, trials: Iterable[Trial]) -> dict[int, int]:
    """The line of each trial that is a row of a table, by number: one with its settings and measurements, or
    with its settings alone.
    """
    frame, lines = with_level_places(table.frame, task.places), dict[int, int]()
    left = list(trials)
    if not set(task.actions) <= set(frame.columns):
        return lines
    numbers = {name: numbers_of(frame[name]) for name in frame.columns if name in task.graph.names}
    rows = {int(line) + 2: row for row, line in enumerate(frame.index)}
    for wanted in ((*task.settings, *task.nodes), task.actions):
        names = [name for name in wanted if name in numbers]
        waiting = defaultdict[tuple[float, ...], list[int]](list)
        for line, row in reversed(rows.items()):
            waiting[tuple(np.nan_to_num([numbers[name][row] for name in names], nan=np.inf))].append(line)
        for trial in left:
            values = {**trial.nodes, **dict(zip(task.settings, task.row(trial.settings), strict=True))}
            cells = np.nan_to_num([values.get(name, np.inf) for name in names], nan=np.inf)
            if same := waiting[tuple(cells)]:
                lines[trial.id] = same.pop()
        left = [trial for trial in left if trial.id not in lines]
        rows = {line: row for line, row in rows.items() if line not in lines.values()}
    return lines


def beside(frame: pd.DataFrame, table: ReadTable, lines: Mapping[int, int]) -> pd.DataFrame:
    """Rows of trials, whose index is their numbers, with the other columns of a table: those of its `lines`
    first, in its order; whole numbers without a decimal sign.
    """
    order = sorted(frame.index, key=lambda number: (number not in lines, lines.get(number, number)))
    states = [name for name in table.frame.columns if str(name).strip().lower() in (STATE, TRIAL)]
    others = table.frame.drop(columns=[*states, *frame.columns], errors="ignore")
    others = others.reindex([lines.get(number, 1) - 2 for number in order]).set_axis(order)
    frame = pd.concat([frame.loc[order], others], axis=1)
    columns = [name for name in table.frame.columns if name in frame.columns]
    frame = frame[[*columns, *(name for name in frame.columns if name not in columns)]]
    marks = {name: frame[name].fillna(0) for name in frame.columns if str(name).startswith(SET)}
    cells = {name: [*map(as_short, column)] for name, column in frame.assign(**marks).items()}
    return pd.DataFrame(cells, dtype=object)
