"""The simplest method within one standard error of the best."""

import math
from dataclasses import replace

import pytest
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.methods.method_choice import (
    NOT_COMPARED,
    SIMPLEST_FIRST,
    Noted,
    chosen,
    sentences,
    unit_error,
    value_error,
)
from rehearsal_torch.methods.method_comparison import Compared
from rehearsal_torch.methods.presets import AUTO, methods

ROWS = 200


def found(values, nothing, predicted=None, panel=None, judges=None):
    """A comparison in which every judge says the same, unless `judges` adds to what each of them says."""
    names = tuple(values)
    count = len(names)
    table = torch.tensor([values[name] for name in names], dtype=torch.float64)[:, :, None].expand(
        -1, -1, count
    )
    base = torch.tensor(nothing, dtype=torch.float64)[:, None].expand(-1, count)
    if judges is not None:
        table = table + torch.tensor(judges, dtype=torch.float64)[:, None, :]
    desired = (torch.arange(ROWS) % 2).double()
    told = {name: 0.5 + 0.3 * (desired - 0.5) for name in names} | (predicted or {})
    each = torch.stack([told[name] for name in names]).expand(2, -1, -1)
    return Compared(
        names,
        {},
        table,
        base,
        torch.full((count,), 1 / count, dtype=torch.float64)
        if panel is None
        else torch.tensor(panel).double(),
        each,
        torch.full_like(each, 0.5),
        torch.full((2, ROWS), 0.5, dtype=torch.float64),
        desired,
        torch.ones(ROWS, dtype=torch.float64),
        torch.arange(ROWS),
        10,
        dict.fromkeys(names, 1.0),
    )


def taken(*given, **more):
    return chosen(found(*given, **more), ROWS)


NOTHING = [0.3, 0.31, 0.29, 0.3]


def test_the_simplest_within_one_standard_error_is_taken():
    best = [0.60, 0.64, 0.62, 0.62]
    near = [0.61, 0.61, 0.62, 0.60]
    choice = taken({"care": near, "cme": [0.1] * 4, "outcome_regression": best}, NOTHING)
    assert (choice.chosen, choice.best) == ("care", "outcome_regression")
    one = choice.standing("care")
    # Differences -.01, .03, 0, .02: mean .01, sample variance 1/3 of .0010.
    assert one.behind == pytest.approx(0.01)
    assert one.behind_error == pytest.approx(math.sqrt(1.25 * 0.001 / 3))
    assert [each.method for each in choice.standings] == ["none", "care", "outcome_regression", "cme"]
    assert [each.chosen for each in choice.standings] == [False, True, False, False]


def test_a_simpler_method_that_is_told_apart_is_not_taken():
    choice = taken({"care": [0.5, 0.51, 0.5, 0.5], "outcome_regression": [0.6, 0.61, 0.6, 0.6]}, NOTHING)
    assert (choice.chosen, choice.best) == ("outcome_regression", "outcome_regression")
    one = choice.standing("outcome_regression")
    assert one.gain == pytest.approx(0.6025 - 0.3)
    # Differences .3, .3, .31, .3: mean .3025, sample variance .000025.
    # 3.182446 is the 97.5 % quantile of Student's t with three degrees of freedom.
    half = 3.182446 * math.sqrt(1.25 * 0.000025)
    assert (one.gain_lower, one.gain_upper) == pytest.approx((0.3025 - half, 0.3025 + half))
    assert math.isnan(choice.standing("none").gain_lower)


def test_net_values_are_in_the_unit_of_the_costs():
    values = {"care": [0.5, 0.51, 0.5, 0.5], "outcome_regression": [0.6, 0.61, 0.6, 0.6]}
    plain = taken(values, NOTHING)
    priced = chosen(replace(found(values, NOTHING), worth=200.0), ROWS)
    assert (priced.chosen, priced.worth) == (plain.chosen, 200.0)
    for name in ("value", "gain", "gain_lower", "gain_upper", "behind", "behind_error"):
        one, other = (getattr(each.standing("care"), name) for each in (priced, plain))
        assert one == pytest.approx(200 * other)
    assert priced.bias == pytest.approx(200 * plain.bias)
    assert priced.standing("care").brier == plain.standing("care").brier


def test_what_judges_disagree_on_is_part_of_the_error():
    values = {"care": [0.5, 0.51, 0.5, 0.5], "outcome_regression": [0.6, 0.61, 0.6, 0.6]}
    # One judge sees them .2 further apart, the other finds care better by .1.
    judges = [[-0.1, 0.1], [0.1, -0.1]]
    choice = taken(values, NOTHING, judges=judges)
    assert choice.standing("care").behind_error == pytest.approx(0.2)
    assert choice.chosen == "care"
    assert taken(values, NOTHING, judges=judges, panel=[1.0, 0.0]).chosen == "outcome_regression"


