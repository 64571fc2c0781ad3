"""Rows of a table that name a trial of a campaign by its number, in a column ``trial``.

    trial,valve,dose,temperature,yield,state,reason
    7,0.7,2,24.1,3.9,,
    8,0.63,5,31.0,,failed,the pump stopped
    9,0.2,1,,,,                                  nothing to report yet

Empty cells are as recorded, or else as proposed: a row says only what is new, or what was wrong. Rows without
a number are those of `user_experiments`, and so are all where a variable of the graph is called ``trial``.
"""

from dataclasses import replace

import pandas as pd

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.tables.header_checks import line_words
from rehearsal_torch.data.tables.reader import ReadTable, TableError, numbers_of
from rehearsal_torch.data.trials.trial import Trial
from rehearsal_torch.data.trials.trial_log import TrialLog, rows_of
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.problems.trials.user_experiments import MOST_LINES, STATE, experiments_of, states_of

TRIAL = "trial"


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
        f"{beginning(repr(cell), 60)} in {line_words(line)}"
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
    for name in (*task.settings, *task.nodes):
        kept = [{**known[number].settings, **known[number].nodes}.get(name) for number in rows[TRIAL]]
        recorded = pd.Series(kept, rows.index, dtype=float)
        rows[name] = rows[name].where(rows[name].notna(), recorded) if name in rows.columns else recorded
    rows = rows.infer_objects()
    states = states_of(rows, task, table.where)
    completed, others = experiments_of(replace(table, frame=rows), task)
    trials = [*rows_of(completed, task), *others]
    order = [*rows[TRIAL][states == "completed"], *(rows[TRIAL][trial.id - 2] for trial in others)]
    trials = [trial.with_changes(id=int(number)) for trial, number in zip(trials, order, strict=True)]
    rest = (
        frame[~named] if not named.all() else pd.DataFrame(columns=[*task.settings, *task.nodes], dtype=float)
    )
    return trials, replace(table, frame=rest)
