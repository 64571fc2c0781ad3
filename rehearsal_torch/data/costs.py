"""Costs of actions: what a change costs, from the present value of the action or from the usual one.

Setting action i to a costs, with o its present value in the case, or its usual value where that is unknown,

    c_i(a) = up_i max(a - o, 0) + down_i max(o - a, 0) + fixed_i [a != o],

or, where levels have prices p_i,

    c_i(a) = (p_i(a) + fixed_i) [a != o],

and an alteration of several actions costs the sum. Keeping an action as it is costs nothing. With the worth v
of a desired outcome, in the unit of the costs, the net value of an alteration is v P(desired) - sum_i c_i.

Tasks and problem files write them so:

bmi: 2                                  cost per unit of change, either way
bmi: {up: 2, down: 0.5}                 another one upwards than downwards
bmi: {up: 2, down: 2, fixed: 10}        and 10 for changing it at all
bmi: {column: cost_of_bmi}              of each case its own cost per unit, from a column of the cases
bmi: {up: 2, usual: 26}                 from 26 where a case has no present value
drug: {A: 0, B: 12}                     a change to A costs nothing, one to B costs 12
drug: {levels: {A: 0, B: 12}, fixed: 5, usual: A}

In experiments nothing has a present value: what their settings cost counts from the usual value of an action,
or from 0, so that 2 is the cost of every unit that is set, and is added to what any experiment costs.

Source: a linear cost of change is the L1 cost of counterfactual recourse (Ustun, Spangher and Liu, 2019), the
net value a von Neumann-Morgenstern utility with two outcomes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, WithJsonSchema

from rehearsal_torch.data.codings.coding import Coding, hinted, level_texts, listed, text_of
from rehearsal_torch.data.codings.one_hot_actions import offered_places
from rehearsal_torch.files.schema import Fault, Name, Number, Schema, fault, is_number, mapping, meant
from rehearsal_torch.spaces.box import Box

# A value this close to a level, as a share of both, is at it; a change by less than that is rounding.
NEAR = 1e-9


@dataclass(frozen=True)
class LevelPrices:
    """What a change to each level of one action costs.

    Attributes:
        columns: The coded columns of the action: its own, or those of the indicators of its classes.
        rows: The values of the columns at each level.
        prices: At least 0; None for a level that cannot be set.
        coding: The codes of its texts; None for numbers.
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
        """The prices of an action; a ValueError for unknown, repeated and missing levels."""
        if coding is None:
            texts = [text_of(value) or "" for value in levels[name]]
            rows = tuple((float(value),) for value in levels[name])
        else:
            texts, rows = list(coding.levels), tuple(map(tuple, coding.rows.tolist()))
        settable = (
            texts if coding is None else [texts[position] for position in offered_places(coding, levels)]
        )
        prices = dict[str, float]()
        for key, price in written.items():
            (text,) = level_texts([key], texts)
            if coding is None and is_number(text):
                text = text_of(float(text)) or text
            if text not in texts:
                raise ValueError(f"expected some of {listed(texts)}; got {text!r}{hinted(text, texts)}")
            if text in prices:
                raise ValueError(f"{text!r} has two prices: keep one")
            prices[text] = price
        if unpriced := [text for text in settable if text not in prices]:
            remedy = f"name each of {listed(settable)}, and 0 for one that costs nothing"
            raise ValueError(f"no price of {listed(unpriced)}, which may be set: {remedy}")
        columns = (name,) if coding is None else coding.columns
        return cls(columns, tuple(texts), rows, tuple(map(prices.get, texts)), coding)

    @property
    def of_classes(self) -> bool:
        """Whether the levels are classes, whose values are counted by their places."""
        return self.coding is not None and self.coding.reference is not None

    @property
    def free(self) -> bool:
        """Whether a change to any level costs nothing."""
        return not any(self.prices)

    def value(self, values: Mapping[str, float]) -> float | None:
        """The value as a cost knows it: the place of a class, else that of its column; None without one."""
        if any(column not in values for column in self.columns):
            return None
        if not self.of_classes:
            return float(values[self.columns[0]])
        row = tuple(float(values[column]) for column in self.columns)
        return float(self.rows.index(row)) if row in self.rows else None

    def usual(self, values: np.ndarray) -> float:
        """The most frequent level of rows as a cost knows it, the first of several; (n, columns)."""
        rows = values[np.isfinite(values).all(-1)]
        if self.of_classes:
            nearest = np.abs(rows[:, None] - np.array(self.rows)).sum(-1).argmin(-1)
            return float(np.bincount(nearest, minlength=len(self.rows)).argmax())
        levels, counts = np.unique(rows[:, 0], return_counts=True)
        return float(levels[counts.argmax()])

    def changes(self, origin: float, fixed: float) -> list[float]:
        """The cost of setting each level: 0 for the present one (`value`) and those that cannot be set."""
        values = range(len(self.rows)) if self.of_classes else [row[0] for row in self.rows]
        return [
            0.0
            if price is None or abs(value - origin) <= NEAR * (abs(value) + abs(origin))
            else price + fixed
            for value, price in zip(values, self.prices, strict=True)
        ]

    def words(self) -> str:
        """Such as "0 to A, 12 to B"."""
        pairs = zip(self.texts, self.prices, strict=True)
        return ", ".join(f"{price:g} to {text}" for text, price in pairs if price is not None)

    def to_plain(self) -> dict[str, float]:
        """Level to price, of those that have one."""
        return {text: price for text, price in zip(self.texts, self.prices, strict=True) if price is not None}


