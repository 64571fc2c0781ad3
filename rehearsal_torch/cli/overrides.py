"""Parsing and checking of overrides, before anything heavy is imported.

Overrides are checked against the composed configuration: each key and each group option must exist, each
value must have the type of the value that it replaces, and no mandatory value may be missing. The
configuration's own values are the schema.

Hydra adds ``+KEY=VALUE`` to a configuration whatever it is: a misspelt key would be read by nobody, or end,
once the data are read and the model is fitted, as an unknown argument of a class. Here it is compared with
the arguments of the class or function that its node builds (``_target_``), or, where nothing is built, with
the keys that are there, or that an interpolation (``${key}``) reads. What lies inside an argument, such as
the names in a mapping of weights, is free, as are Hydra's own settings. A run that is resumed goes on with
what it was started with.

Classes of other packages are imported to learn what they take, as building them would; with ``trusted``,
only those of this package and of modules that are trusted.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from inspect import Parameter
from itertools import accumulate, islice, product
from math import prod
from pathlib import Path
from typing import Any, ClassVar

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from rehearsal_torch.files.dotted_path import defined_in, found_at, mappings
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.methods.argument_descriptions import takes
from rehearsal_torch.methods.hydra_config import CONF, check_key, check_kind, entries, trusted_names
from rehearsal_torch.user_error import UserError, did_you_mean

PACKAGE = "rehearsal_torch"
# What Hydra reads of a node with a target.
HYDRA = ("_target_", "_partial_", "_recursive_", "_convert_", "_args_")
# A key in an interpolation, behind dots if it is relative.
_READ = re.compile(r"\$\{(\.*)(\w[\w.\[\]]*)\}")
# What whoever decides gives to an objective.
GIVEN = ("surrogate", "case", "cases", "names", "contexts")


def refuse_unknown(overrides: Sequence[Override], config: DictConfig, before: DictConfig) -> None:
    """Refuses the first key that is added and that nothing takes."""
    added = [override for override in overrides if override.is_add() or override.is_force_add()]
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
        further_arguments = getattr(found, "further_arguments", None)
        if further_arguments is None:
            return
        further = further_arguments()
        arguments |= {name: Parameter(name, Parameter.KEYWORD_ONLY) for name in further}
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


LONGEST, DEEPEST, JOBS = 20_000, 20, 20_000
# How many configurations are kept.
KEPT = 64


def composed(
    overrides: Sequence[str],
    multirun: bool,
    extra: str | None = None,
    *,
    complete: bool = True,
) -> tuple[DictConfig, list[list[str]]]:
    """The configuration of the first job, with Hydra's own node, and each job's overrides in Hydra's order.
    With `complete`, a value that must be given (``???``) is refused where it is missing.
    """
    if extra and not Path(extra).is_dir():
        raise UserError("there is no such folder", f"--config-dir {extra}", "Give a folder like conf")
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF.resolve()), version_base="1.3"):
        read = _Reader(extra)
        parsed = [read_override(text) for text in overrides]
        for override in parsed:
            _whole_or_swept(override, multirun)
            _no_folder_of_hydra(override)
            _option(override, read)
        groups = [override for override in parsed if read.options(override.key_or_group)]
        values = [override for override in parsed if not read.options(override.key_or_group)]
        choices = [single_overrides(override) for override in groups]
        _few(prod(map(len, choices)))
        for choice in product(*choices):
            plain = read.compose([*choice])
            for override in values:
                if _lacks(plain, override) and any(
                    not _lacks(read.compose([*other]), override) for other in product(*choices)
                ):
                    under = " ".join(
                        text for text, group in zip(choice, groups, strict=True) if group.is_sweep_override()
                    )
                    raise UserError(
                        f"there is no key {override.key_or_group!r} under {under}",
                        remedy=f"Leave {under} out, or sweep over it alone",
                    )
                _value(override, plain)
            if any(override.is_add() or override.is_force_add() for override in values):
                typed = [read_override(text) for each in values for text in single_overrides(each)[:1]]
                refuse_unknown(
                    typed, read.compose([*choice, *(str(each.input_line) for each in typed)]), plain
                )
        config = _with_values(read, groups, values)
        if complete:
            _nothing_missing(config)
        swept = (
            [
                read_override(f"{key}={value}")
                for key, value in (OmegaConf.select(config, "hydra.sweeper.params") or {}).items()
            ]
            if multirun
            else []
        )
        return config, _jobs([*swept, *parsed])


def _with_values(read: "_Reader", groups: Sequence[Override], values: Sequence[Override]) -> DictConfig:
    """The configuration of the first of the options and values of each override.

    Plain values are put into what the options compose, as Hydra does: composing again takes .3 s.
    """
    chosen = [single_overrides(override)[0] for override in groups]
    plain = not any(
        override.is_add() or override.is_force_add() or override.is_delete() or override.is_sweep_override()
        for override in values
    )
    if not plain:
        return read.compose([*chosen, *(single_overrides(override)[0] for override in values)])
    config = read.compose(chosen)
    with open_dict(config):
        for override in values:
            OmegaConf.update(config, override.key_or_group, override.value(), merge=True)
    return config


def deferred(overrides: Sequence[str], extra: str | None = None) -> list[str]:
    """The overrides of a sweep in the form in which they are passed to Hydra.

    Before any job, Hydra composes the configuration without the swept overrides. Keys that exist only under
    swept choices are missing there: their values become sweeps of one value, ``key=choice(value)``, which
    Hydra leaves out of that configuration and passes to every job.
    """
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF.resolve()), version_base="1.3"):
        read = _Reader(extra)
        parsed = [read_override(text) for text in overrides]
        groups = [override for override in parsed if read.options(override.key_or_group)]
        if not any(override.is_sweep_override() for override in groups):
            return list(overrides)
        first = read.compose(
            [str(override.input_line) for override in groups if not override.is_sweep_override()]
        )
        return [
            text if override in groups or override.is_sweep_override() else _deferred(text, override, first)
            for text, override in zip(overrides, parsed, strict=True)
        ]


def _deferred(text: str, override: Override, first: DictConfig) -> str:
    """An override of a value, as a sweep of one value if Hydra's first configuration lacks the key."""
    key = override.key_or_group
    if not _lacks(first, override):
        return text
    if override.is_delete():
        raise UserError(
            f"{text} deletes a key that exists only under swept choices",
            remedy=f"Write {key}=null, or give each choice a sweep of its own",
        )
    return f"{override.get_key_element()}=choice({override.get_value_element_as_str()})"


