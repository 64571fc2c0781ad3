"""Pictures that say where their parts lie: what is read of them, and what is cut out."""

import json
import struct
import zlib
from contextlib import suppress
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import image

from rehearsal_torch.reporting.narrow import png

# Four rows of six dots, no two alike.
DOTS = np.dstack(
    [*np.meshgrid(10 * np.arange(6), 20 * np.arange(4)), np.full((4, 6), 7), np.full((4, 6), 255)]
)
RECORD = {
    "dots": 150,
    "heading": "both",
    "panels": [{"box": [0, 0, 3, 4], "says": "left"}, {"box": [3, 1, 6, 3], "says": "rïght"}],
    "signs": [{"box": [5, 3, 6, 4], "says": "a line"}],
}


def picture(text=None, dots=DOTS):
    """A PNG file with a record."""
    stream = BytesIO()
    said = {"Software": None} if text is None else {"Software": None, png.KEYWORD: text}
    image.imsave(stream, dots.astype(np.uint8), format="png", metadata=said)
    return stream.getvalue()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def dots_of(content):
    return np.rint(255 * image.imread(BytesIO(content), format="png"))


def test_parts_are_cut_out_dot_by_dot():
    content = picture(png.recorded(RECORD)[png.KEYWORD])
    assert png.size(content) == (6, 4)
    found = png.read(content)
    assert (found.dots, found.heading) == (150, "both")
    assert [part.says for part in (*found.panels, *found.signs)] == ["left", "rïght", "a line"]
    left, right, sign = map(dots_of, png.cut(content, [*found.panels, *found.signs]))
    assert left.tolist() == DOTS[:, :3].tolist()
    assert right.tolist() == DOTS[1:3, 3:].tolist()
    assert sign.tolist() == DOTS[3:, 5:].tolist()
    assert found.panels[0].width == 3


def test_pieces_are_equal_each_time_and_say_nothing_of_their_maker():
    content = picture(json.dumps(RECORD))
    once, again = (png.cut(content, png.read(content).panels) for _ in range(2))
    assert once == again
    assert not any(b"tEXt" in piece for piece in once)


def test_shades_of_grey_stay_grey():
    stream = BytesIO()
    grey = np.arange(24, dtype=np.uint8).reshape(4, 6)
    rows = b"".join(b"\0" + line.tobytes() for line in grey)
    header = struct.pack(">IIBBBBB", 6, 4, 8, 0, 0, 0, 0)
    text = f"{png.KEYWORD}\0{json.dumps(RECORD)}".encode("latin-1")
    stream.write(png.SIGNATURE + chunk(b"IHDR", header) + chunk(b"tEXt", text))
    stream.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    content = stream.getvalue()
    (left, _) = map(dots_of, png.cut(content, png.read(content).panels))
    assert left[..., 0].tolist() == left[..., 2].tolist() == grey[:, :3].tolist()


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        "3",
        "[" * 5000,
        json.dumps(RECORD | {"dots": 0}),
        json.dumps(RECORD | {"dots": True}),
        json.dumps(RECORD | {"panels": []}),
        json.dumps(RECORD | {"panels": 3}),
        json.dumps(RECORD | {"panels": [{"box": [0, 0, 7, 4], "says": "too wide"}]}),
        json.dumps(RECORD | {"panels": [{"box": [3, 0, 3, 4], "says": "empty"}]}),
        json.dumps(RECORD | {"panels": [{"box": [-1, 0, 3, 4], "says": "outside"}]}),
        json.dumps(RECORD | {"panels": [{"box": [0, 0, 3.5, 4], "says": "between"}]}),
        json.dumps(RECORD | {"panels": [{"box": [0, 0, 3], "says": "short"}]}),
        json.dumps(RECORD | {"panels": RECORD["panels"] * png.MOST}),
        json.dumps({"panels": RECORD["panels"]}),
        json.dumps(RECORD | {"heading": "x" * png.LONGEST}),
    ],
)
def test_a_record_that_does_not_fit_is_none(text):
    assert png.read(picture(text)) is None


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.data())
def test_no_damage_breaks_the_reader(data):
    content = bytearray(picture(json.dumps(RECORD)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(8, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = bytes(content[: data.draw(st.integers(24, len(content)))])
    found = png.read(content)
    if found is not None:
        # Either it is damaged, or all parts are there.
        with suppress(ValueError):
            assert len(png.cut(content, found.panels)) == len(found.panels)


def test_other_files_are_refused_and_large_pictures_are_not_cut():
    with pytest.raises(ValueError, match="expected a PNG file"):
        png.read(b"GIF89a")
    content = picture(json.dumps(RECORD))
    with pytest.raises(ValueError, match="it is damaged"):
        png.cut(content[:-30], png.read(content).panels)
    large = content[:16] + struct.pack(">II", 6000, 6000) + content[24:]
    assert png.read(large) is None
    assert png.recorded({}) == {}
