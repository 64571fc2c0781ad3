"""The box of a rehearsal task as written: for each variable that may be set, its bounds or its levels.

    dose: [0, 10]               any value from 0 to 10
    drug: {values: [0, 1]}      no or yes
    ward: {values: [1, 2, 4]}   one of these numbers

Source: ours.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag

from rehearsal_torch.files.schema import Bounds, Name, Number, Schema, fault, form, mapping
from rehearsal_torch.spaces.box import Box

MOST = 1000
SETTABLE = "{variable: [lower, upper]}, or {variable: {values: [...]}} for one of some values"
INTERVAL, VALUES = form("<interval>"), form("values")


def _levels(values: Any) -> Any:
    if not isinstance(values, list) or not values:
        raise fault("a list of the values that it may be set to", values)
    if len(values) > MOST:
        raise fault(f"at most {MOST} values", f"{len(values)} values")
    return values


def _distinct(values: list[float]) -> list[float]:
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise fault("each value once", values, f"{twice:g} occurs twice, keep one")
    return values


class Levels(Schema):
    """The values that a variable may be set to."""

    values: Annotated[list[Number], BeforeValidator(_levels), AfterValidator(_distinct)]


def _form(plain: Any) -> str:
    return VALUES if isinstance(plain, dict | Levels) else INTERVAL


Range = Annotated[Annotated[Bounds, Tag(INTERVAL)] | Annotated[Levels, Tag(VALUES)], Discriminator(_form)]
Settable = Annotated[dict[Name, Range], mapping(SETTABLE)]


def box_of(box: Mapping[str, list[float] | Levels]) -> Box:
    """The box of a validated one."""
    return Box.of(
        {name: {"values": each.values} if isinstance(each, Levels) else each for name, each in box.items()}
    )
