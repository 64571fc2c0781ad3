"""Costs of actions as tasks and problem files write them.

bmi: 2                                  cost per unit of change, either way
bmi: {up: 2, down: 0.5}                 another one upwards than downwards
bmi: {up: 2, down: 2, fixed: 10}        and 10 for changing it at all
bmi: {column: cost_of_bmi}              of each case its own cost per unit, from a column of the cases
bmi: {up: 2, usual: 26}                 from 26 where a case has no present value
drug: {A: 0, B: 12}                     a change to A costs nothing, one to B costs 12
drug: {levels: {A: 0, B: 12}, fixed: 5, usual: A}
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, WithJsonSchema

from rehearsal_torch.data.codings.coding import Coding, listed
from rehearsal_torch.data.costs.action_cost import ActionCost, LevelPrices
from rehearsal_torch.files.schema import Fault, Name, Number, Schema, fault, is_number, mapping, meant

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
    if made.levels is not None and (made.column is not None or {"up", "down"} & set(parts)):
        raise fault("a cost per unit, or of each level", {"levels": made.levels}, "leave one of the two out")
    if made.column is not None and {"up", "down"} & set(parts):
        raise fault("a cost per unit, or the column that has it", made.column, "leave one of the two out")
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

    def built(
        self, name: str, coding: Coding | None, levels: Mapping[str, Sequence[float]] | None
    ) -> ActionCost:
        """The cost of an action.

        Args:
            levels: Coded column to the values that it may be set to; None if they are not known.

        Raises:
            ValueError: if levels have prices and the action has none, or others; or a class has a cost per
                unit.
        """
        up, down, fixed = (getattr(self, part) or 0.0 for part in PARTS)
        if coding is not None and coding.of_classes and self.levels is None:
            if self.column is not None or self.up is not None or self.down is not None:
                texts = listed(coding.levels)
                raise ValueError(
                    "a change from one class to another has no size that a cost per unit could count "
                    f"({name} has {texts}): write what a change to each of them costs, "
                    f"{{{', '.join(f'{each}: NUMBER' for each in coding.levels[:3])}}}, or fixed: NUMBER "
                    "for any change"
                )
            written: Mapping[Any, float] | None = dict.fromkeys(coding.levels, 0.0)
        else:
            written = self.levels
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
    """The costs of actions; those of other variables are faults.

    Args:
        levels: Coded column to the values that it may be set to, for those that have only some.
    """
    of = {column: each.name for each in codings.values() for column in each.columns}
    known = list(dict.fromkeys(of.get(name, name) for name in actions))
    faults += [
        Fault("costs", f"{name!r} is no action; {meant(name, known)}")
        for name in written
        if name not in known
    ]
    found = dict[str, ActionCost]()
    for name, each in written.items():
        if name not in known:
            continue
        try:
            found[name] = each.built(name, codings.get(name), levels)
        except ValueError as error:
            faults.append(Fault(f"costs.{name}", str(error)))
    return found
