"""Keys that are added with a plus: refused where nothing takes them.

Hydra adds ``+KEY=VALUE`` to a configuration whatever it is. A key that is misspelt was then read by nobody,
or ended, once the data had been read and the model fitted, as an unknown argument of a class. Here it is
compared with the arguments of the class or function that its node builds (``_target_``), or, where nothing is
built, with the keys that are there, or that an interpolation (``${key}``) reads. What lies inside an
argument, such as the names in a mapping of weights, is free, as are Hydra's own settings. A run that is
resumed goes on with what it was started with.

Classes of other packages are imported to learn what they take, as building them would; with ``trusted``,
only those of this package and of modules that are trusted.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from inspect import Parameter
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from rehearsal_torch.cli.allowed import trusted_names
from rehearsal_torch.cli.errors import UserError, did_you_mean
from rehearsal_torch.cli.options.argument_docs import takes
from rehearsal_torch.files.dotted import defined_in, found_at, mappings

PACKAGE = "rehearsal_torch"
# What whoever decides gives to an objective.
# What Hydra reads of a node with a target.
HYDRA = ("_target_", "_partial_", "_recursive_", "_convert_", "_args_")
# A key in an interpolation, behind dots if it is relative.
_READ = re.compile(r"\$\{(\.*)(\w[\w.\[\]]*)\}")
GIVEN = ("surrogate", "case", "cases", "names", "contexts")


def refuse_unknown(overrides: Sequence[Override], config: DictConfig, before: DictConfig) -> None:
    """Refuses the first key that is added and that nothing takes.

    Args:
        overrides: The overrides of one job.
        config: The configuration composed with them.
        before: The configuration composed with the choices of groups alone.

    Raises:
        UserError: with what may be meant.
    """
    added = [each for each in overrides if each.is_add() or each.is_force_add()]
    if not added:
        return
    trusted = config.get("trusted")
    rooms = None
    if trusted is not None:
        listed = OmegaConf.to_container(trusted) if OmegaConf.is_config(trusted) else trusted
        rooms = [PACKAGE, *trusted_names(listed)]
    whole, own = _plain(config), _plain(before)
    read = set(_read(whole))
    for override in added:
        if override.key_or_group.split(".")[0] != "hydra":
            _refuse(override.key_or_group, whole, own, rooms, read)


def _read(node: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The keys that interpolations read, and those above them."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from _read(value, (*path, str(name)))
    elif isinstance(node, list):
        for place, value in enumerate(node):
            yield from _read(value, (*path, str(place)))
    elif isinstance(node, str):
        for dots, key in _READ.findall(node):
            steps = [*(path[: max(len(path) - len(dots), 0)] if dots else ()), *re.findall(r"\w+", key)]
            yield from (".".join(steps[: place + 1]) for place in range(len(steps)))


def _refuse(key: str, whole: Any, own: Any, rooms: Sequence[str] | None, read: Collection[str]) -> None:
    path, built = "", False
    for step in key.split("."):
        if not isinstance(whole, Mapping):
            return
        own = own if isinstance(own, Mapping) else {}
        if path and "_target_" in whole:
            built = True
            _check(path, whole, [step], own, rooms)
        elif not built and step not in own and f"{path}.{step}".lstrip(".") not in read:
            raise UserError(
                f"there is no key {f'{path}.{step}'.lstrip('.')!r}, and nothing would read it",
                remedy=did_you_mean(step, [str(name) for name in own]) or "See --help for all keys",
            )
        path, whole, own = f"{path}.{step}".lstrip("."), whole.get(step), own.get(step)
    for where, node in mappings(whole, path):
        if "_target_" in node:
            _check(where, node, [str(name) for name in node], {}, rooms)


def _check(
    path: str,
    node: Mapping[str, Any],
    keys: Sequence[str],
    own: Mapping[str, Any],
    rooms: Sequence[str] | None,
) -> None:
    """Refuses a key that is no argument of what a node builds, and none of Hydra's own."""
    target = node["_target_"]
    found = found_at(target) if rooms is None else defined_in(target, rooms)
    if found is None:
        return
    try:
        arguments = takes(target)
    except (TypeError, ValueError):  # of a class that Python knows no arguments of
        return
    if any(each.kind is Parameter.VAR_KEYWORD for each in arguments.values()):
        return
    partly = bool(node.get("_partial_"))
    known = [name for name in arguments if name in own or not (partly and name in GIVEN)]
    for key in keys:
        if key not in known and key not in own and key not in HYDRA:
            name = target.rpartition(".")[2]
            raise UserError(
                f"there is no key {f'{path}.{key}'!r}: {name} takes no {key!r}",
                remedy=did_you_mean(key, known) or f"It takes {', '.join(known)}",
            )


def _plain(config: DictConfig) -> Any:
    return OmegaConf.to_container(config, resolve=False)
