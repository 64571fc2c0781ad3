"""Prices of levels and classes: what a change to each of them costs, whatever it is changed from.

    treatment: {A: 0, B: 12, C: 30}        a change to B costs 12, from A as from C; keeping C costs nothing

A level that may be set has a price. The level that an action has already is not changed to: it costs nothing,
and leaving it saves nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.codings.coding import Coding, hinted, listed, spelled, text_of
from rehearsal_torch.files.schema import is_number

# A value this close to a level, as a share of both, is at it.
NEAR = 1e-9


@dataclass(frozen=True)
class LevelPrices:
    """What a change to each level of one action costs.

    Attributes:
        columns: The coded columns of the action: its own, or those of the indicators of its classes.
        texts: Its levels, as they are written.
        rows: The values of the columns at each level.
        prices: The cost of a change to each level, at least 0; None for one that cannot be set.
        coding: What its texts are as numbers; None for numbers.
    """

    columns: tuple[str, ...]
    texts: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    prices: tuple[float | None, ...]
    coding: Coding | None = None

    @classmethod
    def of(
        cls,
        name: str,
        written: Mapping[Any, float],
        coding: Coding | None,
        levels: Mapping[str, Sequence[float]],
    ) -> "LevelPrices":
        """The prices of an action.

        Args:
            levels: Coded column to the values that it may be set to.

        Raises:
            ValueError: if a level is unknown or named twice, or one that may be set has no price.
        """
        columns = (name,) if coding is None else coding.columns
        texts = [text_of(each) or "" for each in levels[name]] if coding is None else list(coding.levels)
        rows = (
            tuple((float(each),) for each in levels[name])
            if coding is None
            else tuple(map(tuple, coding.rows.tolist()))
        )
        named = dict[str, float]()
        for key, price in written.items():
            (text,) = spelled([key], texts)
            if coding is None and is_number(text):
                text = text_of(float(text)) or text
            if text not in texts:
                raise ValueError(f"expected some of {listed(texts)}; got {text!r}{hinted(text, texts)}")
            if text in named:
                raise ValueError(f"{text!r} has two prices: keep one")
            named[text] = price
        known = [set(levels[column]) for column in columns]
        needed = [
            text
            for text, row in zip(texts, rows, strict=True)
            if all(value in values for value, values in zip(row, known, strict=True))
        ]
        if lost := [text for text in needed if text not in named]:
            raise ValueError(
                f"no price of {listed(lost)}, which may be set: name each of {listed(needed)}, and 0 for one "
                "that costs nothing"
            )
        return cls(columns, tuple(texts), rows, tuple(named.get(text) for text in texts), coding)

    @property
    def of_classes(self) -> bool:
        """Whether the levels are classes, whose values are counted by their places."""
        return self.coding is not None and self.coding.reference is not None

    @property
    def free(self) -> bool:
        """Whether a change to any level costs nothing."""
        return not any(self.prices)

    def value(self, values: Mapping[str, float]) -> float | None:
        """The value of an action as a cost knows it: the place of a class, else the value of its column; None
        if it is not among some values.
        """
        if any(column not in values for column in self.columns):
            return None
        if not self.of_classes:
            return float(values[self.columns[0]])
        row = tuple(float(values[column]) for column in self.columns)
        return float(self.rows.index(row)) if row in self.rows else None

    def usual(self, values: Tensor) -> float:
        """The most frequent level of rows as a cost knows it, the first of several; (n, columns)."""
        known = values[values.isfinite().all(-1)]
        if self.of_classes:
            rows = torch.tensor(self.rows, dtype=known.dtype, device=known.device)
            return float(torch.cdist(known, rows, p=1).argmin(-1).bincount(minlength=len(rows)).argmax())
        found, counts = known[:, 0].unique(return_counts=True)
        return float(found[counts.argmax()])

    def changes(self, origin: float, fixed: float) -> list[float]:
        """The cost of setting each level; 0 for the one that is there, and for those that cannot be set.

        Args:
            origin: The value from which it is changed, as `value` has it.
        """
        if self.of_classes:
            kept = [place == origin for place in range(len(self.rows))]
        else:
            kept = [abs(row[0] - origin) <= NEAR * (abs(row[0]) + abs(origin)) for row in self.rows]
        return [
            0.0 if same or price is None else price + fixed
            for same, price in zip(kept, self.prices, strict=True)
        ]

    def words(self) -> str:
        """The prices in words, such as "0 to A, 12 to B"."""
        told = zip(self.texts, self.prices, strict=True)
        return ", ".join(f"{price:g} to {text}" for text, price in told if price is not None)

    def to_plain(self) -> dict[str, float]:
        """Level to price, of those that have one."""
        return {text: price for text, price in zip(self.texts, self.prices, strict=True) if price is not None}


@dataclass(frozen=True)
class Choice:
    """The costs of setting the levels of one action in B cases.

    Attributes:
        places: Where its m columns stand among those of an alteration.
        rows: The values of the columns at each of L levels, (L, m).
        costs: The cost of each level, (B, L).
    """

    places: tuple[int, ...]
    rows: Tensor
    costs: Tensor

    def __call__(self, actions: Tensor) -> Tensor:
        """The cost at the nearest levels, (..., B, k) -> (..., B)."""
        set_to = actions[..., self.places].unsqueeze(-2)
        nearest = (set_to - self.rows.to(actions)).abs().sum(-1).argmin(-1)
        cases = torch.arange(len(self.costs), device=actions.device)
        return self.costs.to(actions)[cases, nearest]
