"""The allow list of classes that the configuration of a resumed folder may build.

A configuration given on the command line, or in files named there, is built as it is, user-defined classes
included. A resumed folder may have been written by somebody else: a target in it is built only if it is

    a class that this package defines for that group of the configuration, the function that makes the
    reward of a task of episodes from plain data, or a logger as it stands in ``conf/logger``, or
    a target of a module that is trusted on this command line (``trusted=[my_lab]``), or one that a file in
    the folder of ``--config-dir`` names.

The module that defines the object decides, not the prefix of its dotted path: `Path`, for example, which some
of our modules import, is not a class of this package.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from rehearsal_torch.checkpoint import foreign_modules
from rehearsal_torch.data.trainable_part import Part
from rehearsal_torch.files.bounded_yaml import read_yaml
from rehearsal_torch.files.dotted_path import defined_in, found_at, mappings
from rehearsal_torch.files.package_paths import conf_folder
from rehearsal_torch.methods.hydra_config import PACKAGE, trusted_names
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.problems.trials.mixture_noise import ModalNoise
from rehearsal_torch.problems.world_size import Rounds, SampleSize
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.user_error import UserError

# The rooms, or modules, of the package from which a group of the configuration is built.
ROOMS = {
    "dataset": ("problems",),
    "surrogate": ("surrogates", "estimators", "mechanisms"),
    "objective": ("objectives",),
    "search": ("search",),
    "certificate": ("certificate",),
    "trainer": ("training.gradient_descent",),
}
# The settings of a logger that may differ from ``conf/logger``; with the others, it writes only below the
# training's own folder.
_LOGGER_NAMES = ("project", "experiment_name")
# The functions among the targets of ``conf``, by their groups; each makes an object from plain data alone.
_FUNCTIONS = {"objective": (f"{PACKAGE}.objectives.task_reward.episode_reward",)}
_INSTRUCTIONS = ("_target_", "_partial_", "_convert_", "_recursive_")


def check_allowed(node: Any, group: str, trusted: Sequence[str]) -> None:
    """Raises a UserError for the first target in a resumed configuration's node that may not be built."""
    for where, part in mappings(node, group):
        for key in part:
            if isinstance(key, str) and key.startswith("_") and key not in _INSTRUCTIONS:
                remedy = "Nothing was built. Resume only folders whose origin you know"
                raise UserError(f"a resumed folder may not contain {key}", where, remedy)
        target = part.get("_target_")
        if "_target_" not in part or _is_trusted(target, trusted) or _is_packaged(target, group):
            continue
        if _is_shipped_logger(part, group):
            continue
        if group == "trainer" and any(target == logger["_target_"] for logger in _loggers()):
            raise UserError(
                f"the folder asks {target} for more than to keep losses in the run folder; nothing was built",
                where,
                f"If they are to go where it says, allow that on this command line: trusted=[{target}]",
            )
        fault = f"the folder asks to build {target!r}, which is not a {group} of {PACKAGE}; nothing was built"
        if (package := str(target).partition(".")[0]) == PACKAGE:
            raise UserError(fault, where, "Resume only folders whose origin you know")
        module = package if package.isidentifier() else "my_lab"
        remedy = f"If it is a class of yours, name its module on this command line: trusted=[{module}]"
        raise UserError(fault, where, remedy)


def trusted_modules(config: Mapping[str, Any]) -> list[str]:
    """The modules outside this package whose classes a run's checkpoint may build: those of ``trusted=``, or,
    for a configuration given on this command line, those that its surrogate names.
    """
    if config.get("trusted") is not None:
        return trusted_names(config["trusted"])
    surrogate = config.get("surrogate")
    return foreign_modules(surrogate) if isinstance(surrogate, Mapping) else []


def _is_trusted(target: Any, trusted: Sequence[str]) -> bool:
    if not isinstance(target, str):
        return False
    if target in trusted:
        return True
    modules = [module for module in trusted if target.startswith(f"{module}.")]
    value = found_at(target) if modules else None
    return value is not None and any(
        value.__module__ == module or value.__module__.startswith(f"{module}.") for module in modules
    )


def _is_packaged(target: Any, group: str) -> bool:
    packages = [f"{PACKAGE}.{name}" for name in ROOMS.get(group, ())]
    value = defined_in(target, packages)
    if value is None:
        return False
    if not isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}" in _FUNCTIONS.get(group, ())
    return issubclass(value, _allowed_bases(group))


def _is_shipped_logger(node: Mapping[Any, Any], group: str) -> bool:
    """Whether a node is a logger that keeps losses in the run folder."""
    if group != "trainer" or not all(isinstance(node.get(name, ""), str) for name in _LOGGER_NAMES):
        return False
    return any(
        {**node, **{name: logger[name] for name in _LOGGER_NAMES if name in logger}} == logger
        for logger in _loggers()
    )


@cache
def _loggers() -> list[dict[str, Any]]:
    """The loggers of ``conf/logger``."""
    files = sorted((conf_folder() / "logger").glob("*.yaml"))
    return [node for path in files for node in read_yaml(path).values()]


@cache
def _allowed_bases(group: str) -> tuple[type, ...]:
    """The base classes allowed in a group; `object` allows all classes of its rooms."""
    if group == "dataset":
        return (Problem, ModalNoise, Rounds, SampleSize)
    if group == "surrogate":
        return (Part, Surrogate)
    if group == "trainer":
        return (Descent,)
    return (object,)
