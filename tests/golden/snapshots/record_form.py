"""The form of recorded JSON: which keys there are, and of which kinds their values."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# Keys of these are names of the table, of nodes or of packages, not of the format.
NAMED = {
    "alteration",
    "chosen",
    "choices",
    "doses",
    "estimates",
    "given",
    "most_probable",
    "present",
    "ran",
    "score",
    "versions",
    "would_set",
}
_KINDS = {bool: "true or false", int: "number", float: "number", str: "text", type(None): "null"}


def kinds(
    values: Iterable[Any], where: str = "", named: frozenset[str] = frozenset(NAMED)
) -> dict[str, set[str]]:
    """Dotted path to the kinds of values that stand there, over several values.

    Args:
        values: JSON values that stand at the same place.
        where: The path of the place.
        named: Keys below which names stand, written as ``*``.
    """
    found: dict[str, set[str]] = {}
    for value in values:
        if isinstance(value, Mapping):
            found.setdefault(where, set()).add("object")
            for key, each in value.items():
                name = "*" if where.rpartition(".")[2] in named else key
                _join(found, kinds([each], f"{where}.{name}" if where else name, named))
        elif isinstance(value, list):
            found.setdefault(where, set()).add("list")
            _join(found, kinds(value, f"{where}[]", named))
        else:
            found.setdefault(where, set()).add(_KINDS[type(value)])
    return found


def _join(found: dict[str, set[str]], more: Mapping[str, set[str]]) -> None:
    for path, each in more.items():
        found.setdefault(path, set()).update(each)


def form(file: Path) -> str:
    """The lines ``path: kinds`` of a JSON file, or of a file with an object a line."""
    text = file.read_text(encoding="utf-8")
    values = (
        [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else [json.loads(text)]
    )
    found = kinds(values)
    return "".join(
        f"{path or '(whole)'}: {', '.join(sorted(each))}\n" for path, each in sorted(found.items())
    )