@dataclass(frozen=True)
class ActionCost:
    """What changing one action costs. A ValueError for negative costs and non-finite numbers.

    Attributes:
        up: Cost of a change by one unit upwards, at least 0.
        column: The column with the cost per unit of each case, in place of `up` and `down`.
        usual: Where changes count from without a present value (a number or a class's place).
        levels: What a change to each of its levels costs, in place of `up` and `down`.
    """

    up: float = 0.0
    down: float = 0.0
    fixed: float = 0.0
    column: str | None = None
    usual: float | None = None
    levels: LevelPrices | None = None

    def __post_init__(self) -> None:
        for name in ("up", "down", "fixed"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name}: expected a cost of at least 0; got {value:g}")
        if self.usual is not None and not math.isfinite(self.usual):
            raise ValueError(f"usual: expected a finite number; got {self.usual}")

    @property
    def free(self) -> bool:
        """Whether every change costs nothing."""
        unpriced = self.levels is None or self.levels.free
        return self.column is None and unpriced and not (self.up or self.down or self.fixed)

    def present(self, name: str, values: Mapping[str, float]) -> float | None:
        """The value from which changes are counted; None if it is unknown."""
        return values.get(name) if self.levels is None else self.levels.value(values)

    def per_unit(self, cost: float) -> "ActionCost":
        """The cost in a case with a cost per unit of its own, in both directions."""
        return replace(self, up=cost, down=cost, column=None)

    def words(self, unit: str = "") -> str:
        """Such as "2 per kg up, 0.5 down, 10 for any change"."""
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
        """Plain data, which `data.costs` reads back."""
        numbers = {"up": self.up, "down": self.down, "fixed": self.fixed}
        zero = "up" if self.levels is None and self.free else None
        plain: dict[str, Any] = {name: value for name, value in numbers.items() if value or name == zero}
        usual: float | str | None = self.usual
        if self.levels is not None:
            plain["levels"] = self.levels.to_plain()
            usual = self.levels.texts[int(usual)] if self.levels.of_classes and usual is not None else usual
        texts = {"column": self.column, "usual": usual}
        return plain | {name: value for name, value in texts.items() if value is not None}


@dataclass(frozen=True)
class CaseCosts:
    """The costs of actions in one case, with the values from which changes are counted (`origin`), what a
    desired outcome is worth in the unit of the costs (None if unknown: costs do not count), and the actions
    whose cost per unit is that of this case alone (`own`).
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
        """The costs in a case; None if all changes are free. A ValueError for unknown costs or origins."""
        if not actions:
            return None
        if missing := [name for name, cost in actions.items() if cost.column and name not in per_unit]:
            column = actions[missing[0]].column
            words = f"no cost of {missing[0]} in this case: give its column {column!r} with the cases"
            raise ValueError(f"costs: {words}")
        now = {name: cost.present(name, present) for name, cost in actions.items()}
        if unknown := [name for name, cost in actions.items() if cost.usual is None and now[name] is None]:
            words = f"no present value of {unknown[0]} in this case, and no usual one: name it in the task"
            raise ValueError(f"costs: {words}, costs: {{{unknown[0]}: {{..., usual: NUMBER}}}}")
        costs = {
            name: cost.per_unit(per_unit[name]) if cost.column is not None else cost
            for name, cost in actions.items()
        }
        if all(cost.free for cost in costs.values()):
            return None
        origin = {
            name: float((cost.usual or 0.0) if (value := now[name]) is None else value)
            for name, cost in costs.items()
        }
        return cls(costs, origin, worth, tuple(name for name, cost in actions.items() if cost.column))

    def facts(self) -> dict[str, Any]:
        """The costs per unit that are the case's own, as plain data."""
        return {"costs": self.stated()} if self.own else {}

    def stated(self) -> dict[str, float]:
        """Action to the cost per unit that the case states."""
        return {name: self.actions[name].up for name in self.own}


