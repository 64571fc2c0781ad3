"""Writing a file as a whole or not at all.

The new content is written beside the file, brought to disk, and renamed over it: whoever reads sees the old file or the new
one, and a full disk, a kill or a crash leaves the old one as it was.
"""

import os
from pathlib import Path


def write_text(path: str | Path, text: str) -> Path:
    """Replaces a text file, UTF-8, as a whole; see `write_bytes`."""
    return write_bytes(path, text.encode("utf-8"))


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
    file.parent.mkdir(parents=True, exist_ok=True)
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
