"""What scikit-learn calls array-like, by the rules of tables from files.

A data frame of any library, and an array whose cells are no numbers, pass through the gate of frames in
memory (`data.tables.in_memory`), and all numbers through that of numeric columns
(`data.reading.number_faults`): dates, bytes, texts, names that occur twice, and values beyond what can be
computed with are refused in one paragraph, with the column and the row. Arrays of numbers are left to
scikit-learn, which checks their shape; what it says of them, and what NumPy says, is said with the name of
the argument.

Source: ours.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch

from rehearsal_torch.data.reading import TableError, number_faults, numbers_of
from rehearsal_torch.data.tables.in_memory import data_frame, row_count
from rehearsal_torch.files.schema import listed

EXPECTED = "expected a table of numbers, with one row for each observation"
NOTHING = "nothing was computed"


class CellError(TableError, TypeError):
    """A cell that is neither a number nor text; a `TypeError` as well, as scikit-learn asks of estimators."""


def numeric(given: Any, role: str, names: Sequence[str] | None = None) -> Any:
    """What was given; of a frame, or of cells that are no numbers, their numbers.

    Args:
        given: A data frame, a series, a tensor, or anything that NumPy makes an array of.
        role: The name of the argument, for messages.
        names: The columns of a frame to read, all of which it has; None for all of them.

    Returns:
        A data frame of float64 where there were names, else an array, with as many dimensions as were given.

    Raises:
        TableError: if a cell is no finite number of at most 1e150, two columns have the same name, or NumPy
            makes no array of it.
    """
    if isinstance(given, torch.Tensor):
        with spoken(role):
            return (given if given.is_complex() else given.double()).detach().cpu().numpy()
    column, kind = isinstance(given, pd.Series), TableError
    if column or row_count(given) is not None:
        whole = given.to_frame("values" if given.name is None else given.name) if column else given
        named = any(isinstance(name, str) for name in whole.columns)
        frame = data_frame(whole, role)
    else:
        with spoken(role):
            cells = np.asarray(given)
        if np.ma.is_masked(given):
            raise TableError(f"{role}: {EXPECTED}; some cells are masked: fill them, or leave these rows out")
        if cells.dtype.names is not None:
            hint = "write its fields as columns, such as by pandas.DataFrame(array)"
            raise TableError(f"{role}: {EXPECTED}; got a structured array: {hint}")
        if cells.dtype.kind not in "OUSMm" or cells.ndim > 2:
            return given
        if cells.ndim == 0:
            hint = "make an array of it, such as by .toarray() of a sparse one"
            raise TableError(f"{role}: {EXPECTED}; got a {type(given).__name__}: {hint}")
        # pandas takes an array of bytes for numbers.
        cells = cells.astype(object) if cells.dtype.kind == "S" else cells
        column, named, kind = cells.ndim == 1, False, CellError
        frame = data_frame(pd.DataFrame(cells.reshape(len(cells), -1)).add_prefix("column "), role)
    chosen = list(frame.columns) if names is None else list(names)
    if faults := number_faults(frame, chosen, 0, at=_row):
        also = (
            "" if kind is TableError else "; an argument must be made of cells that are a string or a number"
        )
        raise kind(listed(role, faults, NOTHING) + also)
    values = {name: numbers_of(frame[name]) for name in chosen}
    if named and not column:
        return pd.DataFrame(values, index=frame.index)
    found = np.stack([*values.values()], -1) if values else np.empty((len(frame), 0))
    return found[:, 0] if column else found


def computable(values: np.ndarray, names: Sequence[str], role: str, varying: bool = False) -> None:
    """Refuses numbers that cannot be computed with.

    Args:
        values: (n, p).
        names: The p columns.
        role: The name of the argument, for messages.
        varying: Whether columns must vary.

    Raises:
        TableError: if a number is beyond 1e150, or, with `varying`, a column is constant or varies by less
            than 1e-150.
    """
    frame = pd.DataFrame(values, columns=list(names))
    if faults := number_faults(frame, list(names), 0, varying, at=_row):
        raise TableError(listed(role, faults, NOTHING))


def _row(index: int) -> str:
    return f"row {index}"


@contextmanager
def spoken(role: str) -> Iterator[None]:
    """Says what scikit-learn and NumPy refuse with the name of the argument, and with what was expected.

    Args:
        role: The argument, or both of them.

    Raises:
        TableError: for what they refuse.
    """
    try:
        yield
    except TableError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise TableError(f"{role}: {str(error).strip().rstrip('.')}: {EXPECTED}") from error
