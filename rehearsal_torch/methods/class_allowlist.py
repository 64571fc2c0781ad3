"""The classes that a configuration may build.

A configuration given on the command line, or in files named there, is built as it is, user-defined classes
included. A folder to be resumed may have been written by somebody else. A target that it names is built only
if it is

    a class that this package defines for that group of the configuration, the function that makes the
    reward of a task of episodes from plain data, or a logger as it stands in ``conf/logger``, or
    a target of a module that is trusted on this command line (``trusted=[my_lab]``), or one that a file in
    the folder of ``--config-dir`` names.

The object found, and the module that defines it, decide, not the prefix of its dotted path: `Path`, for
example, which some of our modules import, is not a class of this package.
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
# The settings of a logger that may differ from ``conf/logger``: with the others as they stand there, it
# writes below the training's own folder and nowhere else.
_NAMES = ("project", "experiment_name")
# The functions among the targets of ``conf``, by their groups; each makes an object from plain data alone.
_MAKERS = {"objective": (f"{PACKAGE}.objectives.task_reward.episode_reward",)}
_INSTRUCTIONS = ("_target_", "_partial_", "_convert_", "_recursive_")


def check_allowed(node: Any, group: str, trusted: Sequence[str]) -> None:
    """Checks that every target in a node of a resumed configuration may be built; `trusted` are modules and
    classes, as dotted paths, that are trusted on this command line.

    Raises:
        UserError: for the first target that may not be built; nothing of the node has been built then.
    """
    for where, each in mappings(node, group):
        for key in each:
            if isinstance(key, str) and key.startswith("_") and key not in _INSTRUCTIONS:
                remedy = "Nothing was built. Resume only folders whose origin you know"
                raise UserError(f"a resumed folder may not contain {key}", where, remedy)
        target = each.get("_target_")
        if "_target_" in each and not (_named(target, trusted) or _ours(target, group) or _kept(each, group)):
            home = str(target).partition(".")[0]
            if group == "trainer" and any(target == one["_target_"] for one in _loggers()):
                raise UserError(
                    f"the folder asks {target} for more than to keep losses in the run folder; nothing was "
                    "built",
                    where,
                    f"If they are to go where it says, allow that on this command line: trusted=[{target}]",
                )
            what = (
                f"the folder asks to build {target!r}, which is not a {group} of {PACKAGE}; nothing was built"
            )
            remedy = (
                "If it is a class of yours, name its module on this command line: "
                f"trusted=[{home if home.isidentifier() else 'my_lab'}]"
            )
            raise UserError(
                what, where, remedy if home != PACKAGE else "Resume only folders whose origin you know"
            )


def trusted_modules(config: Mapping[str, Any]) -> list[str]:
    """The modules outside this package whose classes a run's own checkpoint may build: those that
    ``trusted=`` names, or, if the configuration was given on this command line, those that its surrogate
    names.
    """
    if config.get("trusted") is not None:
        return trusted_names(config["trusted"])
    surrogate = config.get("surrogate")
    return foreign_modules(surrogate) if isinstance(surrogate, Mapping) else []


def _named(target: Any, trusted: Sequence[str]) -> bool:
    if not isinstance(target, str):
        return False
    if target in trusted:
        return True
    homes = [name for name in trusted if target.startswith(f"{name}.")]
    found = found_at(target) if homes else None
    return found is not None and any(
        found.__module__ == name or found.__module__.startswith(f"{name}.") for name in homes
    )


def _ours(target: Any, group: str) -> bool:
    rooms = [f"{PACKAGE}.{room}" for room in ROOMS.get(group, ())]
    found = defined_in(target, rooms)
    if found is None:
        return False
    if not isinstance(found, type):
        return f"{found.__module__}.{found.__qualname__}" in _MAKERS.get(group, ())
    return issubclass(found, _kinds(group))


def _kept(node: Mapping[Any, Any], group: str) -> bool:
    """Whether a node is a logger that keeps losses in the run folder."""
    if group != "trainer" or not all(isinstance(node.get(name, ""), str) for name in _NAMES):
        return False
    return any({**node, **{name: one[name] for name in _NAMES if name in one}} == one for one in _loggers())


@cache
def _loggers() -> list[dict[str, Any]]:
    """The loggers of ``conf/logger``."""
    files = sorted((conf_folder() / "logger").glob("*.yaml"))
    return [node for path in files for node in read_yaml(path).values()]


@cache
def _kinds(group: str) -> tuple[type, ...]:
    """The base classes allowed in a group; `object` if the group's rooms hold nothing else."""
    if group == "dataset":
        return (Problem, ModalNoise, Rounds, SampleSize)
    if group == "surrogate":
        return (Part, Surrogate)
    if group == "trainer":
        return (Descent,)
    return (object,)