def test_nothing_is_done_where_no_method_is_told_apart_from_it():
    choice = taken({"care": [0.5, 0.2, 0.4, 0.2], "cme": [0.3, 0.3, 0.3, 0.2]}, NOTHING)
    assert (choice.chosen, choice.best) == ("none", "care")
    assert choice.standing("care").gain == pytest.approx(0.025)
    worse = taken({"care": [0.2] * 4}, NOTHING)
    assert (worse.chosen, worse.best, worse.bias) == ("none", "none", 0.0)


def test_a_method_that_predicts_worse_than_a_constant_is_not_taken():
    backward = 0.5 - 0.3 * ((torch.arange(ROWS) % 2).double() - 0.5)
    values = {"care": [0.6] * 4, "cme": [0.6, 0.58, 0.6, 0.59]}
    choice = taken(values, NOTHING, predicted={"care": backward})
    one = choice.standing("care")
    assert (choice.chosen, choice.best, one.predicts) == ("cme", "cme", False)
    # (.65)^2 against (.5)^2 in every row.
    assert one.brier == pytest.approx(0.4225)
    assert one.worse == pytest.approx(0.4225 - 0.25)
    assert one.worse_error == pytest.approx(0.0, abs=1e-12)
    assert choice.standing("cme").brier == pytest.approx(0.35**2)


def test_a_method_whose_claim_without_an_action_contradicts_the_rows_is_not_taken():
    given = found({"care": [0.6] * 4, "cme": [0.6, 0.58, 0.6, 0.59]}, NOTHING)
    # Half of the rows are desired; care claims .4.
    untouched = given.untouched.clone()
    untouched[:, 0] = 0.4
    choice = chosen(replace(given, untouched=untouched), ROWS)
    care, cme = (choice.standing(name) for name in ("care", "cme"))
    assert (choice.chosen, choice.best, choice.model) == ("cme", "cme", "cme")
    assert (care.predicts, care.agrees, cme.agrees) == (True, False, True)
    assert (care.untouched, care.desired) == pytest.approx((0.4, 0.5))
    assert care.apart_error == pytest.approx(0.5 / math.sqrt(ROWS - 1))
    assert any("care claims 40.0% without an action where 50.0%" in text for text in sentences(choice))


def test_the_bias_is_what_the_best_of_each_half_has_more():
    values = {"care": [0.6, 0.5, 0.6, 0.5], "cme": [0.5, 0.6, 0.5, 0.6]}
    choice = taken(values, NOTHING)
    # The best of each half has .6, the taken method .55 on average.
    assert (choice.chosen, choice.bias) == ("care", pytest.approx(0.05))


def test_errors_have_their_closed_forms():
    apart = torch.tensor([[1.0, 3.0], [2.0, 2.0]], dtype=torch.float64)
    panel = torch.tensor([0.5, 0.5], dtype=torch.float64)
    # Halves 2 and 2; judges 1.5 and 2.5 around 2.
    assert value_error(apart, panel) == pytest.approx(0.5)
    values = torch.tensor([1.0, 2.0, 3.0, 6.0], dtype=torch.float64)
    ones = torch.ones(4, dtype=torch.float64)
    alone = unit_error(values, ones, torch.arange(4))
    assert alone == pytest.approx(float(values.std()) / 2)
    # Two units of sums -3 and 3 around the mean of 3.
    assert unit_error(values, ones, torch.tensor([0, 0, 1, 1])) == pytest.approx(math.sqrt(2 * 18) / 4)


def test_every_method_for_cases_of_a_table_is_compared_or_has_a_reason_why_not():
    assert sorted([*SIMPLEST_FIRST, *NOT_COMPARED, AUTO]) == sorted(methods("rehearse"))
    assert all((SIMPLEST_FIRST | NOT_COMPARED).values())


def test_the_trace_has_the_method_and_why_after_other_claims():
    made = [Decision(None, 0.0, reason=Finding("no_gain", "none helps"), trace={"nodes": 3})]
    (alone,) = Noted("care", "it is simple")([], made)
    assert alone.trace == {"nodes": 3, "method": "care", "method_choice": "it is simple"}
    (both,) = Noted("care", "", lambda cases, given: [replace(each, value=1.0) for each in given])([], made)
    assert (both.value, both.trace["method"], made[0].trace) == (1.0, "care", {"nodes": 3})


def test_where_no_method_was_taken_that_is_the_reason():
    made = [Decision(None, 0.0, reason=Finding("no_gain", "this method never acts"), trace={})]
    (one,) = Noted("none", "auto took none: ...")([], made)
    assert one.reason.text == "no method was taken, as none is told apart from doing nothing"
