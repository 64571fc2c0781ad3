"""Whose classes a command line trusts: those that ``trusted=`` names, and those of ``--config-dir``."""

from pathlib import Path
from typing import Any

from rehearsal_torch.files.dotted import mappings
from rehearsal_torch.files.plain import read_yaml
from rehearsal_torch.user_error import UserError

PACKAGE = "rehearsal_torch"


def trusted_names(typed: object) -> list[str]:
    """The names in ``trusted=``.

    Raises:
        UserError: if it is not a list of dotted names.
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


def named_in(folder: str | Path) -> list[str]:
    """Every class named by the configuration files in a folder and in the groups below it.

    Raises:
        PlainFileError: if one of them cannot be read.
    """
    found: dict[str, None] = {}
    for path in sorted([*Path(folder).glob("*.yaml"), *Path(folder).glob("*/*.yaml")]):
        for _, each in mappings(read_yaml(path), ""):
            # Classes of this package need no trust; naming one must not allow it in every group.
            if isinstance(each.get("_target_"), str) and not each["_target_"].startswith(f"{PACKAGE}."):
                found[each["_target_"]] = None
    return list(found)