class _Reader:
    """Composes configurations and lists group options with Hydra, each once in a process.

    Hydra parses its files again in every call, two thirds of the time of a small fit; a copy of what it
    composed takes a tenth of that. Only the package's own files are taken not to change meanwhile.
    """

    _composed: ClassVar[dict[tuple[str, ...], DictConfig]] = {}
    _groups: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, extra: str | None) -> None:
        self.extra = [f"hydra.searchpath=['file://{Path(extra).resolve()}']"] if extra else []
        self.composed = {} if extra else self._composed
        self.groups = {} if extra else self._groups

    def options(self, group: str) -> list[str]:
        """The options of a group; empty if it is not a group."""
        if group not in self.groups:
            loader = GlobalHydra.instance().config_loader()
            self.groups[group] = list(
                loader.get_group_options(group, config_name="config", overrides=self.extra)
            )
        return self.groups[group]

    def compose(self, overrides: Sequence[str]) -> DictConfig:
        """The configuration, with Hydra's own node."""
        typed = tuple(overrides)
        if typed not in self.composed:
            if len(self.composed) >= KEPT:
                self.composed.clear()
            try:
                self.composed[typed] = compose("config", [*typed, *self.extra], return_hydra_config=True)
            except (HydraException, OmegaConfBaseException) as error:
                raise UserError(
                    " ".join(str(error).split("Config search path")[0].split()).rstrip(".")
                ) from error
        return deepcopy(self.composed[typed])


