"""The folder of a study's results: whose it is, what its rows share, and where they come from.

``run.json`` lists every command that added to it, with versions and commit, and the settings that all its
rows share.
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
# The name under which the command is recorded.
SCRIPT = "reproduce"


def own(out: Path) -> RunFolder:
    """A study's folder, if it is missing, empty, or one that a study wrote; nothing of it is touched.

    Raises:
        UserError: if it holds something else, which a study would write over.
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
            f"the folder is not empty and holds no study ({', '.join(others[:3])})",
            f"out={out}",
            "Choose another out=",
        )
    return folder


def agree(out: RunFolder, settings: Mapping[str, object], overrides: Sequence[str]) -> dict[str, object]:
    """Rows of one protocol are not mixed with those of another.

    Args:
        out: The study's folder.
        settings: Option to value, of those that all rows must share.
        overrides: The overrides of every job, likewise.

    Returns:
        What `note` records of them.

    Raises:
        UserError: if the rows there were made with others.
    """
    before = out.read_json(RUN)
    asked = {**settings, "extra": list(overrides)}
    if set(asked) <= set(before) and any(before[key] != value for key, value in asked.items()):
        made = [f"{key}={before[key]}" for key in settings if before[key] is not None] + list(before["extra"])
        raise UserError(
            f"the rows there were made with {shlex.join(made) or 'the usual options'}",
            str(out.path),
            "Choose another out=, or move the folder away",
        )
    return asked


def note(out: RunFolder, typed: Sequence[str], facts: Mapping[str, object], seed: int = 0) -> None:
    """Adds a command to run.json; facts that stood there and are not given again stay.

    Args:
        out: The study's folder.
        typed: What was typed behind the command.
        facts: What all rows share.
        seed: Of the command.
    """
    before = out.read_json(RUN)
    command = " ".join([spoken(SCRIPT), shlex.join(typed)]).strip()
    commands = list(dict.fromkeys([*before.get("commands", []), command]))
    out.write_json(
        RUN, before | provenance(SCRIPT, [], seed) | {"command": command, "commands": commands, **facts}
    )
