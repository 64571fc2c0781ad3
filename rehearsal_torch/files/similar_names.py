"""Files that may be meant by the name of one that is not there, and folders with a checkpoint.

Names of files are compared without their endings, which most of the files of a folder share, and upper and
lower case alike. A checkpoint is a folder with ``config.yaml`` and ``weights.safetensors``; the folder of a
run holds one as ``checkpoint/``. In place of a folder that holds none, those are suggested that do: below the
folder itself, below the one that it would lie in, and below ``checkpoints`` and ``runs`` of the working
folder, two levels deep.
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
        return [each.name for each in islice(file.parent.iterdir(), MANY)]
    except OSError:
        return []


def as_named(file: Path) -> Path:
    """A file, or, if there is none, the one whose name has the same letters, composed in another way."""
    same = [name for name in beside(file) if normalize("NFC", name) == normalize("NFC", file.name)]
    return file.with_name(same[0]) if same and not file.exists() else file


def near_files(file: Path) -> list[str]:
    """The names that may be meant, the nearest first."""
    ranked = sorted((-_alike(file.name, name), name) for name in beside(file))
    return [name for unlike, name in ranked if -unlike >= ALIKE]


def _alike(one: str, other: str) -> float:
    """How alike two names are, in [0, 2): those with the same ending come first."""
    stems, endings = zip(*(name.casefold().partition(".")[::2] for name in (one, other)), strict=True)
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
    """Which folders with a checkpoint may be meant by one that holds none, the nearest names first; empty if
    none is near.
    """
    typed = Path(given)
    if checkpoint_in(typed.parent) == typed.parent:
        # One of its files was given.
        return f"Did you mean {typed.parent}?"
    places = dict.fromkeys((typed, typed.parent, Path("checkpoints"), Path("runs")))
    found = dict.fromkeys(each for place in places for each in _below(place) if each != typed)
    ranked = sorted(found, key=lambda path: (-_folders_alike(typed, path), str(path)))
    inside = [path for path in ranked if typed in path.parents]
    near = [str(path) for path in ranked if _folders_alike(typed, path) >= ALIKE]
    if near and not inside:
        return f"Did you mean {' or '.join(near[:2])}?"
    ranked = inside or ranked
    more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
    return f"Choose from {', '.join(map(str, ranked[:NAMED]))}{more}" if ranked else ""


def _below(place: Path) -> Iterator[Path]:
    """The folders with a checkpoint below a place; those of a run by the run's folder."""
    left = LOOKED
    level = [place]
    for _ in range(DEEP):
        inside: list[Path] = []
        for each in level:
            inside += _folders(each)[: max(left - len(inside), 0)]
        left -= len(inside)
        yield from (path for path in inside if checkpoint_in(path) is not None)
        level = [path for path in inside if checkpoint_in(path) is None]


def _folders(place: Path) -> list[Path]:
    """The folders in a folder, by name; none if it cannot be read."""
    try:
        return sorted(path for path in place.iterdir() if path.is_dir())
    except OSError:
        return []


def _folders_alike(typed: Path, path: Path) -> float:
    """How alike the names of two folders are, in [0, 1]."""
    return SequenceMatcher(None, typed.name.lower(), path.name.lower()).ratio()
