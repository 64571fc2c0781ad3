"""Outcome success: estimates from draws of their own, intervals that hold the counting error, refusals."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

import rehearsal_torch as rt
from rehearsal_torch.data.decision import CHANCE, Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.objective import Appraisal
from rehearsal_torch.objectives.outcome_success import (
    OutcomeSuccess,
    allowed,
    interval,
    paired_interval,
    withheld,
)
from rehearsal_torch.search.alterations.projected_ascent import SampledRefinement
from rehearsal_torch.search.search import check_worth
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.training.fit import fit
from tests.toys.rehearsal_toys import (
    confounded,
    confounded_table,
    confounded_truth,
    sequential,
    sequential_table,
    some_cases,
)


@pytest.fixture(scope="module")
def model():
    made = OutcomeRegression(
        confounded(candidates=[["a"], ["a", "c"]]), members=2, frequencies=40, evidence_rows=80, iterations=8
    )
    return fit(made, confounded_table(300))


def first(model, count=3, **settings):
    return OutcomeSuccess.for_cases(model, some_cases(model.task, count), **settings).sets[0]


def at(value, count=3, width=1):
    return torch.full((count, width), value, dtype=torch.float64)


def test_values_are_shares_that_rise_with_the_right_action(model):
    objective = first(model)
    values = objective(torch.linspace(-1.5, 1.5, 7, dtype=torch.float64)[:, None, None].expand(-1, 3, 1))
    assert values.shape == (7, 3)
    assert ((values >= 0) & (values <= 1)).all()
    assert (values.diff(dim=0) >= -0.03).all()


def test_the_estimate_comes_from_other_draws_and_is_near_the_truth(model):
    objective = first(model)
    for case, value, one in zip(
        objective.cases, objective(at(1.2)), objective.appraise(at(1.2)), strict=True
    ):
        truth = float(confounded_truth(case.given["x"], torch.tensor(1.2)))
        assert one.estimate.point != float(value)
        assert one.estimate.point == pytest.approx(truth, abs=0.06)
        assert one.estimate.lower < truth < one.estimate.upper
        assert one.estimate.upper - one.estimate.lower < 0.3
        assert 0 <= one.baseline.point < one.estimate.point


def test_as_many_draws_that_judge_are_other_ones_than_those_that_search(model):
    objective = first(model, judging_draws=24, judging_points=64)
    found = [one.estimate.point for one in objective.appraise(at(0.7))]
    assert all(abs(one - float(value)) > 1e-4 for one, value in zip(found, objective(at(0.7)), strict=True))


def test_starts_are_observed_actions_inside_the_box(model):
    for objective in OutcomeSuccess.for_cases(model, some_cases(model.task, 2)).sets:
        starts = objective.starts(8)
        assert starts.shape == (8, 2, len(objective.names))
        assert torch.equal(objective.project(starts), starts)
    assert len(objective.starts(10_000)) == 300


def test_starts_are_spread_evenly_over_the_rows(model):
    objective = first(model, 1)
    column = confounded_table(300).columns(["a"]).clamp(-1.5, 1.5)
    torch.testing.assert_close(objective.starts(300)[:, 0], column)
    torch.testing.assert_close(objective.starts(4)[:, 0], column[[0, 100, 199, 299]])


def test_actions_are_searched_in_standard_deviations_of_the_rows(model):
    location, scale = first(model).frame()
    column = confounded_table(300).columns(["a"])[:, 0]
    assert float(location) == pytest.approx(float(column.mean()))
    assert float(scale) == pytest.approx(float(column.std()), rel=5e-3)


def test_tables_are_used_where_one_action_has_some(model):
    whole, (alone, both) = at(0.7), OutcomeSuccess.for_cases(model, some_cases(model.task, 3)).sets
    table = alone.tabulated()
    assert table is not alone
    torch.testing.assert_close(table(whole), alone(whole), rtol=0, atol=1e-9)
    assert both.tabulated() is both


def test_its_probabilities_can_be_weighed_against_costs():
    assert check_worth(OutcomeSuccess, SampledRefinement()) is None


def test_as_much_as_is_asked_for_is_enough(model):
    plain = first(model, 1)
    exact = model.support(plain.which, plain.contexts, plain.standardised(at(0.5, 1)))
    assert first(model, 1, min_support=float(exact), low_support=1e9).supported(at(0.5, 1)).all()
    near = round(float(exact), 6)
    objective = first(model, 1, min_support=near, low_support=near)
    objective.before = torch.full_like(plain.before, plain.appraise(at(0.5, 1))[0].estimate.upper)
    (one,) = objective.assessed(at(0.5, 1))
    assert one.baseline.point == one.estimate.upper
    assert (one.refused, one.declined, one.findings) == (None, None, ())
    assert one.trace == {"support": round(near, 2)}


def test_the_least_settings_are_allowed(model):
    least = dict.fromkeys(("draws", "points", "judging_draws", "judging_points"), 2)
    objective = first(model, 2, **least, min_support=0, low_support=0)
    assert objective.supported(at(60.0, 2)).all()
    assert set(objective(at(0.5, 2)).tolist()) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert not any(one.refused or one.findings for one in objective.assessed(at(60.0, 2)))


def test_another_level_changes_the_interval_alone(model):
    narrow = first(model).at_level(0.5)
    assert narrow.appraise(at(0.7)) == first(model, level=0.5).appraise(at(0.7))
    for one, other in zip(narrow.appraise(at(0.7)), first(model).appraise(at(0.7)), strict=True):
        assert one.estimate.point == other.estimate.point
        assert other.estimate.lower < one.estimate.lower < one.estimate.upper < other.estimate.upper


def test_a_decision_that_the_model_knows_nothing_about_is_refused(model):
    objective = first(model)
    far = objective.appraise(at(60.0))
    assert all("no support" in one.refused.text and "collect data" in one.refused.text for one in far)
    assert all(one.findings[0].kind == "support" for one in far)
    assert not objective.acceptable(at(60.0)).any()
    assert objective.supported(at(0.0)).all()
    assert all(not one.refused and not one.findings for one in objective.assessed(at(0.0)))


def test_an_action_that_many_such_cases_cannot_have_had_is_refused(model):
    objective = first(model)
    beyond = objective.beyond(at(0.5))
    assert ((beyond > 0.2) & (beyond < 0.4)).all(), "a fifth of the normal u lie 2.3 deviations of .5 away"
    assert not objective.acceptable(at(0.5)).any()
    for one, share in zip(objective.appraise(at(0.5)), beyond.tolist(), strict=True):
        assert one.unsupported.text.startswith("no support: for ")
        assert one.refused is None
        assert one.trace["beyond"] == round(share, 4)


def test_an_action_is_allowed_by_rows_or_where_nothing_is_to_lose():
    made = OutcomeRegression(confounded(), members=2, frequencies=40, evidence_rows=80, iterations=8)
    free = first(fit(made, confounded_table(300, freedom=2.0)))
    assert (free.beyond(at(0.5)) < 0.1).all()
    assert free.acceptable(at(0.5)).all()
    assert not any(one.refused or one.unsupported for one in free.appraise(at(0.5)))
    far = at(9.0)
    assert not free.acceptable(far).any()
    free.before, free.at_risk = torch.zeros_like(free.before), torch.zeros_like(free.at_risk)
    assert free.acceptable(far).all()


def test_present_values_are_what_acting_puts_at_risk():
    made = OutcomeRegression(confounded(), members=2, frequencies=40, evidence_rows=80, iterations=8)
    model = fit(made, confounded_table(300, freedom=2.0))
    cases = [
        replace(case, present=given)
        for case, given in zip(some_cases(model.task, 2), ({"a": 1.0}, {}), strict=True)
    ]
    (objective,) = OutcomeSuccess.for_cases(model, cases).sets
    assert objective.at_risk.tolist() == [
        float(objective(at(1.0, 2))[0]),
        float(objective.before.mean(-1)[1]),
    ]


def test_tables_do_not_speak_of_present_values_beyond_the_bounds(model):
    cases = [replace(case, present={"a": 3.0}) for case in some_cases(model.task, 2)]
    objective = OutcomeSuccess.for_cases(model, cases).sets[0]
    assert objective.tabulated().at_risk.equal(objective.at_risk)
    assert objective.at_risk.equal(objective(at(3.0, 2)))


def test_a_decision_that_is_surely_worse_than_nothing_is_declined(model):
    objective = first(model)
    objective.before = torch.ones_like(objective.before)
    assert all("worse than doing nothing" in one.declined.text for one in objective.appraise(at(-1.0)))


def test_an_adjustment_that_does_not_hold_bears_a_warning():
    made = OutcomeRegression(
        sequential(), members=1, frequencies=10, evidence_rows=40, iterations=2, sequential=False
    )
    model = fit(made, sequential_table(60))
    (one, _) = first(model, 2).appraise(at(0.0, 2, 2))
    assert one.findings[0].text.startswith("v lie between alterations")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draws": 1}, "at least two draws and points"),
        ({"judging_points": 0}, "at least two draws and points"),
        ({"level": 0}, "level in"),
        ({"level": 1}, "level in"),
        ({"min_support": -1}, "min_support"),
        ({"min_support": 3, "low_support": 2}, "min_support"),
    ],
)
def test_wrong_settings_are_refused(model, settings, message):
    with pytest.raises(ValueError, match=message):
        OutcomeSuccess.for_cases(model, some_cases(model.task, 1), **settings)


def by_hand(draws, members, rows, level, variance):
    """Mean and ends by the equations of the module, with NumPy."""
    mean, (low, high) = np.mean(draws), np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    between = np.var(np.reshape(draws, (members, -1)).mean(1), ddof=1) if members > 1 else 0.0
    rest = norm.ppf((1 + level) / 2) ** 2 * (variance / rows + 2 * between / members)
    return mean, mean - math.sqrt((mean - low) ** 2 + rest), mean + math.sqrt((high - mean) ** 2 + rest)


@pytest.mark.parametrize(("members", "rows", "level"), [(1, 400, 0.95), (2, 60, 0.8), (3, 2000, 0.5)])
def test_an_interval_is_that_of_its_equations(members, rows, level):
    shares = torch.tensor([[0.4, 0.55, 0.6, 0.35, 0.5, 0.7], [0.2, 0.1, 0.3, 0.2, 0.25, 0.15]]).double()
    found = torch.stack(interval(shares, members, rows, level), -1)
    for one, own in zip(found.tolist(), shares.tolist(), strict=True):
        mean = np.mean(own)
        assert one == pytest.approx(by_hand(own, members, rows, level, mean * (1 - mean)), abs=1e-9)


@pytest.mark.parametrize(("members", "rows", "level"), [(1, 400, 0.95), (2, 60, 0.8), (3, 2000, 0.5)])
def test_a_paired_interval_is_that_of_its_equations(members, rows, level):
    one, other = (
        torch.rand(3, 6, 40, generator=torch.Generator().manual_seed(seed)) < share
        for seed, share in ((0, 0.7), (1, 0.4))
    )
    found = torch.stack(paired_interval(one, other, members, rows, level), -1)
    for own, first_, second in zip(found.tolist(), one.numpy(), other.numpy(), strict=True):
        apart = first_.astype(float) - second
        assert own == pytest.approx(by_hand(apart.mean(1), members, rows, level, apart.var()), abs=1e-9)


def test_draws_far_apart_leave_nothing_outside_what_is_possible():
    shares = torch.tensor([[0.0, 0.1, 0.9, 1.0]], dtype=torch.float64)
    assert [float(each) for each in interval(shares, 2, 10, 0.95)] == [0.5, 0.0, 1.0]
    one = torch.tensor([[[True] * 4, [False] * 4]])
    assert [float(each) for each in paired_interval(one, ~one, 2, 10, 0.95)] == [0.0, -1.0, 1.0]


def test_where_every_draw_succeeds_the_rows_still_bound_the_claim():
    ones = torch.ones(1, 6, dtype=torch.float64)
    mean, lower, upper = interval(ones, 2, 100, 0.95)
    assert float(mean) == float(upper) == 1
    assert float(lower) == pytest.approx(0.025 ** (1 / 100), abs=1e-6)


def test_differences_are_counted_with_the_same_draws(model):
    objective = first(model)
    for apart, back, one, other in zip(
        objective.contrast(at(1.2), at(0.2)),
        objective.contrast(at(0.2), at(1.2)),
        objective.appraise(at(1.2)),
        objective.appraise(at(0.2)),
        strict=True,
    ):
        assert apart.point == pytest.approx(one.estimate.point - other.estimate.point, abs=2e-6)
        assert back.point == -apart.point
        assert apart.lower < apart.point < apart.upper
    for none in objective.contrast(at(0.2), at(0.2)):
        assert (none.point, none.lower, none.upper) == (0.0, 0.0, 0.0)
    # Each case is the same or not by itself.
    mixed = objective.contrast(at(0.2), torch.tensor([[0.2], [1.2], [0.2]], dtype=torch.float64))
    assert [one.lower == one.upper for one in mixed] == [True, False, True]
    pair = OutcomeSuccess.for_cases(model, some_cases(model.task, 1)).sets[1]
    (partly,) = pair.contrast(torch.tensor([[0.2, 0.3]]).double(), torch.tensor([[0.2, 0.8]]).double())
    assert partly.lower < partly.upper


def test_differences_of_near_actions_are_known_better_than_either(model):
    objective = first(model)
    for apart, one in zip(objective.contrast(at(0.5), at(0.45)), objective.appraise(at(0.5)), strict=True):
        truths = [
            float(confounded_truth(objective.cases[0].given["x"], torch.tensor(value)))
            for value in (0.5, 0.45)
        ]
        assert abs(truths[0] - truths[1]) < 0.1
        assert apart.upper - apart.lower < 0.6 * (one.estimate.upper - one.estimate.lower)


def test_differences_hold_the_truth(model):
    objective = first(model)
    for case, apart in zip(objective.cases, objective.contrast(at(1.2), at(0.0)), strict=True):
        one, other = (float(confounded_truth(case.given["x"], torch.tensor(value))) for value in (1.2, 0.0))
        assert apart.lower < one - other < apart.upper
        assert apart.point == pytest.approx(one - other, abs=0.1)


def test_what_no_row_tells_apart_may_still_differ_by_the_rule_of_three():
    ones = torch.ones(1, 6, 10, dtype=torch.bool)
    mean, lower, upper = paired_interval(ones, ones, 2, 100, 0.95)
    assert (float(mean), float(lower)) == (0.0, -float(upper))
    assert float(upper) == pytest.approx(1 - 0.025 ** (1 / 100), abs=1e-9)
    # Every row may succeed by the first alone: then the second has shown no row of its own.
    mean, lower, upper = paired_interval(ones, ~ones, 2, 100, 0.95)
    assert (float(mean), float(upper)) == (1.0, 1.0)
    assert float(lower) == pytest.approx(0.025 ** (1 / 100), abs=1e-9)


def test_residuals_that_were_seen_each_way_are_not_counted_as_missing():
    # Of 500 residuals of a draw, one succeeds by the first action alone, and one by the second.
    one, other = (torch.zeros(1, 4, 500, dtype=torch.bool) for _ in range(2))
    one[..., 0], other[..., 1] = True, True
    mean, lower, upper = paired_interval(one, other, 2, 100, 0.95)
    half = norm.ppf(0.975) * math.sqrt(2 / 500 / 100)
    assert (float(mean), float(lower), float(upper)) == pytest.approx((0.0, -half, half), abs=1e-9)
    assert half < 1 - 0.025 ** (1 / 100)
    # Without the first kind, it may be missing among the rows.
    _, _, upper = paired_interval(~one, ~one & ~other, 2, 100, 0.95)
    _, lower, _ = paired_interval(~one & ~other, ~one, 2, 100, 0.95)
    assert -float(lower) == pytest.approx(float(upper))


def at_worst_case(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def test_rows_nearby_or_little_to_lose_allow_an_action() -> None:
    beyond, value = at_worst_case(0.1, 0.11, 0.5, 0.5, 1.0, 1.0), at_worst_case(0.9, 0.9, 0.9, 0.9, 0.9, 0.9)
    before = at_worst_case(0.9, 0.9, 0.42, 0.43, 0.02, 0.03)
    assert allowed(beyond, value, before).tolist() == [True, False, True, False, True, False]


def test_what_is_withheld_says_how_much_could_be_lost():
    made = [Appraisal(Estimate(0.94, CHANCE), None)] * 3
    fine, some, most = withheld(made, at_worst_case(0.05, 0.3, 0.7), at_worst_case(0.9, 0.9, 0.9))
    assert (fine.refused, fine.unsupported, fine.trace) == (None, None, {"beyond": 0.05})
    assert some.unsupported.text.startswith("no support: for 30 % of such cases no row is near this action")
    assert "26 % of the probability is lost" in some.unsupported.text
    assert (some.refused, most.refused) == (None, None)
    assert most.unsupported.text.startswith("no support: for 70 % of such cases no row is near this action")
    (other,) = withheld(
        [Appraisal(None, None, refused=Finding("invalid", "why"))], at_worst_case(1.0), at_worst_case(0.9)
    )
    assert other.refused.text == "why"


def dosed(kind: str, seed: int, count: int = 1000) -> tuple[pd.DataFrame, dict]:
    """Experts dose by x and u, nearly without freedom, and are right: another dose does harm."""
    stream = np.random.default_rng([seed, 11])
    x = stream.normal(size=count)
    u = 0.3 * x + stream.normal(size=count)
    rule = {"line": u, "parabola": u**2 / 1.5, "wave": 1.5 * np.sin(2 * u), "step": 2.0 * (u > 0)}[
        kind
    ] + 0.5 * x
    a = rule + 0.15 * stream.normal(size=count)
    y = -1.2 * (a - rule) ** 2 + 0.3 * stream.normal(size=count)
    parents = {"u": ["x"], "a": ["x", "u"], "y": ["x", "u", "a"]}
    task = {
        "graph": {"parents": parents},
        "context": ["x"],
        "box": {"a": [-3, 3]},
        "region": {"y": [-0.5, None]},
    }
    return pd.DataFrame({"x": x, "u": u, "a": a, "y": y}), task


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["line", "parabola", "wave", "step"])
@pytest.mark.parametrize("method", ["cme_stack", "outcome_regression"])
def test_doses_that_nobody_like_the_case_has_had_are_not_recommended(kind: str, method: str) -> None:
    frame, task = dosed(kind, 1)
    cases = [{"x": float(value)} for value in np.linspace(-1.5, 1.5, 9)]
    decisions = rt.rehearse(frame, task, cases, method=method, seed=1)
    assert [each.alteration for each in decisions] == [None] * 9
    beyond = [each.trace["beyond"] for each in decisions if each.undecided]
    assert min(beyond, default=1) > 0.1


@pytest.mark.slow
def test_what_somebody_else_proposes_is_refused_with_the_same_words() -> None:
    frame, task = dosed("line", 1)
    found = rt.learn(frame, task, seed=1).what_if({"x": 0.0}, {"a": 0.5})
    assert found.refused.startswith("no support: for ")
    assert found.refused.endswith("offer actions that such cases have had")
