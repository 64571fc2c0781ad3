"""Data frames in memory, of pandas and of other libraries (polars, pyarrow), as those of pandas.

Other libraries are read by way of narwhals, column by column, without pyarrow. The result has text as column
names and its rows numbered from 0, so that faults name the same lines as if the frame had been written to a
comma-separated file: the header is line 1. Cells are checked where they are read as numbers
(`data.tables.reader.number_columns`), by the same rules as those of a file: where a column holds anything but
texts, numbers, truth values and times (bytes, tensors, lists), its cells become what a workbook's would
(`data.tables.header_checks.plain_cell`).

Cells that a decision set, not a mechanism, are marked in columns of their own, named ``set:`` and the column
(1 where it was set), as in files of experiments.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.header_checks import MOST, plain_cell
from rehearsal_torch.data.tables.reader import TableError, number_columns, number_faults
from rehearsal_torch.files.bounded_yaml import repeated
from rehearsal_torch.files.schema import listed, meant

# Before the name of a column in which some cells were set: the column that marks them.
SET = "set:"
# The kinds of cells that are read as they are.
PLAIN = (
    *(str, int, float, complex, np.number, date, time, timedelta, pd.Period),
    *(np.bool_, np.datetime64, np.timedelta64, type(None), type(pd.NA)),
)
# The libraries of which data frames are returned.
LIBRARIES = ("pandas", "polars", "pyarrow")


def row_count(given: Any) -> int | None:
    """The number of rows of a data frame in memory; None if it is something else."""
    if isinstance(given, pd.DataFrame):
        return len(given)
    found = _narwhals_frame(given, "the data frame")
    return None if found is None else len(found)


def data_frame(given: Any, called: str, faults: list[str] | None = None) -> pd.DataFrame:
    """A data frame of any library as one of pandas, with rows numbered from 0; refuses all else."""
    # A frame of its own: `attrs`, which pandas copies at every step, may hold anything, the frame itself too.
    frame = pd.DataFrame(given) if isinstance(given, pd.DataFrame) else _of_other_library(given, called)
    names = [str(name) for name in frame.columns]
    twice = sorted(repeated(names))
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    for place in [place for place, kind in enumerate(frame.dtypes) if kind.kind in "OV"]:
        if (column := _plain_cells(frame.iloc[:, place])) is not None:
            frame.isetitem(place, column)
    if not twice:
        return frame
    found = f"several columns are called {', '.join(map(repr, twice))}: rename them"
    if faults is None:
        raise TableError(f"{called}: {found}")
    faults.append(found)
    return frame.loc[:, ~frame.columns.duplicated()]


def _plain_cells(column: pd.Series) -> list[Any] | None:
    """The cells of a column as those of a workbook; None if all are texts, numbers, truth values or times."""
    cells = column.astype(object)
    kinds = set(map(type, cells))
    huge = int in kinds and any(type(cell) is int and abs(cell) > MOST for cell in cells)
    if not huge and all(issubclass(kind, PLAIN) for kind in kinds):
        return None
    return [plain_cell(cell) for cell in cells]


def frame_of_rows(rows: Sequence[Mapping[Any, Any]]) -> pd.DataFrame:
    """A data frame of dictionaries, one for each row; what a row lacks is a missing value."""
    return pd.DataFrame(
        [{_whole(name, "backslashreplace"): _cell(cell) for name, cell in row.items()} for row in rows]
    )


def _cell(cell: Any) -> Any:
    # pandas itself asks a tensor for its length.
    return _whole(cell, "replace") if isinstance(cell, PLAIN) else plain_cell(cell)


def _whole(text: Any, errors: str) -> Any:
    """A text without half a sign, which no encoding has and pandas refuses; all else as it is."""
    return text.encode("utf-8", errors).decode() if isinstance(text, str) else text


def library_of(given: Any) -> str | None:
    """The library of a data frame, "pandas", "polars" or "pyarrow"; None if it is of another, or none."""
    if isinstance(given, pd.DataFrame):
        return "pandas"
    found = None if isinstance(given, Mapping | list) else nw.from_native(given, pass_through=True)
    if not isinstance(found, nw.DataFrame):
        return None
    name = found.implementation.value
    return name if name in LIBRARIES else None


def in_library(frame: pd.DataFrame, library: str) -> Any:
    """A data frame of pandas as one of `LIBRARIES`, without its index; NaN becomes a missing value."""
    if library not in LIBRARIES:
        raise ValueError(f"library: expected {', '.join(LIBRARIES)} or None; got {library!r}")
    if library == "pandas":
        return frame
    columns = {
        str(name): [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in frame[name]]
        for name in frame.columns
    }
    texts = {name: any(isinstance(cell, str) for cell in cells) for name, cells in columns.items()}
    kinds = {name: nw.String() if some else nw.Float64() for name, some in texts.items()}
    try:
        made = nw.from_dict(columns, schema=kinds, backend="polars" if library == "polars" else "pyarrow")
    except ImportError as error:
        raise TableError(f"library: {library} is not installed: install it, or ask for 'pandas'") from error
    return made.to_native()


def _narwhals_frame(given: Any, called: str) -> nw.DataFrame[Any] | None:
    """A data frame of another library; None if it is no data frame."""
    try:
        found = nw.from_native(given, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise TableError(f"{called}: several columns have the same name: rename them") from error
    if isinstance(found, nw.LazyFrame):
        remedy = "collect it first, such as by frame.collect()"
        kind = type(given).__name__
        raise TableError(f"{called}: expected a data frame in memory; got a lazy {kind}: {remedy}")
    return found if isinstance(found, nw.DataFrame) else None


def _of_other_library(given: Any, called: str) -> pd.DataFrame:
    found = _narwhals_frame(given, called)
    if found is None:
        expected = "expected a data frame of pandas, polars or pyarrow"
        raise TableError(f"{called}: {expected}; got a {type(given).__name__}")
    # Numbers as arrays, everything else cell by cell.
    columns = {
        each.name: pd.Series(each.to_numpy())
        if each.dtype.is_integer() or each.dtype.is_float()
        else pd.Series(each.to_list(), dtype=object)
        for each in found.iter_columns()
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(len(found)))


def cells_of(
    given: Any, names: tuple[str, ...] | None, called: str
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The numbers of a data frame, and which of them were set: names, values (n, d), and marks (n, d).

    Args:
        names: The columns, in order; None for all but those that mark cells.

    Raises:
        TableError: if a column is not numeric and complete, or marks belong to none or are not 0 and 1; all
            faults are listed.
    """
    faults: list[str] = []
    frame = data_frame(given, called, faults)
    chosen = tuple(name for name in frame.columns if not name.startswith(SET)) if names is None else names
    marked = {name: name.removeprefix(SET) for name in frame.columns if name.startswith(SET)}
    faults += [
        f"{name}: no column {of!r} beside it; {meant(of, list(frame.columns))}"
        for name, of in marked.items()
        if of not in frame.columns
    ]
    marks = [name for name, of in marked.items() if of in chosen]
    if faults := [*faults, *number_faults(frame, [*chosen, *marks], 0)]:
        raise TableError(listed(called, faults, "nothing was read"))
    values, set_cells = (number_columns(frame, each, called, 0) for each in (chosen, marks))
    sound = ((set_cells == 0) | (set_cells == 1)).all(0).tolist()
    if odd := [name for name, each in zip(marks, sound, strict=True) if not each]:
        sentences = [f"{name}: expected 0 or 1, 1 where the value was set by a decision" for name in odd]
        raise TableError(listed(called, sentences, "nothing was read"))
    altered = np.zeros(values.shape, dtype=bool)
    altered[:, [chosen.index(marked[name]) for name in marks]] = set_cells != 0
    return chosen, values, altered


def frame_of(names: tuple[str, ...], values: np.ndarray, altered: np.ndarray) -> pd.DataFrame:
    """The inverse of `cells_of`: columns, followed by marks for those in which a cell was set."""
    frame = pd.DataFrame(values.copy(), columns=list(names))
    for place, name in enumerate(names):
        if bool(altered[:, place].any()):
            frame[f"{SET}{name}"] = altered[:, place].astype(np.int32)
    return frame
