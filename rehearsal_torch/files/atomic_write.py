"""Atomic writing of files.

The new content is written to a temporary file beside the target, flushed to disk, and renamed over it:
readers see the old file or the new one, and a full disk, a kill or a crash leaves the old one unchanged.

Errors name the file, also where the operating system does not: a full disk is noticed while bytes are
written. Only a process that is killed leaves its temporary file behind. The next one that holds the lock
removes it (`remove_unfinished`).
"""

import errno
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# What a process with some number writes beside a file or a folder: its new content, and its old one.
_BESIDE = re.compile(r"\.(?P<name>.+)\.\d+\.(?P<kind>part|old)")


def write_text(path: str | Path, text: str) -> Path:
    """Replaces a UTF-8 text file atomically; see `write_bytes`."""
    return write_bytes(path, text.encode("utf-8"))


def make_folder(folder: str | Path) -> Path:
    """Creates a folder and its parents, if missing; OSError if it cannot be created, for a place that holds
    no folders, such as /proc, a PermissionError.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:
        raise PermissionError(errno.EACCES, "no folder can be made there", str(path)) from error
    return path


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Replaces a file atomically; missing folders are created. OSError if it cannot be written; the old file
    stays unchanged, and no temporary file is left.
    """
    file = Path(path)
    make_folder(file.parent)
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with _naming(file, beside):
            with beside.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(file)
    except BaseException:
        # What refuses to write may refuse to remove, too; the first error is the one to report.
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    return file


@contextmanager
def appending(path: str | Path) -> Iterator[Callable[[str], None]]:
    """Appends text to a UTF-8 file that grows, such as lines of a record, by a function that hands it to the
    operating system before it returns; OSError if it cannot be written: the last text may be there in part.
    """
    file = Path(path)
    stream = file.open("a", encoding="utf-8", newline="\n")

    def append(text: str) -> None:
        with _naming(file):
            stream.write(text)
            stream.flush()

    try:
        yield append
    except BaseException:
        # What could not be written is tried again on closing; the first error is the one to report.
        with suppress(OSError):
            stream.close()
        raise
    with _naming(file):
        stream.close()


@contextmanager
def _naming(file: Path, beside: Path | None = None) -> Iterator[None]:
    """Names the file in errors of the operating system that name none, or the temporary file beside it."""
    try:
        yield
    except OSError as error:
        if error.filename in (None, str(beside)):
            error.filename = str(file)
        raise


def remove_unfinished(folder: str | Path, names: Collection[str] | None = None) -> None:
    """Removes what killed processes left beside the files of a folder (those of these names; None for all),
    its subfolders excluded. A folder that was moved aside to be replaced is moved back if nothing has taken
    its place. To be called while no other process writes these files.
    """
    place = Path(folder)
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        found = _BESIDE.fullmatch(path.name)
        if found is None or (names is not None and found["name"] not in names):
            continue
        target = place / found["name"]
        if found["kind"] == "old" and not target.exists():
            path.rename(target)
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
