"""Texts stay texts, whatever they hold, and the frame of a page loads and runs nothing but its own."""

import base64
import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError

from rehearsal_torch.reporting.page.html import CSS, MARK, POLICY, SORT, render, sentence, sentences
from rehearsal_torch.reporting.page.views import case_of
from tests.toys.read_page import Page

EVIL = "<script>alert(1)</script>"
EMPTY = {"differences": [], "runs": [], "cases": None, "more": 0, "tables": [], "scores": []}


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.text(st.characters()))
def test_any_text_can_be_written_and_read_again(text):
    page = Page(render("comparison.html", title=text, **EMPTY))
    assert page.faults == []
    page.said.encode("utf-8")


def test_what_html_does_not_allow_is_replaced_and_can_be_seen():
    assert "<h1>a\ufffdb\ufffdc\ufffd</h1>" in render("comparison.html", title="a\0b\x9fc\ud800", **EMPTY)


def test_the_frame_names_language_and_title_and_allows_its_own_style_and_script_alone():
    text = render("comparison.html", title="Report: <a>", **EMPTY)
    page = Page(text)
    assert page.faults == []
    assert text.startswith(MARK)
    assert "<title>Report: &lt;a&gt;</title>" in text
    metas = [attributes for name, attributes in page.tags if name == "meta"]
    (policy,) = (meta["content"] for meta in metas if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy == POLICY
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy
    for name, content in (("style", CSS), ("script", SORT)):
        assert f"<{name}>{content}</{name}>" in text
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
        assert "</" not in content
    assert any(meta.get("content") == "width=device-width, initial-scale=1" for meta in metas)
    assert not any("style" in attributes for _, attributes in page.tags), "the policy would not apply it"


def test_a_sentence_is_plain_for_a_terminal_and_lists_are_parted_by_blank_lines():
    case = case_of({"identity": "a", "status": "do", "alteration": {EVIL: 2.0}})
    assert sentence("headline", case) == f"Set {EVIL} to 2."
    assert sentences("truth", case) == []


def test_a_field_that_does_not_exist_is_an_error():
    with pytest.raises(UndefinedError):
        sentence("headline", object())


COLOURS = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", CSS))


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("paper", ["paper", "tint"])
@pytest.mark.parametrize("ink", ["ink", "soft", "blue", "warn", "do", "may", "leave", "unclear"])
def test_texts_have_enough_contrast(ink, paper):
    low, high = sorted((luminance(COLOURS[ink]), luminance(COLOURS[paper])))
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_there_are_rules_for_paper_and_phones_and_boxes_scroll_by_themselves():
    assert CSS.count("{") == CSS.count("}")
    assert "@media print" in CSS
    assert "@media (max-width: 40rem)" in CSS
    assert re.search(r"\.scroll \{[^}]*overflow-x: auto", CSS)
    assert not re.search(r"url\(|@import|https?:|<", CSS)
