"""Bounded reading of plain files: YAML and JSON of untrusted origin.

A few lines of YAML can expand to billions of values through nested aliases. A text is therefore measured
before anything is built from it: its length, its nesting depth, and the number of values with every alias
expanded. A duplicate key in a mapping is refused, where YAML and JSON would silently take the last one. NaN
and infinities are left to the caller in YAML, which has .inf, and refused in JSON.

Records of plain data are checked by the kinds of their values (`checked`), which are written as they appear
in messages. Some hold the SHA-256 of what they hold (`sealed`), so that a change by hand, or damage, is
noticed; the order of names counts, as that of actions decides what their numbers mean.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from rehearsal_torch.files.redaction import InputError, beginning

BYTES = 4 * 2**20
DEPTH = 40
VALUES = 200_000
SCALAR = 10_000
Value = TypeVar("Value", bound=Hashable)

_Loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlainFileError(InputError):
    """An unreadable file or text.

    Attributes:
        fault: What is wrong, without the file or text in which it is.
        line, since: The line of the error, and that where its part begins, if known.
    """

    def __init__(
        self, fault: str, line: int | None = None, since: int | None = None, where: str = ""
    ) -> None:
        super().__init__(f"{where}: {fault}" if where else fault)
        self.fault, self.line, self.since = fault, line, since


class NoFileError(PlainFileError):
    """There is no such file."""


def read_yaml(path: str | Path, largest: int = BYTES) -> Any:
    """The content of a YAML file, None if empty; PlainFileError if it is missing, too large or no YAML."""
    return yaml_of(text_of(path, largest), str(path))


def read_json(path: str | Path, largest: int = BYTES) -> Any:
    """The content of a JSON file; PlainFileError if it is missing, too large, or no JSON."""
    return json_of(text_of(path, largest), str(path))


def text_of(path: str | Path, largest: int = BYTES) -> str:
    """The text of a UTF-8 file of at most `largest` bytes; PlainFileError if it is none."""
    file = Path(path)
    try:
        if not file.is_file():
            if file.is_dir():
                raise PlainFileError(f"{file}: there is a folder, not a file")
            raise NoFileError(f"{file}: there is no such file")
        with file.open("rb") as stream:
            content = stream.read(largest + 1)
    except OSError as error:
        raise PlainFileError(f"{file}: cannot be read ({error.strerror or error})") from error
    except PlainFileError:
        raise
    except ValueError as error:
        raise PlainFileError(f"{str(file)!r} is not a valid file name ({error})") from error
    if len(content) > largest:
        raise PlainFileError(
            f"{file}: expected at most {_size(largest)}; it is larger: is it the right file?"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wide = content[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in content[:200]
        guess = "it looks like UTF-16" if wide else f"byte {error.start} is not valid"
        raise PlainFileError(
            f"{file}: expected text in UTF-8; {guess}: save the file again as UTF-8"
        ) from error


def yaml_of(text: str, where: str) -> Any:
    """The content of a YAML text, None if empty; PlainFileError if it is no YAML within the limits."""

    def load() -> Any:
        _measure(text)
        return yaml.load(text, Loader=_StrictLoader)

    return _parse("YAML", where, load)


def json_of(text: str, where: str) -> Any:
    """The content of a JSON text; PlainFileError if it is no JSON, or has NaN or repeated keys."""
    return _parse(
        "JSON", where, lambda: json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
    )


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor. Whoever has one has loaded torch, which checks of files go without."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def repeated(values: Iterable[Value]) -> list[Value]:
    """What occurs more than once, in the order in which it occurs first."""
    return [value for value, count in Counter(values).items() if count > 1]


def _parse(kind: str, where: str, parse: Callable[[], Any]) -> Any:
    try:
        return parse()
    except PlainFileError as error:
        raise PlainFileError(error.fault, where=where) from error
    except RecursionError as error:
        words = f"expected {kind} with at most {DEPTH} levels of nesting; there are more"
        raise PlainFileError(words, where=where) from error
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(kind, where, error) from error
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        words = f"cannot be read as {kind}: {beginning(' '.join(str(error).split()), 300)}"
        raise PlainFileError(words, where=where) from error


def _syntax_error(kind: str, where: str, error: yaml.MarkedYAMLError) -> PlainFileError:
    """What the parser met, and in which line; nothing of the text is quoted but what the parser quotes."""
    mark, context_mark = error.problem_mark or error.context_mark, error.context_mark
    since = None if context_mark is None else context_mark.line + 1
    line = None if mark is None else mark.line + 1
    position = "" if mark is None else f"line {line}, column {mark.column + 1}: "
    context = f", {error.context}" if error.context else ""
    opening = f" that begins in line {since}" if context and since is not None and since != line else ""
    words = " ".join(f"{position}{error.problem or 'it is not finished'}{context}{opening}".split())
    return PlainFileError(f"cannot be read as {kind}: {beginning(words, 300)}", line, since, where)


def _measure(text: str) -> None:
    """Bounds values, aliases expanded, and depth of a YAML text before it is built."""
    sizes: dict[str, int] = {}
    stack: list[tuple[str | None, int]] = [(None, 0)]
    for event in yaml.parse(text, Loader=_Loader):
        size = 0
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise PlainFileError(
                    f"the alias *{event.anchor} refers to a value that contains it, or that follows it: "
                    "write the value out"
                )
            size = sizes[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            if not event.style and len(event.value) > SCALAR:
                raise PlainFileError(
                    f"{_line(event)}: expected a value of at most {SCALAR} characters; got {len(event.value)}"
                )
            size = 1
            if event.anchor:
                sizes[event.anchor] = size
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            stack.append((event.anchor, 1))
            # A redefined anchor no longer refers to its earlier value.
            sizes.pop(event.anchor or "", None)
            if len(stack) > DEPTH + 1:
                raise PlainFileError(
                    f"{_line(event)}: expected at most {DEPTH} levels of nesting; there are more"
                )
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            anchor, size = stack.pop()
            if anchor:
                sizes[anchor] = size
        stack[-1] = (stack[-1][0], stack[-1][1] + size)
        if stack[-1][1] > VALUES:
            raise PlainFileError(
                f"expected at most {VALUES} values, aliases expanded; there are more: is it the right file?"
            )


def _line(event: yaml.Event) -> str:
    return "the text" if event.start_mark is None else f"line {event.start_mark.line + 1}"


class _StrictLoader(_Loader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping; refused if it repeats a key."""
        keys: set[Any] = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if (key_node.tag, key_node.value) in keys:
                    raise PlainFileError(
                        f"line {key_node.start_mark.line + 1}: the key {key_node.value!r} occurs twice in "
                        "one mapping: leave one out"
                    )
                keys.add((key_node.tag, key_node.value))
        content: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return content


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        repeated_key = repeated(key for key, _ in pairs)[0]
        raise PlainFileError(f"the key {repeated_key!r} occurs twice in one object: leave one out")
    return content


