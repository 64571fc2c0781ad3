"""Schemas: validation of files and mappings, with all faults listed in plain messages.

A schema is a pydantic model that derives from `Schema`: unknown keys are refused, and nothing is converted
silently. `read` checks plain data against it and lists all faults at once, each with the dotted path of the
key, what was expected, what was found, and, if a key is close to a known one, a suggestion. The building
blocks are shared by all schemas:

    Name      a non-empty string; a whole number is read as its digits; a Boolean is refused, since YAML reads
              no and on as Booleans
    Names     a list of names without duplicates; a single name is a list of one, and null is an empty list
    Number    a finite number of at most 1e150 in absolute value, so that its square is finite; a Boolean is
              refused. YAML reads 1e3 as a string: it is converted
    Bounds    [lower, upper], two numbers
    Sides     the same, with null (or an infinity) for an open side
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from rehearsal_torch.files.bounded_yaml import DEPTH, VALUES, is_tensor, repeated
from rehearsal_torch.files.redaction import InputError, beginning

LARGEST = 1e150
LONGEST = 200
SHOWN = 60

Model = TypeVar("Model", bound="Schema")
FaultKind = Literal["", "missing", "unknown", "two roles", "texts"]

TAG = "\0"
_EXPECTED = {
    "list_type": "a list",
    "dict_type": "a mapping, {name: value}",
    "model_type": "a mapping, {key: value}",
    "bool_type": "true or false",
    "string_type": "a string",
}
_EXPONENT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+\Z")
_WORD = re.compile(r"[^\W\d][\w -]*\Z")


class Fault(str):
    """A fault of an input as a sentence, ``path: words``: the dotted path of its key, empty for the whole,
    and what is wrong and what to do. Its kind is "missing", a part that is not there; "unknown", a name that
    another part lacks; "two roles", a name in two parts; "texts", texts in place of numbers; or empty.
    """

    path: str
    words: str
    kind: FaultKind

    def __new__(cls, path: str, words: str, kind: FaultKind = "") -> Self:
        """A fault; see the class."""
        fault = super().__new__(cls, f"{path}: {words}" if path else words)
        fault.path, fault.words, fault.kind = path, words, kind
        return fault

    @property
    def part(self) -> str:
        """The first key of its path."""
        return re.split(r"[.\[]", self.path, maxsplit=1)[0]

    def called(self, names: Mapping[str, str]) -> "Fault":
        """The fault with the longest beginning of its path that `names` has as it was written."""
        prefixes = [path for path in names if re.match(rf"{re.escape(path)}(?![^.\[])", self.path)]
        if not prefixes:
            return self
        longest = max(prefixes, key=len)
        return Fault(names[longest] + self.path[len(longest) :], self.words, self.kind)

    @classmethod
    def of(cls, message: str) -> "Fault":
        """A message as the fault of the whole; a fault stays as it is."""
        return message if isinstance(message, Fault) else cls("", message)


class FaultsError(InputError):
    """Input with faults; the message joins them."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(map(Fault.of, faults))
        super().__init__("; ".join(self.faults))


class Schema(BaseModel):
    """A mapping with known keys only, without implicit conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)

    @classmethod
    def between(cls, parts: Mapping[str, Any]) -> Iterable[Fault]:  # noqa: ARG003
        """Faults between parts; `parts` has those that are right by themselves."""
        return ()


def refusal(words: str, kind: FaultKind = "") -> PydanticCustomError:
    """The error that a validator raises; `read` adds the path."""
    return PydanticCustomError("fault", "{words}", {"words": words, "kind": kind})


def fault(expected: str, got: Any, remedy: str = "", kind: FaultKind = "") -> PydanticCustomError:
    """A `refusal` that says what was expected, what was found, and what to do."""
    return refusal(f"expected {expected}; got {shown(got)}{': ' if remedy else ''}{remedy}", kind)


def only(holds: Callable[[Any], bool], expected: str) -> Callable[[Any], Any]:
    """A validator that refuses values for which `holds` is false."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise fault(expected, value)
        return value

    return check


def optional(description: str) -> Any:
    """A field that may be left out, None by default."""
    return Field(default=None, description=description)


