"""Texts stay texts, whatever they hold."""

import html

from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.reporting.page.markup import (
    Markup,
    bullets,
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
