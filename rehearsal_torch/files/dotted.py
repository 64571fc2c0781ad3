"""What a dotted path in a configuration names: judged by the object that is found, not by how the path
begins.

`Path`, say, which some of our modules import, is found at ``rehearsal_torch.run_folder.Path`` and is none of
ours; what a module keeps for itself (a leading underscore) is found nowhere. A path of an earlier version is
read as that of today (`files.moved`).

Source: ours.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from rehearsal_torch.files.moved import current


def found_at(target: Any) -> Any:
    """The class or function at a dotted path, a module and a name; None where there is none, or a name is
    private.
    """
    if not isinstance(target, str):
        return None
    names = current(target).split(".")
    if len(names) < 2 or not all(name.isidentifier() and not name.startswith("_") for name in names):
        return None
    try:
        found = vars(import_module(".".join(names[:-1]))).get(names[-1])
    except ImportError:
        return None
    return found if isinstance(found, type | type(found_at)) else None


def defined_in(target: Any, rooms: Iterable[str]) -> Any:
    """The class or function at a dotted path, if the module named there defines it itself, and lies in one of
    the rooms; else None.

    Args:
        target: The dotted path.
        rooms: Packages or modules; nothing outside them is imported.
    """
    home = current(target).rpartition(".")[0] if isinstance(target, str) else ""
    if not any(home == room or home.startswith(f"{room}.") for room in rooms):
        return None
    found = found_at(target)
    return found if found is not None and found.__module__ == home else None


def mappings(node: Any, where: str = "") -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Every mapping in plain data, with its place.

    Args:
        node: Dictionaries, lists and plain values.
        where: The place of the node itself.
    """
    if isinstance(node, Mapping):
        yield where, node
        for key, value in node.items():
            yield from mappings(value, f"{where}.{key}" if where else str(key))
    elif isinstance(node, list | tuple):
        for place, value in enumerate(node):
            yield from mappings(value, f"{where}[{place}]")
