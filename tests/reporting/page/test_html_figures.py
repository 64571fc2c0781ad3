"""Pictures inside the page."""

import base64

import pytest

from rehearsal_torch.reporting.figure_style import drawing, panels, save
from rehearsal_torch.reporting.page.html import MOST, pictures, words
from rehearsal_torch.reporting.page.page_content import material
from rehearsal_torch.reporting.page.run_page import page
from tests.toys import recorded_runs
from tests.toys.read_page import Page

TINY = b'<?xml version="1.0"?>\n<svg width="150pt" height="37.5pt" xmlns="http://www.w3.org/2000/svg"></svg>'


CAPTIONS = words("captions")


def shown(folder):
    return Page(page(material(folder)))


@pytest.fixture
def folder(tmp_path):
    run = recorded_runs.alterations(tmp_path)
    (run / "figures").mkdir()
    return run


def test_a_picture_is_inside_the_page_with_its_size_and_words(folder):
    (folder / "figures/overturning.svg").write_bytes(TINY)
    found = shown(folder)
    assert found.faults == []
    ((_, image),) = (each for each in found.tags if each[0] == "img")
    assert base64.b64decode(image["src"].partition(",")[2]) == TINY
    assert (image["width"], image["height"]) == ("200", "50")
    assert image["alt"] == f"{CAPTIONS['overturning'][0]}. {CAPTIONS['overturning'][1]}"
    assert CAPTIONS["overturning"][1] in found.said


def test_a_wide_picture_takes_the_whole_width(folder):
    with drawing():
        save(panels(1, 4)[0], folder / "figures", "overturning")
        save(panels()[0], folder / "figures", "training_a")
    placed = pictures(material(folder))
    (wide,), (other,) = placed["trust"], placed["internals"]
    assert (wide.width, wide.steps, other.steps) == (round(4 * 5.2 * 96), 3, 0)


def test_what_is_no_picture_is_named_and_not_shown(folder):
    (folder / "figures/patient.svg").write_bytes(b"\x89PNG\r\n")
    (folder / "figures/effort.svg").mkdir()
    found = shown(folder)
    assert found.count("img") == 0
    assert "patient.svg cannot be shown: expected an SVG file with its size" in found.said
    assert "effort.svg cannot be shown: Is a directory." in found.said


def test_only_so_many_figures_are_shown(folder):
    for number in range(MOST + 2):
        (folder / f"figures/x{number:02}.svg").write_bytes(TINY)
    found = shown(folder)
    assert found.count("img") == MOST
