"""Folds: the rows in parts, each held out once.

    rows of fold k     held out,
    all other rows     what a model is fitted to, so that it is judged by rows that it has not seen.

Rows of one unit (a patient, a store) are correlated. With folds of single rows, rows of a unit fall on both
sides, and what is held out looks more predictable than a new unit is. Folds by unit hold out whole units.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 (five folds; their code draws them by row).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.seeding import generator


@dataclass(frozen=True)
class Fold:
    """A split of the rows into training and held-out rows.

    Attributes:
        index: The fold's number, 0 ... count - 1.
        train: Training rows in ascending order, (n - m,) long.
        held_out: Held-out rows in ascending order, (m,) long.
    """

    index: int
    train: Tensor
    held_out: Tensor


def folds_of(rows: int, units: Sequence[str] | None, count: int = 5, seed: int = 0) -> list[Fold]:
    """Folds by unit, or of single rows if there are no units.

    Units, not rows, are distributed evenly, in an order that depends on the seed and the set of units but not
    on the order of the rows.

    Args:
        rows: n, the number of rows.
        units: The unit of each row; None if every row is a unit of its own.

    Raises:
        ValueError: if there are fewer than two folds, or fewer rows or units than folds.
    """
    every = None if units is None else sorted(set(units))
    items, what = (rows, "rows") if every is None else (len(every), "units")
    if count < 2 or items < count:
        raise ValueError(
            f"expected at least 2 folds and as many {what}; got {count} folds and {items} {what}: use fewer "
            "folds or more data"
        )
    dealt = torch.empty(items, dtype=torch.long)
    dealt[torch.randperm(items, generator=generator(seed))] = torch.arange(items) % count
    if every is not None and units is not None:
        fold = dict(zip(every, dealt.tolist(), strict=True))
        dealt = torch.tensor([fold[unit] for unit in units], dtype=torch.long)
    return [
        Fold(index, (dealt != index).nonzero()[:, 0], (dealt == index).nonzero()[:, 0])
        for index in range(count)
    ]
