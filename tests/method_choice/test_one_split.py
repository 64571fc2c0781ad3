"""One split of the rows: what it finds depends on the rows, the methods, the seed and its number alone."""

import pytest
import torch

from rehearsal_torch.method_choice.one_split import Comparison, Limits, split
from tests.method_choice.test_comparison import (
    Blind,
    Silent,
    candidate,
    halves,
    refusing,
    shares_of,
    table_of,
)
from tests.test_claims import LEVELS, TASK

LIMITS = Limits(rows=1000, cases=5, repeats=2)


def found(table, *candidates, repeat=0):
    sets = TASK.candidates
    work = Comparison(table, TASK, [sets[0]] * len(table), candidates, LIMITS, 0)
    return split(work, (repeat, halves(len(table), repeat)))


def test_rows_are_predicted_by_the_model_of_the_other_half():
    table = table_of(200)
    made = found(table, candidate("share"))
    one, other = halves(200, 0)
    level = table.values[:, 1].long()
    assert torch.equal(made.predictions["share"][0, other], shares_of(table, one)[level[other]])
    assert torch.equal(made.predictions["share"][0, one], shares_of(table, other)[level[one]])
    assert made.constant[other].unique().item() == table.values[one, 2].mean()
    assert made.names == ("share",)
    assert len(made.judged) == len(made.baselines) == 2
    assert made.seconds["share"] > 0
    assert LEVELS > 1


def test_methods_that_are_refused_leave_the_others_as_they_are():
    table = table_of(80)
    some = [candidate("share"), candidate("blind", Blind)]
    alone = found(table, *some)
    others = [refusing("never", "no fit"), candidate("silent", objective=Silent)]
    made = found(table, *some, *others)
    assert made.names == alone.names == ("share", "blind")
    assert list(made.refused) == ["never", "silent"]
    assert made.judged == alone.judged
    assert made.baselines == alone.baselines
    assert found(table, *some, repeat=1).judged != alone.judged


def test_without_a_method_that_goes_through_nothing_is_judged():
    made = found(table_of(80), refusing("never", "no fit"))
    assert (made.names, made.judged) == ((), [])
    assert made.refused == {"never": "it cannot be fitted to half of the rows: no fit"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rows": 19}, "choose.rows: expected a whole number of at least 20; got 19"),
        ({"cases": 2.5}, "choose.cases: expected a whole number of at least 1; got 2.5"),
        ({"repeats": 1}, "choose.repeats: expected a whole number of at least 2; got 1"),
        ({"repeats": True}, "choose.repeats: expected a whole number of at least 2; got True"),
    ],
)
def test_a_limit_out_of_range_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Limits(**given)


def test_the_smallest_limits_are_taken():
    assert Limits(20, 1, 2) == Limits(rows=20, cases=1, repeats=2)
