"""The levels of one drug's doses, as numbers: see `data.dose_levels`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

UNREACHED = float(np.finfo(np.float64).max)
"""The lower edge of an empty level."""
FEW = 20
"""The maximum number of different doses for which those that share a level are named."""


@dataclass(frozen=True)
class DoseCuts:
    """The levels of one drug: lower edges of levels 2 ... count - 1, (count - 2,); the median dose of each,
    (count,), the first 0; and how repeated doses determined them, in words; may be empty.
    """

    edges: np.ndarray
    medians: np.ndarray
    note: str

    @classmethod
    def of(cls, name: str, dose: np.ndarray, count: int) -> "DoseCuts":
        """From doses (n,); a negative dose, or a drug that was never given, is a ValueError."""
        if (dose < 0).any():
            words = f"expected doses of at least 0; got {dose.min():.4g}: clean the column"
            raise ValueError(f"{name}: {words}")
        given = dose[dose > 0]
        if not len(given):
            expected = "expected some non-zero doses to divide into levels"
            raise ValueError(f"{name}: {expected}; all are zero: leave the drug out")
        edges, grouped = _cuts(given, count)
        which = np.searchsorted(edges, given, side="right")
        inside = [np.sort(given[which == level]) for level in range(count - 1)]
        # Of an even number the lower one of the two in the middle, which is a dose that was given.
        middles = [part[(len(part) - 1) // 2] if len(part) else given.max() for part in inside]
        return cls(edges, np.array([0.0, *middles]), _note([np.unique(part) for part in inside], grouped))


def _cuts(given: np.ndarray, count: int) -> tuple[np.ndarray, bool]:
    """The lower edges of levels 2 ... count - 1 from non-zero doses (n,); whether quantiles coincided."""
    values, rows = np.unique(given, return_counts=True)
    if len(values) < count:
        return padded(between(values[:-1], values[1:]), count - 2), False
    cuts = np.quantile(given, np.linspace(0, 1, count)[1:-1])
    if len(np.unique(np.searchsorted(cuts, given, side="right"))) == count - 1:
        return cuts, False
    last = np.array(_groups(rows.tolist(), count - 1), dtype=int)
    return between(values[last], values[last + 1]), True


def between(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The midpoints of neighbouring doses, (n,); the upper one if no floating-point number lies between."""
    middle = lower + (upper - lower) / 2
    return np.where(middle > lower, middle, upper)


def padded(edges: np.ndarray, size: int) -> np.ndarray:
    """Edges padded to `size` with those of empty levels."""
    return np.append(edges, np.full(size - len(edges), UNREACHED))


def _groups(rows: Sequence[int], count: int) -> list[int]:
    """The last index of all but the last of `count` contiguous groups of about equal numbers of rows."""
    last: list[int] = []
    left, size = sum(rows), 0
    for place, here in enumerate(rows):
        share = (left + size) / (count - len(last))
        # A group ends before a dose that would exceed its share by more than it falls short of it now.
        if size and size + here - share > share - size:
            last.append(place - 1)
            size = 0
        size, left = size + here, left - here
        # It ends here if every remaining dose has to be a group of its own.
        if len(rows) - place - 1 == count - len(last) - 1:
            last.append(place)
            size = 0
        if len(last) == count - 1:
            break
    return last


def _note(parts: Sequence[np.ndarray], grouped: bool) -> str:
    """How repeated doses determined a drug's levels, given the distinct doses of each; may be empty."""
    empty = sum(not len(part) for part in parts)
    if empty:
        kept = len(parts) - empty
        unused = f"{empty} of {len(parts)} levels are empty and not used"
        return f"{kept} different non-zero dose{'s' * (kept > 1)}, each a level of its own; {unused}"
    if not grouped and (sum(map(len, parts)) > FEW or all(len(part) == 1 for part in parts)):
        return ""
    shared = "; ".join(f"{part[0]:g} to {part[-1]:g} ({len(part)} doses)" for part in parts if len(part) > 1)
    few, many = "few different doses, which look like codes", "quantiles coincide because of repeated doses"
    why = f"{many}, and levels are groups of them" if grouped else few
    return f"{why}; these doses share a level: {shared}"
