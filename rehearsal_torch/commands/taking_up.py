"""Taking a run up again: which folder a run may use, and under which configuration it goes on.

The rule for a folder, given by ``out=`` or ``resume=``:

    missing or empty                       a new run begins in it
    a run that made nothing yet            a new run begins in it
    a run of the same configuration        it is taken up where it stopped; a finished one is reported again
    a run of another configuration         refused: the keys that differ are named
    anything else                          refused: nothing of it is touched

``resume=DIR`` takes the configuration from DIR; whatever else is typed must not contradict it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal_torch.commands.user_error import UserError
from rehearsal_torch.history import RunFolder

# Keys that do not change what comes out.
FREE = ("out", "resume", "workers", "trainer.progress", "trainer.folder")
SWEEP = "sweep.json"
# What a run writes before it makes anything of its own.
OPENING = ("config.yaml", "run.json", "data.yaml", "status.json", "error.txt", ".config.yaml.part", ".run.json.part", ".data.yaml.part", ".status.json.part")


def recorded(directory: str, typed: Sequence[str], script: str) -> tuple[list[str], bool]:
    """What a run was started with, together with what is typed now.

    Args:
        directory: What ``resume=`` says.
        typed: The other overrides.
        script: The command that is to take the run up.

    Returns:
        Overrides, and whether it was a sweep.

    Raises:
        UserError: if there is no such run, another command made it, or an override contradicts it.
    """
    folder = RunFolder(directory)
    sweep, run = folder.read_json(SWEEP), folder.read_json("run.json")
    before = sweep or run
    if not before:
        raise UserError("expected the folder of a run that has begun; it holds none", f"resume={directory}", "See the folder runs")
    if before["script"] != script:
        raise UserError(f"this run was made by scripts/{before['script']}.py", f"resume={directory}", f"Take it up with scripts/{before['script']}.py")
    old = list(before["overrides"])
    config, choices = folder.read_yaml("config.yaml"), run.get("choices", {})
    for text in typed:
        key, _, value = text.lstrip("+").partition("=")
        if text in old or _free(key) or key.startswith("hydra"):
            continue
        there = choices.get(key, _at(config, key))
        if sweep or str(there) != value:
            told = next((entry for entry in old if entry.lstrip("+").partition("=")[0] == key), f"{key}={there}")
            raise UserError(f"{text} contradicts {told}, with which the run was started", f"resume={directory}", "Leave it out, or begin a new run")
    free = [text for text in typed if text not in old and (_free(text.partition("=")[0]) or text.startswith("hydra"))]
    return [*old, *free], bool(sweep)


def agree(folder: RunFolder, config: Mapping[str, Any]) -> None:
    """Whether a folder may hold a run of this configuration.

    Raises:
        UserError: if it holds something else.
    """
    if not folder.path.exists():
        return
    if not folder.path.is_dir():
        raise UserError("expected a folder; this is a file", str(folder.path), "Choose another out=")
    strangers = [path.name for path in folder.path.iterdir() if path.name not in OPENING]
    if not strangers:
        # A run that was killed or refused before it made anything: nothing is lost when another one begins.
        for path in folder.path.iterdir():
            path.unlink()
        return
    if not folder.begun:
        raise UserError(f"the folder is not empty and holds no run ({', '.join(sorted(strangers)[:3])})", str(folder.path), "Choose another out=")
    before = folder.read_yaml("config.yaml")
    odd = [key for key in sorted({*_flat(before), *_flat(config)}) if not _free(key) and _flat(before).get(key) != _flat(config).get(key)]
    if odd:
        shown = ", ".join(f"{key} ({_flat(before).get(key)} there, {_flat(config).get(key)} now)" for key in odd[:4])
        raise UserError(f"the folder holds a run of another configuration: {shown}", str(folder.path), "Choose another out=, or begin without it")


def _free(key: str) -> bool:
    return key in FREE


def _flat(node: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            found.update(_flat(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = value
    return found


def _at(config: Mapping[str, Any], key: str) -> Any:
    return _flat(config).get(key)
