"""Folds: which rows are held out in turn.

Rows of one patient resemble each other: with folds of single transitions a patient's neighbouring steps stand on
both sides, and held-out likelihoods flatter. Folds by patient hold out whole patients.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 (five folds; their code draws them by transition).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Fold:
    """One way to cut rows in two.

    Attributes:
        index: The fold's number, 0 ... count - 1.
        train: Rows to fit on, rising, (n - m,) long.
        held_out: Rows to judge on, rising, (m,) long.
    """

    index: int
    train: Tensor
    held_out: Tensor


def patient_folds(identities: Sequence[str], count: int = 5, seed: int = 0) -> list[Fold]:
    """Folds that keep each patient's rows together.

    Patients, not rows, are dealt out evenly, in an order that depends on the seed and on the set of identities but not on how the rows are sorted.

    Args:
        identities: Whose row it is, one a row.
        count: How many folds.
        seed: Decides who goes where.

    Raises:
        ValueError: if there are fewer than two folds, or fewer patients than folds.
    """
    patients = sorted(set(identities))
    place = dict(zip(patients, _deal(len(patients), count, seed, "patients").tolist(), strict=True))
    return _folds(torch.tensor([place[identity] for identity in identities]), count)


def transition_folds(rows: int, count: int = 5, seed: int = 0) -> list[Fold]:
    """Folds of single rows, whoever they belong to: only for comparison with results that were made so.

    Args:
        rows: n, how many rows there are.
        count: How many folds.
        seed: Decides which row goes where.

    Raises:
        ValueError: if there are fewer than two folds, or fewer rows than folds.
    """
    return _folds(_deal(rows, count, seed, "rows"), count)


def _deal(items: int, count: int, seed: int, what: str) -> Tensor:
    if count < 2 or items < count:
        raise ValueError(f"expected at least 2 folds and as many {what}; got {count} folds and {items} {what}: take fewer folds or more data")
    dealt = torch.empty(items, dtype=torch.long)
    dealt[torch.randperm(items, generator=torch.Generator().manual_seed(seed))] = torch.arange(items) % count
    return dealt


def _folds(place: Tensor, count: int) -> list[Fold]:
    return [Fold(index, (place != index).nonzero()[:, 0], (place == index).nonzero()[:, 0]) for index in range(count)]
