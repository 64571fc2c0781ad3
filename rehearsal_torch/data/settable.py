"""The box of a rehearsal task as written: for each variable that may be set, its bounds or its levels.

    dose: [0, 10]               any value from 0 to 10
    drug: {values: [0, 1]}      no or yes
    ward: {values: [1, 2, 4]}   one of these numbers

Levels are numbers. Strings, such as low and high, are coded as numbers in the table and in the task; a
rehearsal task may name them under `codings` (`data.codings`).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag

from rehearsal_torch.files.plain import repeated
from rehearsal_torch.files.schema import (
    Bounds,
    Name,
    Number,
    Schema,
    fault,
    form,
    is_number,
    mapping,
    shown,
)
from rehearsal_torch.spaces.box import Box

MOST = 1000
# The strings of which a message says how they may be coded.
SHOWN = 4
SETTABLE = "{variable: [lower, upper]}, or {variable: {values: [...]}} for one of some values"
INTERVAL, VALUES = form("<interval>"), form("values")


def _levels(values: Any) -> Any:
    if not isinstance(values, list) or not values:
        raise fault("a list of the values that it may be set to", values)
    if len(values) > MOST:
        raise fault(f"at most {MOST} values", f"{len(values)} values")
    if all(isinstance(each, bool) or (isinstance(each, str) and not is_number(each)) for each in values):
        raise fault("numbers", values, _coded(values))
    return values


def _coded(values: Sequence[str | bool]) -> str:
    """What to do about levels that are strings, or what YAML reads as Booleans (yes, no, on, off)."""
    # False before true, strings as they are given.
    order = sorted(values) if all(isinstance(each, bool) for each in values) else values
    numbers = dict(enumerate(dict.fromkeys(order)))
    several = [f"{shown(name)} as {number}" for number, name in numbers.items()]
    pairs = several[:SHOWN] + (["..."] if len(several) > SHOWN else [])
    ordered = ", in an order that means something to the outcome" if len(several) > 2 else ""
    return (
        "levels are numbers: code them in the table and in the task, for instance "
        f"{', '.join(pairs)}{ordered}"
    )


def _distinct(values: list[float]) -> list[float]:
    if twice := repeated(values):
        raise fault("each value once", values, f"{twice[0]:g} occurs twice, keep one")
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
