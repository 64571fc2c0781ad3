"""All pages of the repository are staged, stand in the navigation once, and link to what exists."""

import re
import tomllib
import unicodedata
from pathlib import PurePosixPath as P

import pytest

from tests.house.layers import ROOT
from website.pages import BrokenLinksError
from website.staging import navigation, staged


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    return staged(ROOT, tmp_path_factory.mktemp("site") / "website")


def leaves(nav):
    for entry in nav:
        for to in entry.values():
            yield from leaves(to) if isinstance(to, list) else [to]


def test_every_page_stands_in_the_navigation_once(config):
    content = tomllib.loads(config.read_text())
    there = {path.relative_to(config.parent / "pages").as_posix() for path in config.parent.rglob("*.md")}
    listed = list(leaves(content["project"]["nav"]))
    assert len(listed) == len(set(listed))
    assert set(listed) == there
    assert {"index.md", "search.md", "tutorials/auf.md", "results/sepsis/index.md", "api/index.md"} <= there


def test_the_navigation_has_the_sections(config):
    names = [name for entry in tomllib.loads(config.read_text())["project"]["nav"] for name in entry]
    expected = ["Start", "Tutorials", "Theory", "Sharp bits", "API reference", "Results", "Notation"]
    assert [name for name in names if name in expected] == expected


def anchors(text):
    """The names by which the headings of a page are linked to."""
    heads = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    plain = (unicodedata.normalize("NFKD", re.sub(r"\]\([^)]*\)|[`*\[]", "", head)) for head in heads)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in plain}


def test_every_anchor_of_a_link_is_a_heading(config):
    pages = config.parent / "pages"
    heads = {path: anchors(path.read_text()) for path in pages.rglob("*.md")}
    found = [
        (path, (path.parent / target).resolve() if target else path, anchor)
        for path in heads
        for target, anchor in re.findall(r"\]\(([^()\s:#]*)#([\w-]+)\)", path.read_text())
    ]
    assert len(found) > 50
    broken = [(path.name, anchor) for path, to, anchor in found if to in heads and anchor not in heads[to]]
    assert broken == []


def test_images_of_pages_and_notebooks_are_there(config):
    pages = config.parent / "pages"
    figure = (ROOT / "docs/figures/patient_course.png").read_bytes()
    assert (pages / "figures/patient_course.png").read_bytes() == figure
    assert (pages / "tutorials/auf_1.png").read_bytes().startswith(b"\x89PNG")
    assert list((pages / "results/sepsis/figures").glob("*.svg"))


def test_pages_that_are_named_nowhere_stand_under_guides():
    made = {P("index.md"): "# Start", P("lines.md"): "# Command line", P("search.md"): "# Search"}
    assert navigation(made) == {"Start": "index.md", "Guides": "lines.md", "Theory": "search.md"}


def test_a_broken_link_stages_nothing(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "README.md").write_text("# Start\n\n[gone](docs/gone.md)\n")
    with pytest.raises(BrokenLinksError, match=r"docs/gone\.md"):
        staged(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_page_asks_another_server(config):
    text = config.read_text()
    assert "font = false" in text
    assert "inventories" not in text
