"""Which files are problem files: YAML with a part that only a problem file has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal_torch.files.plain import PlainFileError, read_yaml

YAML = (".yaml", ".yml")
_PARTS = {"question", "data", "variables", "desired"}


def problem_content(path: str | Path) -> Mapping[str, Any] | None:
    """The content of a problem file; None if it is something else, or cannot be read."""
    try:
        content = read_yaml(path)
    except PlainFileError:
        return None
    return content if isinstance(content, Mapping) and _PARTS & set(content) else None


def is_plain(path: str | Path) -> bool:
    """Whether a file can be read as YAML, and has something in it."""
    try:
        return read_yaml(path) is not None
    except PlainFileError:
        return False
