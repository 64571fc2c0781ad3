"""The folder of a study's results, and its ``run.json``.

``run.json`` lists every command that added rows, with versions and commit, and the settings that all rows
have in common.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.job import provenance
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.files.lock import LOCK
from rehearsal_torch.run_folder import RunFolder

RUN = "run.json"
# The name of the command in run.json.
SCRIPT = "reproduce"


def own(out: Path) -> RunFolder:
    """A folder to write a study to: missing, empty, or written by a study before. Nothing is changed.

    Args:
        out: The folder.

    Raises:
        UserError: if it is a file, or a folder with other content.
        PlainFileError: if its run.json is damaged.
    """
    if out.exists() and not out.is_dir():
        raise UserError("expected a folder; this is a file", f"out={out}", "Choose another out=")
    folder = RunFolder(out)
    others = (
        sorted(path.name for path in out.iterdir() if not path.name.startswith(LOCK)) if out.is_dir() else []
    )
    if others and "commands" not in folder.read_json(RUN):
        raise UserError(
            f"the folder is not empty and contains no study ({', '.join(others[:3])})",
            f"out={out}",
            "Choose another out=",
        )
    return folder


def agree(out: RunFolder, settings: Mapping[str, object], overrides: Sequence[str]) -> dict[str, object]:
    """Checks that new rows have the same settings as those in the folder.

    Args:
        out: The study's folder.
        settings: Option to value, for the options that all rows must have in common.
        overrides: Overrides of every job, which all rows must have in common as well.

    Returns:
        The entries of ``run.json`` that record them; see `note`.

    Raises:
        UserError: if the rows in the folder have other settings.
    """
    before = out.read_json(RUN)
    asked = {**settings, "extra": list(overrides)}
    if set(asked) <= set(before) and any(before[key] != value for key, value in asked.items()):
        made = [f"{key}={before[key]}" for key in settings if before[key] is not None] + list(before["extra"])
        raise UserError(
            f"the rows there were made with {shlex.join(made) or 'the default options'}",
            str(out.path),
            "Choose another out=, or move the folder away",
        )
    return asked


def note(out: RunFolder, typed: Sequence[str], facts: Mapping[str, object], seed: int = 0) -> None:
    """Adds a command to ``run.json``; other entries that are there stay.

    Args:
        out: The study's folder.
        typed: The arguments of the command.
        facts: Entries that hold for all rows.
        seed: The seed of the command.
    """
    before = out.read_json(RUN)
    command = " ".join([spoken(SCRIPT), shlex.join(typed)]).strip()
    commands = list(dict.fromkeys([*before.get("commands", []), command]))
    out.write_json(
        RUN, before | provenance(SCRIPT, [], seed) | {"command": command, "commands": commands, **facts}
    )
