"""Which tests run which lines."""

import pytest
from coverage import CoverageData

from tests.house.layers import ROOT
from tests.mutation.reach import Reach, beside, node_of, scope_of, spread

HERE = "tests.mutation.test_reach"
SOURCE = """import os


class Region:
    side: int = 3

    def area(self, times: int = 2):
        return self.side * times


WHOLE = 7
"""


@pytest.mark.parametrize(
    ("line", "lines"), [(1, (1, 11)), (5, (4, 8)), (7, (7, 8)), (8, (7, 8)), (11, (1, 11))]
)
def test_a_line_belongs_to_the_innermost_function_or_class(line, lines):
    found = scope_of(SOURCE, line)
    assert (found[0], found[-1]) == lines


def test_tests_are_named_as_pytest_names_them():
    assert node_of(f"{HERE}.test_a") == "tests/mutation/test_reach.py::test_a"
    assert node_of(f"{HERE}.TestRegion.test_a") == "tests/mutation/test_reach.py::TestRegion::test_a"
    for other in (HERE, "hypothesis.internal.conjecture.engine.test_function", "tests.nowhere.test_b.test_c"):
        assert node_of(other) == ""


def test_few_tests_are_taken_from_many_files_and_none_of_the_modules_own():
    every = [*(f"tests/a/test_b.py::test_{place}" for place in range(5)), "tests/a/test_c.py::test_0"]
    own = "tests/mutation/test_reach.py::test_a"
    assert spread([*every, own], [ROOT / "tests/mutation/test_reach.py"], 2) == [every[0], every[5]]
    assert spread([*every, own], [], 9) == sorted([*every, own])
    assert spread([own], [ROOT / "tests/mutation/test_reach.py"], 9) == []


def test_a_line_is_run_by_its_tests_and_a_default_by_those_of_its_function(tmp_path):
    module = tmp_path / "region.py"
    module.write_text(SOURCE, encoding="utf-8")
    path = tmp_path / "map"
    data = CoverageData(str(path))
    for context, lines in (("", [1, 4, 5, 7, 11]), (f"{HERE}.test_a", [8]), (f"{HERE}.test_b", [8])):
        data.set_context(context)
        data.add_lines({str(module): lines})
    data.write()
    beside(path).write_text("abc\n", encoding="utf-8")
    reach, both = Reach(path, "abc"), [f"tests/mutation/test_reach.py::test_{each}" for each in "ab"]
    assert reach.tests_of(module, 8) == reach.tests_of(module, 7) == reach.tests_of(module, 11) == both
    assert reach.tests_of(tmp_path / "other.py", 8) == []


def test_a_map_of_another_commit_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no map of tests: run python -m"):
        Reach(tmp_path / "map", "abc")
    (tmp_path / "map").touch()
    beside(tmp_path / "map").write_text("abd\n", encoding="utf-8")
    with pytest.raises(ValueError, match="a map of commit abd; this is abc: make it again"):
        Reach(tmp_path / "map", "abc")
