"""Costs of actions: what a change costs, from the present value of the action or from the usual one.

Setting action i to a costs, with o its present value in the case, or its usual value where that is unknown,

    c_i(a) = up_i max(a - o, 0) + down_i max(o - a, 0) + fixed_i [a != o],

or, where levels have prices p_i,

    c_i(a) = (p_i(a) + fixed_i) [a != o],

and an alteration of several actions costs the sum. Keeping an action as it is costs nothing. With the worth v
of a desired outcome, in the unit of the costs, the net value of an alteration is v P(desired) - sum_i c_i.

Source: a linear cost of change is the L1 cost of counterfactual recourse (Ustun, Spangher and Liu,
2019), the net value a von Neumann-Morgenstern utility with two outcomes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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


# A change by less than this share of both values is rounding.
ROUNDED = 1e-12


@dataclass(frozen=True)
class ActionCost:
    """What changing one action costs.

    Attributes:
        up: Cost of a change by one unit upwards, at least 0.
        down: The same downwards.
        fixed: Cost of changing it at all.
        column: The column of the cases with the cost per unit of each case, which takes the place of `up` and
            `down`; None if it is the same in all.
        usual: The value from which changes are counted where a case has no present value, in the action's
            unit, or the place of its class; None leaves it to the rows.
        levels: What a change to each of its levels costs, in place of `up` and `down`; None for a cost per
            unit.

    Raises:
        ValueError: if a cost is negative or not finite, or `usual` is not finite.
    """

    up: float = 0.0
    down: float = 0.0
    fixed: float = 0.0
    column: str | None = None
    usual: float | None = None
    levels: LevelPrices | None = None

    def __post_init__(self) -> None:
        for what in ("up", "down", "fixed"):
            value = getattr(self, what)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{what}: expected a cost of at least 0; got {value:g}")
        if self.usual is not None and not math.isfinite(self.usual):
            raise ValueError(f"usual: expected a finite number; got {self.usual}")

    @property
    def free(self) -> bool:
        """Whether every change costs nothing."""
        unpriced = self.levels is None or self.levels.free
        return self.column is None and unpriced and not (self.up or self.down or self.fixed)

    @property
    def even(self) -> bool:
        """Whether it is one number: the cost per unit in both directions, and nothing else."""
        return self.column is None and self.up == self.down and not self.fixed and self.levels is None

    def present(self, name: str, values: Mapping[str, float]) -> float | None:
        """The present value from which changes are counted; None if it is unknown."""
        return values.get(name) if self.levels is None else self.levels.value(values)

    def per_unit(self, cost: float) -> "ActionCost":
        """The cost in a case with a cost per unit of its own, in both directions."""
        return replace(self, up=cost, down=cost, column=None)

    def words(self, unit: str = "") -> str:
        """The cost in words, such as "2 per kg up, 0.5 down, 10 for any change"."""
        per = f" per {unit}" if unit else " per unit"
        parts = []
        if self.levels is not None and not self.levels.free:
            parts.append(self.levels.words())
        if self.column is not None:
            parts.append(f"{self.column}{per}, by the case")
        elif self.up == self.down and self.up:
            parts.append(f"{self.up:g}{per}")
        elif self.up or self.down:
            parts.append(f"{self.up:g}{per} up, {self.down:g} down")
        return ", ".join([*parts, *([f"{self.fixed:g} for any change"] if self.fixed else [])]) or "nothing"

    def to_plain(self) -> dict[str, Any]:
        """Plain data, which `data.costs.written` reads back."""
        named = {"up": self.up, "down": self.down, "fixed": self.fixed}
        zero = "up" if self.levels is None and self.free else None
        stated: dict[str, Any] = {name: value for name, value in named.items() if value or name == zero}
        usual: float | str | None = self.usual
        if self.levels is not None:
            stated["levels"] = self.levels.to_plain()
            usual = self.levels.texts[int(usual)] if self.levels.of_classes and usual is not None else usual
        extra = {"column": self.column, "usual": usual}
        return stated | {name: value for name, value in extra.items() if value is not None}


@dataclass(frozen=True)
class CaseCosts:
    """The costs of actions in one case.

    Attributes:
        actions: Action to its cost.
        origin: Action to the value from which its changes are counted.
        worth: What a desired outcome is worth, in the unit of the costs; None if that is not known, so that
            costs are told and do not count.
        own: The actions whose cost per unit is that of this case alone.
    """

    actions: Mapping[str, ActionCost]
    origin: Mapping[str, float]
    worth: float | None = None
    own: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls,
        actions: Mapping[str, ActionCost],
        worth: float | None,
        present: Mapping[str, float],
        per_unit: Mapping[str, float],
    ) -> "CaseCosts | None":
        """The costs in a case; None if every change costs nothing.

        Args:
            per_unit: Action to the cost per unit that the case states, for those with a column.

        Raises:
            ValueError: if the case states no cost per unit for an action with a column, or there is neither
                a present nor a usual value.
        """
        if not actions:
            return None
        if missing := [name for name, each in actions.items() if each.column and name not in per_unit]:
            raise ValueError(
                f"costs: no cost of {missing[0]} in this case: give its column "
                f"{actions[missing[0]].column!r} with the cases"
            )
        now = {name: each.present(name, present) for name, each in actions.items()}
        if lost := [name for name, each in actions.items() if each.usual is None and now[name] is None]:
            raise ValueError(
                f"costs: no present value of {lost[0]} in this case, and no usual one: name it in the task, "
                f"costs: {{{lost[0]}: {{..., usual: NUMBER}}}}"
            )
        made = {
            name: each.per_unit(per_unit[name]) if each.column is not None else each
            for name, each in actions.items()
        }
        if all(each.free for each in made.values()):
            return None
        origin = {
            name: float((each.usual or 0.0) if (value := now[name]) is None else value)
            for name, each in made.items()
        }
        return cls(made, origin, worth, tuple(name for name, each in actions.items() if each.column))

    def facts(self) -> dict[str, Any]:
        """The costs per unit that are the case's own, as plain data; empty if there are none."""
        return {"costs": self.stated()} if self.own else {}

    def stated(self) -> dict[str, float]:
        """Action to the cost per unit that the case states."""
        return {name: self.actions[name].up for name in self.own}

    def of_setting(self, names: Sequence[str], values: Sequence[float]) -> float:
        """The cost of one alteration."""
        row = torch.tensor([list(values)], dtype=torch.float64).reshape(1, len(names))
        return float(CostTable.of([self], names)(row)[0])