def _no_constant(name: str) -> Any:
    raise PlainFileError(f"expected numbers; got {name}, which JSON does not define")


def _size(count: int) -> str:
    return f"{count // 2**20} MiB" if count % 2**20 == 0 else f"{count:,} bytes"


LARGEST = sys.float_info.max
TEXTS, NUMBER, WHOLE = "a list of strings", "a number", "a whole number"
WHOLES = "a list of whole numbers"


def checked(
    content: Any, where: str, forms: Mapping[str, str], needed: Sequence[str] = (), remedy: str = ""
) -> dict[str, Any]:
    """A mapping with the keys `needed`, values of the kinds `forms` (`is_a`); else a PlainFileError."""
    if not isinstance(content, dict):
        fault = f"expected a mapping of names to values; got {shown(content)}"
    elif absent := [key for key in needed if key not in content]:
        fault = f"expected the keys {', '.join(needed)}; there is no {' and no '.join(absent)}"
    elif wrong := [key for key, form in forms.items() if key in content and not is_a(content[key], form)]:
        fault = f"{wrong[0]}: expected {forms[wrong[0]]}; got {shown(content[wrong[0]])}"
    else:
        return content
    raise PlainFileError(f"{fault}: {remedy}" if remedy else fault, where=where)


def is_a(value: Any, form: str) -> bool:
    """Whether a value is of one of the given kinds, joined by "or" or commas: "true, false or null"."""
    return any(_KINDS[kind](value) for kind in form.replace(", ", " or ").split(" or "))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def _are_whole(values: Any) -> bool:
    """Whether a value is a list of whole numbers, by its types and ends alone, for long lists."""
    if not isinstance(values, list) or set(map(type, values)) - {int}:
        return False
    return not values or (min(values) >= -(2**63) and max(values) < 2**63)


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


# Numbers are finite, whole numbers fit into 64 bits.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "true": lambda value: value is True,
    "false": lambda value: value is False,
    "a string": lambda value: isinstance(value, str),
    TEXTS: lambda value: _is_list_of(value, str),
    "a list of mappings": lambda value: _is_list_of(value, dict),
    "a mapping": lambda value: isinstance(value, dict),
    "a mapping of numbers": lambda value: (
        isinstance(value, dict) and all(number is None or _number(number) for number in value.values())
    ),
    NUMBER: _number,
    WHOLE: lambda value: _are_whole([value]),
    WHOLES: _are_whole,
}


def shown(value: Any) -> str:
    """A value as shown in messages: one line of at most 80 characters."""
    text = value if isinstance(value, str) else repr(value)
    line = text if text.isprintable() and text else repr(text)
    return line if len(line) <= 80 else beginning(line, 77) + "..."


SUM = "sha256"


def sealed(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The data with their sum."""
    return {**plain, SUM: _checksum(plain)}


def opened(plain: object, where: str) -> dict[str, Any]:
    """The data without their sum; PlainFileError if they are none, or have changed since."""
    if not isinstance(plain, Mapping) or SUM not in plain:
        raise PlainFileError(f"{where}: expected names and values with their {SUM}")
    content = {str(name): value for name, value in plain.items() if name != SUM}
    if plain[SUM] != _checksum(content):
        raise PlainFileError(f"{where}: it has changed since it was written, by its {SUM}")
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, ensure_ascii=True, default=str).encode()).hexdigest()
