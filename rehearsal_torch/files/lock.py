"""One process at a time: a lock beside what is written, held by the operating system.

The lock ends with the process that holds it, however that ends (a kill included); no file that a dead process
left behind keeps anybody out. Beside the lock lies a note of who holds it, for the message that a second
process is given; lock and note are removed when the work is done.
"""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from rehearsal_torch.files.plain import PlainFileError, read_json
from rehearsal_torch.files.writing import make_folder, write_text

LOCK = ".rehearsal-lock"


class InUseError(ValueError):
    """What another process is working on; the message says which process, where, and since when."""


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Holds the lock of a file or folder.

    The lock of a folder is ``.rehearsal-lock`` in it; that of a file ``.<name>.rehearsal-lock`` beside it. A
    folder is made where it is missing.

    Args:
        path: A file, or a folder; what does not exist is taken for a folder where its name has no suffix.

    Yields:
        Nothing; the lock is held until the block ends.

    Raises:
        InUseError: if another process holds it.
        OSError: if nothing can be written there.
    """
    from filelock import FileLock, Timeout

    target = Path(path)
    lock = lock_of(target)
    make_folder(lock.parent)
    note = lock.with_name(f"{lock.name}.json")
    held = FileLock(str(lock), timeout=0)
    try:
        held.acquire()
    except Timeout as error:
        raise InUseError(f"{target} is in use {_holder(note)}: wait until it has ended, or end it") from error
    try:
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        write_text(note, json.dumps({"pid": os.getpid(), "host": platform.node(), "since": since}) + "\n")
        yield
    finally:
        # Both are removed while the lock is held: whoever opened the lock before that finds it gone, and
        # opens a new one.
        with suppress(OSError):
            note.unlink(missing_ok=True)
            if lock.stat().st_size == 0:
                lock.unlink()
        held.release()


def lock_of(path: str | Path) -> Path:
    """The lock of a file or folder; see `locked`."""
    target = Path(path)
    return (
        target.with_name(f".{target.name}{LOCK}")
        if target.is_file() or (target.suffix and not target.is_dir())
        else target / LOCK
    )


def _holder(note: Path) -> str:
    """Who holds a lock, as far as the note says."""
    try:
        found = read_json(note)
        return f"by process {int(found['pid'])} on {found['host']} since {found['since']}"
    except (PlainFileError, KeyError, TypeError, ValueError):
        return "by another process"
