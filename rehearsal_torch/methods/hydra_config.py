"""The files of ``conf`` composed into one configuration, from names and Python values.

Hydra composes the same files for a command line. From Python nothing is typed: a method, an experiment and
the options of groups are names, and settings are values, so that nothing is put into words of a grammar and
read again, and Hydra's global instance is not touched. What is read of Hydra's format is what ``conf`` uses:

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
    """The configuration of an experiment, the name of a file in ``conf/experiment``, with other options of
    some groups, such as ``decision="cme"``; a new one at every call.
    """
    return OmegaConf.create(deepcopy(_composed(experiment, tuple(sorted(chosen.items())))))


@cache
def _composed(experiment: str | None, chosen: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    whole = _file("config")
    defaults = [entry for entry in whole.pop("defaults") if isinstance(entry, Mapping)]
    groups = {name.removeprefix("optional "): option for entry in defaults for name, option in entry.items()}
    of_experiment = {} if experiment is None else _overridden("experiment", experiment)
    decision = {**groups, **of_experiment, **dict(chosen)}["decision"]
    groups |= _overridden("decision", decision) | of_experiment | dict(chosen)
    del groups["hydra"]
    config: dict[str, Any] = {}
    for group, option in groups.items():
        if option == "${objective}":
            option = groups["objective"]
            if option not in options(group):
                continue
        config = _merged(config, _placed(group, option))
    config = _merged(config, whole)
    if experiment is not None:
        config = _merged(config, _placed("experiment", experiment))
    config.pop("hydra", None)
    return config


def _overridden(group: str, option: str) -> dict[str, str]:
    """The options of other groups that a decision or an experiment overrides."""
    entries = _file(f"{group}/{option}").get("defaults", [])
    return {name.removeprefix("override /"): other for entry in entries for name, other in entry.items()}


def node(group: str, option: str) -> dict[str, Any]:
    """The keys of an option's file, with those of its bases."""
    content = _file(f"{group}/{option}")
    merged: dict[str, Any] = {}
    for base in [*content.pop("defaults", []), "_self_"]:
        if base == "_self_":
            merged, content = _merged(merged, content), {}
        elif isinstance(base, str):
            name, _, key = base.partition("@")
            merged = _merged(merged, {key: node(group, name)} if key else node(group, name))
    return merged


def _placed(group: str, option: str) -> dict[str, Any]:
    """An option's keys, where its file says that they go."""
    first = (CONF / group / f"{option}.yaml").read_text(encoding="utf-8").partition("\n")[0]
    package = first.removeprefix(AT).strip() if first.startswith(AT) else group
    content: dict[str, Any] = node(group, option)
    for key in [] if package == "_global_" else reversed(package.split(".")):
        content = {key: content}
    return content


def _file(name: str) -> dict[str, Any]:
    """The content of a file of ``conf``; a copy."""
    return deepcopy(_read(CONF / f"{name}.yaml"))


@cache
def _read(path: Path) -> dict[str, Any]:
    content = read_yaml(path)
    return dict(content) if isinstance(content, Mapping) else {}


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The first mapping with the values of the second; mappings are merged key by key."""
    whole = dict(first)
    for key, value in second.items():
        known = whole.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            value = _merged(known, value)
        whole[key] = value
    return whole


def with_settings(config: DictConfig, settings: Mapping[str, object]) -> DictConfig:
    """The configuration with other values of some of its keys (dotted), changed in place.

    Raises:
        UserError: if a key does not exist, or a value has another type than the one that it replaces.
    """
    for key, value in settings.items():
        check_key(key, config)
        plain = _plain(value, key)
        check_kind(key, plain, config)
        OmegaConf.update(config, key, plain, merge=isinstance(plain, dict))
    return config


def _plain(value: object, key: str) -> Any:
    """A setting's value as plain data."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item, key) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [_plain(item, key) for item in value]
    raise UserError(
        "expected a number, a string, true or false, None, or lists and mappings of these; got a "
        f"{type(value).__name__}",
        key,
    )


def plain(config: DictConfig) -> dict[str, Any]:
    """The configuration as plain data, every reference resolved, without Hydra's own node."""
    own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    content = OmegaConf.to_container(own, resolve=True)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


def entries(config: DictConfig) -> dict[str, Any]:
    """Dotted key to value, references unresolved, without Hydra's own settings."""
    found: dict[str, Any] = {}

    def walk(inner: Mapping[Any, Any], prefix: str) -> None:
        for name, value in inner.items():
            found[f"{prefix}{name}"] = value
            if isinstance(value, dict):
                walk(value, f"{prefix}{name}.")

    whole = OmegaConf.to_container(config, resolve=False)
    assert isinstance(whole, dict)
    walk({name: value for name, value in whole.items() if name != "hydra"}, "")
    return found


def check_key(key: str, config: DictConfig) -> None:
    """Refuses a key that does not exist, with what may be meant."""
    known = entries(config)
    if key in known:
        return
    leaf = key.rpartition(".")[2]
    keys = [name for name in known if not name.rpartition(".")[2].startswith("_")]
    same = [name for name in keys if name.rpartition(".")[2] == leaf]
    remedy = f"Did you mean {' or '.join(same[:3])}?" if same else did_you_mean(key, keys)
    raise UserError(f"there is no key {key!r}", remedy=remedy or "See --help for all keys")


def check_kind(key: str, new: Any, config: DictConfig) -> None:
    """Refuses a value of another type than the one that it replaces."""
    try:
        old = OmegaConf.select(config, key)
    except OmegaConfBaseException:
        return
    if old is None or new is None or (isinstance(new, str) and "${" in new):
        return
    truth = isinstance(new, bool)
    right = {
        "a mapping": isinstance(new, dict),
        "a list": isinstance(new, list),
        "true or false": truth,
        "a whole number": (isinstance(new, int) and not truth) or (key in SEVERAL and isinstance(new, list)),
        "a number": isinstance(new, int | float) and not truth,
        "a string": not isinstance(new, list | dict),
    }
    wanted = next((words for kind, words in KINDS if isinstance(old, kind)), "")
    if wanted and not right[wanted]:
        raise UserError(f"expected {wanted}, such as {_shown(old)}; got {_shown(new)}", key)


def _shown(value: Any) -> str:
    plain = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
    text = str(plain).lower() if isinstance(plain, bool) else str(getattr(plain, "text", plain))
    return text if len(text) < 60 else beginning(text, 57) + "..."


PACKAGE = "rehearsal_torch"


def trusted_names(typed: object) -> list[str]:
    """The names in ``trusted=``: whose classes a command line trusts.

    Raises:
        UserError: if it is not a list of dotted names.
    """
    names: list[Any] = [] if typed is None else list(typed) if isinstance(typed, list | tuple) else [typed]
    for name in names:
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
            what = f"expected the names of modules, such as trusted=[my_lab]; got {typed}"
            raise UserError(what, "trusted")
    return names


def named_in(folder: str | Path) -> list[str]:
    """Every class named by the configuration files in a folder and in the groups below it."""
    files = sorted([*Path(folder).glob("*.yaml"), *Path(folder).glob("*/*.yaml")])
    targets = [node.get("_target_") for path in files for _, node in mappings(read_yaml(path), "")]
    # Classes of this package need no trust; naming one must not allow it in every group.
    named = [name for name in targets if isinstance(name, str) and not name.startswith(f"{PACKAGE}.")]
    return list(dict.fromkeys(named))