def shown(value: Any) -> str:
    """A value as shown in messages: short, in one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= SHOWN else f"{beginning(text, SHOWN)} ..."


def meant(word: str, choices: Iterable[str]) -> str:
    """The choice that was probably meant, upper and lower case alike, or the list of choices."""
    options = list(choices)
    return did_you_mean(word, options) or f"there are {', '.join(options[:30])}"


def did_you_mean(value: Any, choices: Iterable[str]) -> str:
    """The choice that was probably meant, as a question; empty if none is similar."""
    suggestion = suggested(value, choices) if isinstance(value, str) else None
    return f"did you mean {suggestion!r}?" if suggestion else ""


def suggested(word: str, choices: Iterable[str], similar: float = 0.65) -> str | None:
    """The choice that was probably meant; None if none is similar."""
    options = list(choices)
    exact = [option for option in options if option.casefold() == word.casefold()]
    matches = exact or get_close_matches(word, options, 1, similar)
    if not matches:
        folded = {option.casefold(): option for option in reversed(options)}
        matches = [folded[option] for option in get_close_matches(word.casefold(), folded, 1, similar)]
    return matches[0] if matches else None


def listed(source: str, faults: Sequence[str], outcome: str = "nothing was fitted") -> str:
    """All faults of a source, one per line."""
    count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
    return f"{source}: {count}, {outcome}\n" + "\n".join(f"- {fault}" for fault in faults)


def plain_of(value: Any) -> Any:
    """Plain data: mappings, sequences, arrays and tensors become dictionaries, lists and numbers; other
    values are left for the schema to refuse. FaultsError if there are more than 40 levels or 200,000 values.
    """
    remaining = [VALUES]

    def converted(item: Any, depth: int) -> Any:
        remaining[0] -= 1
        if depth > DEPTH or remaining[0] < 0:
            raise FaultsError(
                [f"expected at most {DEPTH} levels of nesting and {VALUES} values; there are more"]
            )
        if isinstance(item, np.ndarray) or is_tensor(item):
            if math.prod(item.shape) > remaining[0]:
                raise FaultsError(
                    [f"expected at most {VALUES} values; got an array of shape {tuple(item.shape)}"]
                )
            return item.tolist()
        if isinstance(item, np.generic):
            return item.item()
        if isinstance(item, Mapping):
            return {key: converted(content, depth + 1) for key, content in item.items()}
        if isinstance(item, Sequence) and not isinstance(item, str | bytes | bytearray):
            return [converted(content, depth + 1) for content in item]
        return item

    return converted(value, 0)


def read(model: type[Model], plain: Any) -> tuple[dict[str, Any], list[Fault]]:
    """The valid fields of a mapping, with defaults if all are; and the faults of and between fields."""
    try:
        plain = plain_of(plain)
    except FaultsError as error:
        return {}, list(error.faults)
    try:
        instance = model.model_validate(plain)
    except ValidationError as error:
        details = error.errors(include_url=False)
        faults = [_fault_of(detail, model) for detail in details]
        faulty = {str(detail["loc"][0]) for detail in details if detail["loc"]}
        if not isinstance(plain, dict):
            return {}, faults
        valid = {}
        for name in model.model_fields:
            if name not in faulty and name in plain:
                valid[name] = getattr(_with_field(model, name, plain[name]), name)
        return valid, list(dict.fromkeys([*faults, *model.between(valid)]))
    fields = {name: getattr(instance, name) for name in model.model_fields}
    return fields, list(dict.fromkeys(model.between(fields)))


def _with_field(model: type[Model], name: str, value: Any) -> Model:
    holder = model.model_construct()
    instance = model.__pydantic_validator__.validate_assignment(holder, name, value)
    return instance if isinstance(instance, model) else holder


def _fault_of(detail: Mapping[str, Any], model: type[BaseModel]) -> Fault:
    loc = [step for step in detail["loc"] if not (isinstance(step, str) and step.startswith(TAG))]
    kind, value = detail["type"], detail["input"]
    is_key = bool(loc) and loc[-1] == "[key]"
    loc = loc[:-2] if is_key else loc
    where = path_of(loc)
    field = model.model_fields.get(str(loc[0])) if len(loc) == 1 else None
    expectation = (field.description if field is not None else None) or "a value"
    if kind == "extra_forbidden":
        keys = _allowed_keys(detail["loc"], model)
        return Fault(where, f"unknown key; {meant(str(loc[-1]), keys) if keys else 'leave it out'}")
    if kind == "missing":
        if len(loc) == 1:
            return Fault(where, f"missing; expected {expectation}", "missing")
        return Fault(where, "missing: write it beside the other keys")
    if kind == "fault":
        words = str(detail["ctx"]["words"])
    elif kind in ("too_long", "too_short"):
        limit, too_long = detail["ctx"].get("max_length", detail["ctx"].get("min_length")), kind == "too_long"
        # Of a sequence whose end is not looked for, pydantic knows no length.
        length = detail["ctx"].get("actual_length")
        count = "more" if length is None else length
        words = f"expected at {'most' if too_long else 'least'} {limit} entries; got {count}"
    else:
        expected = _EXPECTED.get(kind) or (expectation if len(loc) == 1 else str(detail["msg"]))
        words = f"expected {expected}; got {shown(value)}"
    return Fault(where, f"{'a name there: ' if is_key else ''}{words}", detail.get("ctx", {}).get("kind", ""))


def path_of(parts: Iterable[Any]) -> str:
    """A dotted path: keys joined by dots, list indices in brackets."""
    path = ""
    for step in parts:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            word = str(step) if _WORD.match(str(step)) else shown(str(step))
            path += f".{word}" if path else word
    return path


def _allowed_keys(loc: Sequence[Any], model: type[BaseModel]) -> list[str]:
    """The keys allowed in place of an unknown one: of the model itself, or of the form of its mapping."""
    tags = [step for step in loc[:-1] if isinstance(step, str) and step.startswith(TAG)]
    return tags[-1].removeprefix(TAG).split() if tags else list(model.model_fields) if len(loc) == 1 else []


def form(*keys: str) -> str:
    """The tag of one of several forms of a mapping; it holds the allowed keys, for messages."""
    return TAG + " ".join(keys)


def mapping(expected: str) -> BeforeValidator:
    """Refuses anything but a non-empty mapping, and keys that denote the same name."""

    def check(value: Any) -> Any:
        if isinstance(value, BaseModel):
            return value
        if not isinstance(value, dict) or not value:
            raise fault(expected, value)
        if repeats := sorted(repeated(map(str, value))):
            raise refusal(f"{', '.join(repeats)} occurs twice: keep one")
        return value

    return BeforeValidator(check)


def list_of(expected: str) -> BeforeValidator:
    """Refuses anything but a list, also strings, which would be split; null is an empty list."""

    def check(value: Any) -> Any:
        if value is None:
            return []
        if not isinstance(value, list):
            raise fault(expected, value, f"write [{value}]" if isinstance(value, str) else "")
        return value

    return BeforeValidator(check)


def _name(value: Any) -> str:
    if isinstance(value, bool):
        remedy = "YAML reads yes, no, on, off, true and false as Booleans, so put the name in quotes"
        raise fault("a name", value, remedy)
    if isinstance(value, int) and abs(value) < 10**18:
        return str(value)
    if not isinstance(value, str):
        raise fault("a name", value, "put it in quotes" if isinstance(value, int | float) else "")
    if not value.strip() or len(value) > LONGEST or not value.isprintable():
        raise fault(f"a name of 1 to {LONGEST} letters in one line", value)
    return value


def _as_list(value: Any) -> Any:
    """A single name becomes a list of one, null an empty list."""
    if value is None:
        return []
    if isinstance(value, dict | float) or not isinstance(value, list | str | int):
        raise fault("a list of names", value)
    return value if isinstance(value, list) else [value]


def _check_unique(names: list[str]) -> list[str]:
    if repeats := sorted(repeated(names)):
        raise refusal(f"names {', '.join(repeats)} twice: keep one")
    return names


def _number(value: Any) -> float:
    if isinstance(value, str) and _EXPONENT.match(value.strip()):
        value = float(value)
    if isinstance(value, str):
        remedy = "write a number; strings are coded as numbers, in the table and here"
        remedy = "write a decimal point" if is_number(value.replace(",", ".")) else remedy
        raise fault("a number", value, "remove the quotes" if is_number(value) else remedy)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fault("a number", value)
    if not abs(value) <= LARGEST:
        raise fault(f"a finite number, at most {LARGEST:g} in size", value)
    return float(value)


def is_number(text: str) -> bool:
    """Whether a string is a number in quotes."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def interval(expected: str, closed: bool) -> Callable[[Any], Any]:
    """A validator of [lower, upper]; unless `closed`, null or an infinity leaves a side open."""

    def check(value: Any) -> list[float | None]:
        if not isinstance(value, list) or len(value) != 2:
            raise fault(expected, value)
        lower, upper = (
            side if not closed and side in (None, math.inf, -math.inf) else _number(side) for side in value
        )
        if lower == math.inf or upper == -math.inf:
            raise fault(expected, value, "an open side is null")
        if lower is not None and upper is not None and lower > upper:
            raise fault("lower <= upper", value, "swap them")
        return [None if side is None or math.isinf(side) else side for side in (lower, upper)]

    return check


