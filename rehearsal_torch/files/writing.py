"""Writing a file as a whole or not at all.

The new content is written beside the file, brought to disk, and renamed over it: whoever reads sees the old
file or the new one, and a full disk, a kill or a crash leaves the old one as it was.
"""

import errno
import os
from pathlib import Path


def write_text(path: str | Path, text: str) -> Path:
    """Replaces a text file, UTF-8, as a whole; see `write_bytes`."""
    return write_bytes(path, text.encode("utf-8"))


def make_folder(folder: str | Path) -> Path:
    """Makes a folder, and those above it, where they are missing.

    Returns:
        The folder.

    Raises:
        OSError: if it cannot be made; a place that takes no folders, such as /proc, says so as one that may
            not be written to.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:
        raise PermissionError(errno.EACCES, "no folder can be made there", str(path)) from error
    return path


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Replaces a file as a whole; folders that are missing are made.

    Args:
        path: The file.
        content: What it is to hold.

    Returns:
        The file.

    Raises:
        OSError: if it cannot be written; what was there stays, and nothing is left beside it.
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
