"""Methods as files: what the options of ``conf/decision`` say of their surrogates, read without composing.

A method is the name of a file in ``conf/decision``; its surrogate is an option of ``conf/surrogate``, which
may take keys from others by its defaults.
"""

from functools import cache
from typing import Any

from rehearsal_torch.cli.validation import CONF
from rehearsal_torch.files.dotted import found_at
from rehearsal_torch.files.plain import read_yaml


@cache
def all_methods() -> tuple[str, ...]:
    """Every method, in alphabetical order."""
    return tuple(sorted(path.stem for path in (CONF / "decision").glob("*.yaml")))


@cache
def surrogate_class(method: str) -> type[Any]:
    """The class of a method's surrogate.

    Args:
        method: The name of a file in ``conf/decision``.
    """
    entries = read_yaml(CONF / "decision" / f"{method}.yaml")["defaults"]
    (surrogate,) = (entry["override /surrogate"] for entry in entries if "override /surrogate" in entry)
    found: type[Any] = found_at(_node(surrogate)["_target_"])
    return found


def methods_with(surrogate: type[Any]) -> list[str]:
    """The methods whose surrogate is of a class, in alphabetical order; without `auto`, which has none."""
    return [name for name in all_methods() if name != "auto" and surrogate_class(name) is surrogate]


def _node(surrogate: str) -> dict[str, Any]:
    """The keys of a surrogate's configuration, including those of its defaults."""
    content = read_yaml(CONF / "surrogate" / f"{surrogate}.yaml")
    merged: dict[str, Any] = {}
    for base in content.get("defaults", []):
        # A base with a package, such as transition@member, is a part.
        if base != "_self_" and "@" not in base:
            merged |= _node(base)
    return merged | content
