"""Texts stay texts, whatever they hold."""

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.reporting.page.html import (
    CSS,
    MARK,
    Markup,
    Section,
    bullets,
    document,
    facts,
    joined,
    name_of,
    paragraphs,
    table,
    tag,
    text,
)
from tests.toys.read_page import Page

EVIL = "<script>alert(1)</script>"


def test_a_text_is_escaped_and_markup_is_not():
    assert tag("p", EVIL) == "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"
    assert tag("p", tag("b", "x & y")) == "<p><b>x &amp; y</b></p>"
    assert (
        tag("a", "x", href='"><script>', class_="c") == '<a href="&quot;&gt;&lt;script&gt;" class="c">x</a>'
    )
    assert tag("details", None, open=True, id=None) == "<details open></details>"
    assert tag("img", alt="a", aria_label="b") == '<img alt="a" aria-label="b">'


def test_a_part_of_markup_is_a_text_again():
    made = tag("b", "x")
    assert text(made[:3]) == "&lt;b&gt;"
    assert text(made + "y") == "&lt;b&gt;x&lt;/b&gt;y"
    assert isinstance(joined([made, "<"]), Markup)
    assert joined([made, None, "<"], between="&") == "<b>x</b>&amp;&lt;"


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.text(st.characters()))
def test_any_text_can_be_written_and_read_again(words):
    page = Page(f'<html lang="en"><h1>{tag("p", words, title=words)}</h1></html>')
    assert page.faults == []
    (attributes,) = (found for name, found in page.tags if name == "p")
    read = attributes.get("title") or ""
    assert len(read) == len(words)
    assert all(one in (other, "\ufffd") for one, other in zip(read, words, strict=True))
    str(text(words)).encode("utf-8")
    assert html.unescape(text("a\0b\x9fc\ud800")) == "a\ufffdb\ufffdc\ufffd"


def test_a_table_says_what_it_shows_and_which_cells_are_heads():
    made = table("Chances", ["case", "chance", EVIL], [["ann", "0.8", tag("i", "x")]], texts=(0, 2))
    page = Page(f'<html lang="en"><h1>t</h1>{made}</html>')
    assert page.faults == []
    box = next(found for name, found in page.tags if found.get("role") == "region")
    assert (box["aria-label"], box["tabindex"], box["class"]) == ("Chances", "0", "scroll")
    assert [found["scope"] for name, found in page.tags if name == "th"] == ["col", "col", "col", "row"]
    assert '<td class="n">0.8</td><td><i>x</i></td>' in made
    assert table("nothing", ["a"], []) == ""


def test_lists_and_facts_without_content_are_empty():
    assert bullets([]) == "" == facts([]) == paragraphs([])
    assert bullets(["a", None, "<"]) == "<ul><li>a</li><li>&lt;</li></ul>"
    assert facts([("n", "1")]) == "<dl><div><dt>n</dt><dd>1</dd></div></dl>"
    assert paragraphs(["a", "&"]) == "<p>a</p><p>&amp;</p>"


def test_a_case_has_its_identity_or_its_number_as_name():
    assert name_of({"identity": "ann", "index": 3}) == "ann"
    assert name_of({"index": 3}) == "3"
    assert name_of({"identity": "", "index": 0}) == "0"


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