Name = Annotated[str, BeforeValidator(_name)]
Names = Annotated[
    list[Name],
    BeforeValidator(_as_list, json_schema_input_type=list[Name] | Name | None),
    AfterValidator(_check_unique),
]
Number = Annotated[float, BeforeValidator(_number)]
Bounds = Annotated[list[float], BeforeValidator(interval("[lower, upper], two finite numbers", closed=True))]
Sides = Annotated[
    list[float | None], BeforeValidator(interval("[lower, upper], null for an open side", closed=False))
]


def lines_of(text: str) -> dict[str, int]:
    """Dotted path as in messages (``variables.bmi.range[0]``) to line, from 1; {} without a mapping."""
    root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {path_of(parts): line for parts, line in _walk(root, ()) if parts}


def _walk(node: Any, parts: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], int]]:
    # The same node may stand at several places (aliases); their number is bounded where the text is read.
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            path = (*parts, str(key.value))
            yield path, key.start_mark.line + 1
            yield from _walk(value, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*parts, index), value.start_mark.line + 1
            yield from _walk(value, (*parts, index))


def line_at(lines: dict[str, int], path: str) -> int | None:
    """The line of a path, or of the longest known path that contains it; None if there is none."""
    while path:
        if path in lines:
            return lines[path]
        cut = max(path.rfind("."), path.rfind("["))
        path = path[:cut] if cut > 0 else ""
    return None
