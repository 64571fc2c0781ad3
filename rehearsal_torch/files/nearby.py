"""Files that may be meant by the name of one that is not there: those beside it with a like name.

Names are compared without their endings, which most of the files of a folder share, and upper and lower case
alike.
"""

from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

# Files of a folder that are looked at, and how alike two names are from which on one may be meant.
MANY, ALIKE = 1000, 0.6


def beside(file: Path) -> list[str]:
    """The names in the folder that a file would lie in; empty if it cannot be read."""
    try:
        return [each.name for each in islice(file.parent.iterdir(), MANY)]
    except OSError:
        return []


def near_files(file: Path) -> list[str]:
    """The names that may be meant, the nearest first."""
    ranked = sorted((-_alike(file.name, name), name) for name in beside(file))
    return [name for unlike, name in ranked if -unlike >= ALIKE]


def _alike(one: str, other: str) -> float:
    """How alike two names are, in [0, 2): those with the same ending come first."""
    stems, endings = zip(*(name.casefold().partition(".")[::2] for name in (one, other)), strict=True)
    ratio = SequenceMatcher(None, *stems).ratio()
    return ratio + (0.5 if ratio >= ALIKE and endings[0] == endings[1] else 0.0)
