"""Stacked success: the weighted mean, its interval, and which of the two spoke."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from rehearsal_torch.data.decision import Estimate
from rehearsal_torch.objectives.objective import Appraisal, chance
from rehearsal_torch.objectives.stacked_success import StackedSuccess
from rehearsal_torch.search.alterations.projected_ascent import SampledRefinement
from rehearsal_torch.search.search import check_worth
from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.outcome.stacked import StackedRegression
from rehearsal_torch.training.fit import fit
from tests.toys.rehearsal_toys import confounded, confounded_table, some_cases

small = partial(
    NestedRidge,
    estimator=partial(
        SpectralEnsemble, members=2, features=60, direction_rows=80, width_rows=80, iterations=8
    ),
)
little = partial(OutcomeRegression, members=2, frequencies=30, evidence_rows=80, iterations=8)


@pytest.fixture(scope="module")
def model():
    return fit(StackedRegression(confounded(), small, little), confounded_table(300, freedom=2.0))


def objective(model, weight=None, **settings):
    (made,) = StackedSuccess.for_cases(model, some_cases(model.task, 3), **settings).sets
    made.weight = made.weight if weight is None else weight
    return made


def at(value):
    return torch.full((3, 1), value, dtype=torch.float64)


@pytest.mark.parametrize("weight", [0.0, 0.25, 0.8])
def test_values_are_the_weighted_mean(model, weight):
    made = objective(model, weight)
    wanted = weight * made.indicator.comparison_value(at(0.7)) + (1 - weight) * made.outcome(at(0.7))
    assert torch.allclose(made(at(0.7)), wanted)
    assert made.acceptable(at(0.7)).all()


@pytest.mark.parametrize("weight", [0.25, 0.8])
def test_estimates_are_the_weighted_mean_inside_an_interval_that_holds_both(model, weight):
    made = objective(model, weight)
    pairs = zip(made.indicator.appraise(at(0.7)), made.outcome.appraise(at(0.7)), strict=True)
    for found, (one, other) in zip(made.appraise(at(0.7)), pairs, strict=True):
        for name in ("estimate", "baseline"):
            wanted = weight * getattr(one, name).point + (1 - weight) * getattr(other, name).point
            assert getattr(found, name).point == pytest.approx(wanted, abs=1e-6)
        assert found.trace["indicator_weight"] == weight
        assert found.trace["estimates"] == {"indicator": one.estimate.point, "outcome": other.estimate.point}
        assert f"({weight:.0%})" in found.trace["note"]
        narrower = min(each.estimate.upper - each.estimate.lower for each in (one, other))
        assert found.estimate.upper - found.estimate.lower > narrower


@pytest.mark.parametrize("weight", [0.0, 0.4])
def test_tables_compare_actions_as_the_two_themselves_do(model, weight):
    made = objective(model, weight)
    table, actions = made.tabulated(), made.lower + torch.linspace(0, 1, 90)[:, None, None] * 3.0
    assert torch.allclose(table(actions), made(actions), rtol=0, atol=1e-10)
    assert torch.equal(table.outcome(actions), made.outcome(actions))
    assert made.indicator.table is None, "only the copy has tables"


def test_each_side_of_the_interval_is_that_of_both_on_this_side(model):
    made = objective(model, 0.3)
    one = Appraisal(chance(0.5, 0.4, 0.7, 0.95), chance(0.1))
    other = Appraisal(chance(0.45, 0.42, 0.57, 0.95), chance(0.2222222))
    found, between = made._both(one, other), 1.959964**2 * 0.3 * 0.7 * 0.05**2
    below, above = (
        math.sqrt(0.3 * first**2 + 0.7 * second**2 + between) for first, second in ((0.1, 0.03), (0.2, 0.12))
    )
    assert found.estimate.point == 0.465
    assert found.estimate.lower == round(0.465 - below, 6)
    assert found.estimate.upper == round(0.465 + above, 6)
    assert found.baseline.point == round(0.3 * 0.1 + 0.7 * 0.2222222, 6)
    assert "of whether the outcome is desired (30%), and of its value (70%)" in found.trace["note"]
    far = made._both(
        *(Appraisal(chance(point, point, point, 0.95), chance(0.1)) for point in (0.0, 1.0))
    ).estimate
    assert (far.lower, far.upper) == (0.0, 1.0)


def test_a_stack_without_the_indicator_says_what_the_outcomes_say(model):
    made = objective(model, 0.0)
    for found, alone in zip(made.appraise(at(0.7)), made.outcome.appraise(at(0.7)), strict=True):
        assert found.estimate == alone.estimate
        assert found.baseline == alone.baseline
        assert "outcome's value alone" in found.trace["note"]
    assert len(made.starts(9)) == 9
    assert torch.equal(made.starts(9), made.outcome.starts(9))


def test_half_of_the_starts_are_those_of_each(model):
    made = objective(model, 0.5)
    assert torch.equal(made.starts(9), torch.cat([made.outcome.starts(5), made.indicator.starts(4)]))
    assert torch.equal(made.starts(1), made.outcome.starts(1))
    assert made.frame() == made.outcome.frame()


def test_narrower_bounds_are_those_of_both(model):
    made = objective(model, 0.5)
    narrow = made.within(made.lower + 1, made.upper - 1, {"a": 0.25})
    for one in (narrow, narrow.indicator, narrow.outcome):
        assert one.project(at(9.0)).tolist() == [[0.5]] * 3
        assert one.starts(8).abs().max() <= 0.5
    assert narrow.label() == "a=0.25"
    assert made.indicator.project(at(9.0)).tolist() == made.project(at(9.0)).tolist() == [[1.5]] * 3


def test_its_probabilities_can_be_weighed_against_costs():
    assert check_worth(StackedSuccess, SampledRefinement()) is None


def test_what_the_outcome_regression_refuses_is_refused(model):
    made = objective(model, 0.5)
    assert not made.acceptable(at(40.0)).any()
    assert all("no support" in one.refused.text for one in made.appraise(at(40.0)))


def test_the_support_of_the_indicator_warns_and_does_not_refuse(model):
    made = objective(model, 0.05, indicator={"min_support": 1e6, "low_support": 1e6})
    assert not made.indicator.acceptable(at(0.7)).any()
    assert made.acceptable(at(0.7)).all()
    for found in made.appraise(at(0.7)):
        assert found.refused is None
        assert any("observations lie near this decision" in each.text for each in found.findings)


def test_an_alteration_that_is_surely_worse_than_nothing_is_declined(model):
    made = objective(model, 0.5)
    one, other = (Appraisal(chance(point, 0.1, 0.3), chance(0.9)) for point in (0.2, 0.25))
    assert "worse than doing nothing (22 % against 90 %)" in made._both(one, other).declined.text


def test_an_interval_that_reaches_the_baseline_is_not_worse_than_nothing(model):
    made = objective(model, 0.5)
    one, other = (Appraisal(chance(point, 0.1, 0.3), chance(0.9)) for point in (0.2, 0.25))
    upper = made._both(one, other).estimate.upper
    same = [Appraisal(each.estimate, chance(upper)) for each in (one, other)]
    assert made._both(*same).declined is None


def test_what_one_of_the_two_does_not_know_the_stack_does_not_know(model):
    made = objective(model, 0.123456)
    whole, bare, none = (
        Appraisal(chance(0.2, 0.1, 0.3), chance(0.9)),
        Appraisal(chance(0.2), chance(0.9)),
        Appraisal(None, None),
    )
    assert made._both(whole, whole).trace["indicator_weight"] == 0.1235
    for pair in ((whole, none), (none, whole), (whole, bare), (bare, whole)):
        found = made._both(*pair)
        assert found.estimate is None
        assert found.declined is None
        assert (found.baseline is None) == (none in pair)
    assert made._both(none, whole).trace["estimates"] == {"outcome": 0.2}
    assert made._both(whole, none).trace["estimates"] == {"indicator": 0.2}


@pytest.mark.parametrize("part", ["indicator", "outcome"])
def test_a_difference_needs_those_of_both_with_their_intervals(model, monkeypatch, part):
    made = objective(model, 0.5)
    known = getattr(made, part).contrast(at(0.7), at(0.1))
    bare = Estimate(known[1].point, known[1].of)
    monkeypatch.setattr(type(getattr(made, part)), "contrast", lambda *_: [None, bare, known[2]])
    found = made.contrast(at(0.7), at(0.1))
    assert found[:2] == [None, None]
    assert found[2] == objective(model, 0.5).contrast(at(0.7), at(0.1))[2]


def test_a_decision_says_which_of_the_two_spoke(model):
    cases = some_cases(model.task, 3)
    for decision in SampledRefinement(starts=8, samples=8, rounds=2).batch_search(
        StackedSuccess.for_cases(model, cases)
    ):
        assert decision.trace["indicator_weight"] == pytest.approx(model.weight, abs=1e-4)
        assert "estimated by two regressions" in decision.reason.text
        assert float(decision.alteration.values) > 0.5


def test_settings_reach_both(model):
    made = objective(model, indicator={"caution": 0.0}, outcome={"draws": 4, "points": 8}, level=0.5)
    assert (made.indicator.caution, made.indicator.level, made.outcome.level) == (0, 0.5, 0.5)
    assert made.outcome.success.success.points == 8
    with pytest.raises(ValueError, match="expected caution >= 0"):
        objective(model, indicator={"caution": -1})


def test_another_level_reaches_both(model):
    made = objective(model, 0.4)
    assert made.at_level(0.5).appraise(at(0.7)) == objective(model, 0.4, level=0.5).appraise(at(0.7))
    assert (made.indicator.level, made.outcome.level) == (0.95, 0.95)


@pytest.mark.parametrize("weight", [0.25, 0.8])
def test_differences_are_the_mixture_of_both(model, weight):
    made = objective(model, weight)
    pairs = zip(
        made.indicator.contrast(at(0.7), at(0.1)), made.outcome.contrast(at(0.7), at(0.1)), strict=True
    )
    for found, (one, other) in zip(made.contrast(at(0.7), at(0.1)), pairs, strict=True):
        point = weight * one.point + (1 - weight) * other.point
        between = 1.959964**2 * weight * (1 - weight) * (one.point - other.point) ** 2
        below = weight * (one.point - one.lower) ** 2 + (1 - weight) * (other.point - other.lower) ** 2
        assert found.point == pytest.approx(point, abs=1e-6)
        assert found.lower == pytest.approx(point - math.sqrt(below + between), abs=1e-5)
    for found, one, other in zip(
        made.contrast(at(0.7), at(0.1)), made.appraise(at(0.7)), made.appraise(at(0.1)), strict=True
    ):
        assert found.point == pytest.approx(one.estimate.point - other.estimate.point, abs=3e-6)


def test_differences_without_the_indicator_are_those_of_the_outcomes(model, monkeypatch):
    made = objective(model, 0.0)
    assert made.contrast(at(0.7), at(0.1)) == made.outcome.contrast(at(0.7), at(0.1))
    whole = objective(model, 0.5)
    monkeypatch.setattr(type(whole.indicator), "contrast", lambda *_: None)
    assert whole.contrast(at(0.7), at(0.1)) is None


def test_what_is_at_risk_is_told_without_caution(model):
    cases = [replace(case, present={"a": 0.5}) for case in some_cases(model.task, 2)]
    (made,) = StackedSuccess.for_cases(model, cases).sets
    made.weight = 0.5
    present = torch.full((2, 1), 0.5, dtype=torch.float64)
    indicated = [one.estimate.point for one in made.indicator.appraise(present)]
    plain = 0.5 * made.outcome(present) + 0.5 * torch.tensor(indicated, dtype=torch.float64)
    assert torch.allclose(made.at_risk, plain, atol=1e-5)
    assert (made.at_risk > made(present)).all()
