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

from rehearsal_torch.data.tables.header_checks import HUGE, plain_cell
from rehearsal_torch.data.tables.reader import TableError, number_columns, number_faults
from rehearsal_torch.files.bounded_yaml import repeated
from rehearsal_torch.files.schema import listed, meant

# The prefix of a column that marks which cells of another one were set.
SET = "set:"
# The types of cells that are kept.
PLAIN = (
    *(str, int, float, complex, np.number, date, time, timedelta, pd.Period),
    *(np.bool_, np.datetime64, np.timedelta64, type(None), type(pd.NA)),
)
# The libraries whose data frames can be returned.
LIBRARIES = ("pandas", "polars", "pyarrow")


def row_count(given: Any) -> int | None:
    """The number of rows of a data frame in memory; None if it is something else."""
    if isinstance(given, pd.DataFrame):
        return len(given)
    frame = _narwhals_frame(given, "the data frame")
    return None if frame is None else len(frame)


def data_frame(given: Any, called: str, faults: list[str] | None = None) -> pd.DataFrame:
    """A data frame of any library as one of pandas, with rows numbered from 0; refuses all else."""
    # A new frame, without `attrs`: pandas copies these at every step, and they may hold the frame itself.
    frame = pd.DataFrame(given) if isinstance(given, pd.DataFrame) else _to_pandas(given, called)
    names = [str(name) for name in frame.columns]
    duplicates = sorted(repeated(names))
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    for column in [column for column, dtype in enumerate(frame.dtypes) if dtype.kind in "OV"]:
        if (cells := _plain_cells(frame.iloc[:, column])) is not None:
            frame.isetitem(column, cells)
    if not duplicates:
        return frame
    fault = f"several columns are called {', '.join(map(repr, duplicates))}: rename them"
    if faults is None:
        raise TableError(f"{called}: {fault}")
    faults.append(fault)
    return frame.loc[:, ~frame.columns.duplicated()]


def _plain_cells(column: pd.Series) -> list[Any] | None:
    """The cells of a column as those of a workbook; None if all are texts, numbers, truth values or times."""
    cells = column.astype(object)
    kinds = set(map(type, cells))
    huge = int in kinds and any(type(cell) is int and abs(cell) > HUGE for cell in cells)
    if not huge and all(issubclass(kind, PLAIN) for kind in kinds):
        return None
    return [plain_cell(cell) for cell in cells]


def frame_of_rows(rows: Sequence[Mapping[Any, Any]]) -> pd.DataFrame:
    """A data frame of dictionaries, one for each row; what a row lacks is a missing value."""

    def plain(cell: Any) -> Any:
        # pandas itself asks a tensor for its length.
        return _encodable(cell, "replace") if isinstance(cell, PLAIN) else plain_cell(cell)

    return pd.DataFrame(
        [{_encodable(name, "backslashreplace"): plain(row[name]) for name in row} for row in rows]
    )


def _encodable(text: Any, errors: str) -> Any:
    """A text without half a sign, which no encoding has and pandas refuses; all else as it is."""
    return text.encode("utf-8", errors).decode() if isinstance(text, str) else text


def library_of(given: Any) -> str | None:
    """The library of a data frame, "pandas", "polars" or "pyarrow"; None if it is of another, or none."""
    if isinstance(given, pd.DataFrame):
        return "pandas"
    frame = None if isinstance(given, Mapping | list) else nw.from_native(given, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    name = frame.implementation.value
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
    kinds = {name: nw.String() if has_texts else nw.Float64() for name, has_texts in texts.items()}
    try:
        result = nw.from_dict(columns, schema=kinds, backend="polars" if library == "polars" else "pyarrow")
    except ImportError as error:
        raise TableError(f"library: {library} is not installed: install it, or ask for 'pandas'") from error
    return result.to_native()


def _narwhals_frame(data: Any, called: str) -> nw.DataFrame[Any] | None:
    """A data frame of another library; None if it is no data frame."""
    try:
        frame = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise TableError(f"{called}: several columns have the same name: rename them") from error
    if isinstance(frame, nw.LazyFrame):
        remedy = "collect it first, such as by frame.collect()"
        kind = type(data).__name__
        raise TableError(f"{called}: expected a data frame in memory; got a lazy {kind}: {remedy}")
    return frame if isinstance(frame, nw.DataFrame) else None


def _to_pandas(data: Any, called: str) -> pd.DataFrame:
    frame = _narwhals_frame(data, called)
    if frame is None:
        expected = "expected a data frame of pandas, polars or pyarrow"
        raise TableError(f"{called}: {expected}; got a {type(data).__name__}")
    # Numbers as arrays, everything else cell by cell.
    columns = {
        column.name: pd.Series(column.to_numpy())
        if column.dtype.is_integer() or column.dtype.is_float()
        else pd.Series(column.to_list(), dtype=object)
        for column in frame.iter_columns()
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(len(frame)))


def cells_of(
    given: Any, names: tuple[str, ...] | None, called: str
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The numbers of a data frame, and which of them were set: names, values (n, d), and marks (n, d), of all
    columns but marks by default. Columns that are not numeric and complete, and marks that belong to none or
    are not 0 and 1, are a TableError.
    """
    faults: list[str] = []
    frame = data_frame(given, called, faults)
    chosen = tuple(name for name in frame.columns if not name.startswith(SET)) if names is None else names
    marked_columns = {name: name.removeprefix(SET) for name in frame.columns if name.startswith(SET)}
    faults += [
        f"{name}: no column {column!r} beside it; {meant(column, list(frame.columns))}"
        for name, column in marked_columns.items()
        if column not in frame.columns
    ]
    marks = [name for name, column in marked_columns.items() if column in chosen]
    if faults := [*faults, *number_faults(frame, [*chosen, *marks], 0)]:
        raise TableError(listed(called, faults, "nothing was read"))
    values, set_cells = (number_columns(frame, columns, called, 0) for columns in (chosen, marks))
    if unsound := [name for name, cells in zip(marks, set_cells.T, strict=True) if set(cells) - {0, 1}]:
        sentences = [f"{name}: expected 0 or 1, 1 where the value was set by a decision" for name in unsound]
        raise TableError(listed(called, sentences, "nothing was read"))
    altered = np.zeros(values.shape, dtype=bool)
    altered[:, [chosen.index(marked_columns[name]) for name in marks]] = set_cells != 0
    return chosen, values, altered


def frame_of(names: tuple[str, ...], values: np.ndarray, altered: np.ndarray) -> pd.DataFrame:
    """The inverse of `cells_of`: columns, followed by marks for those in which a cell was set."""
    frame = pd.DataFrame(values.copy(), columns=list(names))
    for column, name in enumerate(names):
        if bool(altered[:, column].any()):
            frame[f"{SET}{name}"] = altered[:, column].astype(np.int32)
    return frame
