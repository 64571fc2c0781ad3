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

Source: a linear cost of change is the L1 cost of counterfactual recourse (Ustun, Spangher and Liu,
2019), the net value a von Neumann-Morgenstern utility with two outcomes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, WithJsonSchema

from rehearsal_torch.data.codings.coding import Coding, hinted, listed, spelled, text_of
from rehearsal_torch.data.codings.one_hot_actions import offered
from rehearsal_torch.files.schema import Fault, Name, Number, Schema, fault, is_number, mapping, meant

# A value this close to a level, as a share of both, is at it; a change by less than that is rounding.
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
        """The prices of an action; `levels` has the values that each coded column may be set to.

        Raises:
            ValueError: if a level is unknown or named twice, or one that may be set has no price.
        """
        if coding is None:
            texts = [text_of(each) or "" for each in levels[name]]
            rows = tuple((float(each),) for each in levels[name])
        else:
            texts, rows = list(coding.levels), tuple(map(tuple, coding.rows.tolist()))
        needed = texts if coding is None else [texts[place] for place in offered(coding, levels)]
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
        if lost := [text for text in needed if text not in named]:
            remedy = f"name each of {listed(needed)}, and 0 for one that costs nothing"
            raise ValueError(f"no price of {listed(lost)}, which may be set: {remedy}")
        columns = (name,) if coding is None else coding.columns
        return cls(columns, tuple(texts), rows, tuple(map(named.get, texts)), coding)

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
        known = values[np.isfinite(values).all(-1)]
        if self.of_classes:
            nearest = np.abs(known[:, None] - np.array(self.rows)).sum(-1).argmin(-1)
            return float(np.bincount(nearest, minlength=len(self.rows)).argmax())
        levels, counts = np.unique(known[:, 0], return_counts=True)
        return float(levels[counts.argmax()])

    def changes(self, origin: float, fixed: float) -> list[float]:
        """The cost of setting each level; 0 for the present one (`value`), and those that cannot be set."""
        values = range(len(self.rows)) if self.of_classes else [row[0] for row in self.rows]
        return [
            0.0 if price is None or abs(each - origin) <= NEAR * (abs(each) + abs(origin)) else price + fixed
            for each, price in zip(values, self.prices, strict=True)
        ]

    def words(self) -> str:
        """The prices in words, such as "0 to A, 12 to B"."""
        told = zip(self.texts, self.prices, strict=True)
        return ", ".join(f"{price:g} to {text}" for text, price in told if price is not None)

    def to_plain(self) -> dict[str, float]:
        """Level to price, of those that have one."""
        return {text: price for text, price in zip(self.texts, self.prices, strict=True) if price is not None}


