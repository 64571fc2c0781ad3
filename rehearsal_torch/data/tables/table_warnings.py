"""Warnings about a table, whatever is asked of it: rows, values and columns that may mean something else.

    repeated rows      5% of the rows repeat another one (below)
    totals             a row that begins with total or subtotal, between the others
    stand-ins          values such as -999 or -9 in many rows of a column: far from all others, or in a column
                       in which hardly anything else repeats; codes of missing cells far from all others
                       already in one row
    alike classes      names that differ in case, blanks, dots and hyphens alone
    rows that count    a column named n or freq of whole numbers beside rows that all differ
    one-hot columns    columns of 0 and 1 of which exactly one is 1 in every row

Rows that were entered or joined twice count twice: estimates seem to rest on more than they do, and intervals
are too narrow. Rows of few possible values repeat each other by chance. Repeated rows are therefore reported
only if

    there are many           at least 5% of the rows repeat an earlier one
    a column is not discrete more than 20 different numbers
    chance is no reason      n rows of independent columns have about n (n - 1)/2 prod_j sum_v p_j(v)^2 that
                             repeat another one, where p_j(v) is the share of the value v in column j; there
                             are at least five times as many

A value that repeats is often no stand-in: a dose of 0, the maximum of a device, a limit to which values were
cut. Of values in at least five times as many rows as any other, these are not reported: 0 at an end of the
column, unless the others keep away from it; any other end, unless a gap separates it from the others, which
cut values leave none of; and what an action may be set to. In a column in which others repeat as well, only
codes of missing cells (-1, -9, 99, -999) beyond the others are reported.

Source: the birthday problem for what chance gives; Suits (1957), for indicators without a reference class.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.identifiers import words_of
from rehearsal_torch.data.tables.reader import are_whole, numbers_of

SHARE, DISCRETE, CHANCE, SHOWN = 0.05, 20, 5, 3
# Cells of a row of totals, and the largest share of such rows: where there are more, it is a class.
_TOTAL = r"(?:grand |sub|sub-|sub )?totals?:?|(?:zwischen|gesamt)?summe:?"
MOST_TOTALS = 1 / 3
# The fewest rows of a stand-in, the least share, and how many times as many as any other value has.
LEAST_ROWS, LEAST_SHARE, TIMES = 3, 0.005, 5
# Of the others: the share that differ where hardly anything repeats, the part of their range that is a gap,
# the steps between neighbours that are one, and the part of the median that they keep away from 0.
DIFFERENT, GAP, STEPS, AWAY = 0.5, 0.05, 5, 0.25
RARE = 3  # how many times the range of the others a rare code lies beyond them
# Rows on which values are counted at most.
COUNTED = 20_000


def repeated(frame: pd.DataFrame) -> str:
    """A sentence on the rows that repeat an earlier one; empty if there is no reason for a warning."""
    repeats = frame.duplicated().to_numpy(dtype=bool)
    count, rows = int(repeats.sum()), len(frame)
    if not count or count < SHARE * rows or not any(_is_continuous(frame[name]) for name in frame.columns):
        return ""
    if count < CHANCE * rows * (rows - 1) / 2 * _agreement(frame):
        return ""
    return (
        f"{count} of {rows} rows ({count / rows:.0%}) repeat an earlier row in all columns "
        f"({_lines(frame.index[repeats])}): a row that stands there twice counts twice, and makes intervals "
        "too narrow; take repeats out, unless each was observed by itself"
    )


def totals(frame: pd.DataFrame) -> str:
    """A sentence on the rows that are called totals of others; empty if there are none."""
    texts = [frame[name].astype(str).str.strip() for name in frame.columns if frame[name].dtype.kind == "O"]
    is_total = np.any([column.str.fullmatch(_TOTAL, case=False) for column in texts], axis=0)
    if not is_total.any() or is_total.mean() > MOST_TOTALS:
        return ""
    what, remedy = ("a total", "it, if it is") if is_total.sum() == 1 else ("totals", "those that are")
    lines = _lines(frame.index[is_total])
    return f"{lines} may be {what} of other rows, which then count twice: delete {remedy}"


def _lines(index: pd.Index) -> str:
    lines = [str(int(label) + 2) for label in index]
    more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return f"line{'s' * (len(lines) > 1)} {', '.join(lines[:SHOWN])}{more}"


def _is_continuous(column: pd.Series) -> bool:
    numbers = numbers_of(column)
    return len(np.unique(numbers[np.isfinite(numbers)])) > DISCRETE


def _agreement(frame: pd.DataFrame) -> float:
    """The chance that two rows of independent columns agree in all of them."""
    column_shares = (frame[name].value_counts(normalize=True, dropna=False) for name in frame.columns)
    return float(np.prod([float((shares**2).sum()) for shares in column_shares]))


def stand_ins(
    column: np.ndarray, settable: tuple[float, float] | None = None
) -> list[tuple[str, dict[str, float]]]:
    """Sentences on values of a column (n,) that may stand for missing cells, each with its numbers: the value
    and how many rows have it. An action may be `settable` within two values.
    """
    head = column[:COUNTED]
    values, counts = np.unique(head[np.isfinite(head)], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    # The values, three at most, that are in far more rows than any other one.
    ranks = [k for k in (1, 2, 3) if k < len(order) and counts[order[k - 1]] >= TIMES * counts[order[k]]]
    frequent = set(order[: ranks[-1]].tolist()) if ranks else set[int]()
    warnings = []
    for index in sorted(frequent | {0, len(values) - 1} if len(values) else ()):
        removed = sorted(frequent | {index})
        others, other_counts = np.delete(values, removed), np.delete(counts, removed)
        value = float(values[index])
        is_settable = settable is not None and (value == 0 or settable[0] <= value <= settable[1])
        if len(others) < 3 or counts[index] < max(LEAST_ROWS, LEAST_SHARE * len(head)) or is_settable:
            continue
        low, high = float(others[0]), float(others[-1])
        if max(low - value, value - high) > high - low:
            reason = f"{value:g}, far from all others, which go from {low:g} to {high:g}"
        elif index in frequent and _is_unnatural(value, int(counts[index]), others, other_counts):
            most = "one row" if other_counts.max() == 1 else f"{other_counts.max()} rows"
            reason = f"exactly {value:g}, and no other value is in more than {most}"
        else:
            continue
        rows = int((column == value).sum())
        numbers = {"value": value, "rows": float(rows), "share": rows / len(column)}
        remedy = "if it stands for a missing cell, leave the cell empty"
        warnings.append((f"{rows} of {len(column)} rows have {reason}: {remedy}", numbers))
    return warnings


def rare_codes(column: pd.Series, settable: tuple[float, float] | None = None) -> list[tuple[str, float]]:
    """Sentences on codes of missing cells (-9, 99, -999) in too few rows for `stand_ins`, and the code: below
    others that are not negative by more than the range of these, else beyond them by three times as much.
    """
    numbers = numbers_of(column)
    values, sentences = np.unique(numbers[np.isfinite(numbers)]), []
    while len(values) > 3:
        ends = [
            (float(value), rest, value < rest[0] and rest[0] >= 0)
            for value, rest in ((values[0], values[1:]), (values[-1], values[:-1]))
            if _is_missing_code(value) and (value <= -9 or value > 9)
        ]
        far = [
            (value, rest)
            for value, rest, impossible in ends
            if max(rest[0] - value, value - rest[-1]) > (1 if impossible else RARE) * (rest[-1] - rest[0])
        ]
        if not far:
            break
        value, values = far[0]
        rows = column.index[numbers == value]
        few = len(rows) < max(LEAST_ROWS, LEAST_SHARE * min(len(column), COUNTED))
        if few and not (settable is not None and settable[0] <= value <= settable[1]):
            reason = f"far from all others, which go from {values[0]:g} to {values[-1]:g}"
            remedy = "if it stands for a missing cell, leave the cell empty"
            sentences.append((f"{_lines(rows)}: {value:g}, {reason}: {remedy}", value))
    return sentences


def _is_unnatural(value: float, count: int, others: np.ndarray, counts: np.ndarray) -> bool:
    """Whether a value in `count` rows repeats as no value does by nature, beside others and their counts."""
    if len(others) <= DISCRETE:
        return False
    beyond = value < others[0] or value > others[-1]
    if value == 0 and beyond:
        sizes = np.abs(np.repeat(others, counts))
        return bool(np.quantile(sizes, 0.01) > AWAY * np.median(sizes))
    distinct = len(others) >= DIFFERENT * counts.sum()
    distinct |= len(others) > 10 * DISCRETE and count >= 4 * TIMES * counts.max()
    if not distinct and not (beyond and _is_missing_code(value)):
        return False
    if not beyond or value < 0 <= others[0]:
        return True
    ordered, edge = (others, value) if value < others[0] else (-others[::-1], -value)
    nearest = ordered[: max(STEPS, len(others) // 20) + 1]
    step = (nearest[-1] - nearest[0]) / (len(nearest) - 1)
    return bool(ordered[0] - edge > max(GAP * (others[-1] - others[0]), STEPS * step))


def _is_missing_code(value: float) -> bool:
    """Whether a value is one of those that stand for missing cells in many files: -1, 9, 99, -999, 88."""
    return value == -1 or re.fullmatch(r"-?(9+|8+)", f"{value:.15g}") is not None


_BETWEEN = re.compile(r"(?<=[^\W\d_])[\s._-]+(?=[^\W_])|(?<=\d)[\s._-]+(?=[^\W\d_])")


def alike_classes(levels: Iterable[str]) -> list[list[str]]:
    """The groups of names that are one but for case, and for blanks, dots and hyphens beside letters."""
    groups: dict[str, list[str]] = {}
    for level in levels:
        key = unicodedata.normalize("NFKC", level).strip().casefold()
        groups.setdefault(_BETWEEN.sub("", key), []).append(level)
    return [group for group in groups.values() if len(group) > 1]


# Names of columns that may count rows; a weight may also be that of a person.
_COUNTS = ["count", "counts", "n", "freq", "freqs", "frequency", "frequencies", "weight", "weights"]


def row_counts(frame: pd.DataFrame, variables: Sequence[str]) -> list[tuple[str, int]]:
    """The columns that may count how many rows each row stands for, and their sums: by their name, of whole
    numbers from 1, beside rows that all differ in their `variables`, which are texts or whole numbers.
    """
    counting = []
    for name in map(str, frame.columns):
        words, other_names = "".join(words_of(name)), [other for other in variables if other != name]
        if words not in _COUNTS or not other_names:
            continue
        numbers = numbers_of(frame[name])
        row_numbers = len(np.unique(numbers)) == len(numbers) == np.ptp(numbers) + 1
        if not are_whole(numbers) or numbers.min() < 1 or numbers.max() == 1 or row_numbers:
            continue
        columns = [numbers_of(frame[other]) for other in other_names]
        whole = [are_whole(other) or np.isnan(other).all() for other in columns]
        discrete = [not _is_continuous(frame[other]) for other in other_names]
        if all(discrete if words.startswith("w") else whole) and not frame[other_names].duplicated().any():
            counting.append((name, int(numbers.sum())))
    return counting


def one_hot(columns: Mapping[str, np.ndarray]) -> list[list[str]]:
    """The groups of columns (n,) of 0 and 1 of which exactly one is 1 in every row; or at most one, where
    three or more have names that differ in their last part, and chance is no reason.
    """
    names = [name for name, column in columns.items() if _is_binary(column)]
    ones = np.stack([columns[name] for name in names] or [np.zeros(1)], -1).astype(np.float32)
    together = ones.T @ ones
    shares, remaining, groups = together.diagonal() / len(ones), list(range(len(names))), list[list[str]]()

    def disjoint(index: int, group: Sequence[int]) -> bool:
        return not together[index, list(group)].any()

    stems: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        stems.setdefault(_stem(name), []).append(index)
    for group in stems.values():
        part = shares[group]
        overlaps = len(ones) * (part.sum() ** 2 - (part**2).sum()) / 2
        exclusive = all(disjoint(index, group[:end]) for end, index in enumerate(group) if end)
        if exclusive and len(group) > 2 and overlaps >= 2 * CHANCE:
            groups.append([names[index] for index in group])
            remaining = [index for index in remaining if index not in group]
    while remaining:
        group = remaining[:1]
        for index in remaining[1:]:
            group += [index] if disjoint(index, group) else []
        if len(group) > 1 and round(float(together.diagonal()[group].sum())) == len(ones):
            groups.append([names[index] for index in group])
            remaining = [index for index in remaining if index not in group]
        else:
            remaining = remaining[1:]
    return groups


def _is_binary(column: np.ndarray) -> bool:
    """Whether a column has the values 0 and 1 alone, and both; the first rows show most that have not."""
    parts = (column[:100], column)
    return all(((part == 0) | (part == 1)).all() for part in parts) and bool(0 < column.sum() < len(column))


def _stem(name: str) -> str:
    """A name without its last word, or the number at its end: year of year_2019, year2019 and yearEarly."""
    words = words_of(name)
    return " ".join(words[:-1]) if len(words) > 1 else re.sub(r"(?<=\D)\d+$", "", name)