@dataclass(frozen=True)
class ExperimentCosts:
    """What experiments cost, in any one unit.

    Attributes:
        names: The k actions, in the order of settings.
        actions: The costs of some of them, from the usual value or from 0.
        each: What any experiment costs, whatever its settings.
    """

    names: tuple[str, ...]
    actions: Mapping[str, ActionCost]
    each: float = 0.0

    def of(self, settings: Any) -> Any:
        """The cost of settings (..., k), a tensor or an array, (...); of levels that of the nearest."""
        total = self.each + 0.0 * settings[..., 0]
        for name, cost in self.actions.items():
            value, usual = settings[..., self.names.index(name)], cost.usual or 0.0
            change = value - usual
            total = total + cost.up * change.clip(min=0) - cost.down * change.clip(max=0)
            if cost.levels is None:
                total = total + (change != 0) * (cost.fixed + 0.0 * change)
                continue
            usual = math.nan if cost.usual is None else cost.usual
            levels, prices = [row[0] for row in cost.levels.rows], cost.levels.changes(usual, cost.fixed)
            total = total + prices[0]
            for (below, above), (price, other) in zip(pairwise(levels), pairwise(prices), strict=True):
                total = total + (value > (below + above) / 2) * (other - price + 0.0 * change)
        return total

    def least(self, ends: Mapping[str, Sequence[float]]) -> float:
        """The cost of the cheapest settings, of values from the lowest to the largest of some for each."""
        least = self.each
        for name, cost in self.actions.items():
            usual = [value for value in (cost.usual or 0.0,) if ends[name][0] <= value <= ends[name][-1]]
            values = np.array([*ends[name], *(usual if cost.levels is None else [])]).reshape(-1, 1)
            least += float(ExperimentCosts((name,), {name: cost}).of(values).min())
        return least


def costs_faults(costs: ExperimentCosts | None, box: Box) -> Iterator[Fault]:
    """A fault where an experiment costs nothing, the gain by whose cost would be infinite."""
    if costs is not None and not costs.least({**box.bounds(), **box.levels}) > 0:
        words = "the cheapest experiment costs nothing; expected what any experiment costs, above 0"
        yield Fault("cost", words)


def weighing(costs: CaseCosts | None) -> bool:
    """Whether the costs of a case count: something costs, and what a desired outcome is worth is known."""
    return costs is not None and costs.worth is not None


COST = (
    "a cost per unit of change, or {up: 2, down: 0.5}, with fixed: 10 for any change; or, of levels and "
    "classes, {A: 0, B: 12}, what a change to each of them costs"
)
COSTS = "{action: cost}, each a number per unit, {up, down, fixed, usual}, {level: cost} or {column: NAME}"
WORTH = "what a desired outcome is worth, in the unit of the costs: a number above 0"
PARTS = ("up", "down", "fixed")
_NUMBER: TypeAdapter[float] = TypeAdapter(Number)


def _check_cost(value: float) -> float:
    if not value >= 0:
        raise fault("a cost of at least 0", value)
    return value


def _check_worth(value: float) -> float:
    if not value > 0:
        raise fault(WORTH, value)
    return value


def _as_mapping(plain: Any) -> Any:
    """One number is the cost of both directions; a mapping with a key that no cost has is one of levels."""
    if isinstance(plain, WrittenCost):
        return plain
    if isinstance(plain, dict):
        return {"levels": plain} if any(key not in WrittenCost.model_fields for key in plain) else plain
    if isinstance(plain, str) and not is_number(plain):
        raise fault("a number of at least 0, or {up: 2, down: 0.5}", plain, "write 0 for what costs nothing")
    if isinstance(plain, int | float) and not isinstance(plain, bool) and plain < 0:
        # Once, not for each direction.
        _check_cost(float(plain))
    return {"up": plain, "down": plain}


def _parse_usual(value: Any) -> Any:
    return value if isinstance(value, str | bool) else _NUMBER.validate_python(value)


def _validated(cost: "WrittenCost") -> "WrittenCost":
    parts = [name for name in PARTS if getattr(cost, name) is not None]
    if not parts and cost.column is None and not cost.levels:
        raise fault(COST, {"usual": cost.usual})
    remedy, per_unit = "leave one of the two out", {"up", "down"} & set(parts)
    if cost.levels is not None and (cost.column is not None or per_unit):
        raise fault("a cost per unit, or of each level", {"levels": cost.levels}, remedy)
    if cost.column is not None and per_unit:
        raise fault("a cost per unit, or the column that has it", cost.column, remedy)
    return cost


