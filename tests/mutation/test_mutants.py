"""The mutants of a piece of code."""

import ast

import pytest

from tests.mutation.mutants import mutants

SOURCE = '''
"""Docstring of 1 module."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    NEVER = 1 < 2


def first(a: int = 3, flag: "bool" = True) -> "int | None":
    """Returns 1 if a > 1."""
    if not flag and a < 2:
        raise ValueError("2 < 3")
    return a + 1
'''


def test_every_small_fault_is_made_once():
    found = [(each.line, each.before, each.after) for each in mutants(SOURCE)]
    assert found == [
        (9, "3", "4"),
        (9, "True", "False"),
        (11, "2", "3"),
        (11, "a < 2", "a <= 2"),
        (11, "not flag", "flag"),
        (11, "not flag and a < 2", "not flag or a < 2"),
        (12, "raise ValueError('2 < 3')", "pass"),
        (13, "1", "2"),
        (13, "a + 1", "a - 1"),
        (13, "return a + 1", "return None"),
    ]


def test_each_has_one_change_and_can_be_run():
    original = ast.unparse(ast.parse(SOURCE)).splitlines()
    for each in mutants(SOURCE):
        changed = ast.unparse(each.tree).splitlines()
        differing = [new for old, new in zip(original, changed, strict=True) if old != new]
        assert len(differing) == 1
        assert each.after in differing[0]
        names = {}
        exec(compile(each.tree, "mutant", "exec"), names)
        assert names["first"](5) in (6, 4, 7, None)


@pytest.mark.parametrize(
    ("before", "after"),
    [("a is None", "a is not None"), ("a in b", "a not in b"), ("a * b", "a / b"), ("a == b", "a != b")],
)
def test_each_operator_has_its_opposite(before, after):
    for one, other in ((before, after), (after, before)):
        assert [(each.before, each.after) for each in mutants(one)] == [(one, other)]
    assert mutants("'text' + name") == []


def test_keywords_that_guard_against_mistakes_are_left_alone():
    assert mutants("zip(a, b, strict=True)") == []
    assert mutants("@dataclass(frozen=True)\nclass A:\n    pass") == []
    assert [each.after for each in mutants("f(a, lazy=True)")] == ["False"]
