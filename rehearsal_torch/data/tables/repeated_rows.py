"""Rows that repeat another one in all columns: rows that were entered or joined twice count twice.

Estimates then seem to rest on more than they do, and intervals are too narrow. Rows of few possible values
repeat each other by chance. Repeated rows are therefore told only if

    there are many           at least 5% of the rows repeat an earlier one
    a column is not discrete more than 20 different numbers
    chance is no reason      n rows of independent columns have about n (n - 1)/2 prod_j sum_v p_j(v)^2 that
                             repeat another one, where p_j(v) is the share of the value v in column j; there
                             are at least five times as many

Source: ours; the birthday problem for what chance gives.
"""

import numpy as np
import pandas as pd

from rehearsal_torch.data.reading import numbers_of

SHARE, DISCRETE, CHANCE, SHOWN = 0.05, 20, 5, 3


def repeated(frame: pd.DataFrame) -> str:
    """A sentence on the rows that repeat an earlier one; empty if there is nothing to tell.

    Args:
        frame: The rows, with all columns of the table; the index is the line minus two.
    """
    again = frame.duplicated().to_numpy(dtype=bool)
    count, rows = int(again.sum()), len(frame)
    if not count or count < SHARE * rows or not any(_many(frame[name]) for name in frame.columns):
        return ""
    if count < CHANCE * rows * (rows - 1) / 2 * _alike(frame):
        return ""
    lines = [int(each) + 2 for each in frame.index[again][:SHOWN]]
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    return (
        f"{count} of {rows} rows ({count / rows:.0%}) repeat an earlier row in all columns (line"
        f"{'s' if count > 1 else ''} {', '.join(map(str, lines))}{more}): a row that stands there twice "
        "counts twice, and makes intervals too narrow; take repeats out, unless each was observed by itself"
    )


def _many(column: pd.Series) -> bool:
    numbers = numbers_of(column)
    return len(np.unique(numbers[np.isfinite(numbers)])) > DISCRETE


def _alike(frame: pd.DataFrame) -> float:
    """The chance that two rows of independent columns agree in all of them."""
    shares = (frame[name].value_counts(normalize=True, dropna=False) for name in frame.columns)
    return float(np.prod([float((each**2).sum()) for each in shares]))
