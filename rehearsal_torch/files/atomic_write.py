"""Atomic writing of files.

The new content is written to a temporary file beside the target, flushed to disk, and renamed over it:
readers see the old file or the new one, and a full disk, a kill or a crash leaves the old one unchanged.

Errors name the file, also where the operating system does not: a full disk is noticed while bytes are
written. A killed process leaves its temporary file to `remove_unfinished`.
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
    """Creates missing folders; OSError if it cannot, a PermissionError in places such as /proc."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:
        raise PermissionError(errno.EACCES, "no folder can be made there", str(path)) from error
    return path


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Replaces a file atomically, with missing folders; OSError leaves the old file as it was."""
    file = Path(path)
    make_folder(file.parent)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with _naming(file, temporary):
            with temporary.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(file)
    except BaseException:
        # What refuses to write may refuse to remove, too; the first error is the one to report.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return file


@contextmanager
def appending(path: str | Path) -> Iterator[Callable[[str], None]]:
    """Yields a function that appends text to a growing UTF-8 file at once; OSError if it cannot."""
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
    """Removes what killed processes left beside the files of a folder (of these names; None for all), not in
    subfolders, and moves back a folder that was moved aside. No other process may write meanwhile.
    """
    directory = Path(folder)
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        match = _BESIDE.fullmatch(path.name)
        if match is None or (names is not None and match["name"] not in names):
            continue
        target = directory / match["name"]
        if match["kind"] == "old" and not target.exists():
            path.rename(target)
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
