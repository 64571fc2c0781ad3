"""Parsing and validation of Hydra's overrides (``key=value``), before anything heavy is imported.

Overrides are checked against the composed configuration: each key and each group option must exist, each
value must have the type of the value that it replaces, and no mandatory value may be missing.

Hydra adds any ``+KEY=VALUE``, so that a misspelt key would have no effect, or fail once the model is fitted.
Here it is compared with the arguments of the class or function that its node builds (``_target_``), or, where
nothing is built, with the keys that exist, or that an interpolation (``${key}``) reads. The content of an
argument, such as the names in a mapping of weights, is free, as are Hydra's own settings.

Classes of other packages are imported for their arguments, as building them would; with ``trusted``, only
those of this package and of trusted modules.
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
from rehearsal_torch.methods.hydra_config import CONF, check_key, check_kind, entries, plain_value, trusted_in
from rehearsal_torch.user_error import UserError, did_you_mean

PACKAGE = "rehearsal_torch"
# Hydra's own keys of a node with a target.
HYDRA = ("_target_", "_partial_", "_recursive_", "_convert_", "_args_")
# A key in an interpolation, behind dots if it is relative.
_REFERENCE = re.compile(r"\$\{(\.*)(\w[\w.\[\]]*)\}")
# The arguments of an objective that no configuration sets.
GIVEN = ("surrogate", "case", "cases", "names", "contexts")


def refuse_unknown(overrides: Sequence[Override], config: DictConfig, before: DictConfig) -> None:
    """Raises a UserError for the first added key that nothing reads."""
    added = list(filter(_adds, overrides))
    if not added:
        return
    trusted = trusted_in(config)
    modules = None if trusted is None else [PACKAGE, *trusted]
    full, earlier = plain_value(config), plain_value(before)
    references = set(_references(full))
    for override in added:
        if override.key_or_group.split(".")[0] != "hydra":
            _refuse_unread(override.key_or_group, full, earlier, modules, references)


def _references(node: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The keys that interpolations read, and their parents."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from _references(value, (*path, str(name)))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _references(value, (*path, str(index)))
    elif isinstance(node, str):
        for dots, key in _REFERENCE.findall(node):
            parts = [*(path[: max(len(path) - len(dots), 0)] if dots else ()), *re.findall(r"\w+", key)]
            yield from (".".join(parts[: index + 1]) for index in range(len(parts)))


def _refuse_unread(
    key: str, node: Any, earlier: Any, modules: Sequence[str] | None, references: Collection[str]
) -> None:
    path, built = "", False
    for step in key.split("."):
        if not isinstance(node, Mapping):
            return
        earlier = earlier if isinstance(earlier, Mapping) else {}
        if path and "_target_" in node:
            built = True
            _check_arguments(path, node, [step], earlier, modules)
        elif not built and step not in earlier and f"{path}.{step}".lstrip(".") not in references:
            raise UserError(
                f"there is no key {f'{path}.{step}'.lstrip('.')!r}, and nothing would read it",
                remedy=did_you_mean(step, [str(name) for name in earlier]) or "See --help for all keys",
            )
        path, node, earlier = f"{path}.{step}".lstrip("."), node.get(step), earlier.get(step)
    for node_path, inner in mappings(node, path):
        if "_target_" in inner:
            _check_arguments(node_path, inner, [str(name) for name in inner], {}, modules)


def _check_arguments(
    path: str,
    node: Mapping[str, Any],
    keys: Sequence[str],
    earlier: Mapping[str, Any],
    modules: Sequence[str] | None,
) -> None:
    """Raises a UserError for a key that is no argument of a node's target, and none of Hydra's own."""
    target = node["_target_"]
    target_class = found_at(target) if modules is None else defined_in(target, modules)
    if target_class is None:
        return
    try:
        arguments = takes(target)
    except (TypeError, ValueError):  # a class without a signature
        return
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in arguments.values()):
        further_arguments = getattr(target_class, "further_arguments", None)
        if further_arguments is None:
            return
        names = further_arguments()
        arguments |= {name: Parameter(name, Parameter.KEYWORD_ONLY) for name in names}
    partial = bool(node.get("_partial_"))
    accepted = [name for name in arguments if name in earlier or not (partial and name in GIVEN)]
    for key in keys:
        if key not in accepted and key not in earlier and key not in HYDRA:
            name = target.rpartition(".")[2]
            raise UserError(
                f"there is no key {f'{path}.{key}'!r}: {name} takes no {key!r}",
                remedy=did_you_mean(key, accepted) or f"It takes {', '.join(accepted)}",
            )


# The largest length and nesting of an override, and number of jobs of a sweep.
LONGEST, DEEPEST, JOBS = 20_000, 20, 20_000
# The number of cached configurations.
KEPT = 64


def composed(
    overrides: Sequence[str], multirun: bool, extra: str | None = None, *, complete: bool = True
) -> tuple[DictConfig, list[list[str]]]:
    """The configuration of the first job, `complete` without ``???``, and each job's overrides."""
    if extra and not Path(extra).is_dir():
        raise UserError("there is no such folder", f"--config-dir {extra}", "Give a folder like conf")
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF.resolve()), version_base="1.3"):
        reader = _Composer(extra)
        parsed = [read_override(text) for text in overrides]
        for override in parsed:
            _check_form(override, multirun)
            _check_option(override, reader)
        groups = [override for override in parsed if reader.options(override.key_or_group)]
        values = [override for override in parsed if not reader.options(override.key_or_group)]
        choices = [single_overrides(override) for override in groups]
        _check_count(prod(map(len, choices)))
        for choice in product(*choices):
            plain = reader.compose([*choice])
            for override in values:
                if _lacks(plain, override) and any(
                    not _lacks(reader.compose([*alternative]), override) for alternative in product(*choices)
                ):
                    culprit = " ".join(
                        text for text, group in zip(choice, groups, strict=True) if group.is_sweep_override()
                    )
                    raise UserError(
                        f"there is no key {override.key_or_group!r} under {culprit}",
                        remedy=f"Leave {culprit} out, or sweep over it alone",
                    )
                _check_value(override, plain)
            if any(map(_adds, values)):
                typed = [read_override(text) for value in values for text in single_overrides(value)[:1]]
                added = reader.compose([*choice, *(str(value.input_line) for value in typed)])
                refuse_unknown(typed, added, plain)
        config = _with_values(reader, groups, values)
        if complete:
            _check_complete(config)
        swept = OmegaConf.select(config, "hydra.sweeper.params") if multirun else None
        from_sweeper = [read_override(f"{key}={value}") for key, value in (swept or {}).items()]
        return config, _jobs([*from_sweeper, *parsed])


