"""A variable of experiments, as problem files and tasks state it: an action, or something that is measured.

    valve: {role: action, range: [0, 1]}
    solvent: {role: action, kind: categorical, levels: [water, ethanol, toluene]}
    temperature: {role: other, unit: degrees, error: 0.5}

Texts stand for their places 0, 1, ... among the levels. Faults have paths behind the variable's own.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Discriminator, Field, PrivateAttr, Tag, TypeAdapter, WithJsonSchema

from rehearsal_torch.data.codings.coding import Coding, level_texts, listed
from rehearsal_torch.data.costs import COST, ActionCost, Written
from rehearsal_torch.data.problem_file.cases_schema import (
    MOST_LEVELS,
    Level,
    LevelNumbers,
    PositiveNumber,
    has_texts,
    one_of,
)
from rehearsal_torch.files.schema import (
    Bounds,
    Fault,
    Name,
    Number,
    Schema,
    form,
    is_number,
    list_of,
    optional,
    read,
)

Role = Literal["action", "settable", "outcome", "context", "other"]
ROLES = get_args(Role)
ROLES_AS = (
    "action (is set), settable (may be set, or left to arise), outcome (the reward is made of it), context "
    "(known before acting), other (measured in each experiment)"
)
KINDS, SCALES = ("continuous", "integer", "binary", "ordinal", "categorical"), ("linear", "log")
OF_TEXTS, TYPES = ("binary", "ordinal", "categorical"), ("number", "string", "boolean")
SET_ROLES = ("action", "settable")
ROUNDING = 1e-9  # The share of a step by which the end of a range may be missed
_NUMBERS, _TEXTS = form("numbers"), form("texts")


def _levels_tag(plain: Any) -> str:
    levels = plain if isinstance(plain, list) else []
    return _TEXTS if has_texts([level for level in levels if not _is_number(level)]) else _NUMBERS


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and is_number(value)


def _setting(value: Any) -> Any:
    return _NUMBER.validate_python(value) if _is_number(value) else value


LEFT_OUT = "levels are all values that may be set: leave it out"
_NUMBER: TypeAdapter[float] = TypeAdapter(Number)
Setting = Annotated[Level, BeforeValidator(_setting, json_schema_input_type=float | str | bool)]


class TrialVariable(Schema):
    """A variable of experiments: an action, or something that is measured."""

    role: Annotated[str, BeforeValidator(one_of(ROLES)), WithJsonSchema({"enum": list(ROLES)})] = Field(
        description=ROLES_AS
    )
    kind: Annotated[str, BeforeValidator(one_of(KINDS)), WithJsonSchema({"enum": list(KINDS)})] = Field(
        default="continuous", description="of an action or a context: what its values are"
    )
    unit: Name | None = optional("its unit, for the reader")
    range: Bounds | None = optional("of an action: [lower, upper]")
    levels: (
        Annotated[
            Annotated[LevelNumbers, Tag(_NUMBERS)]
            | Annotated[list[Level], list_of("a list of values"), Tag(_TEXTS)],
            Discriminator(_levels_tag),
            WithJsonSchema({"type": "array", "items": {"anyOf": [{"type": kind} for kind in TYPES]}}),
        ]
        | None
    ) = optional(
        "of an action: the only values that it may be set to; texts, of the kind categorical, or ordinal in "
        "their order, also of a context"
    )
    step: PositiveNumber | None = optional(
        "of an action: the distance of its values, from the lower end of range"
    )
    scale: Annotated[str, BeforeValidator(one_of(SCALES)), WithJsonSchema({"enum": list(SCALES)})] = Field(
        default="linear", description="log: an action or a context above 0 that counts by its logarithm"
    )
    before: Setting | None = optional(
        "of an action or context: what it was in experiments that do not say it"
    )
    cost: Written | None = optional(f"of an action, in an experiment: {COST}")
    error: PositiveNumber | None = optional("of what is measured: the standard deviation of its error")

    # Faults of settings that it therefore lacks: it is kept so that faults of other parts are listed as well.
    _faults: tuple[Fault, ...] = PrivateAttr(())

    @classmethod
    def of(cls, plain: Any) -> Self:
        """A variable from plain data, its role alone or a mapping, which may have `faults`."""
        valid, faults = read(cls, {"role": plain} if isinstance(plain, str) else plain)
        variable = cls.model_construct(**{"role": "", **valid})
        variable._faults = tuple(Fault(f".{each.path}" if each.path else "", each.words) for each in faults)
        return variable

    @property
    def of_texts(self) -> bool:
        """Whether its levels are texts, which stand for their places 0, 1, ..."""
        return self.levels is not None and (self.kind == "categorical" or has_texts(self.levels))

    def coding(self, name: str) -> Coding:
        """The coding of its texts; ValueError if there are too few or too many, or one occurs twice."""
        texts = level_texts(self.levels or ())
        return Coding(name, tuple(texts), texts[0] if self.kind == "categorical" else None)

    def known(self, name: str) -> float | str | None:
        """What it was before, as it is shown."""
        if self.before is None or not self.of_texts:
            return self.before
        coding = self.coding(name)
        place = coding.place(self.before)
        return None if place is None else coding.levels[place]

    def values(self) -> list[float] | None:
        """The values that an action may be set to, ascending; None for a whole range."""
        if self.levels is not None:
            return sorted(map(float, range(len(self.levels)) if self.of_texts else self.levels))
        if self.range is None:
            return [0.0, 1.0]
        if self.step is None and self.kind == "continuous":
            return None
        start, step, count = self._grid(*self.range)
        return [start + step * place for place in range(count)]

    def built_cost(self, name: str) -> ActionCost:
        """What an action costs in an experiment; ValueError if it cannot be known beforehand."""
        assert self.cost is not None
        if self.cost.column is not None:
            raise ValueError("expected a number, which holds for all experiments; got a column")
        values = self.values()
        if self.kind == "categorical" and self.cost.levels is None and (self.cost.up or self.cost.down):
            texts = ", ".join(f"{text}: NUMBER" for text in self.coding(name).levels[:3])
            raise ValueError(f"texts have no size that a cost per unit could count: write {{{texts}}}")
        coding = Coding(name, self.coding(name).levels) if self.of_texts else None
        return self.cost.built(name, coding, {} if values is None else {name: values})

    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value that an action may be set to."""
        values = self.values() or self.range or [0.0, 0.0]
        return values[0], values[-1]

    def faults(self) -> Iterator[Fault]:
        """Faults of its settings, and between them, at paths behind its own."""
        parts = ("range", "levels", "step", "before", "cost")
        settings = [name for name in parts if getattr(self, name) is not None]
        kept = {"action": parts, "settable": parts[:3], "context": ("before",)}.get(self.role, ())
        excess = [name for name in settings if name not in kept]
        lowest = min(
            [
                *self.ends()[: self.role == "action"],
                *(each for each in [self.before] if isinstance(each, float)),
            ],
            default=1,
        )
        if self._faults:
            yield from self._faults
        elif self.error is not None and self.role in ("action", "context"):
            yield Fault(".error", f"is for what is measured; its role is {self.role}: leave it out")
        elif self.levels is not None and self.of_texts and self.kind not in OF_TEXTS:
            words = "these are texts: add kind: categorical, or kind: ordinal if this is their order"
            yield Fault(".levels", words, "texts")
        elif self.levels is None and self.kind == "categorical":
            yield Fault("", "expected levels: [...], its texts")
        elif self.of_texts and self.role not in ("action", "context"):
            yield Fault(
                ".levels", f"texts are of actions and contexts; its role is {self.role}: leave it out"
            )
        elif self.of_texts and self.scale == "log":
            yield Fault(".scale", "texts have no scale: leave it out")
        elif self.of_texts:
            kept = ("levels", "before", *(["cost"] if self.role == "action" else []))
            yield from (Fault(f".{name}", LEFT_OUT) for name in settings if name not in kept)
            try:
                coding = self.coding("")
            except ValueError as error:
                yield Fault(".levels", str(error))
            else:
                if self.before is not None and coding.place(self.before) is None:
                    yield Fault(".before", f"expected one of {listed(coding.levels)}; got {self.before!r}")
        elif isinstance(self.before, str | bool):
            yield Fault(".before", f"expected a number; got {self.before!r}")
        elif self.scale == "log" and self.role not in ("action", "context"):
            words = f"a log scale is for actions and contexts; its role is {self.role}: leave it out"
            yield Fault(".scale", words)
        elif self.scale == "log" and lowest <= 0:
            words = f"a log scale has no place for {lowest:g}: begin above 0, or leave it out"
            yield Fault(".scale", words)
        elif self.role not in SET_ROLES or excess:
            words = f"is for actions; its role is {self.role}: leave it out"
            yield from (Fault(f".{name}", words) for name in excess)
        elif self.levels is not None:
            yield from (Fault(f".{name}", LEFT_OUT) for name in settings if name in ("range", "step"))
        elif self.range is None and self.kind != "binary":
            yield Fault("", "an action needs range: [lower, upper], or levels: [...]")
        elif self.range is not None and (self.step is not None or self.kind != "continuous"):
            start, step, count = self._grid(*self.range)
            if not 2 <= count <= MOST_LEVELS:
                values = f"values from {start:g} to {self.range[1]:g} at distances of {step:g}"
                got = "there are more" if count > MOST_LEVELS else f"there is {max(count, 0)}"
                yield Fault("", f"expected 2 to {MOST_LEVELS} {values}; {got}: correct range or step")

    def _grid(self, lower: float, upper: float) -> tuple[float, float, int]:
        """First value, distance and number of the values of a range with a step."""
        start, step = (float(math.ceil(lower)), 1.0) if self.step is None else (lower, self.step)
        return start, step, int(min((upper - start) / step + ROUNDING, MOST_LEVELS) // 1 + 1)
