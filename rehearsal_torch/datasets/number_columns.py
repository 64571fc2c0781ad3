"""Columns of numbers from a comma-separated file: everything that is wrong with them is told at once, with the first line it stands in.

Source: ours.
"""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.datasets.stays import TableError
from rehearsal_torch.files.schema import meant


def table_file(path: str | Path | None, role: str = "path") -> pd.DataFrame:
    """Reads a file.

    Args:
        path: A .csv or .csv.gz with a header row.
        role: The argument that names it, for messages.

    Raises:
        TableError: if none is named, there is no such file, it cannot be read, or two columns have one name.
    """
    if path is None:
        raise TableError(f"no table is named: set {role}=table.csv, a comma-separated file with a header row")
    file = Path(path)
    if not file.is_file():
        raise TableError(f"there is no file {file}: check {role}=, which is relative to the folder the command is typed in")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(file, low_memory=False, skipinitialspace=True, index_col=False)
        header = list(pd.read_csv(file, header=None, nrows=1, dtype=str, skipinitialspace=True).iloc[0])
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, OSError) as error:
        raise TableError(f"{file} cannot be read as a comma-separated table ({error}): expected .csv or .csv.gz with a header row") from error
    except pd.errors.ParserWarning as error:
        raise TableError(f"{file}: rows have more fields than the header: name every column, and put texts with commas in quotes") from error
    twice = sorted({str(name) for name in header if header.count(name) > 1})
    if twice:
        raise TableError(f"{file}: several columns are called {', '.join(twice)}: keep one of each")
    return frame


def number_columns(frame: pd.DataFrame, names: Sequence[str], source: str, least: int = 1, varying: bool = False, keep: Iterable[int] | None = None) -> Tensor:
    """The named columns, (n, len(names)) in double precision.

    Args:
        frame: The table.
        names: Which columns.
        source: What the table is called in messages.
        least: Fewest rows.
        varying: Refuses constant columns as well.
        keep: Positions of the rows that are wanted; None for all.

    Raises:
        TableError: if a column is missing, is no number, has values that are missing or infinite, or is constant, or rows are too few; all are listed.
    """
    faults = [f"no column {name!r}; {meant(name, [str(each) for each in frame.columns])}" for name in names if name not in frame.columns]
    rows = frame if keep is None else frame.iloc[list(keep)]
    if len(rows) < least:
        faults.append(f"expected at least {least} rows; got {len(rows)}: nothing can be learnt from so few")
    found = []
    for name in [name for name in names if name in frame.columns]:
        column = rows[name]
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        text = np.isnan(numbers) & column.notna().to_numpy()
        bad = ~np.isfinite(numbers) & ~text
        if text.any():
            faults.append(f"{name}: expected numbers; got {str(column[text].iloc[0])!r}{_at(rows, text)}: code texts as numbers, or leave the variable out")
        if bad.any():
            faults.append(f"{name}: {int(bad.sum())} of {len(rows)} values are missing or infinite{_at(rows, bad)}: drop or impute those rows")
        if varying and len(rows) > 1 and not text.any() and not bad.any() and (numbers == numbers[0]).all():
            faults.append(f"{name}: all {len(rows)} values are {numbers[0]:g}: a constant says nothing, take the variable out")
        found.append(numbers)
    if faults:
        count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
        raise TableError(f"{source}: {count}, nothing was fitted\n" + "\n".join(f"- {fault}" for fault in faults))
    return torch.from_numpy(np.stack(found, -1) if found else np.empty((len(rows), 0)))


def _at(rows: pd.DataFrame, where: np.ndarray) -> str:
    """The line of the file in which a fault first stands; the header is line 1."""
    return f" in line {int(rows.index[int(where.argmax())]) + 2}"
