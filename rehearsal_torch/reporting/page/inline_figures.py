"""Figures of a run folder inside a page, with captions and alternative texts (``templates/sentences.txt``).

A figure is an SVG file of at most 6 MiB as this package writes it; anything else in its place is named, not
shown. It stands in an ``img``, in which browsers run no script and load nothing. Its size is read from its
first lines, so that the page does not jump while it is loaded. It scales with the page; a wide one takes the
whole width, and scrolls where texts would be too small.
"""

import base64
import re
from dataclasses import dataclass
from pathlib import Path

from rehearsal_torch.reporting.labels import Wording
from rehearsal_torch.reporting.page.html import words as words_of
from rehearsal_torch.reporting.page.page_content import Material

LARGEST, MOST = 6 * 2**20, 24
# Pixels from which on a figure takes the whole width of the page.
WIDE = 650
# Points of a pixel, and the bytes at the start of a file that hold its size.
POINTS, OPENING = 0.75, 4096
_ROOT, _LENGTH = re.compile(rb"<svg\b[^>]*>"), rb'\b%s="([0-9]{1,8}(?:\.[0-9]{1,12})?)pt"'


@dataclass(frozen=True)
class Figure:
    """A picture with its caption, its `source` and its size in pixels; or the `fault` of its file."""

    name: str
    title: str
    meaning: str
    source: str = ""
    width: int = 0
    height: int = 0
    fault: str = ""

    @property
    def wide(self) -> bool:
        """Whether it takes the whole width of the page."""
        return self.width > WIDE


def pictures(report: Material) -> dict[str, list[Figure]]:
    """The figures of a run folder by the section in which they stand, in the order of their captions."""
    words, captions = report.words, words_of("captions")
    rank = {name: number for number, name in enumerate(captions)}
    folder = report.run.path / "figures"
    files = sorted(folder.glob("*.svg")) if folder.is_dir() else []
    files.sort(key=lambda path: rank.get(_key(path.stem, words), len(rank)))
    placed: dict[str, list[Figure]] = {"answer": [], "cases": [], "trust": [], "internals": []}
    for path in files[:MOST]:
        title, meaning, place = captions.get(
            _key(path.stem, words), (path.stem.replace("_", " "), "", "internals")
        )
        unit = "an episode" if words.episode == "episode" else f"one {words.episode}"
        nouns = words.episodes if report.sequences else "cases"
        title, meaning = (text.format(one=unit, episodes=nouns) for text in (title, meaning))
        if path.stem.startswith("training_"):
            title = f"{title}: {path.stem.removeprefix('training_').replace('_', ' ')}"
        placed[place].append(_read(path, title, meaning))
    return placed


def embedded(content: bytes, name: str, title: str, meaning: str) -> Figure:
    """A figure of an SVG file. ValueError if it is not an SVG file with a size in points."""
    root = _ROOT.search(content[:OPENING]) if content.startswith(b"<?xml") else None
    sides = [re.search(_LENGTH % side, root[0]) if root else None for side in (b"width", b"height")]
    width, height = (0 if side is None else round(float(side[1]) / POINTS) for side in sides)
    if width < 1 or height < 1:
        raise ValueError("expected an SVG file with its size in points; its first lines are not those of one")
    source = f"data:image/svg+xml;base64,{base64.b64encode(content).decode('ascii')}"
    return Figure(name, title, meaning, source, width, height)


def _key(name: str, words: Wording) -> str:
    """The name of a figure's caption; the figures of training share one."""
    if name == words.file:
        return "patient"
    return "training" if name.startswith("training_") else name


def _read(path: Path, title: str, meaning: str) -> Figure:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"expected at most {LARGEST // 2**20} MiB; it is larger")
        return embedded(content, path.name, title, meaning)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return Figure(path.name, title, meaning, fault=str(reason))
