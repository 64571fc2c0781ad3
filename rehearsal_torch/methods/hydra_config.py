"""Composition of the files of ``conf`` into one configuration, from names and Python values, without Hydra.

Hydra composes the same files for a command line. From Python, names choose a method, an experiment and
options of groups, and settings are values: no text is parsed, and Hydra's global instance is not touched. Of
Hydra's format, the part that ``conf`` uses is read:

    # @package KEY          where a file's keys go; _global_ for the top, its group without one
    defaults:
      - group: option       in config.yaml, in order
      - override /group: option     of decision and experiment; the experiment's counts before the decision's
      - base, base@key      another option of the group, and one that becomes the value of a key

``tests/methods/test_hydra_config.py`` compares the two for every method and every experiment.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rehearsal_torch.files.bounded_yaml import read_yaml
from rehearsal_torch.files.dotted_path import mappings
from rehearsal_torch.files.package_paths import conf_folder
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.user_error import UserError, did_you_mean

CONF = conf_folder()
AT = "# @package "
# A config node's type, and the kind of value that may replace it.
KINDS: tuple[tuple[type, str], ...] = (
    (DictConfig, "a mapping"),
    (ListConfig, "a list"),
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number"),
    (str, "a string"),
)
# Numbers in whose place a list of numbers may stand.
SEVERAL = ("trainer.devices",)


def options(group: str) -> list[str]:
    """The options of a group, in alphabetical order; empty if it is not a group."""
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def composed(experiment: str | None = None, **chosen: str) -> DictConfig:
    """A new configuration of an experiment, with options of some groups, such as ``decision="cme"``."""
    return OmegaConf.create(deepcopy(_compose(experiment, tuple(sorted(chosen.items())))))


@cache
def _compose(experiment: str | None, choices: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    root = _copy_of("config")
    defaults = [entry for entry in root.pop("defaults") if isinstance(entry, Mapping)]
    groups = {name.removeprefix("optional "): option for entry in defaults for name, option in entry.items()}
    of_experiment = {} if experiment is None else _overrides("experiment", experiment)
    decision = {**groups, **of_experiment, **dict(choices)}["decision"]
    groups |= _overrides("decision", decision) | of_experiment | dict(choices)
    del groups["hydra"]
    config: dict[str, Any] = {}
    for group, option in groups.items():
        if option == "${objective}":
            option = groups["objective"]
            if option not in options(group):
                continue
        config = _merge(config, _at_package(group, option))
    config = _merge(config, root)
    if experiment is not None:
        config = _merge(config, _at_package("experiment", experiment))
    config.pop("hydra", None)
    return config


def _overrides(group: str, option: str) -> dict[str, str]:
    """The options of other groups that a decision or an experiment overrides."""
    entries = _copy_of(f"{group}/{option}").get("defaults", [])
    return {name.removeprefix("override /"): choice for entry in entries for name, choice in entry.items()}


def node(group: str, option: str) -> dict[str, Any]:
    """The keys of an option's file, with those of its bases."""
    content = _copy_of(f"{group}/{option}")
    merged: dict[str, Any] = {}
    for base in [*content.pop("defaults", []), "_self_"]:
        if base == "_self_":
            merged, content = _merge(merged, content), {}
        elif isinstance(base, str):
            name, _, key = base.partition("@")
            merged = _merge(merged, {key: node(group, name)} if key else node(group, name))
    return merged


def _at_package(group: str, option: str) -> dict[str, Any]:
    """An option's keys at the package that its file declares."""
    first_line = (CONF / group / f"{option}.yaml").read_text(encoding="utf-8").partition("\n")[0]
    package = first_line.removeprefix(AT).strip() if first_line.startswith(AT) else group
    content: dict[str, Any] = node(group, option)
    for key in [] if package == "_global_" else reversed(package.split(".")):
        content = {key: content}
    return content


def _copy_of(name: str) -> dict[str, Any]:
    """A copy of the content of a file of ``conf``."""
    return deepcopy(_read(CONF / f"{name}.yaml"))


@cache
def _read(path: Path) -> dict[str, Any]:
    content = read_yaml(path)
    return dict(content) if isinstance(content, Mapping) else {}


def _merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """The lower mapping with the values of the upper; mappings are merged key by key."""
    merged = dict(lower)
    for key, value in upper.items():
        current = merged.get(key)
        if isinstance(current, Mapping) and isinstance(value, Mapping):
            value = _merge(current, value)
        merged[key] = value
    return merged


