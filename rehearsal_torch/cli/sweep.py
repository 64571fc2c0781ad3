"""Sweeps: many jobs in one folder, and what a folder records of its sweep."""

from collections.abc import Sequence
from pathlib import Path
from shlex import join

from rehearsal_torch.cli.resume import SWEEP
from rehearsal_torch.cli.spelling import typed_as
from rehearsal_torch.cli.tasks import recordable
from rehearsal_torch.files.lock import LOCK
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError


def settled(out: Path, script: str, overrides: Sequence[str]) -> bool:
    """Whether a folder holds this sweep already; the rule is that of `cli.resume`. Nothing is changed.

    Raises:
        UserError: if the folder holds anything but this sweep.
        PlainFileError: if its sweep.json is damaged.
    """
    if out.exists() and not out.is_dir():
        raise UserError("expected a folder; this is a file", str(out), "Choose another out=")
    before = RunFolder(out).read_json(SWEEP, ("script", "overrides", "decisive"))
    if before:
        decisive = before["decisive"]
        if before["script"] != script or decisive != _decisive(overrides):
            command = join([*typed_as(before["script"]), "-m", *before["decisive"]])
            raise UserError(f"the folder holds another sweep: {command}", str(out), "Choose another out=")
        return True
    if out.exists() and any(not path.name.startswith(LOCK) for path in out.iterdir()):
        raise UserError("the folder is not empty and holds no sweep", str(out), "Choose another out=")
    return False


def begin(out: Path, script: str, overrides: Sequence[str]) -> None:
    """Writes sweep.json to a sweep's folder. Hydra's own settings, such as the launcher, are not stored: they
    must be given each time.

    Raises:
        UserError: if the folder holds anything but this sweep.
        PlainFileError: if its sweep.json is damaged.
    """
    if not settled(out, script, overrides):
        kept = [text for text in recordable(overrides) if not of_hydra(text)]
        RunFolder(out).write_json(
            SWEEP, {"script": script, "overrides": kept, "decisive": _decisive(overrides)}
        )


def of_hydra(override: str) -> bool:
    """Whether an override is one of Hydra's own settings."""
    return override.lstrip("+~").startswith("hydra")


def _decisive(overrides: Sequence[str]) -> list[str]:
    return [text for text in recordable(overrides) if not of_hydra(text) and not text.startswith("workers=")]
