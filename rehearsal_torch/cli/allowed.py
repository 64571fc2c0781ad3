"""What a configuration may build.

What is typed on a command line, and what stands in configuration files that are named there, is built as it
is: a class of one's own is named like that. A folder that is resumed was perhaps written by somebody else.
What it names is built only where it is

    a class that this package defines as something of that group of the configuration, or
    something from a module that is trusted on this command line: ``trusted=[my_lab]``, or a class that a file
    in the folder of ``--config-dir`` names.

A class is judged by the object found, and where it is defined, not by how its dotted path begins: `Path`,
say, which some of our modules import, is none of ours.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.files.dotted import defined_in, found_at, mappings
from rehearsal_torch.files.plain import read_yaml

PACKAGE = "rehearsal_torch"
# The rooms, or modules, of the package from which a group of the configuration is built.
ROOMS = {
    "dataset": ("problems",),
    "surrogate": ("surrogates", "estimators", "mechanisms"),
    "objective": ("objectives",),
    "search": ("search",),
    "certificate": ("certificate",),
    "trainer": ("training.descent", "training.callbacks"),
}
_INSTRUCTIONS = ("_target_", "_partial_", "_convert_", "_recursive_")


def check_allowed(node: Any, group: str, trusted: Sequence[str]) -> None:
    """Whether everything that a node of a resumed configuration would build may be built.

    Args:
        node: Plain data, every reference resolved.
        group: The group of the configuration that it stands under.
        trusted: Modules and classes, as dotted paths, that are trusted on this command line.

    Raises:
        UserError: for the first thing that may not be built; nothing of the node has been built then.
    """
    for where, each in mappings(node, group):
        if not any(isinstance(key, str) and key.startswith("_") for key in each):
            continue
        odd = [
            key for key in each if isinstance(key, str) and key.startswith("_") and key not in _INSTRUCTIONS
        ]
        if odd:
            remedy = "Nothing was built. Resume only folders whose origin you know"
            raise UserError(f"a folder that is resumed may not say {odd[0]}", where, remedy)
        target = each.get("_target_")
        if "_target_" in each and not _named(target, trusted) and not _ours(target, group, each):
            home = str(target).partition(".")[0]
            what = f"the folder asks to build {target!r}, which is no {group} of {PACKAGE}; nothing was built"
            remedy = (
                "If it is a class of yours, name its module on this command line: "
                f"trusted=[{home if home.isidentifier() else 'my_lab'}]"
            )
            raise UserError(
                what, where, remedy if home != PACKAGE else "Resume only folders whose origin you know"
            )


def trusted_names(typed: object) -> list[str]:
    """What ``trusted=`` names.

    Raises:
        UserError: if it is no list of dotted names.
    """
    given: list[Any] = [] if typed is None else list(typed) if isinstance(typed, list | tuple) else [typed]
    names: list[str] = []
    for name in given:
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
            raise UserError(
                f"expected the names of modules, such as trusted=[my_lab]; got {typed}", "trusted"
            )
        names.append(name)
    return names


def trusted_modules(config: Mapping[str, Any]) -> list[str]:
    """The modules outside this package whose classes a run's own checkpoint may build.

    They are those that ``trusted=`` names, or, where the configuration was typed on this command line, those
    that its surrogate names.

    Args:
        config: The whole configuration, as plain data.
    """
    from rehearsal_torch.checkpoint import foreign_modules

    if config.get("trusted") is not None:
        return trusted_names(config["trusted"])
    surrogate = config.get("surrogate")
    return foreign_modules(surrogate) if isinstance(surrogate, Mapping) else []


def named_in(folder: str | Path) -> list[str]:
    """Every class that the configuration files in a folder, and in the groups below it, name.

    Raises:
        PlainFileError: if one of them cannot be read.
    """
    found: dict[str, None] = {}
    for path in sorted([*Path(folder).glob("*.yaml"), *Path(folder).glob("*/*.yaml")]):
        for _, each in mappings(read_yaml(path), ""):
            # A class of our own package needs no trust; naming one must not allow it in every group.
            if isinstance(each.get("_target_"), str) and not each["_target_"].startswith(f"{PACKAGE}."):
                found[each["_target_"]] = None
    return list(found)


def _named(target: Any, trusted: Sequence[str]) -> bool:
    """Whether a target was named itself, or is defined in a module that was."""
    if not isinstance(target, str):
        return False
    if target in trusted:
        return True
    homes = [name for name in trusted if target.startswith(f"{name}.")]
    found = found_at(target) if homes else None
    return found is not None and any(
        found.__module__ == name or found.__module__.startswith(f"{name}.") for name in homes
    )


def _ours(target: Any, group: str, node: Mapping[Any, Any]) -> bool:
    rooms = [f"{PACKAGE}.{room}" for room in ROOMS.get(group, ())]
    found = defined_in(target, rooms)
    if found is None:
        return False
    if not isinstance(found, type):
        # Makers of loggers are handed the training's own folder, and nothing else.
        return (
            group == "trainer"
            and found.__module__ == f"{PACKAGE}.training.callbacks"
            and set(node) == {"_target_", "_partial_"}
            and node["_partial_"] is True
        )
    return issubclass(found, _kinds(group))


@cache
def _kinds(group: str) -> tuple[type, ...]:
    """What a class of a group must be; any class of its rooms, where the room holds nothing else."""
    if group == "dataset":
        from rehearsal_torch.problems.problem import Problem

        return (Problem,)
    if group == "surrogate":
        from rehearsal_torch.data.part import Part
        from rehearsal_torch.surrogates.surrogate import Surrogate

        return (Part, Surrogate)
    if group == "trainer":
        from rehearsal_torch.training.descent import Descent

        return (Descent,)
    return (object,)