@dataclass(frozen=True)
class CostTable:
    """The costs of one set of k actions in B cases.

    Attributes:
        up: Cost per unit upwards, (B, k).
        down: Cost per unit downwards, (B, k).
        fixed: Cost of any change, (B, k).
        origin: Values from which changes are counted, (B, k); NaN for an action that costs nothing, or whose
            levels have prices.
        choices: The costs of the levels of actions that have prices.
    """

    up: Tensor
    down: Tensor
    fixed: Tensor
    origin: Tensor
    choices: tuple[Choice, ...] = ()

    @classmethod
    def of(cls, cases: Sequence[CaseCosts], names: Sequence[str]) -> "CostTable":
        """The table of B cases, float64 on the CPU."""
        none = ActionCost()
        priced = {
            name: each.levels
            for case in cases
            for name, each in case.actions.items()
            if each.levels is not None and set(each.levels.columns) <= set(names)
        }
        apart = {column for each in priced.values() for column in each.columns}
        rows = [[none if name in apart else each.actions.get(name, none) for name in names] for each in cases]
        shape = (len(cases), len(names))

        def table(values: Sequence[Sequence[float]]) -> Tensor:
            return torch.tensor(values, dtype=torch.float64).reshape(shape)

        return cls(
            table([[each.up for each in row] for row in rows]),
            table([[each.down for each in row] for row in rows]),
            table([[each.fixed for each in row] for row in rows]),
            table(
                [
                    [math.nan if name in apart else each.origin.get(name, math.nan) for name in names]
                    for each in cases
                ]
            ),
            tuple(_choice(name, each, cases, names) for name, each in priced.items()),
        )

    def __call__(self, actions: Tensor) -> Tensor:
        """The cost of actions, (..., B, k) -> (..., B)."""
        up, down, fixed, origin = (each.to(actions) for each in (self.up, self.down, self.fixed, self.origin))
        away = (actions - origin).nan_to_num(0.0)
        away = torch.where(away.abs() <= ROUNDED * (actions.abs() + origin.abs()), 0.0, away)
        whole = (up * away.clamp_min(0) + down * (-away).clamp_min(0) + fixed * (away != 0)).sum(-1)
        for choice in self.choices:
            whole = whole + choice(actions)
        return whole


def _choice(name: str, levels: LevelPrices, cases: Sequence[CaseCosts], names: Sequence[str]) -> Choice:
    """The costs of the levels of one action; none in a case in which it costs nothing."""
    costs = [
        levels.changes(case.origin[name], case.actions[name].fixed)
        if name in case.actions
        else [0.0] * len(levels.rows)
        for case in cases
    ]
    return Choice(
        tuple(list(names).index(column) for column in levels.columns),
        torch.tensor(levels.rows, dtype=torch.float64),
        torch.tensor(costs, dtype=torch.float64).reshape(len(cases), len(levels.rows)),
    )


def weighing(costs: CaseCosts | None) -> bool:
    """Whether the costs of a case count: something costs, and what a desired outcome is worth is known."""
    return costs is not None and costs.worth is not None