@dataclass(frozen=True)
class ActionCost:
    """What changing one action costs.

    Attributes:
        up: Cost of a change by one unit upwards, at least 0.
        down: The same downwards.
        fixed: Cost of changing it at all.
        column: The column with the cost per unit of each case, in place of `up` and `down`; None if it is the
            same in all.
        usual: The value from which changes are counted where a case has no present value, in the action's
            unit, or the place of its class; None leaves it to the rows.
        levels: What a change to each of its levels costs, in place of `up` and `down`.

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
        """Plain data, which `data.costs` reads back."""
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
        """The costs in a case, with its own costs per unit; None if every change costs nothing.

        Raises:
            ValueError: if a cost per unit, or the value from which changes count, is unknown.
        """
        if not actions:
            return None
        if missing := [name for name, each in actions.items() if each.column and name not in per_unit]:
            column = actions[missing[0]].column
            words = f"no cost of {missing[0]} in this case: give its column {column!r} with the cases"
            raise ValueError(f"costs: {words}")
        now = {name: each.present(name, present) for name, each in actions.items()}
        if lost := [name for name, each in actions.items() if each.usual is None and now[name] is None]:
            words = f"no present value of {lost[0]} in this case, and no usual one: name it in the task"
            raise ValueError(f"costs: {words}, costs: {{{lost[0]}: {{..., usual: NUMBER}}}}")
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


def _cost(value: float) -> float:
    if not value >= 0:
        raise fault("a cost of at least 0", value)
    return value


def _worth(value: float) -> float:
    if not value > 0:
        raise fault(WORTH, value)
    return value


def _either_way(plain: Any) -> Any:
    """One number is the cost of both directions."""
    if isinstance(plain, WrittenCost):
        return plain
    if isinstance(plain, dict):
        # What is no key of a cost may be a level, which the action knows.
        return {"levels": plain} if any(each not in WrittenCost.model_fields for each in plain) else plain
    if isinstance(plain, str) and not is_number(plain):
        raise fault("a number of at least 0, or {up: 2, down: 0.5}", plain, "write 0 for what costs nothing")
    if isinstance(plain, int | float) and not isinstance(plain, bool) and plain < 0:
        # Once, not for each direction.
        _cost(float(plain))
    return {"up": plain, "down": plain}


def _usual(value: Any) -> Any:
    return value if isinstance(value, str | bool) else _NUMBER.validate_python(value)


def _one_of_them(made: "WrittenCost") -> "WrittenCost":
    parts = [part for part in PARTS if getattr(made, part) is not None]
    if not parts and made.column is None and not made.levels:
        raise fault(COST, {"usual": made.usual})
    remedy, per_unit = "leave one of the two out", {"up", "down"} & set(parts)
    if made.levels is not None and (made.column is not None or per_unit):
        raise fault("a cost per unit, or of each level", {"levels": made.levels}, remedy)
    if made.column is not None and per_unit:
        raise fault("a cost per unit, or the column that has it", made.column, remedy)
    return made


Cost = Annotated[Number, AfterValidator(_cost)]
Worth = Annotated[Number, AfterValidator(_worth)]


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
            BeforeValidator(_usual),
            WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "string"}]}),
        ]
        | None
    ) = Field(default=None, description="the value from which changes count where a case has no present one")

    @property
    def per_change(self) -> bool:
        """Whether it says what a change costs by its size, or by the level."""
        return bool(self.up or self.down or self.column or self.levels)

    def built(
        self, name: str, coding: Coding | None, levels: Mapping[str, Sequence[float]] | None
    ) -> ActionCost:
        """The cost of an action.

        Args:
            levels: Coded column to the values that it may be set to; None if they are not known.

        Raises:
            ValueError: if levels have prices and the action has none, or a class has a cost per unit.
        """
        up, down, fixed = (getattr(self, part) or 0.0 for part in PARTS)
        written: Mapping[Any, float] | None = self.levels
        if coding is not None and coding.of_classes and written is None:
            if self.column is not None or self.up is not None or self.down is not None:
                raise ValueError(
                    "a change from one class to another has no size that a cost per unit could count "
                    f"({name} has {listed(coding.levels)}): write what a change to each of them costs, "
                    f"{{{', '.join(f'{each}: NUMBER' for each in coding.levels[:3])}}}, or fixed: NUMBER "
                    "for any change"
                )
            written = dict.fromkeys(coding.levels, 0.0)
        columns = (name,) if coding is None else coding.columns
        usual = _usual_of(name, self.usual, coding)
        if written is None:
            return ActionCost(up, down, fixed, self.column, usual)
        if levels is None or any(column not in levels for column in columns):
            first = str(next(iter(written), ""))
            raise ValueError(
                "expected a cost per unit of change, or {up: 2, down: 0.5}, with fixed: 10 for any change; "
                f"got {first!r}: unknown key; {meant(first, WrittenCost.model_fields)} (costs of levels are "
                "for actions that are set to some values only)"
            )
        return ActionCost(0.0, 0.0, fixed, None, usual, LevelPrices.of(name, written, coding, levels))


def _usual_of(name: str, written: float | bool | str | None, coding: Coding | None) -> float | None:
    """A usual value as a cost knows it: a number, the code of a level, or the place of a class."""
    if coding is None or (
        coding.reference is None and isinstance(written, float) and not isinstance(written, bool)
    ):
        if isinstance(written, str | bool):
            raise ValueError(f"usual: expected a number; got {written!r}: {name} has numbers")
        return written
    if written is None:
        return None
    place = coding.place(written)
    if place is None:
        raise ValueError(f"usual: expected one of {listed(coding.levels)}; got {written!r}")
    return float(place)


Written = Annotated[
    WrittenCost,
    BeforeValidator(_either_way, json_schema_input_type=float | WrittenCost | dict[str, float]),
    AfterValidator(_one_of_them),
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
    of = {column: each.name for each in codings.values() for column in each.columns}
    known = list(dict.fromkeys(of.get(name, name) for name in actions))
    found = dict[str, ActionCost]()
    for name, each in written.items():
        if name not in known:
            faults.append(Fault("costs", f"{name!r} is no action; {meant(name, known)}"))
            continue
        try:
            found[name] = each.built(name, codings.get(name), levels)
        except ValueError as error:
            faults.append(Fault(f"costs.{name}", str(error)))
    return found
