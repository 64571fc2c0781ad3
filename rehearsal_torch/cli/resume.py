"""Resuming a run: which folders a run may use, and with which configuration it continues.

The rule for a folder, given by ``out=`` or ``resume=``:

    missing or empty                       a new run starts in it
    a run without results yet              a new run starts in it
    a job that its sweep never started     a new run starts in it
    a run of the same configuration        it is resumed where it stopped; a finished one is reported again
    a run of another configuration         refused: the keys that differ are listed
    anything else                          refused: nothing in it is changed

A folder is that of a run if its run.json has the format that a run writes; file names alone do not count,
since config.yaml is a common name. Nothing is deleted except the files of a run without results.

``resume=DIR`` takes the configuration from DIR; further overrides must not contradict it. The folder may come
from somebody else. Only values of this configuration's own keys are taken from it: never Hydra's settings,
output paths, references (``${...}``) or trust, and the classes that are built are limited (see `allowed`).
"""

import re
import shutil
from collections.abc import Mapping, Sequence
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
    *("out", "resume", "trusted", "workers", "parallel", "dask.address"),
    *("tables", "quiet", "trainer.progress", "trainer.folder"),
)
# Keys that are never taken from a folder: output paths, trust, and clusters, which send pickled code.
TYPED_ONLY = ("out", "resume", "trusted", "parallel", "dask", "trainer.folder", "hydra")
SWEEP = "sweep.json"
# The files that a run writes before any results.
OPENING = ("config.yaml", "run.json", "data.yaml", "status.json", "error.txt")
# Hydra's own record of a run.
HYDRA = ".hydra"
_RECORDS = {"config.yaml", "hydra.yaml", "overrides.yaml"}
# Further files, left by a process that was killed while writing, or that holds the folder's lock.
_BESIDE = re.compile(
    r"\.rehearsal-lock(\.json)?|"
    r"\.(config\.yaml|(run|status|sweep|\.rehearsal-lock)\.json|data\.yaml|error\.txt)\.(\d+\.)?part"
)
_RECORD = ("script", "overrides")


def recorded(directory: str, typed: Sequence[str], script: str) -> tuple[list[str], bool]:
    """The overrides that a run was started with, together with the new ones, and whether it was a sweep."""
    folder = RunFolder(directory)
    sweep, run = folder.read_json(SWEEP, (*_RECORD, "decisive")), folder.read_json("run.json", _RECORD)
    before = sweep or run
    where = f"resume={directory}"
    if not before:
        raise UserError("expected the folder of a run; it holds none", where, "See the folder runs")
    if before["script"] != script:
        what, remedy = "this run was made by a command that cannot be resumed", "See the folder runs"
        if before["script"] in ("train", "decide", "cross_validate"):
            command = spoken(before["script"])
            what, remedy = f"this run was made by {command}", f"Resume it with {command}"
        raise UserError(what, where, remedy)
    old = before["overrides"]
    _screen(old, f"{directory}/{SWEEP if sweep else 'run.json'}")
    # Of a sweep, the configuration of its first job.
    config = folder.read_yaml("config.yaml") or RunFolder(folder.path / "0").read_yaml("config.yaml")
    values, more = _flat(config) | run.get("choices", {}), list[str]()
    for text in typed:
        key, _, value = text.lstrip("+").partition("=")
        if text not in old and _free(key):
            more.append(text)
        elif text not in old and (sweep or str(values.get(key)) != value):
            same = (entry for entry in old if entry.lstrip("+").partition("=")[0] == key)
            original = next(same, f"{key}={values.get(key)}")
            what = f"{text} contradicts {original}, with which the run was started"
            raise UserError(what, where, "Leave it out, or start a new run")
    return [*old, *more], bool(sweep)


