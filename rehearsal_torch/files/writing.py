"""Atomic writing of files.

The new content is written to a temporary file beside the target, flushed to disk, and renamed over it:
readers see the old file or the new one, and a full disk, a kill or a crash leaves the old one unchanged.
"""

import errno
import os
from pathlib import Path


def write_text(path: str | Path, text: str) -> Path:
    """Replaces a UTF-8 text file atomically; see `write_bytes`."""
    return write_bytes(path, text.encode("utf-8"))


def make_folder(folder: str | Path) -> Path:
    """Creates a folder and its parents, if missing.

    Returns:
        The folder.

    Raises:
        OSError: if it cannot be created; for a place that holds no folders, such as /proc, a PermissionError.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:
        raise PermissionError(errno.EACCES, "no folder can be made there", str(path)) from error
    return path


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Replaces a file atomically; missing folders are created.

    Args:
        path: The file.
        content: The new content.

    Returns:
        The file.

    Raises:
        OSError: if it cannot be written; the old file stays unchanged, and no temporary file is left.
    """
    file = Path(path)
    make_folder(file.parent)
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return file
