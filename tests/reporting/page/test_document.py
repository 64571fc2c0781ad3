"""The frame of the page."""

import pytest

from rehearsal_torch.reporting.page.document import MARK, Section, document
from rehearsal_torch.reporting.page.markup import Markup, tag
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