Cost = Annotated[Number, AfterValidator(_check_cost)]
Worth = Annotated[Number, AfterValidator(_check_worth)]


class WrittenCost(Schema):
    """The cost of changing one action."""

    up: Cost | None = Field(default=None, description="cost per unit upwards")
    down: Cost | None = Field(default=None, description="cost per unit downwards")
    fixed: Cost | None = Field(default=None, description="cost of changing it at all")
    column: Name | None = Field(default=None, description="the column of the cases with a cost per unit")
    levels: (
        Annotated[
            dict[Any, Cost],
            WithJsonSchema({"type": "object", "additionalProperties": {"type": "number", "minimum": 0}}),
        ]
        | None
    ) = Field(default=None, description="of levels and classes: what a change to each of them costs")
    usual: (
        Annotated[
            float | bool | str,
            BeforeValidator(_parse_usual),
            WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "string"}]}),
        ]
        | None
    ) = Field(default=None, description="the value from which changes count where a case has no present one")

    @property
    def per_change(self) -> bool:
        """Whether the cost depends on the size or the level of a change."""
        return bool(self.up or self.down or self.column or self.levels)

    def built(
        self, name: str, coding: Coding | None, levels: Mapping[str, Sequence[float]] | None
    ) -> ActionCost:
        """The cost of an action; `levels` has the values that each coded column may be set to, None if
        unknown. A ValueError if levels have prices and the action has none, or a class has a cost per unit.
        """
        up, down, fixed = (getattr(self, name) or 0.0 for name in PARTS)
        prices: Mapping[Any, float] | None = self.levels
        if coding is not None and coding.of_classes and prices is None:
            if self.column is not None or self.up is not None or self.down is not None:
                raise ValueError(
                    "a change from one class to another has no size that a cost per unit could count "
                    f"({name} has {listed(coding.levels)}): write what a change to each of them costs, "
                    f"{{{', '.join(f'{level}: NUMBER' for level in coding.levels[:3])}}}, or fixed: NUMBER "
                    "for any change"
                )
            prices = dict.fromkeys(coding.levels, 0.0)
        columns = (name,) if coding is None else coding.columns
        usual = _usual_value(name, self.usual, coding)
        if prices is None:
            return ActionCost(up, down, fixed, self.column, usual)
        if levels is None or any(column not in levels for column in columns):
            first = str(next(iter(prices), ""))
            raise ValueError(
                "expected a cost per unit of change, or {up: 2, down: 0.5}, with fixed: 10 for any change; "
                f"got {first!r}: unknown key; {meant(first, WrittenCost.model_fields)} (costs of levels are "
                "for actions that are set to some values only)"
            )
        return ActionCost(0.0, 0.0, fixed, None, usual, LevelPrices.of(name, prices, coding, levels))


def _usual_value(name: str, value: float | bool | str | None, coding: Coding | None) -> float | None:
    """A usual value as a cost knows it: a number, the code of a level, or the place of a class."""
    if coding is None or (
        coding.reference is None and isinstance(value, float) and not isinstance(value, bool)
    ):
        if isinstance(value, str | bool):
            raise ValueError(f"usual: expected a number; got {value!r}: {name} has numbers")
        return value
    if value is None:
        return None
    position = coding.place(value)
    if position is None:
        raise ValueError(f"usual: expected one of {listed(coding.levels)}; got {value!r}")
    return float(position)


Written = Annotated[
    WrittenCost,
    BeforeValidator(_as_mapping, json_schema_input_type=float | WrittenCost | dict[str, float]),
    AfterValidator(_validated),
]
WrittenCosts = Annotated[dict[Name, Written], mapping(COSTS)]


def costs_of(
    written: Mapping[str, WrittenCost],
    actions: Sequence[str],
    faults: list[Fault],
    codings: Mapping[str, Coding] = MappingProxyType({}),
    levels: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> dict[str, ActionCost]:
    """The costs of actions; those of other variables are faults. `levels` is as in `WrittenCost.built`."""
    of = {column: cost.name for cost in codings.values() for column in cost.columns}
    variables = list(dict.fromkeys(of.get(name, name) for name in actions))
    costs = dict[str, ActionCost]()
    for name, cost in written.items():
        if name not in variables:
            faults.append(Fault("costs", f"{name!r} is no action; {meant(name, variables)}"))
            continue
        try:
            costs[name] = cost.built(name, codings.get(name), levels)
        except ValueError as error:
            faults.append(Fault(f"costs.{name}", str(error)))
    return costs
