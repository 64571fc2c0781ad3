"""What a first draft sees of the columns of a table before it guesses: row numbers, dates, copies.

    names     a first row of numbers alone is a row, and the names are missing
    numbers   whole numbers without gaps, another one in each row, number the rows
    dates     no numbers, and no free texts: they are to be written as numbers
    copies    a column that others give: |correlation| above .999 with one of them or the product of two,
              in the first rows

A copy adds nothing to what the others say, and its effect cannot be told from theirs.
"""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from rehearsal_torch.data.reading import DATE, ReadTable, TableError

COPY, ROWS, FEWEST = 0.999, 2000, 10
_NUMBER = re.compile(r"\s*[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?(?:\.\d+)?\s*")


def check_names(table: ReadTable) -> None:
    """Refuses a table without names of columns.

    Args:
        table: The rows.

    Raises:
        TableError: if the first row has numbers alone.
    """
    names = [str(name) for name in table.frame.columns]
    if names and all(_NUMBER.fullmatch(name) for name in names):
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise TableError(
            f"{table.where}: expected the names of columns in the first row; got numbers alone ({shown}): "
            "write a row of names above them; a name that is a number needs a letter, such as y2020"
        )


def of_dates(column: pd.Series) -> bool:
    """Whether a column holds dates.

    Args:
        column: Its cells.
    """
    if pd.api.types.is_datetime64_any_dtype(column):
        return True
    known = column.dropna().head(ROWS)
    return len(known) > 0 and all(DATE.match(str(each)) is not None for each in known)


def numbering(numbers: np.ndarray) -> bool:
    """Whether a column numbers the rows: whole numbers, another one in each row, without gaps.

    Args:
        numbers: Its cells, NaN where one is no number.
    """
    values = np.unique(numbers)
    whole = bool((values == np.round(values)).all())
    return whole and len(values) == len(numbers) > 2 and float(np.ptp(values)) == len(values) - 1


def copies(columns: Mapping[str, np.ndarray], kept: frozenset[str] = frozenset()) -> dict[str, str]:
    """The columns that others give, each with what gives it, such as ``x`` or ``x times z``.

    Args:
        columns: Name to numbers, (n,), NaN where one is missing.
        kept: Names that are called no copies, but may have some.
    """
    if not columns:
        return {}
    names = [*(name for name in columns if name in kept), *(name for name in columns if name not in kept)]
    values = np.stack([columns[name][:ROWS] for name in names], -1)
    values = values[~np.isnan(values).any(-1)]
    if len(values) < FEWEST:
        return {}
    found, alone = dict[str, str](), _standardised(values)
    close = np.abs(alone.T @ alone) > COPY
    for place, name in enumerate(names):
        before = [each for each in range(place) if close[place, each] and names[each] not in found]
        if name not in kept and before:
            found[name] = names[before[0]]
    made: dict[str, tuple[str, ...]] = {name: (other,) for name, other in found.items()}
    for place, name in enumerate(names):
        if name in kept or name in found:
            continue
        # A copy may be a factor, as x times z is of x times z times w, but not of what it is made of.
        others = [
            each for each in range(len(names)) if each != place and name not in made.get(names[each], ())
        ]
        for first in others:
            seconds = [each for each in others if each >= first]
            products = _standardised(values[:, [first]] * values[:, seconds])
            near = np.abs(alone[:, place] @ products)
            if near.max() > COPY:
                made[name] = (names[first], names[seconds[int(near.argmax())]])
                found[name] = " times ".join(made[name])
                break
    return found


def _standardised(values: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and length 1, whose inner products are correlations; 0 where a column is constant."""
    centred = values - values.mean(0)
    lengths = np.sqrt((centred**2).sum(0))
    scaled: np.ndarray = centred / np.where(lengths > 0, lengths, 1.0)
    return scaled