def _with_values(reader: "_Composer", groups: Sequence[Override], values: Sequence[Override]) -> DictConfig:
    """The configuration of the first job. Plain values are set as Hydra does: composing again takes .3 s."""
    choice = [single_overrides(override)[0] for override in groups]
    if any(_adds(value) or value.is_delete() or value.is_sweep_override() for value in values):
        return reader.compose([*choice, *(single_overrides(override)[0] for override in values)])
    config = reader.compose(choice)
    with open_dict(config):
        for override in values:
            OmegaConf.update(config, override.key_or_group, override.value(), merge=True)
    return config


def deferred(overrides: Sequence[str], extra: str | None = None) -> list[str]:
    """The overrides of a sweep in the form for Hydra, which first composes the configuration without the
    swept ones. Keys that exist only under swept choices are missing there: their values become sweeps of one
    value, ``key=choice(value)``, which Hydra passes to every job.
    """
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF.resolve()), version_base="1.3"):
        reader = _Composer(extra)
        parsed = [read_override(text) for text in overrides]
        groups = [override for override in parsed if reader.options(override.key_or_group)]
        if not any(override.is_sweep_override() for override in groups):
            return list(overrides)
        first = reader.compose(
            [str(override.input_line) for override in groups if not override.is_sweep_override()]
        )
        return [
            text if override in groups or override.is_sweep_override() else _deferred(text, override, first)
            for text, override in zip(overrides, parsed, strict=True)
        ]


def _deferred(text: str, override: Override, first: DictConfig) -> str:
    """An override, as a sweep of one value if Hydra's first configuration lacks its key."""
    key = override.key_or_group
    if not _lacks(first, override):
        return text
    if override.is_delete():
        raise UserError(
            f"{text} deletes a key that exists only under swept choices",
            remedy=f"Write {key}=null, or give each choice a sweep of its own",
        )
    return f"{override.get_key_element()}=choice({override.get_value_element_as_str()})"


class _Composer:
    """A cache of Hydra's configurations and group options, for the package's own files.

    Hydra parses its files again in every call, two thirds of the time of a small fit; a copy takes a tenth.
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
    """An override as parsed by Hydra, unresolved."""
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


def _adds(override: Override) -> bool:
    return override.is_add() or override.is_force_add()


def _check_form(override: Override, multirun: bool) -> None:
    """Raises a UserError for a sweep without -m, and for Hydra's own folders, in which no report looks."""
    if override.is_sweep_override() and not multirun:
        raise UserError(
            f"{override.input_line} names several values",
            remedy="Add -m for a sweep, or put the value in quotes",
        )
    if override.key_or_group in ("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir"):
        raise UserError(
            f"{override.input_line} names a folder that the tables of a run do not look into",
            remedy="Write out=FOLDER: it is the folder of a run, and of a sweep",
        )


def _check_option(override: Override, reader: _Composer) -> None:
    """Raises a UserError if a group lacks the requested option."""
    group = override.key_or_group
    options = reader.options(group)
    if not options or override.is_delete():
        return
    if group == "experiment" and not _adds(override):
        raise UserError("experiments are added to the configuration", remedy=f"Write +{override.input_line}")
    if group != "experiment" and _adds(override):
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
    _check_count(len(values))
    return [f"{override.get_key_element()}={value}" for value in values]


def _check_count(count: int) -> None:
    if count > JOBS:
        raise UserError(
            f"expected a sweep of at most {JOBS} jobs; there are more",
            remedy="Sweep over fewer values, or in several sweeps",
        )


def _jobs(overrides: Iterable[Override]) -> list[list[str]]:
    """All combinations; a repeated key has its last values, at its first position."""
    values = {override.get_key_element(): single_overrides(override) for override in overrides}
    _check_count(prod(map(len, values.values())))
    return [list(job) for job in product(*values.values())]


def _lacks(config: DictConfig, override: Override) -> bool:
    """Whether an override needs a key that does not exist."""
    return not (_adds(override) or _exists(config, override.key_or_group))


def _check_value(override: Override, config: DictConfig) -> None:
    """Raises a UserError if a key does not exist, or its new value has another type than the old one."""
    key = override.key_or_group
    if not _exists(config, key):
        if not _adds(override):
            check_key(key, config)
        return
    if override.is_delete():
        return
    for text in single_overrides(override):
        check_kind(key, read_override(text).value(), config)


def _exists(config: DictConfig, key: str) -> bool:
    if key in entries(config):
        return True
    return key.startswith("hydra.") and OmegaConf.select(config, key.rpartition(".")[0]) is not None


def _check_complete(config: DictConfig) -> None:
    missing = sorted(key for key, value in entries(config).items() if value == "???")
    if missing:
        raise UserError(
            f"{' and '.join(missing)} must be given",
            remedy=f"Add {' '.join(f'{key}=...' for key in missing)}",
        )
