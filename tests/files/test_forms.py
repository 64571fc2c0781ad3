"""The form of records."""

import pytest

from rehearsal_torch.files.forms import checked, is_a, shown
from rehearsal_torch.files.plain import PlainFileError


@pytest.mark.parametrize(
    ("value", "form", "right"),
    [
        ("a", "a string", True),
        (None, "a string", False),
        (None, "a string or null", True),
        (True, "a number", False),
        (1, "a number", True),
        (float("nan"), "a number", False),
        (float("inf"), "a number or null", False),
        (10**400, "a number", False),
        (1.0, "a whole number", False),
        (2**63, "a whole number", False),
        (-1, "a whole number", True),
        (0, "true, false or null", False),
        (False, "true, false or null", True),
        (["a"], "a list of strings", True),
        (["a", 1], "a list of strings", False),
        ("ab", "a list of strings", False),
        ({}, "a mapping", True),
        ([], "a mapping", False),
        ({"a": 1, "b": None}, "a mapping of numbers", True),
        ({"a": "1"}, "a mapping of numbers or null", False),
        (None, "a mapping of numbers or null", True),
    ],
)
def test_kinds(value, form, right):
    assert is_a(value, form) is right


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="there is no kind 'a text'"):
        is_a(1.0, "a text")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1], r"file: expected a mapping of names to values; got \[1\]: restore it"),
        ({"b": 1}, "expected the keys a, b; there is no a"),
        ({"a": 1, "b": "x"}, "file: b: expected a number; got x"),
    ],
)
def test_what_is_of_another_form_is_said(content, words):
    with pytest.raises(PlainFileError, match=words):
        checked(content, "file", {"b": "a number"}, ("a", "b"), "restore it")


def test_values_are_shown_on_one_short_line():
    assert shown("a\0\nb") == "'a\\x00\\nb'"
    assert len(shown("x" * 500)) == 80
    assert shown("") == "''"