def _screen(overrides: Sequence[str], where: str) -> None:
    """Checks that the overrides of a folder contain only settings that may be taken from a folder."""
    for text in overrides:
        short = _cut(text, 100)
        started = f"the run was started with {short}"
        override = read_override(text)
        key = override.key_or_group
        parts = {*re.split(r"[./@:]", key), *re.split(r"[./@:]", override.package or "")}
        own = next((name for name in TYPED_ONLY if key == name or name in parts), None)
        if own is not None:
            what = "Hydra's own settings are" if own == "hydra" else f"{own} is"
            remedy = f"Remove it from the file, and give it on the command line if you want it: {short}"
            raise UserError(f"{started}; {what} never taken from a folder", where, remedy)
        singles = [] if override.is_delete() else single_overrides(override)
        if _refers([key, override.package, *(read_override(single).value() for single in singles)]):
            what = f"{started}; a folder's references (${{...}}) are not resolved"
            raise UserError(what, where, "Write the value out in the file")


def _refers(value: Any) -> bool:
    """Whether plain data contains a reference."""
    if isinstance(value, Mapping):
        return any(_refers(key) or _refers(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(map(_refers, value))
    return "${" in str(getattr(value, "text", value))


def agree(folder: RunFolder, config: Mapping[str, Any]) -> None:
    """Checks that a folder may hold a run of this configuration, without changing it."""
    where = str(folder.path)
    first = next(path for path in (folder.path, *folder.path.parents) if path.exists() or path.is_symlink())
    if not first.is_dir():
        what = "this is a file" if first == folder.path else f"{first} is a file"
        raise UserError(f"expected a folder; {what}", where, "Choose another out=")
    foreign = _foreign(folder)
    if foreign is None:
        return
    if not _ours(folder):
        names = ", ".join(foreign[:3] or _names(folder)[:3])
        raise UserError(f"the folder is not empty and holds no run ({names})", where, "Choose another out=")
    if not foreign:
        return
    if not folder.begun:
        remedy = "Restore the file from a copy, or choose another out="
        raise UserError("the folder holds a run whose config.yaml is missing", where, remedy)
    before, now = _flat(folder.read_yaml("config.yaml")), _flat(config)
    differ = [key for key in sorted({*before, *now}) if not _free(key) and before.get(key) != now.get(key)]
    if differ:
        texts = (f"{key} ({_cut(before.get(key))} there, {_cut(now.get(key))} now)" for key in differ[:4])
        what = f"the folder holds a run of another configuration: {', '.join(texts)}"
        raise UserError(what, where, "Choose another out=, or leave it out")


def cleared(folder: RunFolder) -> None:
    """Removes the files of a run that was killed or refused before it had any results, so that another one
    can start without loss.

    To be called after `agree` has passed, while the folder is locked.
    """
    if not _foreign(folder):
        for name in _names(folder):
            if name == HYDRA:
                shutil.rmtree(folder.path / name)
            elif not name.startswith(LOCK):
                (folder.path / name).unlink()


def _names(folder: RunFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir()) if folder.path.is_dir() else []


def _foreign(folder: RunFolder) -> list[str] | None:
    """The files of a folder other than those that a run writes first; None if it is empty or missing."""
    names = [name for name in _names(folder) if not _BESIDE.fullmatch(name)]
    return [name for name in names if not _opens(folder.path / name)] if names else None


def _opens(path: Path) -> bool:
    """Whether a run writes this before any results."""
    if path.name == HYDRA:
        return path.is_dir() and not path.is_symlink() and {each.name for each in path.iterdir()} <= _RECORDS
    return path.name in OPENING and path.is_file()


def _ours(folder: RunFolder) -> bool:
    """Whether run.json exists, or nothing but the status that a sweep gives to a job that it never started; a
    damaged file, or one of another format, raises an error.
    """
    if [name for name in _names(folder) if not _BESIDE.fullmatch(name)] == ["status.json"]:
        return folder.read_json("status.json", ("state", "message"))["state"] == "skipped"
    return bool(folder.read_json("run.json", _RECORD))


def _free(key: str) -> bool:
    return key in FREE or re.split(r"[./@]", key)[0] == "hydra"


def _flat(node: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in node.items():
        nested = isinstance(value, Mapping) and bool(value)
        values |= _flat(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return values


def _cut(value: Any, longest: int = 60) -> str:
    text = str(value)
    return text if len(text) <= longest else f"{beginning(text, longest - 3)}..."
