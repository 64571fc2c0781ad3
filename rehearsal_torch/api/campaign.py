"""A campaign of experiments on disk: its file of trials, and the list of experiments to be filled in.

    problem.yaml            the question; its table has the experiments before the campaign
    problem.trials.json     all trials and recommendations, from the first call on
    problem.next.csv        the pending trials by number, with empty cells for what was measured

The file of trials alone is the state, which every call reads, and replaces at once (`trial_store`): it has
numbers, what was run beside what was proposed, reasons and recommendations, for which a table has no cells.
The list is a form: it is written from the file again after every call, and what was typed into it and is not
recorded yet is kept.
"""

import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pandas as pd

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.tables.csv_file import cells_as_written
from rehearsal_torch.data.tables.reader import ReadTable, TableError, numbers_of, read_table
from rehearsal_torch.data.trials.trial import Trial
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.problems.drafts.draft_yaml import YAML
from rehearsal_torch.problems.trials.numbered_rows import TRIAL
from rehearsal_torch.problems.trials.trials_file import CAMPAIGN
from rehearsal_torch.problems.trials.user_experiments import FRAME, REASON, STATE, as_text, with_proposals

LIST = ".next.csv"


def open_campaign(path: str | Path, method: str | None = None) -> CausalOptimiser:
    """The optimiser of a problem file, whose campaign begins with the first call, or of a file of trials; the
    errors of `CausalOptimiser`.
    """
    if Path(path).suffix.lower() in YAML:
        return CausalOptimiser(path, file=trials_file(path), method=method)
    return CausalOptimiser.load(path, method=method)


def trials_file(path: str | Path) -> Path:
    """The file of trials of a problem file, beside it, or the path itself."""
    file = Path(path)
    return file.with_suffix(CAMPAIGN) if file.suffix.lower() in YAML else file


def list_file(path: str | Path) -> Path:
    """The list of a campaign, beside its file."""
    file = trials_file(path)
    return file.with_name(f"{file.name.removesuffix('.json').removesuffix('.trials')}{LIST}")


def read_list(path: str | Path) -> ReadTable | None:
    """The list of a campaign as it stands, None if there is none or it is empty; a TableError if it cannot be
    read, or has rows and no numbers of trials.
    """
    file = list_file(path)
    if not file.exists() or not file.stat().st_size:
        return None
    table = read_table(file)
    if len(table.frame) and TRIAL not in table.frame.columns:
        got = f"got {', '.join(map(str, table.frame.columns))}"
        remedy = "give it that name again, or delete the file, which is then written anew"
        raise TableError(f"{file}: expected a column {TRIAL} with the numbers of the trials; {got}: {remedy}")
    return table


def write_list(
    optimiser: CausalOptimiser, path: str | Path, own: bool = False, told: Collection[float] = ()
) -> Path:
    """Writes the list: rows of pending trials as they were typed, and others that say what is not recorded.
    Not those of trials `told` by other means, nor, if its `own` rows were told, those without a number.
    """
    task, file = optimiser.task, list_file(path)
    trials: dict[float, Trial] = {trial.id: trial for trial in optimiser.trials}
    columns = [*task.columns, *(name for name in (STATE, REASON) if name not in task.graph.names)]
    table, cells, listed = ReadTable(pd.DataFrame(columns=[TRIAL, *columns]), FRAME), None, set[float]()

    def is_kept(number: float, row: pd.Series) -> bool:
        trial = trials.get(number)
        if trial is not None and trial.state == "pending":
            return True
        if number in told or (own and math.isnan(number)):
            return False
        said = {name: row[name] for name in columns if name in row.index and pd.notna(row[name])}
        if trial is None:
            return bool(said)
        asked, known = trial.asked or {}, {REASON: trial.reason, **trial.nodes, **trial.settings}
        state = str(said.pop(STATE, trial.state)).strip().lower()
        news = [name for name, cell in said.items() if cell not in (known.get(name), asked.get(name))]
        return bool(news) or state != trial.state

    if (typed := read_list(path)) is not None and len(typed.frame):
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
