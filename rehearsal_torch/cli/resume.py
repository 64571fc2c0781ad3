"""Resuming a run: the folders that a run may use, and the configuration with which it continues.

The rule for a folder, given by ``out=`` or ``resume=``:

    missing or empty                       a new run starts in it
    a run without results yet              a new run starts in it
    a job that its sweep never started     a new run starts in it
    a run of the same configuration        it is resumed where it stopped; a finished one is reported again
    a run of another configuration         refused: the keys that differ are listed
    anything else                          refused: nothing in it is changed

A folder is that of a run if its run.json has the format that a run writes; file names do not count, since
config.yaml is a common one. Only the files of a run without results are ever deleted.

``resume=DIR`` takes the configuration from DIR, which may come from somebody else; further overrides must not
contradict it. Hydra's settings, output paths, references (``${...}``) and trust are never taken from a
folder, and the classes that are built are limited (`methods.class_allowlist`).
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rehearsal_torch.cli.command_words import spoken
from rehearsal_torch.cli.overrides import read_override, single_overrides
from rehearsal_torch.files.lock import LOCK
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError

# Keys that do not affect the results.
FREE = (
    *("out", "resume", "minutes", "trusted", "workers", "parallel", "dask.address"),
    *("tables", "quiet", "trainer.progress", "trainer.folder"),
)
# Keys that are never taken from a folder: output paths, trust, and clusters, which send pickled code.
TYPED_ONLY = ("out", "resume", "minutes", "trusted", "parallel", "dask", "trainer.folder", "hydra")
SWEEP = "sweep.json"
# The files that a run writes before any results.
OPENING = ("config.yaml", "run.json", "data.yaml", "status.json", "error.txt")
# Hydra's own record of a run.
HYDRA = ".hydra"
_RECORDS = {"config.yaml", "hydra.yaml", "overrides.yaml"}
# Files of a killed or running process: unfinished ones and locks.
_LEFTOVERS = re.compile(
    r"\.rehearsal-lock(\.json)?|"
    r"\.(config\.yaml|(run|status|sweep|\.rehearsal-lock)\.json|data\.yaml|error\.txt)\.(\d+\.)?part"
)
_RECORD = ("script", "overrides")


def recorded(directory: str, typed: Sequence[str], script: str) -> tuple[list[str], bool]:
    """The overrides of a recorded run, followed by the new ones, and whether it was a sweep."""
    folder = RunFolder(directory)
    sweep, run = folder.read_json(SWEEP, (*_RECORD, "decisive")), folder.read_json("run.json", _RECORD)
    record = sweep or run
    where = f"resume={directory}"
    if not record:
        raise UserError("expected the folder of a run; it holds none", where, "See the folder runs")
    if record["script"] != script:
        fault, remedy = "this run was made by a command that cannot be resumed", "See the folder runs"
        if record["script"] in ("train", "decide", "cross_validate"):
            command = spoken(record["script"])
            fault, remedy = f"this run was made by {command}", f"Resume it with {command}"
        raise UserError(fault, where, remedy)
    old = record["overrides"]
    _screen(old, f"{directory}/{SWEEP if sweep else 'run.json'}")
    # Of a sweep, the configuration of its first job.
    config = folder.read_yaml("config.yaml") or RunFolder(folder.path / "0").read_yaml("config.yaml")
    values, further = _flat(config) | run.get("choices", {}), list[str]()
    for text in typed:
        key, _, value = text.lstrip("+").partition("=")
        if text not in old and _is_free(key):
            further.append(text)
        elif text not in old and (sweep or str(values.get(key)) != value):
            same_key = (entry for entry in old if entry.lstrip("+").partition("=")[0] == key)
            original = next(same_key, f"{key}={values.get(key)}")
            fault = f"{text} contradicts {original}, with which the run was started"
            raise UserError(fault, where, "Leave it out, or start a new run")
    return [*old, *further], bool(sweep)


def _screen(overrides: Sequence[str], where: str) -> None:
    """Raises a UserError for an override that may not be taken from a folder."""
    for text in overrides:
        short = _short(text, 100)
        subject = f"the run was started with {short}"
        override = read_override(text)
        key = override.key_or_group
        parts = {*re.split(r"[./@:]", key), *re.split(r"[./@:]", override.package or "")}
        reserved = next((name for name in TYPED_ONLY if key == name or name in parts), None)
        if reserved is not None:
            fault = "Hydra's own settings are" if reserved == "hydra" else f"{reserved} is"
            remedy = f"Remove it from the file, and give it on the command line if you want it: {short}"
            raise UserError(f"{subject}; {fault} never taken from a folder", where, remedy)
        singles = [] if override.is_delete() else single_overrides(override)
        if _has_reference([key, override.package, *(read_override(single).value() for single in singles)]):
            fault = f"{subject}; a folder's references (${{...}}) are not resolved"
            raise UserError(fault, where, "Write the value out in the file")


def _has_reference(value: Any) -> bool:
    """Whether plain data contains a reference."""
    if isinstance(value, Mapping):
        return any(_has_reference(key) or _has_reference(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(map(_has_reference, value))
    return "${" in str(getattr(value, "text", value))


def agree(folder: RunFolder, config: Mapping[str, Any]) -> None:
    """Raises a UserError if a folder may not hold a run of this configuration; changes nothing."""
    where = str(folder.path)
    root = next(path for path in (folder.path, *folder.path.parents) if path.exists() or path.is_symlink())
    if not root.is_dir():
        fault = "this is a file" if root == folder.path else f"{root} is a file"
        raise UserError(f"expected a folder; {fault}", where, "Choose another out=")
    foreign = _other_files(folder)
    if foreign is None:
        return
    if not _is_run(folder):
        names = ", ".join(foreign[:3] or _names(folder)[:3])
        raise UserError(f"the folder is not empty and holds no run ({names})", where, "Choose another out=")
    if not foreign:
        return
    if not folder.begun:
        remedy = "Restore the file from a copy, or choose another out="
        raise UserError("the folder holds a run whose config.yaml is missing", where, remedy)
    old, new = _flat(folder.read_yaml("config.yaml")), _flat(config)
    changed = [key for key in sorted({*old, *new}) if not _is_free(key) and old.get(key) != new.get(key)]
    if changed:
        changes = (f"{key} ({_short(old.get(key))} there, {_short(new.get(key))} now)" for key in changed[:4])
        fault = f"the folder holds a run of another configuration: {', '.join(changes)}"
        raise UserError(fault, where, "Choose another out=, or leave it out")


def cleared(folder: RunFolder) -> None:
    """Removes the files of a run without results; to be called after `agree`, in the locked folder."""
    if not _other_files(folder):
        for name in _names(folder):
            if name == HYDRA:
                shutil.rmtree(folder.path / name)
            elif not name.startswith(LOCK):
                (folder.path / name).unlink()


def discard(folder: RunFolder) -> None:
    """Removes a folder that nobody named, if its run was refused before it had results."""
    with suppress(OSError):
        cleared(folder)
        folder.path.rmdir()


def _names(folder: RunFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir()) if folder.path.is_dir() else []


def _other_files(folder: RunFolder) -> list[str] | None:
    """The files of a folder other than a run's opening ones; None if it is empty or missing."""
    names = [name for name in _names(folder) if not _LEFTOVERS.fullmatch(name)]
    return [name for name in names if not _is_opening_file(folder.path / name)] if names else None


def _is_opening_file(path: Path) -> bool:
    """Whether a run writes this file before any results."""
    if path.name == HYDRA:
        return path.is_dir() and not path.is_symlink() and {file.name for file in path.iterdir()} <= _RECORDS
    return path.name in OPENING and path.is_file()


def _is_run(folder: RunFolder) -> bool:
    """Whether run.json exists, or only the status of a job that its sweep never started."""
    if [name for name in _names(folder) if not _LEFTOVERS.fullmatch(name)] == ["status.json"]:
        return folder.read_json("status.json", ("state", "message"))["state"] == "skipped"
    return bool(folder.read_json("run.json", _RECORD))


def _is_free(key: str) -> bool:
    return key in FREE or re.split(r"[./@]", key)[0] == "hydra"


def _flat(node: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in node.items():
        nested = isinstance(value, Mapping) and bool(value)
        values |= _flat(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return values


def _short(value: Any, longest: int = 60) -> str:
    text = str(value)
    return text if len(text) <= longest else f"{beginning(text, longest - 3)}..."
