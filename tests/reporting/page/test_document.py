"""The frame of the page."""

import re

import pytest

from rehearsal_torch.reporting.page.document import CSS, MARK, Section, document, origin, provenance
from rehearsal_torch.reporting.page.markup import Markup, tag
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def test_the_frame_names_language_and_title_and_loads_nothing():
    sections = [Section("one", "First & last", tag("p", "x")), Section("two", "Empty", Markup())]
    text = document("Report: <a>", tag("p", "lead"), sections, "end")
    page = Page(text)
    assert page.faults == []
    assert text.startswith(MARK)
    assert dict(page.tags)["html"] == {"lang": "en"}
    assert "<title>Report: &lt;a&gt;</title>" in text
    metas = [found for name, found in page.tags if name == "meta"]
    (policy,) = (found["content"] for found in metas if found.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:")
    assert any(found.get("content") == "width=device-width, initial-scale=1" for found in metas)
    assert [found["href"] for name, found in page.tags if name == "a"] == ["#one"]
    assert "Empty" not in page.said


def test_two_sections_of_one_id_are_refused():
    twice = [Section("one", "a", tag("p")), Section("one", "b", tag("p"))]
    with pytest.raises(ValueError, match="different ids"):
        document("t", Markup(), twice, "")


COLOURS = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", CSS))


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("ink", "paper"),
    [("ink", "paper"), ("soft", "paper"), ("blue", "paper"), ("ink", "warn-tint"), ("blue", "warn-tint"),
     ("ink", "tint"), ("soft", "tint"), ("warn", "paper")],
)  # fmt: skip
def test_texts_have_enough_contrast(ink, paper):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast(COLOURS[ink], COLOURS[paper]) >= 4.5


def test_there_are_rules_for_paper_and_phones_and_boxes_scroll_by_themselves():
    assert CSS.count("{") == CSS.count("}")
    assert "@media print" in CSS
    assert "@media (max-width: 40rem)" in CSS
    assert re.search(r"\.scroll \{[^}]*overflow-x: auto", CSS)
    assert not re.search(r"url\(|@import|https?:|<", CSS)


def shown(run):
    return Page(f'<html lang="en"><h1>t</h1>{provenance(material(run))}</html>')


def test_an_unknown_commit_is_told(tmp_path):
    run = recorded_runs.alterations(tmp_path, record=recorded_runs.RECORD | {"commit": None}, config={})
    page = shown(run)
    assert "commit not known: the package was installed without its history" in page.said
    assert "The run recorded no configuration." in page.said
    (tmp_path / "run.json").unlink()
    assert [name for name, _ in origin(material(run))] == ["run folder"]
