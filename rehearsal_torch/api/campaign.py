"""A campaign of experiments on disk: its file of trials, and the list of experiments to be filled in.

    problem.yaml            the question; its table has the experiments before the campaign
    problem.trials.json     all trials and recommendations, from the first call on
    problem.next.csv        the pending trials by number, with empty cells for what was measured

The file of trials alone is the state, which every call reads, and replaces at once (`trial_store`): it has
numbers, what was run beside what was proposed, reasons and recommendations, for which a table has no cells.
The list is a form: it is written from the file again after every call, and what was typed into it and is not
recorded yet is kept.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.tables.csv_file import cells_as_written
from rehearsal_torch.data.tables.reader import ReadTable, TableError, numbers_of, read_table
from rehearsal_torch.data.trials.trial import Trial
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.problems.drafts.draft_yaml import YAML
from rehearsal_torch.problems.trials.numbered_rows import TRIAL, named_columns
from rehearsal_torch.problems.trials.trials_file import CAMPAIGN
from rehearsal_torch.problems.trials.user_experiments import FRAME, REASON, STATE, as_text, with_proposals

LIST = ".next.csv"


def open_campaign(path: str | Path, method: str | None = None) -> CausalOptimiser:
    """The optimiser of a problem file, whose campaign begins with the first call, or of a file of trials; the
    errors of `CausalOptimiser`, and a ValueError for a variable that is called as the numbers of trials.
    """
    if Path(path).suffix.lower() in YAML:
        optimiser = CausalOptimiser(path, file=trials_file(path), method=method)
    else:
        optimiser = CausalOptimiser.load(path, method=method)
    if TRIAL in optimiser.task.graph.names:
        raise ValueError(f"{path}: {TRIAL} is the number of an experiment: give the variable another name")
    return optimiser


def trials_file(path: str | Path) -> Path:
    """The file of trials of a problem file, beside it, or the path itself."""
    file = Path(path)
    return file.with_suffix(CAMPAIGN) if file.suffix.lower() in YAML else file


def list_file(path: str | Path) -> Path:
    """The list of a campaign, beside its file."""
    file = trials_file(path)
    return file.with_name(f"{file.name.removesuffix('.json').removesuffix('.trials')}{LIST}")


def read_list(path: str | Path, task: CausalTask) -> ReadTable | None:
    """The list of a campaign as it stands, None if there is none or it is empty; a TableError if it cannot be
    read, or has rows and no numbers of trials.
    """
    file = list_file(path)
    if not file.exists() or not file.stat().st_size:
        return None
    table = named_columns(written := read_table(file), task)
    if len(table.frame) and TRIAL not in table.frame.columns:
        got = f"got {', '.join(map(str, written.frame.columns))}"
        remedy = "give it that name again, or delete the file, which is then written anew"
        raise TableError(f"{file}: expected a column {TRIAL} with the numbers of the trials; {got}: {remedy}")
    return table


def write_list(optimiser: CausalOptimiser, path: str | Path, told: bool) -> Path:
    """Writes the list of the pending trials. Their rows stay as they were typed, and, unless they are `told`,
    those that say what is not recorded; others are removed.
    """
    task, file = optimiser.task, list_file(path)
    trials: dict[float, Trial] = {trial.id: trial for trial in optimiser.trials}
    further = [name for name in (STATE, REASON) if name not in task.graph.names]
    columns, cells, listed = [TRIAL, *task.columns, *further], None, set[float]()
    table = ReadTable(pd.DataFrame(columns=columns), FRAME)

    def is_kept(number: float, row: pd.Series) -> bool:
        trial = trials.get(number)
        if trial is None or trial.state == "pending":
            return trial is not None or not told
        said = row.drop([name for name in row.index if name not in (*task.nodes, *further)]).dropna()
        known: dict[Any, Any] = {STATE: trial.state, REASON: trial.reason, **trial.nodes}
        return not told and any(cell != known.get(name) for name, cell in said.items())

    if (typed := read_list(path, task)) is not None and len(typed.frame):
        numbers = numbers_of(typed.frame[TRIAL])
        kept = [*map(is_kept, numbers, (row for _, row in typed.frame.iterrows()))]
        cells, listed = cells_as_written(typed), set(numbers[kept])
        cells = None if cells is None else cells[kept]
        table = replace(typed, frame=typed.frame[kept])
    rows = [
        {TRIAL: trial.id, **trial.nodes, **trial.settings}
        for trial in trials.values()
        if trial.state == "pending" and trial.id not in listed
    ]
    frame = with_proposals(table.frame, task, rows, cells)
    write_text(file, as_text(frame, *table.signs))
    return file
