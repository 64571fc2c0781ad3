"""The page on architecture says what the code is: its rooms, and the files that it names."""

import re

import pytest

from tests.house.layers import LAYERS, PACKAGE, RANK, ROOT
from tests.house.rooms import PAGE, described, rooms, table, touched, write, written

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_table_is_that_of_the_code():
    assert written(TEXT) == TEXT, "make it anew: python -m tests.house.rooms"


def test_every_folder_and_module_has_a_row_in_its_layer():
    inside = [path for path in (ROOT / PACKAGE).iterdir() if path.suffix in ("", ".py")]
    there = {path.name.removesuffix(".py") for path in inside}
    there -= {"__init__", "__pycache__"}
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table().splitlines()[2:]]
    assert sorted(row[1].strip("`") for row in rows) == sorted(there) == rooms()
    assert [int(row[0]) for row in rows] == [rank for rank, names in enumerate(LAYERS) for _ in names]


def test_rooms_touch_only_what_lies_below():
    for room in rooms():
        assert all(RANK[other] <= RANK[room] for other in touched(room)), room
    assert touched("files") == []


@pytest.mark.parametrize("page", [PAGE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_files_that_the_page_names_exist(page):
    spans = re.findall(r"`([\w./-]+)`", page.read_text(encoding="utf-8"))
    heads = (f"{PACKAGE}/", "tests/", "conf/", "docs/", "scripts/", "benchmarks/", "notebooks/", "website/")
    named = [span for span in spans if span.startswith(heads)]
    assert len(named) > 8
    assert [span for span in named if not (ROOT / span).exists()] == []


@pytest.mark.slow
def test_the_table_is_written_in_its_place(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- rooms: begin -->\nold\n<!-- rooms: end -->\nafter\n")
    write(page)
    assert page.read_text() == f"before\n<!-- rooms: begin -->\n{table()}<!-- rooms: end -->\nafter\n"
    with pytest.raises(ValueError, match="expected one place"):
        written("no place")


def test_rooms_say_what_they_are_for():
    assert all(described(room) for room in rooms())
