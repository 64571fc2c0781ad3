"""File locks, which let one process at a time write to a file or folder.

The operating system holds the lock and releases it when the process ends, even if it is killed; a lock file
left behind by a dead process blocks nobody. A note beside the lock names the process that holds it, for the
error message of a second process; lock and note are removed on release. What a killed process left half
written, in the locked folder or beside the locked file, is removed when the lock is taken.
"""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from rehearsal_torch.files.atomic_write import make_folder, remove_unfinished, write_text
from rehearsal_torch.files.bounded_yaml import PlainFileError, read_json

LOCK = ".rehearsal-lock"


class InUseError(ValueError):
    """A file or folder locked by another process; the message names the process, its host, and the time."""


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Holds the lock of a file or folder until the block ends: ``.rehearsal-lock`` in a folder, which is
    created for a path without suffix, and ``.<name>.rehearsal-lock`` beside a file. An InUseError if another
    process holds it, an OSError if it cannot be written.
    """
    from filelock import FileLock, Timeout

    target = Path(path)
    lock = lock_of(target)
    make_folder(lock.parent)
    note = lock.with_name(f"{lock.name}.json")
    lock_file = FileLock(str(lock), timeout=0)
    try:
        lock_file.acquire()
    except Timeout as error:
        raise InUseError(f"{target} is in use {_holder(note)}: wait until it has ended, or end it") from error
    try:
        remove_unfinished(lock.parent, _locked_names(target, lock))
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        write_text(note, json.dumps({"pid": os.getpid(), "host": platform.node(), "since": since}) + "\n")
        yield
    finally:
        # Both are removed while the lock is held: a process that opened the lock before finds it gone, and
        # opens a new one.
        with suppress(OSError):
            note.unlink(missing_ok=True)
            if lock.stat().st_size == 0:
                lock.unlink()
        lock_file.release()


def holder(path: str | Path) -> str | None:
    """Which process holds the lock of a file or folder, as words; None if none does. Nothing is created."""
    from filelock import FileLock, Timeout

    lock = lock_of(path)
    if not lock.exists():
        return None
    try:
        with FileLock(str(lock), timeout=0):
            return None
    except Timeout:
        return _holder(lock.with_name(f"{lock.name}.json"))
    except OSError:
        return None


def lock_of(path: str | Path) -> Path:
    """The path of the lock of a file or folder."""
    target = Path(path)
    is_file = target.is_file() or (target.suffix and not target.is_dir())
    return target.with_name(f".{target.name}{LOCK}") if is_file else target / LOCK


def _locked_names(target: Path, lock: Path) -> set[str]:
    """The names of files that are written under a lock, and its note's."""
    if lock.parent != target:
        return {target.name, f"{lock.name}.json"}
    unfinished = {path.name[1:].rsplit(".", 2)[0] for path in target.glob(".*.*.*")}
    return {name for name in unfinished if not (target / f".{name}{LOCK}").exists()}


def _holder(note: Path) -> str:
    """The holder of a lock, if the note tells it."""
    try:
        content = read_json(note)
        return f"by process {int(content['pid'])} on {content['host']} since {content['since']}"
    except (PlainFileError, KeyError, TypeError, ValueError):
        return "by another process"
