"""Lanes: every marker is left out of the fast tests and run by a target of the Makefile."""

import re
import shlex
import tomllib

import pytest

from tests.conftest import LANES
from tests.house.layers import ROOT

PYTEST = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
MARKERS = [text.partition(":")[0] for text in PYTEST["markers"]]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def chosen(words: list[str]) -> str:
    """The expression behind -m."""
    return words[words.index("-m") + 1]


def test_the_fast_tests_are_those_without_a_marker():
    left_out = chosen(shlex.split(PYTEST["addopts"]))
    assert left_out == " and ".join(f"not {marker}" for marker in MARKERS)
    assert re.search(r"^test: .*\n\t\$\(PYTEST\) \$\(ARGS\)$", MAKEFILE, re.MULTILINE)


PAIRS = [("slow", "papers"), ("slow", "nightly"), ("papers", "nightly")]


@pytest.mark.parametrize("carried", [*((marker,) for marker in MARKERS), *PAIRS], ids="+".join)
def test_exactly_one_target_runs_a_test_with_these_markers(carried):
    lines = re.findall(r"^\t\$\(PYTEST\) (-m .*)$", MAKEFILE, re.MULTILINE)
    values = {marker: marker in carried for marker in MARKERS}
    # The operators of -m are those of Python.
    assert sum(eval(chosen(shlex.split(line)), {}, values) for line in lines) == 1


def test_all_lanes_together():
    joined = re.search(r"^test-all: (.*)$", MAKEFILE, re.MULTILINE)[1].split()
    assert joined == ["test", "test-slow", "test-nightly", "fuzz", "pages"]


@pytest.mark.parametrize(("folder", "marker"), LANES.items())
def test_a_folder_with_a_lane_has_a_marker_that_exists(folder, marker):
    assert (ROOT / "tests" / folder).is_dir()
    assert marker in MARKERS


def test_the_checks_of_a_fresh_clone_run_the_lanes():
    text = (ROOT / ".ci/run").read_text(encoding="utf-8")
    called = re.findall(r'^make VENV="\$fresh/venv" ([\w-]+)', text, re.MULTILINE)
    assert called == ["test", "test-slow", "fuzz", "bench-calibration", "lint", "docs"]
