"""Taking a run up again: which folder a run may use, and under which configuration it goes on.

The rule for a folder, given by ``out=`` or ``resume=``:

    missing or empty                       a new run begins in it
    a run that made nothing yet            a new run begins in it
    a run of the same configuration        it is taken up where it stopped; a finished one is reported again
    a run of another configuration         refused: the keys that differ are named
    anything else                          refused: nothing of it is touched

A folder is that of a run where its run.json is of the form that a run writes; names alone say nothing, since
others, too, have files called config.yaml. Nothing is deleted but what a run that made nothing yet has left.

``resume=DIR`` takes the configuration from DIR; whatever else is typed must not contradict it. The folder may
come from somebody else. Of what it says, only values of this configuration's own keys are used: Hydra's
settings, places to write to, references (``${...}``) and trust are never taken from a folder, and what is
built is limited (see `allowed`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.overrides import read_override, refuse_renamed, single_overrides
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.files.lock import LOCK
from rehearsal_torch.files.moved import RENAMED_CHOICES, current, current_key
from rehearsal_torch.run_folder import RunFolder

# Keys that do not change what comes out.
FREE = ("out", "resume", "trusted", "workers", "trainer.progress", "trainer.folder")
# Keys that no folder decides: where is written to, and what is trusted.
TYPED_ONLY = ("out", "resume", "trusted", "trainer.folder", "hydra")
SWEEP = "sweep.json"
# What a run writes before it makes anything of its own.
OPENING = ("config.yaml", "run.json", "data.yaml", "status.json", "error.txt")
# What a process that was killed while it wrote, or that holds the folder's lock, leaves beside them.
_BESIDE = re.compile(
    r"\.rehearsal-lock(\.json)?|"
    r"\.(config\.yaml|(run|status|sweep|\.rehearsal-lock)\.json|data\.yaml|error\.txt)\.(\d+\.)?part"
)
_RECORD = ("script", "overrides")


def recorded(directory: str, typed: Sequence[str], script: str) -> tuple[list[str], bool]:
    """What a run was started with, together with what is typed now.

    Args:
        directory: What ``resume=`` says.
        typed: The other overrides.
        script: The command that is to take the run up.

    Returns:
        Overrides, and whether it was a sweep.

    Raises:
        UserError: if there is no such run, another command made it, an override contradicts it, or the folder
            says what no folder decides.
        PlainFileError: if its files are damaged.
    """
    folder = RunFolder(directory)
    sweep, run = folder.read_json(SWEEP, (*_RECORD, "decisive")), folder.read_json("run.json", _RECORD)
    before = sweep or run
    if not before:
        raise UserError(
            "expected the folder of a run that has begun; it holds none",
            f"resume={directory}",
            "See the folder runs",
        )
    if before["script"] != script:
        known = before["script"] in ("train", "decide", "cross_validate")
        what, remedy = "this run was not made by a command that can be resumed", "See the folder runs"
        if known:
            what, remedy = (
                f"this run was made by {spoken(before['script'])}",
                f"Take it up with {spoken(before['script'])}",
            )
        raise UserError(what, f"resume={directory}", remedy)
    _screen(before["overrides"], f"{directory}/{SWEEP if sweep else 'run.json'}")
    config, choices = folder.read_yaml("config.yaml"), run.get("choices", {})
    old = [_present(text, config) for text in before["overrides"]]
    for text in typed:
        key, _, value = text.lstrip("+").partition("=")
        refuse_renamed(key, config)
        if text in old or _free(key) or key.startswith("hydra"):
            continue
        there = choices.get(key, _at(config, key))
        if sweep or str(there) != value:
            as_user_error = next(
                (entry for entry in old if entry.lstrip("+").partition("=")[0] == key), f"{key}={there}"
            )
            raise UserError(
                f"{text} contradicts {as_user_error}, with which the run was started",
                f"resume={directory}",
                "Leave it out, or begin a new run",
            )
    free = [
        text
        for text in typed
        if text not in old and (_free(text.lstrip("+").partition("=")[0]) or text.startswith("hydra"))
    ]
    return [*old, *free], bool(sweep)


def _present(text: str, config: Mapping[str, Any]) -> str:
    """An override with the key, or the file of `conf`, of today."""
    text = RENAMED_CHOICES.get(text, text)
    sign = text[: len(text) - len(text.lstrip("+"))]
    key, equals, value = text[len(sign) :].partition("=")
    return f"{sign}{current_key(key, config)}{equals}{value}"


def _screen(overrides: Sequence[str], where: str) -> None:
    """Whether overrides that a folder holds say only what a folder may say.

    Raises:
        UserError: for the first one that does not.
    """
    for text in overrides:
        shown = text if len(text) <= 100 else f"{text[:97]}..."
        override = read_override(text)
        parts = {*re.split(r"[./@:]", override.key_or_group), *re.split(r"[./@:]", override.package or "")}
        key = override.key_or_group
        own = next((each for each in TYPED_ONLY if key == each or each in parts), None)
        if own is not None:
            what = "Hydra's own settings are" if own == "hydra" else f"{own} is"
            remedy = f"Take it out of the file, and type it yourself if you want it: {shown}"
            raise UserError(
                f"the run was started with {shown}; {what} never taken from a folder", where, remedy
            )
        values = (
            [read_override(each).value() for each in single_overrides(override)]
            if not override.is_delete()
            else []
        )
        if _refers([key, override.package, *values]):
            raise UserError(
                f"the run was started with {shown}; a folder's references (${{...}}) are not resolved",
                where,
                "Write the value out in the file",
            )


def _refers(value: Any) -> bool:
    """Whether plain data holds a reference."""
    if isinstance(value, Mapping):
        return any(_refers(key) or _refers(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(map(_refers, value))
    return "${" in str(getattr(value, "text", value))


def agree(folder: RunFolder, config: Mapping[str, Any]) -> None:
    """Whether a folder may hold a run of this configuration; nothing of it is touched.

    Args:
        folder: The folder.
        config: The job's configuration, as plain data.

    Raises:
        UserError: if it holds something else.
        PlainFileError: if its files are damaged.
    """
    _here(folder)
    foreign = _foreign(folder)
    if foreign is None:
        return
    if not _ours(folder):
        named = ", ".join(foreign[:3] or sorted(_names(folder))[:3])
        raise UserError(
            f"the folder is not empty and holds no run ({named})", str(folder.path), "Choose another out="
        )
    if not foreign:
        return
    if not folder.begun:
        raise UserError(
            "the folder holds a run whose config.yaml is missing",
            str(folder.path),
            "Restore the file from a copy, or choose another out=",
        )
    written = folder.read_yaml("config.yaml")
    before, now = _flat(written), _flat(config)
    before = {current_key(key, written): value for key, value in before.items()}
    odd = [key for key in sorted({*before, *now}) if not _free(key) and before.get(key) != now.get(key)]
    if odd:
        shown = ", ".join(
            f"{key} ({_cut(before.get(key))} there, {_cut(now.get(key))} now)" for key in odd[:4]
        )
        raise UserError(
            f"the folder holds a run of another configuration: {shown}",
            str(folder.path),
            "Choose another out=, or begin without it",
        )


def cleared(folder: RunFolder) -> None:
    """Removes what is left of a run that was killed or refused before it made anything: nothing is lost when
    another one begins.

    Call it when `agree` has passed, and while the folder is locked.
    """
    if not _foreign(folder):
        for name in _names(folder):
            if not name.startswith(LOCK):
                (folder.path / name).unlink()


def _here(folder: RunFolder) -> None:
    """Whether the path can be a folder.

    Raises:
        UserError: if it, or a part of it, is a file.
    """
    for path in (folder.path, *folder.path.parents):
        if path.exists() or path.is_symlink():
            if not path.is_dir():
                what = (
                    "expected a folder; this is a file"
                    if path == folder.path
                    else f"expected a folder; {path} is a file"
                )
                raise UserError(what, str(folder.path), "Choose another out=")
            return


def _names(folder: RunFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir()) if folder.path.is_dir() else []


def _foreign(folder: RunFolder) -> list[str] | None:
    """What a folder holds besides what a run writes first; None where there is nothing at all."""
    names = [name for name in _names(folder) if not _BESIDE.fullmatch(name)]
    return (
        [name for name in names if name not in OPENING or not (folder.path / name).is_file()]
        if names
        else None
    )


def _ours(folder: RunFolder) -> bool:
    """Whether run.json is there; damaged, or of another form, it is an error of its own."""
    return bool(folder.read_json("run.json", _RECORD))


def _free(key: str) -> bool:
    return key in FREE


def _flat(node: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            found.update(_flat(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = (
                current(value) if key == "_target_" and isinstance(value, str) else value
            )
    return found


def _at(config: Mapping[str, Any], key: str) -> Any:
    return {current_key(each, config): value for each, value in _flat(config).items()}.get(key)


def _cut(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
