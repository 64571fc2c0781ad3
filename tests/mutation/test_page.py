"""The page of mutation scores: each module, all of them together, and what is left out."""

import pytest
from scipy.stats import binomtest

from tests.mutation.mutants import mutants
from tests.mutation.page import Judged, Pooled, page


def judged(module, tried, survived):
    return Judged(module, 12, tried, tuple(mutants("a < b") * survived), 1, 2.0)


def test_the_page_lists_scores_survivors_and_what_is_not_judged():
    found = judged("x/y.py", 4, 1)
    text = page([found], ["x/y.py", "x/z.py", "top.py"], "0" * 40, 4, 3)
    assert found.score == 0.75
    assert "| `x/y.py` | 12 | 4 | 3 | 1 | 0.750 |" in text
    assert "| `x/y.py` | 1 | `a < b` | `a <= b` |" in text
    assert "Together: 3 of 4 mutants noticed, 0.750, 95 % interval [0.301, 0.954] (Wilson)" in text
    assert "2 of 3 modules." in text
    assert "| `x/` | 2 | 1 |\n" in text
    assert "| in no folder | 1 | 0 |\n" in text
    assert "make mutation MODULES='x/y.py' ARGS='--most 4 --seed 3'" in text


@pytest.mark.parametrize(("noticed", "tried"), [(20, 20), (18, 20), (0, 5), (291, 300)])
def test_together_the_mutants_have_one_score_with_an_interval(noticed, tried):
    half = tried // 2
    found = Pooled.of([judged("a.py", half, 0), judged("b.py", tried - half, tried - noticed)])
    assert (found.noticed, found.tried, found.score) == (noticed, tried, noticed / tried)
    wanted = binomtest(noticed, tried).proportion_ci(0.95, method="wilson")
    assert (found.lower, found.upper) == pytest.approx((wanted.low, wanted.high), abs=1e-7)


def test_nothing_tried_is_not_below_any_score():
    assert Pooled.of([judged("a.py", 0, 0)]).score == 1.0
