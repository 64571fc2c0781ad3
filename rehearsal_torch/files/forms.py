"""Record formats: the required keys of a mapping, and the kind of each value.

Kinds are written as they appear in messages, several joined by "or" or commas: "a string or null", "true,
false or null".
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.files.plain import PlainFileError

LARGEST = sys.float_info.max
TEXTS, NUMBER, WHOLE = "a list of strings", "a number", "a whole number"


def checked(
    content: Any, where: str, forms: Mapping[str, str], needed: Sequence[str] = (), remedy: str = ""
) -> dict[str, Any]:
    """The content, if it is a mapping with the required keys and with values of the required kinds.

    Raises:
        PlainFileError: if it is not a mapping, lacks a key, or a value is of another kind.
    """
    end = f": {remedy}" if remedy else ""
    if not isinstance(content, dict):
        raise PlainFileError(f"{where}: expected a mapping of names to values; got {shown(content)}{end}")
    missing = [key for key in needed if key not in content]
    if missing:
        raise PlainFileError(
            f"{where}: expected the keys {', '.join(needed)}; there is no {' and no '.join(missing)}{end}"
        )
    for key, form in forms.items():
        if key in content and not is_a(content[key], form):
            raise PlainFileError(f"{where}: {key}: expected {form}; got {shown(content[key])}{end}")
    return content


def is_a(value: Any, form: str) -> bool:
    """Whether a value is of one of the given kinds.

    Args:
        form: One or several of: a string, a list of strings, a list of mappings, a number, a whole number,
            true, false, null, a mapping, a mapping of numbers. Numbers are finite, whole numbers fit into 64
            bits.

    Raises:
        ValueError: if the form names another kind.
    """
    return any(_is(value, kind) for kind in form.replace(", ", " or ").split(" or "))


def shown(value: Any) -> str:
    """A value as shown in messages: one line of at most 80 characters."""
    text = value if isinstance(value, str) else repr(value)
    plain = text if text.isprintable() and text else repr(text)
    return plain if len(plain) <= 80 else beginning(plain, 77) + "..."


def _is(value: Any, kind: str) -> bool:
    if kind in ("null", "true", "false"):
        return value is {"null": None, "true": True, "false": False}[kind]
    if kind == "a string":
        return isinstance(value, str)
    if kind == TEXTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if kind == "a list of mappings":
        return isinstance(value, list) and all(isinstance(each, dict) for each in value)
    if kind == "a mapping":
        return isinstance(value, dict)
    if kind == "a mapping of numbers":
        return isinstance(value, dict) and all(each is None or _is(each, NUMBER) for each in value.values())
    if kind not in (NUMBER, WHOLE):
        raise ValueError(f"there is no kind {kind!r}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if kind == WHOLE:
        return isinstance(value, int) and -(2**63) <= value < 2**63
    return -LARGEST <= value <= LARGEST
