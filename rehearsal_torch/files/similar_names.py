"""Suggestions for missing files and checkpoint folders, by similar names.

Names of files are compared without their endings, which most of the files of a folder share, and upper and
lower case alike. A checkpoint is a folder with ``config.yaml`` and ``weights.safetensors``; the folder of a
run holds one as ``checkpoint/``. In place of a folder that holds none, those are suggested that do, two
levels below itself, its parent, and ``checkpoints`` and ``runs`` of the working folder.
"""

import os
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from unicodedata import normalize

# Files of a folder that are looked at, and how alike two names are from which on one may be meant.
MANY, ALIKE = 1000, 0.6


def beside(file: Path) -> list[str]:
    """The names in the folder that a file would lie in; empty if it cannot be read."""
    try:
        return [path.name for path in islice(file.parent.iterdir(), MANY)]
    except OSError:
        return []


def as_named(file: Path) -> Path:
    """A file, or, if there is none, that of the same name in another Unicode composition."""
    matches = [name for name in beside(file) if normalize("NFC", name) == normalize("NFC", file.name)]
    return file.with_name(matches[0]) if matches and not file.exists() else file


def near_files(file: Path) -> list[str]:
    """The names that may be meant, the nearest first."""
    ranked = sorted((-_alike(file.name, name), name) for name in beside(file))
    return [name for negative, name in ranked if -negative >= ALIKE]


def _alike(first: str, second: str) -> float:
    """How alike two names are, in [0, 2): those with the same ending come first."""
    stems, endings = zip(*(name.casefold().partition(".")[::2] for name in (first, second)), strict=True)
    ratio = SequenceMatcher(None, *stems).ratio()
    return ratio + (0.5 if ratio >= ALIKE and endings[0] == endings[1] else 0.0)


FILES = ("config.yaml", "weights.safetensors")
# Folders that are looked at in each place, levels below it, and folders that a message names.
LOOKED, DEEP, NAMED = 500, 2, 5


def checkpoint_in(folder: str | Path) -> Path | None:
    """The folder of the checkpoint: ``checkpoint/`` of a run, or the folder itself; None if there is none."""
    for path in (Path(folder) / "checkpoint", Path(folder)):
        # `os.path.isfile` answers for folders that may not be read, too.
        if all(os.path.isfile(path / name) for name in FILES):  # noqa: PTH113
            return path
    return None


def suggestion(given: str | Path) -> str:
    """Folders with a checkpoint that may be meant by one without, nearest first; may be empty."""
    typed = Path(given)
    if checkpoint_in(typed.parent) == typed.parent:
        # One of its files was given.
        return f"Did you mean {typed.parent}?"
    folders = dict.fromkeys((typed, typed.parent, Path("checkpoints"), Path("runs")))
    candidates = dict.fromkeys(path for folder in folders for path in _models_below(folder) if path != typed)
    ranked = sorted(candidates, key=lambda path: (-_folders_alike(typed, path), str(path)))
    inside = [path for path in ranked if typed in path.parents]
    near = [str(path) for path in ranked if _folders_alike(typed, path) >= ALIKE]
    if near and not inside:
        return f"Did you mean {' or '.join(near[:2])}?"
    ranked = inside or ranked
    more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
    return f"Choose from {', '.join(map(str, ranked[:NAMED]))}{more}" if ranked else ""


def _models_below(folder: Path) -> Iterator[Path]:
    """The folders with a checkpoint below a place; those of a run by the run's folder."""
    remaining = LOOKED
    level = [folder]
    for _ in range(DEEP):
        children: list[Path] = []
        for parent in level:
            children += _folders(parent)[: max(remaining - len(children), 0)]
        remaining -= len(children)
        yield from (path for path in children if checkpoint_in(path) is not None)
        level = [path for path in children if checkpoint_in(path) is None]


def _folders(folder: Path) -> list[Path]:
    """The folders in a folder, by name; none if it cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []


def _folders_alike(typed: Path, path: Path) -> float:
    return SequenceMatcher(None, typed.name.lower(), path.name.lower()).ratio()
