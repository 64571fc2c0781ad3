"""Which rows of a table are held out: a share of them, whole units together.

Source: ours.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from rehearsal_torch.data.rehearsal_task import MIN_ROWS
from rehearsal_torch.seeding import world_generator

SHARE = 0.2


def held_out_rows(
    rows: int,
    validation: float | None,
    kept: str,
    seed: int,
    elsewhere: bool,
    units: Sequence[str] | None,
) -> list[int]:
    """Positions of the held-out rows, in the file's order; units are held out as a whole, as few as make up
    the share.

    Args:
        rows: The number of rows.
        validation: Their share, in [0, 1); None takes a fifth, ten rows at least, or none if the cases are
            elsewhere.
        kept: "random", or the "last" of the file.
        seed: Seed of the random choice.
        elsewhere: Whether the cases to decide for are no rows of the table.
        units: The unit of each row; None if every row is one of its own.

    Raises:
        ValueError: if there are too few rows to hold some out.
    """
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