def read_override(text: str) -> Override:
    """An override as parsed by Hydra; nothing is resolved."""
    if len(text) > LONGEST:
        raise UserError(
            f"expected at most {LONGEST} characters in an override; {beginning(text, 40)}... has {len(text)}"
        )
    depth = max(accumulate((char in "[{(") - (char in "]})") for char in text), default=0)
    if depth > DEEPEST:
        raise UserError(
            f"expected at most {DEEPEST} levels of nesting in an override; "
            f"{beginning(text, 40)}... has {depth}"
        )
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException as error:
        remedy = (
            f"Write {text}=VALUE"
            if "=" not in text
            else "Put strings with blanks or commas in quotes: \"key='a, b'\""
        )
        raise UserError(f"cannot read {text!r}", remedy=remedy) from error


def _whole_or_swept(override: Override, multirun: bool) -> None:
    if override.is_sweep_override() and not multirun:
        raise UserError(
            f"{override.input_line} names several values",
            remedy="Add -m for a sweep, or put the value in quotes",
        )


def _no_folder_of_hydra(override: Override) -> None:
    """Refuses Hydra's own folders, which a run would write to and nothing else would find."""
    if override.key_or_group in ("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir"):
        raise UserError(
            f"{override.input_line} names a folder that the tables of a run do not look into",
            remedy="Write out=FOLDER: it is the folder of a run, and of a sweep",
        )


def _option(override: Override, read: _Reader) -> None:
    """Checks that a group has the requested option."""
    group = override.key_or_group
    options = read.options(group)
    if not options or override.is_delete():
        return
    appended = override.is_add() or override.is_force_add()
    if group == "experiment" and not appended:
        raise UserError("experiments are added to the configuration", remedy=f"Write +{override.input_line}")
    if group != "experiment" and appended:
        raise UserError(
            f"{group} is part of the configuration already",
            remedy=f"Leave the plus out: {str(override.input_line).lstrip('+')}",
        )
    for text in single_overrides(override):
        option = str(read_override(text).value())
        if option not in options:
            raise UserError(
                f"there is no {group} called {option!r}",
                remedy=did_you_mean(option, options) or f"See the folder conf/{group}",
            )


def single_overrides(override: Override) -> list[str]:
    """An override without sweeps, one for each of its values."""
    if not override.is_sweep_override():
        return [str(override.input_line)]
    if not override.is_discrete_sweep():
        raise UserError(
            f"cannot sweep over {override.input_line}",
            remedy="Write a choice, such as seed=0,1,2, or a range, such as 'seed=range(3)'",
        )
    values = list(islice(override.sweep_string_iterator(), JOBS + 1))
    _few(len(values))
    return [f"{override.get_key_element()}={value}" for value in values]


def _few(count: int) -> None:
    if count > JOBS:
        raise UserError(
            f"expected a sweep of at most {JOBS} jobs; there are more",
            remedy="Sweep over fewer values, or in several sweeps",
        )


def _jobs(overrides: Iterable[Override]) -> list[list[str]]:
    """All combinations; a repeated key has its last values, at its first position."""
    values = {override.get_key_element(): single_overrides(override) for override in overrides}
    _few(prod(map(len, values.values())))
    return [list(job) for job in product(*values.values())]


def _lacks(config: DictConfig, override: Override) -> bool:
    """Whether an override needs a key that does not exist."""
    return not (override.is_add() or override.is_force_add() or _known(config, override.key_or_group))


def _value(override: Override, config: DictConfig) -> None:
    """Checks that a key exists, and that its new value has the type of the old one."""
    key = override.key_or_group
    if not _known(config, key):
        if not (override.is_add() or override.is_force_add()):
            check_key(key, config)
        return
    if override.is_delete():
        return
    for text in single_overrides(override):
        check_kind(key, read_override(text).value(), config)


def _known(config: DictConfig, key: str) -> bool:
    if key in entries(config):
        return True
    return key.startswith("hydra.") and OmegaConf.select(config, key.rpartition(".")[0]) is not None


def _nothing_missing(config: DictConfig) -> None:
    missing = sorted(key for key, value in entries(config).items() if value == "???")
    if missing:
        raise UserError(
            f"{' and '.join(missing)} must be given",
            remedy=f"Add {' '.join(f'{key}=...' for key in missing)}",
        )
