"""The levels of one drug's doses: quantile intervals, or groups of repeated doses (`data.dose_levels`)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

UNREACHED = float(np.finfo(np.float64).max)
"""The lower edge of an empty level."""
FEW = 20
"""The maximum number of different doses for which those that share a level are named."""


@dataclass(frozen=True)
class DoseCuts:
    """One drug's levels: lower edges (count - 2,), median doses (count,), and a note on repeated doses."""

    edges: np.ndarray
    medians: np.ndarray
    note: str

    @classmethod
    def of(cls, name: str, dose: np.ndarray, count: int) -> "DoseCuts":
        """From doses (n,). A ValueError if a dose is negative, or all are zero."""
        if (dose < 0).any():
            words = f"expected doses of at least 0; got {dose.min():.4g}: clean the column"
            raise ValueError(f"{name}: {words}")
        positive = dose[dose > 0]
        if not len(positive):
            expected = "expected some non-zero doses to divide into levels"
            raise ValueError(f"{name}: {expected}; all are zero: leave the drug out")
        edges, grouped = _cuts(positive, count)
        level_of = np.searchsorted(edges, positive, side="right")
        groups = [np.sort(positive[level_of == level]) for level in range(count - 1)]
        # Of an even number the lower one of the two in the middle, which is a dose that was given.
        medians = [doses[(len(doses) - 1) // 2] if len(doses) else positive.max() for doses in groups]
        return cls(edges, np.array([0.0, *medians]), _note([np.unique(doses) for doses in groups], grouped))

    def levels(self, dose: np.ndarray) -> np.ndarray:
        """The level of each dose, (n,)."""
        return np.where(dose > 0, np.searchsorted(self.edges, dose, side="right") + 1, 0)


USUAL = 0.99


def usual_jump(levels: np.ndarray, follows: np.ndarray) -> int:
    """The distance in levels (n,) that holds 99 % of the changes from one step to the next of the same unit,
    to rows that `follows` (n,) marks; 0 if nothing ever changes.
    """
    jumps = np.abs(np.diff(levels))[follows[1:]]
    changes = jumps[jumps > 0]
    return int(np.quantile(changes, USUAL, method="higher")) if len(changes) else 0


def _cuts(positive: np.ndarray, count: int) -> tuple[np.ndarray, bool]:
    """The lower edges of levels 2 ... count - 1 from non-zero doses (n,); whether quantiles coincided."""
    values, counts = np.unique(positive, return_counts=True)
    if len(values) < count:
        return padded(between(values[:-1], values[1:]), count - 2), False
    cuts = np.quantile(positive, np.linspace(0, 1, count)[1:-1])
    if len(np.unique(np.searchsorted(cuts, positive, side="right"))) == count - 1:
        return cuts, False
    last = np.array(_groups(counts.tolist(), count - 1), dtype=int)
    return between(values[last], values[last + 1]), True


def between(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The midpoints of neighbouring doses, (n,); the upper one if no floating-point number lies between."""
    middle = lower + (upper - lower) / 2
    return np.where(middle > lower, middle, upper)


def padded(edges: np.ndarray, size: int) -> np.ndarray:
    """Edges padded to `size` with those of empty levels."""
    return np.append(edges, np.full(size - len(edges), UNREACHED))


def _groups(counts: Sequence[int], count: int) -> list[int]:
    """The last index of all but the last of `count` contiguous groups of about equal numbers of rows."""
    last: list[int] = []
    remaining, size = sum(counts), 0
    for index, count_here in enumerate(counts):
        share = (remaining + size) / (count - len(last))
        # A group ends before a dose that would exceed its share by more than it falls short of it now.
        if size and size + count_here - share > share - size:
            last.append(index - 1)
            size = 0
        size, remaining = size + count_here, remaining - count_here
        # It ends here if every remaining dose has to be a group of its own.
        if len(counts) - index - 1 == count - len(last) - 1:
            last.append(index)
            size = 0
        if len(last) == count - 1:
            break
    return last


def _note(groups: Sequence[np.ndarray], grouped: bool) -> str:
    """How repeated doses determined the levels with these distinct doses; empty where they did not."""
    empty = sum(not len(doses) for doses in groups)
    if empty:
        full = len(groups) - empty
        empty_levels = f"{empty} of {len(groups)} levels are empty and not used"
        return f"{full} different non-zero dose{'s' * (full > 1)}, each a level of its own; {empty_levels}"
    if not grouped and (sum(map(len, groups)) > FEW or all(len(doses) == 1 for doses in groups)):
        return ""
    shared = "; ".join(
        f"{doses[0]:g} to {doses[-1]:g} ({len(doses)} doses)" for doses in groups if len(doses) > 1
    )
    codes, coinciding = (
        "few different doses, which look like codes",
        "quantiles coincide because of repeated doses",
    )
    reason = f"{coinciding}, and levels are groups of them" if grouped else codes
    return f"{reason}; these doses share a level: {shared}"
