"""Records: rows of numbers as they were observed, as arrays of NumPy, for checks that load no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rehearsal_torch.files.schema import LARGEST


@dataclass(frozen=True)
class Records:
    """n rows over d named variables: values (n, d), float64, in the variables' units; in `places`, (n,),
    where each row stood when they were recorded (None: in that order); in `complete`, (n,) bool, which rows
    have no cell that was filled in (None: all); in `altered`,
    (n, d) bool, which cells a decision set instead of their mechanism (None: none).
    """

    names: tuple[str, ...]
    values: np.ndarray
    places: np.ndarray | None = None
    complete: np.ndarray | None = None
    altered: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """The named columns in the given order, (n, len(names)); a KeyError for an unknown one."""
        return self.values[:, positions(self.names, names)]

    def as_recorded(self) -> Records:
        """The rows in the order in which they were recorded."""
        return self if self.places is None else Records(self.names, self.values[np.argsort(self.places)])


def positions(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The index of each wanted name in `names`; a KeyError for an unknown one."""
    index_of = {name: index for index, name in enumerate(names)}
    unknown = [name for name in wanted if name not in index_of]
    if unknown:
        raise KeyError(f"no column {unknown}; the columns are {list(names)}")
    return [index_of[name] for name in wanted]


def check_fit(
    rows: Records,
    names: Sequence[str],
    least: int,
    nouns: str,
    remedies: tuple[str, str],
    varying: Sequence[str],
    gaps: Sequence[str] = (),
) -> None:
    """Refuses a table to which no model can be fitted: one of the columns is missing, there are fewer rows
    than the `least`, a value is missing, infinite or beyond 1e150, or a varying column is constant.

    Args:
        nouns: What the columns are, such as nodes.
        remedies: What to do about too few rows, and about missing values.
        gaps: The columns of which values may be missing.
    """
    if missing := [name for name in names if name not in rows.names]:
        remedy = f"add the columns, or take the {nouns} out of the graph"
        raise ValueError(f"no column for {missing}; the table has {list(rows.names)}: {remedy}")
    count = len(rows)
    if count < least:
        raise ValueError(f"expected at least {least} rows; got {count}: {remedies[0]}")
    faults = []
    for name, column in zip(names, rows.columns(names).T, strict=True):
        if large := int((np.isfinite(column) & (np.abs(column) > LARGEST)).sum()):
            words = f"{large} of {count} values are beyond {LARGEST:g}, too large to compute with"
            faults.append(f"{name}: {words}: use another unit")
        elif undefined := int((np.isinf(column) if name in gaps else ~np.isfinite(column)).sum()):
            faults.append(f"{name}: {undefined} of {count} values are missing or infinite: {remedies[1]}")
        elif name in varying and bool((column == column[0]).all()):
            remedy = f"a constant carries no information, take it out of the {nouns}"
            faults.append(f"{name}: all {count} values are {float(column[0]):g}: {remedy}")
    if faults:
        raise ValueError("; ".join(faults))


def content_order(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The order of n rows by a hash of what they say, (n,): the same rows come in the same order whatever
    their order, names, positive units, the order of columns, and which of two values is the larger one.

    A value is known by its rank in its column, or by how many rows have it where there are two; a column by
    the hashes of its values beside those of their rows. Rows with equal hashes, such as those of a complete
    design, follow each other by their values, column by column. Missing values are one value.
    """
    count = len(columns[0]) if columns else 0
    rows = np.zeros(count, np.uint64)
    codes = []
    for column in columns:
        _, code, counts = np.unique(column, return_inverse=True, return_counts=True)
        codes.append((code.reshape(-1), len(counts) == 2))
        rows += _splitmix(counts[codes[-1][0]] if codes[-1][1] else codes[-1][0])
    for _ in range(2):
        previous, rows = _splitmix(rows), np.zeros(count, np.uint64)
        for code, binary in codes:
            if binary:
                sums = np.array([previous[code == value].sum(dtype=np.uint64) for value in (0, 1)])
                rows += _splitmix(sums[code] + sums.sum(dtype=np.uint64))
            else:
                ranks = _splitmix(code)
                rows += _splitmix(ranks + _splitmix((ranks ^ previous).sum(dtype=np.uint64)))
    order = np.argsort(rows)
    tied = (np.diff(rows[order]) == 0).any()
    return np.lexsort((*(code for code, _ in codes[::-1]), rows)) if tied else order


def _splitmix(numbers: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64, number by number; the state moves on first, so that 0 is mixed as well."""
    state = np.atleast_1d(numbers).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def evenly(count: int, most: int) -> np.ndarray:
    """The places of at most `most` evenly spaced rows, the first and the last among them, (m,)."""
    return np.linspace(0, count - 1, min(most, count)).round().astype(int)
