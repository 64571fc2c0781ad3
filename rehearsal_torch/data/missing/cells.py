"""Missing cells of a table: how many, in which columns, and whether completeness depends on a column.

A row is complete if no column that is used has a missing cell in it. Leaving the others out is harmless
where completeness is chance, and keeps regressions of the outcomes right where it depends on their inputs
alone; where it depends on the outcomes, or on variables that no regression is given, estimates from complete
rows are biased. Which of these holds cannot be seen in full, but dependence on an observed variable can: each
used column is compared between complete and incomplete rows, among the rows that have a value in it, by the
rank test of Mann and Whitney, and the p-values are adjusted for the number of columns by Holm's method.

Source: Little and Rubin (2019), Ch. 3 (complete cases); White and Carlin (2010) (when complete cases are
unbiased); Mann and Whitney (1947); Holm (1979).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rehearsal_torch.data.reading import numbers_of

# The share of rows left out above which a warning is due, the level of the tests, and the fewest rows of a
# group that is compared.
MANY, LEVEL, FEWEST = 0.05, 0.05, 5


@dataclass(frozen=True)
class MissingCells:
    """The missing cells of the used columns.

    Attributes:
        rows: The number of rows.
        complete: Which of them have no missing cell, (rows,) bool.
        columns: Column to its number of missing cells, for those that have some, in order.
    """

    rows: int
    complete: np.ndarray
    columns: Mapping[str, int]

    @property
    def incomplete(self) -> int:
        """The number of rows with a missing cell."""
        return self.rows - int(self.complete.sum())

    def by_column(self) -> str:
        """The counts of the columns as text, the largest first, such as "bmi: 12, age: 3"."""
        ordered = sorted(self.columns.items(), key=lambda each: -each[1])
        return ", ".join(f"{name}: {count}" for name, count in ordered)


def missing_cells(frame: pd.DataFrame, names: Sequence[str]) -> MissingCells:
    """The missing cells of some columns; text and infinite numbers are not missing.

    Args:
        frame: The rows.
        names: Columns of it.
    """
    empty = frame[list(names)].isna()
    counts = {name: int(empty[name].sum()) for name in names}
    return MissingCells(
        len(frame), ~empty.any(axis=1).to_numpy(), {name: count for name, count in counts.items() if count}
    )


def dependence(frame: pd.DataFrame, names: Sequence[str], complete: np.ndarray) -> dict[str, float]:
    """The adjusted p-values of "completeness does not depend on this column", smallest first.

    Columns in which fewer than five complete or incomplete rows have a value, or whose values are all equal,
    are not tested.

    Args:
        frame: The rows.
        names: Columns of numbers, some of them missing.
        complete: Which rows are complete, (n,) bool.
    """
    from scipy.stats import mannwhitneyu

    found = {}
    for name in names:
        values = numbers_of(frame[name])
        known = np.isfinite(values)
        one, other = values[known & complete], values[known & ~complete]
        if min(len(one), len(other)) >= FEWEST and np.ptp(values[known]) > 0:
            found[name] = float(mannwhitneyu(one, other, method="asymptotic").pvalue)
    return holm(found)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values adjusted by Holm's method, smallest first.

    Args:
        p_values: Name to p-value.
    """
    ordered = sorted(p_values.items(), key=lambda each: each[1])
    adjusted, largest = {}, 0.0
    for place, (name, p) in enumerate(ordered):
        largest = max(largest, min(1.0, p * (len(ordered) - place)))
        adjusted[name] = largest
    return adjusted


def left_out(found: MissingCells) -> str:
    """What leaving incomplete rows out has cost, as a sentence without a full stop."""
    return (
        f"{found.incomplete} of {found.rows} rows have a missing cell and are left out (missing cells by "
        f"column: {found.by_column()})"
    )


def doubts(found: MissingCells, frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Why complete rows may mislead: many are left out, or completeness depends on an observed column.

    Args:
        found: The missing cells.
        frame: All rows.
        names: The used columns.
    """
    if not found.incomplete:
        return []
    sentences = []
    share = found.incomplete / found.rows
    if share > MANY:
        sentences.append(
            f"{share:.1%} of the rows are left out because a cell is missing ({found.by_column()}): "
            "estimates are those of the complete rows; missing: {impute: 20} uses the others as well"
        )
    depends = {name: p for name, p in dependence(frame, names, found.complete).items() if p < LEVEL}
    if depends:
        shown = ", ".join(f"{name} (p = {p:.1g})" for name, p in depends.items())
        sentences.append(
            f"whether a row is complete depends on {shown}, by Mann-Whitney tests adjusted by Holm's "
            "method: complete rows are no random sample; missing: {impute: 20} is right where missing cells "
            "depend on observed ones alone"
        )
    return sentences
