"""Which tests run which lines."""

import pytest
from coverage import CoverageData

from tests.house.layers import ROOT
from tests.mutation.reach import Reach, beside, recorded, scope_of, spread

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
    both = [f"tests/test_region.py::test_{each}" for each in "ab"]
    for context, lines in (("", [1, 4, 5, 7, 11]), *((each, [8]) for each in both)):
        data.set_context(context)
        data.add_lines({str(module): lines})
    data.write()
    beside(path, "commit").write_text("abc\n", encoding="utf-8")
    reach = Reach(path, "abc")
    assert reach.tests_of(module, 8) == reach.tests_of(module, 7) == reach.tests_of(module, 11) == both
    assert reach.tests_of(tmp_path / "other.py", 8) == []


def test_a_map_of_another_commit_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no map of tests: run python -m"):
        Reach(tmp_path / "map", "abc")
    (tmp_path / "map").touch()
    beside(tmp_path / "map", "commit").write_text("abd\n", encoding="utf-8")
    with pytest.raises(ValueError, match="a map of commit abd; this is abc: make it again"):
        Reach(tmp_path / "map", "abc")


TESTS = """
import pytest
from hypothesis import given, strategies
from region import Region

@given(strategies.integers())
def test_times(times):
    assert Region().area(times) == 3 * times

@pytest.mark.parametrize("times", [1, 2])
def test_few(times):
    assert Region().area(times)
"""


@pytest.mark.nightly
def test_a_map_is_made_by_running_tests_those_of_hypothesis_too(tmp_path):
    (tmp_path / "region.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "test_region.py").write_text(TESTS, encoding="utf-8")
    path = tmp_path / "maps/map"
    path.parent.mkdir()
    # An older one is replaced.
    path.write_text("damaged", encoding="utf-8")
    beside(path, "commit").write_text("abc\n", encoding="utf-8")
    assert recorded(path, tmp_path, ["region.py"], ["-p", "no:cacheprovider", "test_region.py"], "1") == 0
    expected = ["test_region.py::test_few", "test_region.py::test_times"]
    assert Reach(path, "abc").tests_of(tmp_path / "region.py", 8) == expected
