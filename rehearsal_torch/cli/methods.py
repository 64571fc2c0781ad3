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


def methods_by(objective: type[Any], search: type[Any]) -> list[str]:
    """The methods that maximise objectives of a class by searches of a class, in alphabetical order."""
    return [name for name in all_methods() if _parts(name) == (objective, search)]


def weighs_costs(method: str) -> bool:
    """Whether a method can weigh costs against the worth of a desired outcome, or never acts."""
    from rehearsal_torch.search.search import NoAction

    objective, search = _parts(method)
    return issubclass(search, NoAction) or (objective.of_success and search.weighs)


@cache
def _parts(method: str) -> tuple[type[Any], ...]:
    """The classes of a method's objective and search."""
    entries = read_yaml(CONF / "decision" / f"{method}.yaml")["defaults"]
    named = {group: option for entry in entries for group, option in entry.items()}
    return tuple(
        found_at(_node(named[f"override /{group}"], group)["_target_"]) for group in ("objective", "search")
    )


def _node(option: str, group: str = "surrogate") -> dict[str, Any]:
    """The keys of an option's configuration, including those of its defaults."""
    content = read_yaml(CONF / group / f"{option}.yaml")
    merged: dict[str, Any] = {}
    for base in content.get("defaults", []):
        # A base with a package, such as transition@member, is a part.
        if base != "_self_" and "@" not in base:
            merged |= _node(base, group)
    return merged | content
