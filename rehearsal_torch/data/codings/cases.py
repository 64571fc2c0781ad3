"""Cases of texts: new rows whose texts must be among those of the rows that were learnt from."""

import pandas as pd

from rehearsal_torch.data.codings.columns import NEW, coded
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.tables.frame import TableError
from rehearsal_torch.files.schema import listed


def cases_in_codes(frame: pd.DataFrame, origin: str, task: RehearsalTask) -> pd.DataFrame:
    """Cases with codes in place of texts.

    Raises:
        TableError: if a column of the context is missing, or a text is none of its variable's; all faults are
            listed.
    """
    known = set(task.context)
    read = coded(frame, task.coded, {each.name for each in task.codings if known & {*each.columns}}, NEW)
    faults = [*read.faults, *_missing(frame, known, task)]
    if faults:
        raise TableError(listed(origin, faults, "nothing was decided"))
    return read.frame


def _missing(frame: pd.DataFrame, known: set[str], task: RehearsalTask) -> list[str]:
    """A fault for each variable of texts of the context that is missing in some case."""
    faults = []
    for coding in task.codings:
        empty = frame[coding.name].isna() if coding.name in frame.columns else pd.Series(dtype=bool)
        if known & {*coding.columns} and empty.any():
            line = int(frame.index[int(empty.to_numpy().argmax())]) + 2
            faults.append(
                f"{coding.name}: it is missing in {int(empty.sum())} of {len(frame)} cases, first in line "
                f"{line}: a case needs every variable of its context; measure it, or leave the case out"
            )
    return faults
