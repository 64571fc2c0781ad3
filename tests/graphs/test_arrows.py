"""Arrows of several notations, and what is none."""

import pytest

from rehearsal_torch.graphs.arrows import arrow, has_arrow, is_mark, no_arrow, unjoined


def test_every_notation_is_one_of_four():
    found = {each: arrow(each) for each in ("-->", "\u2192", "<--", "\u2190", "<-->", "\u27f7", "---", "a")}
    assert list(found.values()) == ["->", "->", "<-", "<-", "<->", "<->", "--", "a"]


@pytest.mark.parametrize(
    "text",
    ["a -> b", "a->b", "a \u21d2 b", "a > b", "a ~ b", "a - b", "a o-o b", "a --- b", "a => b", "a = b"],
)
def test_what_was_meant_as_an_edge_is_known(text):
    assert has_arrow(text)


@pytest.mark.parametrize("text", ["a b", "a-b.dagitty", "a=b", "no o-o", "x - ", "a, b"])
def test_names_are_no_edges(text):
    assert has_arrow(text) == (text == "x - ")


def test_marks_alone_are_no_names():
    assert [each for each in ("-", "~", "=", "\u2013", "a-b", "x", "_", "|") if is_mark(each)] == [
        "-",
        "~",
        "=",
        "\u2013",
        "|",
    ]
    assert no_arrow("=> b").startswith("'=>' is no arrow; write -> (cause to effect)")
    assert no_arrow("[a") == ""


def test_circles_are_told_beside_missing_arrows():
    assert "a circle, o, marks" in unjoined("a", "o-o")
    assert "circle" not in unjoined("a", "b")
