"""PNG pictures: their size, the record of their regions, and pieces cut out of them.

The record (`narrow.regions`) stands in the picture itself, as JSON under the keyword ``Regions``: both are
replaced together. What is read is bounded and checked: a picture may have been edited, or come from
elsewhere. Without a record of the expected form, a picture is taken as a whole.

Source: W3C, Portable Network Graphics, Third Edition, Sec. 5.2, 5.3, 11.2.1 (signature, chunks, IHDR) and
11.3.3.2 (tEXt).
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib import image

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEYWORD = "Regions"
# The largest number of dots of a picture that is cut, of its parts, and of the bytes of a record.
LARGEST, MOST, LONGEST = 12_000_000, 200, 2**17


@dataclass(frozen=True)
class Part:
    """A part of a picture.

    Attributes:
        box: Left, top, right and bottom, in dots.
        says: What it shows.
    """

    box: tuple[int, int, int, int]
    says: str

    @property
    def width(self) -> int:
        """Its width in dots."""
        return self.box[2] - self.box[0]


@dataclass(frozen=True)
class Regions:
    """The parts of a picture.

    Attributes:
        dots: Dots per inch.
        heading: The heading of the whole; may be empty.
        panels: Its panels.
        signs: The signs of its legend.
    """

    dots: int
    heading: str
    panels: tuple[Part, ...]
    signs: tuple[Part, ...]


def recorded(found: Mapping[str, Any]) -> dict[str, str]:
    """A record as metadata of a PNG file; empty without one.

    Args:
        found: The record of `regions.regions`.
    """
    return {KEYWORD: json.dumps(found, separators=(",", ":"))} if found else {}


def size(content: bytes) -> tuple[int, int]:
    """Width and height in dots.

    Raises:
        ValueError: if it is not a PNG file.
    """
    if not content.startswith(SIGNATURE) or len(content) < 24:
        raise ValueError("expected a PNG file; its first bytes are not those of one")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def read(content: bytes) -> Regions | None:
    """The record in a PNG file; None if it has none, or one that does not fit the picture.

    Args:
        content: The file.

    Raises:
        ValueError: if it is not a PNG file.
    """
    width, height = size(content)
    start = KEYWORD.encode() + b"\0"
    texts = [data for kind, data in _chunks(content) if kind == b"tEXt" and data.startswith(start)]
    if width * height > LARGEST or not texts or len(texts[0]) > LONGEST:
        return None
    try:
        plain = json.loads(texts[0][len(start) :])
        found = Regions(
            dots=_whole(plain["dots"], 1, 1200),
            heading=str(plain["heading"]),
            panels=_parts(plain["panels"], width, height),
            signs=_parts(plain["signs"], width, height),
        )
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return found if found.panels else None


def cut(content: bytes, parts: Sequence[Part]) -> list[bytes]:
    """The parts of a picture, as PNG files of their own.

    Args:
        content: A PNG file with a record.
        parts: Parts of its record.

    Raises:
        ValueError: if the picture is damaged.
    """
    try:
        dots = image.imread(BytesIO(content), format="png")
    except (OSError, SyntaxError, ValueError, struct.error) as error:
        raise ValueError("expected a whole PNG file; it is damaged") from error
    whole = np.rint(255 * dots).astype(np.uint8)
    # Shades of grey would be taken for numbers that want colours.
    whole = np.repeat(whole[..., None], 3, axis=-1) if whole.ndim == 2 else whole
    made = []
    for part in parts:
        left, top, right, bottom = part.box
        stream = BytesIO()
        piece, bare = whole[top:bottom, left:right], {"optimize": True, "pnginfo": None}
        image.imsave(stream, piece, format="png", pil_kwargs=bare)
        made.append(stream.getvalue())
    return made


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kinds and the data of the chunks before the picture itself."""
    place = len(SIGNATURE)
    while place + 8 <= len(content):
        length, kind = struct.unpack(">I4s", content[place : place + 8])
        if kind in (b"IDAT", b"IEND"):
            return
        yield kind, content[place + 8 : place + 8 + length]
        place += 12 + length


def _parts(plain: Any, width: int, height: int) -> tuple[Part, ...]:
    """The parts of a record.

    Raises:
        ValueError: if there are too many of them, or one is not within the picture.
    """
    if len(plain) > MOST:
        raise ValueError(f"expected at most {MOST} parts; got {len(plain)}")
    found = []
    for each in plain:
        left, top, right, bottom = each["box"]
        left, top = _whole(left, 0, width), _whole(top, 0, height)
        box = (left, top, _whole(right, left + 1, width), _whole(bottom, top + 1, height))
        found.append(Part(box, str(each["says"])))
    return tuple(found)


def _whole(value: object, least: int, most: int) -> int:
    """A whole number within bounds.

    Raises:
        ValueError: if it is none.
    """
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"expected a whole number from {least} to {most}; got {value}")
    return value
