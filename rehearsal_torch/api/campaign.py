"""A campaign of experiments on disk: its file of trials, and the list of experiments to be filled in.

    problem.yaml            the question; its table has the experiments before the campaign
    problem.trials.json     all trials and recommendations, from the first call on
    problem.next.csv        the pending trials by number, with empty cells for what was measured

The file of trials alone is the state, which every call reads, and replaces at once (`trial_store`): it has
numbers, what was run beside what was proposed, reasons and recommendations, for which a table has no cells.
The list is a form: it is written from the file again after every call, and what was typed into it in the
meantime is kept.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.tables.csv_file import cells_as_written
from rehearsal_torch.data.tables.reader import ReadTable, numbers_of, read_table
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
    """The list of a campaign as it stands, None without one; a TableError if it cannot be read."""
    file = list_file(path)
    return read_table(file) if file.exists() else None


def write_list(optimiser: CausalOptimiser, path: str | Path, typed: ReadTable | None, told: bool) -> Path:
    """Writes the list of the pending trials. Rows `typed` in the meantime stay as they are, those of other
    trials and, once they are `told`, those of none are removed.
    """
    task, file, pending = optimiser.task, list_file(path), optimiser.pending
    numbered = TRIAL not in task.graph.names
    further = [name for name in (STATE, REASON) if name not in task.graph.names]
    columns = [*([TRIAL] if numbered else []), *task.columns, *further]
    table, cells, known = ReadTable(pd.DataFrame(columns=columns), FRAME), None, set[float]()
    if typed is not None and numbered and TRIAL in typed.frame.columns:
        numbers = numbers_of(typed.frame[TRIAL])
        waiting = pd.Series(numbers).isin([suggestion.trial for suggestion in pending]).to_numpy()
        kept = waiting | (pd.isna(numbers) & (not told))
        table, cells, known = typed, cells_as_written(typed), set(numbers[waiting])
        cells = None if cells is None else cells[kept]
        table = replace(typed, frame=typed.frame[kept])
    rows = [
        {TRIAL: trial.id, **trial.nodes, **trial.settings}
        for trial in optimiser.trials
        if trial.state == "pending" and trial.id not in known
    ]
    frame = with_proposals(table.frame, task, rows, cells)
    write_text(file, as_text(frame, *table.signs))
    return file
