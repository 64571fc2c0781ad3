"""Resolution of dotted paths in configurations to the classes and functions that they name.

The object found decides, not the prefix of its path: ``rehearsal_torch.run_folder.Path``, for example, is a
class of the standard library that a module imports, and is refused. Private names are never found.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any


def found_at(target: Any) -> Any:
    """The class or function at a dotted path; None if there is none, or a name is private."""
    if not isinstance(target, str):
        return None
    names = target.split(".")
    if len(names) < 2 or not all(name.isidentifier() and not name.startswith("_") for name in names):
        return None
    try:
        target_object = vars(import_module(".".join(names[:-1]))).get(names[-1])
    except ImportError:
        return None
    return target_object if isinstance(target_object, type | type(found_at)) else None


def dotted(named: type) -> str:
    """The dotted path of a class, by which a configuration names it."""
    return f"{named.__module__}.{named.__qualname__}"


def defined_in(target: Any, rooms: Iterable[str]) -> Any:
    """The class or function at a dotted path if its own module, in one of the rooms, defines it."""
    home = target.rpartition(".")[0] if isinstance(target, str) else ""
    if not any(home == room or home.startswith(f"{room}.") for room in rooms):
        return None
    definition = found_at(target)
    return definition if definition is not None and definition.__module__ == home else None


def mappings(node: Any, where: str = "") -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Every mapping in plain data, with its path."""
    if isinstance(node, Mapping):
        yield where, node
        for key, value in node.items():
            yield from mappings(value, f"{where}.{key}" if where else str(key))
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from mappings(value, f"{where}[{index}]")
