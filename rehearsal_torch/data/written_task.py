"""Tasks as people write them: a YAML file, or plain data, checked so that all faults are told at once.

    graph:                        # every variable; a child's direct causes
      parents: {rate: [score, stability], repaid: [stability, rate]}
      bidirected: []              # sets of variables that move together for hidden reasons, [[one, other],
                                  ...]
    context: [score]              # seen before deciding
    box: {rate: [0, 1]}           # what may be set, and how far
    region: {repaid: [0.6, null]} # what is wanted; null leaves a side open
    candidates: [[rate]]          # optional: which variables may be set together; each by itself where left
                                  out

The region may also be faces, {names: [...], normals: [[...]], offsets: [...]}, for M y <= d.

Source: Du et al. (2026), Sec. 2.1 and Eq. (2), for what a task consists of.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_file import REHEARSAL_PARTS, TaskError, task_content

__all__ = ["TaskError", "written_task"]


def written_task(
    task: str | Path | Mapping[str, Any] | None, columns: Sequence[str] | None = None
) -> RehearsalTask:
    """Reads a task.

    Args:
        task: A YAML file, or its content.
        columns: The columns that a table offers; every variable must be one of them. None does not compare.

    Raises:
        TaskError: if there is no such file, it is no YAML, a part is missing or wrong, or a variable is no
            column; all faults are listed.
    """
    source, plain = task_content(task, REHEARSAL_PARTS)
    return RehearsalTask.of(plain, source, columns)
