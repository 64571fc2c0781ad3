"""The page of mutation scores: each module, all of them together, and what is left out."""

from dataclasses import replace

import pytest
from scipy.stats import binomtest

from tests.mutation.page import Judged, Pooled, Survivor, keep, known, page

MISSED = Survivor(1, "a < b", "a <= b")


def judged(module, tried, survived, seed=3):
    return Judged(module, 12, tried, (MISSED,) * survived, 1, 4, seed, "0" * 40, 2, 1)


def test_the_page_lists_scores_survivors_and_what_is_not_judged():
    found = judged("x/y.py", 4, 1)
    text = page([found], ["x/y.py", "x/z.py", "top.py"])
    assert found.score == 0.75
    assert "| `x/y.py` | 12 | 4 | 3 | 2 | 1 | 1 | 0.750 | 3 | 00000000 |" in text
    assert (
        "By a module's own tests alone 1 fewer are noticed, and by their fast ones alone another 2." in text
    )
    without = page([replace(found, others=None)], ["x/y.py"])
    assert "| `x/y.py` | 12 | 4 | 3 | 2 |  | 1 | 0.750 | 3 | 00000000 |" in without
    assert "| `x/y.py` | 1 | `a < b` | `a <= b` |" in text
    assert "Together: 3 of 4 mutants noticed, 0.750, 95 % interval [0.301, 0.954] (Wilson)" in text
    assert "2 of 3 modules." in text
    assert "| `x/` | 2 | 1 |\n" in text
    assert "| in no folder | 1 | 0 |\n" in text
    assert "make mutation MODULES='x/y.py' ARGS='--most 4 --seed 3 --others runs/mutation/map'" in text
    assert "ARGS='--most 4 --seed 3'" in without


def test_a_module_that_is_judged_again_replaces_its_row_and_the_others_stay(tmp_path):
    path, modules = tmp_path / "page.md", ["a.py", "b.py", "c.py"]
    assert known(path, modules) == []
    first = [judged("b.py", 4, 1), judged("c.py", 4, 0)]
    keep(path, first, modules)
    assert known(path, modules) == first
    keep(path, [judged("b.py", 4, 0, seed=8), judged("a.py", 4, 2)], modules)
    assert known(path, modules) == [judged("a.py", 4, 2), judged("b.py", 4, 0, seed=8), first[1]]
    text = path.read_text(encoding="utf-8")
    assert "Together: 10 of 12 mutants" in text
    assert "MODULES='a.py c.py' ARGS='--most 4 --seed 3 --others runs/mutation/map'" in text
    assert "MODULES='b.py' ARGS='--most 4 --seed 8 --others runs/mutation/map'" in text
    # A module that is no more is left out.
    assert [each.module for each in known(path, ["c.py"])] == ["c.py"]


@pytest.mark.parametrize(("noticed", "tried"), [(20, 20), (18, 20), (0, 5), (291, 300)])
def test_together_the_mutants_have_one_score_with_an_interval(noticed, tried):
    half = tried // 2
    found = Pooled.of([judged("a.py", half, 0), judged("b.py", tried - half, tried - noticed)])
    assert (found.noticed, found.tried, found.score) == (noticed, tried, noticed / tried)
    wanted = binomtest(noticed, tried).proportion_ci(0.95, method="wilson")
    assert (found.lower, found.upper) == pytest.approx((wanted.low, wanted.high), abs=1e-7)


def test_nothing_tried_is_not_below_any_score():
    assert Pooled.of([judged("a.py", 0, 0)]).score == 1.0