def with_settings(config: DictConfig, settings: Mapping[str, object]) -> DictConfig:
    """Sets dotted keys in place; UserError if a key does not exist, or a value has another type."""
    for key, value in settings.items():
        check_key(key, config)
        content = _to_plain(value, key)
        check_kind(key, content, config)
        OmegaConf.update(config, key, content, merge=isinstance(content, dict))
    return config


def _to_plain(value: object, key: str) -> Any:
    """A setting's value as plain data."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _to_plain(item, key) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [_to_plain(item, key) for item in value]
    raise UserError(
        "expected a number, a string, true or false, None, or lists and mappings of these; got a "
        f"{type(value).__name__}",
        key,
    )


def plain(config: DictConfig) -> dict[str, Any]:
    """The configuration as plain data, every reference resolved, without Hydra's own node."""
    without_hydra = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    content = OmegaConf.to_container(without_hydra, resolve=True)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


def entries(config: DictConfig) -> dict[str, Any]:
    """Dotted key to value, references unresolved, without Hydra's own settings."""
    values: dict[str, Any] = {}

    def walk(mapping: Mapping[Any, Any], prefix: str) -> None:
        for name, value in mapping.items():
            values[f"{prefix}{name}"] = value
            if isinstance(value, dict):
                walk(value, f"{prefix}{name}.")

    content = OmegaConf.to_container(config, resolve=False)
    assert isinstance(content, dict)
    walk({name: value for name, value in content.items() if name != "hydra"}, "")
    return values


def check_key(key: str, config: DictConfig) -> None:
    """Raises a UserError, with suggestions, for a key that does not exist."""
    values = entries(config)
    if key in values:
        return
    leaf = key.rpartition(".")[2]
    candidates = [name for name in values if not name.rpartition(".")[2].startswith("_")]
    same = [name for name in candidates if name.rpartition(".")[2] == leaf]
    remedy = f"Did you mean {' or '.join(same[:3])}?" if same else did_you_mean(key, candidates)
    raise UserError(f"there is no key {key!r}", remedy=remedy or "See --help for all keys")


def check_kind(key: str, new: Any, config: DictConfig) -> None:
    """Raises a UserError for a value of another type than the one that it replaces."""
    try:
        old = OmegaConf.select(config, key)
    except OmegaConfBaseException:
        return
    if old is None or new is None or (isinstance(new, str) and "${" in new):
        return
    truth = isinstance(new, bool)
    fits = {
        "a mapping": isinstance(new, dict),
        "a list": isinstance(new, list),
        "true or false": truth,
        "a whole number": (isinstance(new, int) and not truth) or (key in SEVERAL and isinstance(new, list)),
        "a number": isinstance(new, int | float) and not truth,
        "a string": not isinstance(new, list | dict),
    }
    expected = next((words for kind, words in KINDS if isinstance(old, kind)), "")
    if expected and not fits[expected]:
        raise UserError(f"expected {expected}, such as {_abbreviated(old)}; got {_abbreviated(new)}", key)


def _abbreviated(value: Any) -> str:
    plain = plain_value(value)
    text = str(plain).lower() if isinstance(plain, bool) else str(getattr(plain, "text", plain))
    return text if len(text) < 60 else beginning(text, 57) + "..."


PACKAGE = "rehearsal_torch"


def plain_value(node: Any, *, resolve: bool = False) -> Any:
    """A node of the configuration as plain data; other values unchanged."""
    return OmegaConf.to_container(node, resolve=resolve) if OmegaConf.is_config(node) else node


def trusted_in(config: DictConfig) -> list[str] | None:
    """The modules and classes that a resumed configuration trusts; None for one that was typed."""
    trusted = config.get("trusted")
    return None if trusted is None else trusted_names(plain_value(trusted))


def trusted_names(typed: object) -> list[str]:
    """The modules and classes in ``trusted=``; UserError if it is not a list of dotted names."""
    names: list[Any] = [] if typed is None else list(typed) if isinstance(typed, list | tuple) else [typed]
    for name in names:
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
            fault = f"expected the names of modules, such as trusted=[my_lab]; got {typed}"
            raise UserError(fault, "trusted")
    return names


def named_in(folder: str | Path) -> list[str]:
    """Every class named by the configuration files in a folder and in the groups below it."""
    files = sorted([*Path(folder).glob("*.yaml"), *Path(folder).glob("*/*.yaml")])
    targets = [node.get("_target_") for path in files for _, node in mappings(read_yaml(path), "")]
    # Naming a class of this package must not allow it in every group.
    foreign = [name for name in targets if isinstance(name, str) and not name.startswith(f"{PACKAGE}.")]
    return list(dict.fromkeys(foreign))
