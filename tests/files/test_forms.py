"""The form of records."""

import pytest

from rehearsal_torch.files.forms import is_a, shown


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


def test_values_are_shown_on_one_short_line():
    assert shown("a\0\nb") == "'a\\x00\\nb'"
    assert len(shown("x" * 500)) == 80
    assert shown("") == "''"
