"""Rows of a table that are held out: a share of those without missing cells, by whole units.

Rows that belong together (a patient, a store) are held out together, so that a held-out row has no relative
among the rows to learn from. Only complete rows are held out, since what is predicted there is compared with
what was recorded; where missing cells are imputed, the other rows are all learnt from, except those of units
that are held out.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from rehearsal_torch.data.rehearsal_task import MIN_ROWS
from rehearsal_torch.seeding import world_generator

SHARE = 0.2


def parted(
    complete: np.ndarray,
    validation: float | None,
    kept: str,
    seed: int,
    elsewhere: bool,
    units: Sequence[str] | None,
) -> tuple[list[int], list[int]]:
    """Positions of the rows to learn from, and of the held-out rows, in the file's order.

    Args:
        complete: Which of the n rows have no missing cell, (n,) bool.
        validation: The share that is held out; None for a fifth, ten rows at least, or none if the cases are
            elsewhere.
        kept: "random", or the "last" of the file.
        elsewhere: Whether the cases to decide for are others than held-out rows.
        units: The unit of each row; None if every row stands alone.
    """
    whole = np.flatnonzero(complete).tolist()
    known = None if units is None else [units[place] for place in whole]
    held = [whole[each] for each in _held_out(len(whole), validation, kept, seed, elsewhere, known)]
    away, aside = set[str]() if units is None else {units[place] for place in held}, set(held)
    past = [
        place
        for place in range(len(complete))
        if place not in aside and (units is None or units[place] not in away)
    ]
    return past, held


def _held_out(
    rows: int, validation: float | None, kept: str, seed: int, elsewhere: bool, units: Sequence[str] | None
) -> list[int]:
    """Positions of the held-out rows, in order; units as a whole, as few as make up the share."""
    count = int((validation or 0.0) * rows)
    if validation is None and not elsewhere:
        count = max(int(SHARE * rows), MIN_ROWS)
    if not count:
        return []
    order = np.arange(rows) if kept == "last" else world_generator(seed, rows).permutation(rows)
    found = [int(place) for place in order[rows - count :]]
    if units is not None:
        # The units of the rows that would be held out, from the end, until there are enough.
        size = Counter(units)
        chosen: dict[str, None] = {}
        for place in order[::-1]:
            if sum(size[unit] for unit in chosen) >= count:
                break
            chosen[units[int(place)]] = None
        found = [place for place, unit in enumerate(units) if unit in chosen]
    if len(found) < MIN_ROWS or rows - len(found) < MIN_ROWS:
        what = "" if units is None else f" in {len(set(units))} units, which are held out as a whole"
        raise ValueError(
            f"{rows} rows{what}: {len(found)} held out and {rows - len(found)} to learn from; expected at "
            f"least {MIN_ROWS} of each: name the cases in a second file with dataset.contexts=FILE and "
            "dataset.validation=0, or add rows"
        )
    return sorted(found)
