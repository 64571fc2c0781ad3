"""What makes a table doubtful whatever is asked of it: rows, values and columns that may mean something else.

    repeated rows      5% of the rows repeat another one (below)
    totals             a row that begins with total or subtotal, between the others
    stand-ins          values such as -999 or -9 in many rows of a column: far from all others, or in a column
                       in which hardly anything else repeats
    alike classes      names that differ in case, blanks, dots and hyphens alone
    rows that count    a column named n or freq of whole numbers beside rows that all differ
    one-hot columns    columns of 0 and 1 of which exactly one is 1 in every row

Rows that were entered or joined twice count twice: estimates seem to rest on more than they do, and intervals
are too narrow. Rows of few possible values repeat each other by chance. Repeated rows are therefore told only
if

    there are many           at least 5% of the rows repeat an earlier one
    a column is not discrete more than 20 different numbers
    chance is no reason      n rows of independent columns have about n (n - 1)/2 prod_j sum_v p_j(v)^2 that
                             repeat another one, where p_j(v) is the share of the value v in column j; there
                             are at least five times as many

A value that repeats is often none: a dose of 0, what a device reads at most, a limit to which values were
cut. Of a value that is in at least five times as many rows as any other, the following is not told: 0 at an
end of the column, unless the others keep away from it; any other end, unless there is a gap between it and
the others, of which cut values leave none; and what an action may be set to. In a column in which others
repeat as well, only what stands for missing cells in many files is told (-1, -9, 99, -999), beyond the
others.

Source: the birthday problem for what chance gives; Suits (1957), for indicators without a reference class.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.identifiers import words_of
from rehearsal_torch.data.tables.reader import numbers_of

SHARE, DISCRETE, CHANCE, SHOWN = 0.05, 20, 5, 3
# Cells of a row that is the total of others, and the largest share of rows that are: elsewhere it is a class.
_TOTAL = r"(?:grand |sub|sub-|sub )?totals?:?|(?:zwischen|gesamt)?summe:?"
MOST_TOTALS = 1 / 3
# The fewest rows of a stand-in, the least share, and how many times as many as any other value has.
MANY, SEVERAL, TIMES = 3, 0.005, 5
# Of the others: the share that differ where hardly anything repeats, the part of their range that is a gap,
# the steps between neighbours that are one, and the part of the median that they keep away from 0.
DIFFERENT, GAP, STEPS, AWAY = 0.5, 0.05, 5, 0.25
# Rows on which values are counted at most.
COUNTED = 20_000


def repeated(frame: pd.DataFrame) -> str:
    """A sentence on the rows that repeat an earlier one; empty if there is nothing to tell."""
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


def totals(frame: pd.DataFrame) -> str:
    """A sentence on the rows that are called totals of others; empty if there are none."""
    words = np.zeros(len(frame), dtype=bool)
    for name in frame.columns if len(frame) else ():
        if frame[name].dtype.kind == "O":
            words |= (
                frame[name].astype(str).str.strip().str.fullmatch(_TOTAL, case=False).to_numpy(dtype=bool)
            )
    if not words.any() or words.mean() > MOST_TOTALS:
        return ""
    lines = [int(index) + 2 for index in frame.index[words]]
    if len(lines) == 1:
        return f"line {lines[0]} may be a total of other rows, which then count twice: delete it, if it is"
    more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    shown = ", ".join(map(str, lines[:SHOWN]))
    return f"lines {shown}{more} may be totals of other rows, which then count twice: delete those that are"


def _many(column: pd.Series) -> bool:
    numbers = numbers_of(column)
    return len(np.unique(numbers[np.isfinite(numbers)])) > DISCRETE


def _alike(frame: pd.DataFrame) -> float:
    """The chance that two rows of independent columns agree in all of them."""
    shares = (frame[name].value_counts(normalize=True, dropna=False) for name in frame.columns)
    return float(np.prod([float((each**2).sum()) for each in shares]))


def stand_ins(
    column: np.ndarray, settable: tuple[float, float] | None = None
) -> list[tuple[str, dict[str, float]]]:
    """Sentences on values of a column (n,) that may stand for missing cells, each with its numbers: the value
    and how many rows have it.

    Args:
        column: The values; of more than 20,000 the first are looked at, which should be no special ones.
        settable: What an action may be set to; None of other variables.
    """
    some = column[:COUNTED]
    values, counts = np.unique(some[np.isfinite(some)], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    # The values, three at most, that are in far more rows than any other one.
    above = [k for k in (1, 2, 3) if k < len(order) and counts[order[k - 1]] >= TIMES * counts[order[k]]]
    frequent = set(order[: above[-1]].tolist()) if above else set[int]()
    found = []
    for place in sorted(frequent | {0, len(values) - 1} if len(values) else ()):
        apart = sorted(frequent | {place})
        rest, others = np.delete(values, apart), np.delete(counts, apart)
        offered = settable is not None and (values[place] == 0 or settable[0] <= values[place] <= settable[1])
        if len(rest) < 3 or counts[place] < max(MANY, SEVERAL * len(some)) or offered:
            continue
        value, low, high = float(values[place]), float(rest[0]), float(rest[-1])
        if max(low - value, value - high) > high - low:
            reason = f"{value:g}, far from all others, which go from {low:g} to {high:g}"
        elif place in frequent and _odd(value, int(counts[place]), rest, others):
            most = "one row" if others.max() == 1 else f"{others.max()} rows"
            reason = f"exactly {value:g}, and no other value is in more than {most}"
        else:
            continue
        rows = int((column == value).sum())
        numbers = {"value": value, "rows": float(rows), "share": rows / len(column)}
        remedy = "if it stands for a missing cell, leave the cell empty"
        found.append((f"{rows} of {len(column)} rows have {reason}: {remedy}", numbers))
    return found


def _odd(value: float, rows: int, rest: np.ndarray, others: np.ndarray) -> bool:
    """Whether a value in some rows is none that repeats by nature, beside other values and their rows."""
    if len(rest) <= DISCRETE:
        return False
    beyond = value < rest[0] or value > rest[-1]
    if value == 0 and beyond:
        sizes = np.abs(np.repeat(rest, others))
        return bool(np.quantile(sizes, 0.01) > AWAY * np.median(sizes))
    differ = len(rest) >= DIFFERENT * others.sum()
    differ |= len(rest) > 10 * DISCRETE and rows >= 4 * TIMES * others.max()
    if not differ and not (beyond and _code(value)):
        return False
    if not beyond or value < 0 <= rest[0]:
        return True
    ordered, end = (rest, value) if value < rest[0] else (-rest[::-1], -value)
    near = ordered[: max(STEPS, len(rest) // 20) + 1]
    step = (near[-1] - near[0]) / (len(near) - 1)
    return bool(ordered[0] - end > max(GAP * (rest[-1] - rest[0]), STEPS * step))


def _code(value: float) -> bool:
    """Whether a value is one of those that stand for missing cells in many files: -1, 9, 99, -999, 88."""
    return value == -1 or re.fullmatch(r"-?(9+|8+)", f"{value:.15g}") is not None


_BETWEEN = re.compile(r"(?<=[^\W\d_])[\s._-]+(?=[^\W_])|(?<=\d)[\s._-]+(?=[^\W\d_])")


def alike_classes(levels: Iterable[str]) -> list[list[str]]:
    """The groups of names that are one but for case, and for blanks, dots and hyphens beside letters."""
    groups: dict[str, list[str]] = {}
    for level in levels:
        plain = unicodedata.normalize("NFKC", level).strip().casefold()
        groups.setdefault(_BETWEEN.sub("", plain), []).append(level)
    return [group for group in groups.values() if len(group) > 1]


# Names of columns that say how many rows a row stands for; weights also weigh persons.
_COUNTS = frozenset(
    ["count", "counts", "n", "freq", "freqs", "frequency", "frequencies", "weight", "weights"]
)


def row_counts(frame: pd.DataFrame, variables: Sequence[str]) -> list[tuple[str, int]]:
    """The columns that may say how many rows each row stands for, and their sums: by their name, of whole
    numbers from 1, beside rows that all differ in their `variables`, which are texts or whole numbers.
    """
    found = []
    for name in map(str, frame.columns):
        said, others = "".join(words_of(name)), [each for each in variables if each != name]
        if said not in _COUNTS or not others:
            continue
        numbers = numbers_of(frame[name])
        numbered = len(np.unique(numbers)) == len(numbers) == np.ptp(numbers) + 1
        if not _whole(numbers) or numbers.min() < 1 or numbers.max() == 1 or numbered:
            continue
        columns = [numbers_of(frame[each]) for each in others]
        plain = [_whole(each) or np.isnan(each).all() for each in columns]
        few = [not _many(frame[each]) for each in others]
        if all(few if said.startswith("w") else plain) and not frame[others].duplicated().any():
            found.append((name, int(numbers.sum())))
    return found


def _whole(numbers: np.ndarray) -> bool:
    return bool(np.isfinite(numbers).all() and (numbers == np.round(numbers)).all())


def one_hot(columns: Mapping[str, np.ndarray]) -> list[list[str]]:
    """The groups of columns (n,) of 0 and 1 of which exactly one is 1 in every row; or at most one, where
    three or more have names that differ in their last part, and chance is no reason.
    """
    names = [name for name, column in columns.items() if _of_two(column)]
    ones = np.stack([columns[name] for name in names] or [np.zeros(1)], -1).astype(np.float32)
    both = ones.T @ ones
    shares, left, groups = both.diagonal() / len(ones), list(range(len(names))), list[list[str]]()

    def apart(place: int, group: Sequence[int]) -> bool:
        return not both[place, list(group)].any()

    stems: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        stems.setdefault(_stem(name), []).append(place)
    for group in stems.values():
        part = shares[group]
        chance = len(ones) * (part.sum() ** 2 - (part**2).sum()) / 2
        exclusive = all(apart(place, group[:at]) for at, place in enumerate(group) if at)
        if exclusive and len(group) > 2 and chance >= 2 * CHANCE:
            groups.append([names[place] for place in group])
            left = [place for place in left if place not in group]
    while left:
        group = left[:1]
        for place in left[1:]:
            group += [place] if apart(place, group) else []
        if len(group) > 1 and round(float(both.diagonal()[group].sum())) == len(ones):
            groups.append([names[place] for place in group])
            left = [place for place in left if place not in group]
        else:
            left = left[1:]
    return groups


def _of_two(column: np.ndarray) -> bool:
    """Whether a column has the values 0 and 1 alone, and both; the first rows show most that have not."""
    parts = (column[:100], column)
    return all(((part == 0) | (part == 1)).all() for part in parts) and bool(0 < column.sum() < len(column))


def _stem(name: str) -> str:
    """A name without its last word, or the number at its end: year of year_2019, year2019 and yearEarly."""
    words = words_of(name)
    return " ".join(words[:-1]) if len(words) > 1 else re.sub(r"(?<=\D)\d+$", "", name)
