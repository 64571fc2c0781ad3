"""The rows of the study of avoiding undesired futures, with numbers as numbers, and what its jobs counted.

Source: Du et al. (2026), Sec. 4.1.
"""

import math

from rehearsal_torch.evaluation.rehearsal_rows import Row, number, typed
from rehearsal_torch.studies.record import Record


def rows_of(record: Record, stage: str) -> list[Row]:
    """A stage's rows, with ``setting`` ("" where the stage has none), and ``fit_seconds`` of their job.

    Args:
        record: The study's record.
        stage: One of its stages.
    """
    found = []
    for line in typed(record.rows(stage)):
        key = (stage, *(str(line.get(name, "")) for name in ("dataset", "method", "setting", "seed")))
        found.append({"setting": "", **line, "fit_seconds": number(record.lines[key]["fit_seconds"])})
    return found


def counts(record: Record, stage: str, column: str) -> dict[tuple[object, object], int]:
    """(world, method) to the sum over jobs of ``idle``, ``warned`` or ``decisions``.

    Args:
        record: The study's record.
        stage: One of its stages.
        column: What is summed; a job that says nothing counts as 0.
    """
    found: dict[tuple[object, object], int] = {}
    for line in record.lines.values():
        if line["stage"] == stage:
            value = number(line[column])
            place = (line["dataset"], line["method"])
            found[place] = found.get(place, 0) + (0 if math.isnan(value) else int(value))
    return found
