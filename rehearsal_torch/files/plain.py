"""Plain files: YAML and JSON that people, other programs or other machines wrote, read within bounds.

A few lines of YAML can stand for billions of values: an alias repeats what its anchor named, and may repeat a
repetition. A text is therefore measured before anything is built from it: its length, how deep it nests, and
how many values it holds once every alias is written out. A key that stands twice in one mapping is refused,
where YAML and JSON would silently take the last. Numbers that are no numbers (nan, the infinities) are left
to the reader in YAML, where people write .inf on purpose, and refused in JSON, which has none.
"""

import json
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import yaml

BYTES = 4 * 2**20
DEPTH = 40
VALUES = 200_000
SCALAR = 10_000

_Loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlainFileError(ValueError):
    """A file or text that is not read; its message says where, what was expected, what was found, and what to
    do.
    """


def read_yaml(path: str | Path, largest: int = BYTES) -> Any:
    """The content of a YAML file; None where it is empty.

    Args:
        path: The file.
        largest: Bytes that it may have.

    Raises:
        PlainFileError: if it is missing, unreadable, too large, or no YAML within bounds.
    """
    return yaml_of(text_of(path, largest), str(path))


def read_json(path: str | Path, largest: int = BYTES) -> Any:
    """The content of a JSON file.

    Args:
        path: The file.
        largest: Bytes that it may have.

    Raises:
        PlainFileError: if it is missing, unreadable, too large, or no JSON within bounds.
    """
    return json_of(text_of(path, largest), str(path))


def text_of(path: str | Path, largest: int = BYTES) -> str:
    """The text of a file of at most `largest` bytes in UTF-8.

    Raises:
        PlainFileError: if it is missing, unreadable, too large, or another encoding.
    """
    file = Path(path)
    try:
        if not file.is_file():
            raise PlainFileError(
                f"{file}: there is {'a folder, not a file' if file.is_dir() else 'no such file'}"
            )
        with file.open("rb") as stream:
            content = stream.read(largest + 1)
    except OSError as error:
        raise PlainFileError(f"{file}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        if isinstance(error, PlainFileError):
            raise
        raise PlainFileError(f"{str(file)!r} is no name of a file ({error})") from error
    if len(content) > largest:
        raise PlainFileError(
            f"{file}: expected at most {_size(largest)}; it is larger: is it the file that was meant?"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wide = content[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in content[:200]
        guess = "it looks like UTF-16" if wide else f"byte {error.start} is none"
        raise PlainFileError(
            f"{file}: expected text in UTF-8; {guess}: save the file again as UTF-8"
        ) from error


def yaml_of(text: str, where: str) -> Any:
    """The content of a YAML text; None where it is empty.

    Args:
        text: The text.
        where: What the text is called in messages.

    Raises:
        PlainFileError: if it is no YAML, nests deeper than 40, holds more than 200,000 values, or names a key
            twice.
    """
    return _guarded("YAML", where, lambda: _yaml(text))


def json_of(text: str, where: str) -> Any:
    """The content of a JSON text.

    Args:
        text: The text.
        where: What the text is called in messages.

    Raises:
        PlainFileError: if it is no JSON, nests too deep, holds nan or an infinity, or names a key twice.
    """
    return _guarded(
        "JSON", where, lambda: json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    )


def _guarded(kind: str, where: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except PlainFileError as error:
        raise PlainFileError(
            f"{where}: {error}" if not str(error).startswith(where) else str(error)
        ) from error
    except RecursionError as error:
        raise PlainFileError(
            f"{where}: expected {kind} that nests at most {DEPTH} deep; it nests deeper"
        ) from error
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        raise PlainFileError(
            f"{where} cannot be read as {kind}: {' '.join(str(error).split())[:300]}"
        ) from error


def _yaml(text: str) -> Any:
    _measure(text)
    loader = _Strict(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _measure(text: str) -> None:
    """Counts values and depth of a YAML text, aliases written out, without building anything."""
    sizes: dict[str, int] = {}
    stack: list[tuple[str | None, int]] = [(None, 0)]
    for event in yaml.parse(text, Loader=_Loader):
        size = 0
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise PlainFileError(
                    f"the alias *{event.anchor} stands inside of what it names, or before it: write the "
                    "value out"
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
            # What an anchor named before is not what it names from here on.
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
                f"expected at most {VALUES} values, aliases written out; there are more: is it the file that "
                "was meant?"
            )


def _line(event: yaml.Event) -> str:
    return "the text" if event.start_mark is None else f"line {event.start_mark.line + 1}"


class _Strict(_Loader):
    """Safe YAML in which a key stands once in a mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping, refused where it says the same key twice."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if (key_node.tag, key_node.value) in seen:
                    raise PlainFileError(
                        f"line {key_node.start_mark.line + 1}: the key {key_node.value!r} stands twice in "
                        "one mapping: leave one out"
                    )
                seen.add((key_node.tag, key_node.value))
        made: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return made


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        raise PlainFileError(
            f"the key {next(key for key in names if names.count(key) > 1)!r} stands twice in one object: "
            "leave one out"
        )
    return found


def _no_constant(name: str) -> Any:
    raise PlainFileError(f"expected numbers; got {name}, which JSON has no word for")


def _size(count: int) -> str:
    return f"{count // 2**20} MiB" if count % 2**20 == 0 else f"{count:,} bytes"
