"""Columns of numbers from a comma-separated file: everything that is wrong with them is told at once, with the first line it stands in.

Source: ours.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.datasets.csv_file import TableError, table_file
from rehearsal_torch.files.schema import LARGEST, listed, meant

__all__ = ["number_columns", "number_faults", "table_file"]


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
        TableError: if a column is missing, is no number, has values that are missing, infinite or beyond 1e150, or is constant, or rows are too few;
            all are listed.
    """
    rows = frame if keep is None else frame.iloc[list(keep)]
    if faults := number_faults(rows, names, least, varying):
        raise TableError(listed(source, faults))
    found = [_numbers(rows[name]) for name in names]
    return torch.from_numpy(np.stack(found, -1) if found else np.empty((len(rows), 0)))


def number_faults(rows: pd.DataFrame, names: Sequence[str], least: int = 1, varying: bool = False) -> list[str]:
    """What is wrong with the named columns.

    Args:
        rows: The table.
        names: Which columns.
        least: Fewest rows.
        varying: Whether a constant column is a fault.
    """
    faults = [f"no column {name!r}; {meant(name, [str(each) for each in rows.columns])}" for name in names if name not in rows.columns]
    if len(rows) < least:
        faults.append(f"expected at least {least} rows; got {len(rows)}: nothing can be learnt from so few")
    for name in [name for name in names if name in rows.columns]:
        numbers = _numbers(rows[name])
        text = np.isnan(numbers) & rows[name].notna().to_numpy()
        bad = ~np.isfinite(numbers) & ~text
        large = np.isfinite(numbers) & (np.abs(numbers) > LARGEST)
        if text.any():
            cell = str(rows[name][text].iloc[0])
            remedy = "write a decimal point" if re.match(r"\s*[+-]?\d+,\d+\s*\Z", cell) else "code texts as numbers, or leave the variable out"
            faults.append(f"{name}: expected numbers; got {cell[:60]!r}{_at(rows, text)}: {remedy}")
        if bad.any():
            faults.append(f"{name}: {int(bad.sum())} of {len(rows)} values are missing or infinite{_at(rows, bad)}: drop or impute those rows")
        if large.any():
            first = numbers[int(large.argmax())]
            faults.append(f"{name}: {first:g}{_at(rows, large)} is too large to compute with: expected values up to {LARGEST:g}, so use another unit")
        if varying and len(rows) > 1 and not text.any() and not bad.any():
            if (numbers == numbers[0]).all():
                faults.append(f"{name}: all {len(rows)} values are {numbers[0]:g}: a constant says nothing, take the variable out")
            elif np.ptp(numbers) < 1 / LARGEST:
                faults.append(f"{name}: all {len(rows)} values lie within {np.ptp(numbers):g}, too close to compute with: use another unit")
    return faults


def _numbers(column: pd.Series) -> np.ndarray:
    """A column in double precision, nan where it holds no number."""
    try:
        numbers = pd.to_numeric(column, errors="coerce")
    except OverflowError:  # a whole number of hundreds of digits
        numbers = pd.to_numeric(column.map(lambda cell: np.inf if isinstance(cell, int) and abs(cell) > 10**300 else cell), errors="coerce")
    return np.asarray(numbers.to_numpy(np.float64, na_value=np.nan))


def _at(rows: pd.DataFrame, where: np.ndarray) -> str:
    """The line of the file in which a fault first stands; the header is line 1."""
    return f" in line {int(rows.index[int(where.argmax())]) + 2}"
