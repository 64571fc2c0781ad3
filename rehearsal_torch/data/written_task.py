"""Rehearsal tasks written by hand, as a YAML file or plain data, with all faults reported at once.

    graph:                        # every variable; a child's direct causes
      parents: {rate: [score, stability], repaid: [stability, rate]}
      bidirected: []              # sets of variables with hidden common causes, [[one, other], ...]
    context: [score]              # observed before deciding
    box: {rate: [0, 1]}           # actionable variables with bounds, or {values: [...]} to choose from
    region: {repaid: [0.6, null]} # desired outcomes; null leaves a side open
    candidates: [[rate]]          # optional: sets of variables that may be set jointly (default: each alone)
    unit: shop                    # optional: the column that says which rows belong together; no variable
    codings: {ward: categorical}  # optional: columns of texts, and what they are as numbers (`data.codings`)
    costs: {rate: 20}             # optional: the cost of a change by one unit (`data.costs.written`)
    worth: 100                    # optional: what a desired outcome is worth, in the unit of the costs

The graph may also be edges, [score -> rate, rate -> repaid], and the region text, such as 0.6 <= repaid, or
faces, {names: [...], normals: [[...]], offsets: [...]}, for M y <= d.

Source: Du et al. (2026), Sec. 2.1 and Eq. (2), for what a task consists of.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.data.codings.written import resolved
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_file import REHEARSAL_PARTS, TaskError, task_content

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TaskError", "written_task"]


def written_task(
    task: str | Path | Mapping[str, Any] | None,
    columns: Sequence[str] | None = None,
    rows: "pd.DataFrame | None" = None,
    notes: list[str] | None = None,
) -> RehearsalTask:
    """Reads a rehearsal task.

    Args:
        task: A YAML file, or its content.
        columns: The columns of the table; every variable must be one of them. None skips this check.
        rows: The rows, by which codings are completed that name no levels or no reference; None if there are
            none.
        notes: Collects what was found in the rows, a sentence each.

    Raises:
        TaskError: if there is no such file, it is not YAML, a part is missing or wrong, or a variable is not
            a column; all faults are listed.
    """
    source, plain = task_content(task, REHEARSAL_PARTS)
    if rows is not None and isinstance(plain.get("codings"), Mapping):
        codings, found, faults = resolved(plain["codings"], rows, plain.get("box"))
        if faults:
            raise TaskError(source, faults)
        made = RehearsalTask.of({**plain, "codings": codings}, source, columns)
        if notes is not None:
            notes += [f"{name} is coded {made.coded[name].words}" for name in found]
        return made
    return RehearsalTask.of(plain, source, columns)
