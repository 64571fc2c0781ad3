"""The supported gain: what is allowed, what is said of it, and nobody harmed where rows cannot tell."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.objectives.gain import (
    DISCOUNT,
    LEAST_CREDIT,
    MARGIN_BEYOND,
    MOST_BEYOND,
    MOST_LOST,
    SupportedGain,
)
from rehearsal_torch.search.alterations.projected_ascent import SampledRefinement
from rehearsal_torch.surrogates.outcome.case_draws import Values
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.training.surrogate_fit import fit
from tests.surrogates.outcome.test_outcome_regression import SMALL
from tests.toys.rehearsal_toys import (
    confounded,
    confounded_table,
    confounded_truth,
    sequential,
    sequential_table,
    some_cases,
)

QUICK = {"searched": 2, "points": 8, "near": 4, "judged": 32, "judged_near": 8}


@pytest.fixture(scope="module")
def model():
    task = confounded(candidates=[["a"], ["a", "c"]])
    settings = {**SMALL, "functions": 12, "frequencies": 40, "evidence_rows": 100}
    return fit(OutcomeRegression(task, **settings), confounded_table(400, freedom=2.0))


def first(model, count=3, **settings):
    return SupportedGain.for_cases(model, some_cases(model.task, count), **{**QUICK, **settings}).sets[0]


def at(value, count=3, width=1):
    return torch.full((count, width), value, dtype=torch.float64)


def says(success, none, low=None, credit=None, beyond=0.0):
    """Values of one case whose draws are all equal."""
    low, credit = success if low is None else low, success - none if credit is None else credit
    draws = [torch.full((1, 24), float(each), dtype=torch.float64) for each in (success, none, low, credit)]
    return Values(*draws, torch.tensor([beyond], dtype=torch.float64))


@pytest.mark.parametrize(
    ("beyond", "low", "expected"),
    [
        (MOST_BEYOND, 0.0, True),
        (MOST_BEYOND + 0.01, 0.0, False),
        (1.0, 0.4, True),
        (1.0, 0.4 - MOST_LOST + 1e-6, True),
        (1.0, 0.4 - MOST_LOST - 1e-6, False),
    ],
)
def test_rows_nearby_or_little_to_lose_allow_an_action(model, beyond, low, expected):
    assert first(model, 1)._allowed(says(0.9, 0.4, low, 0.0, beyond)).tolist() == [expected]


def test_what_is_allowed_and_gains_comes_first_then_credit_then_the_rest(model):
    made, action = first(model, 1), at(0.0, 1)

    def value(*numbers, beyond=0.0, margin=0.0):
        return float(made._ranked(says(*numbers, beyond), action, margin, 0.0))

    assert value(0.5, 0.4, 0.5, 0.1) == pytest.approx(1.1)
    # Half of the benefit lies where no row is near.
    assert value(0.5, 0.4, 0.4, 0.05, beyond=0.1) == pytest.approx(1 + 0.1 - DISCOUNT * 0.05)
    assert value(0.9, 0.4, 0.1, 0.2, beyond=0.5) == pytest.approx(0.2)
    assert value(0.9, 0.4, 0.1, LEAST_CREDIT, beyond=0.5) < 0
    assert value(0.3, 0.4, 0.3, -0.1) == pytest.approx(-2.1)
    # A search stays within the rule.
    edge = MOST_BEYOND - MARGIN_BEYOND / 2
    assert value(0.9, 0.4, 0.3, 0.2, beyond=edge) > 1
    assert value(0.9, 0.4, 0.3, 0.2, beyond=edge, margin=MARGIN_BEYOND) == pytest.approx(0.2)


def test_the_estimate_comes_from_other_points_and_is_near_the_truth(model):
    objective = first(model, judged=128)
    found = objective.appraise(at(1.2))
    for case, value, one in zip(objective.cases, objective(at(1.2)), found, strict=True):
        truth = float(confounded_truth(case.given["x"], torch.tensor(1.2)))
        assert one.estimate.point != float(value)
        assert one.estimate.point == pytest.approx(truth, abs=0.07)
        assert one.estimate.lower < truth < one.estimate.upper
        assert one.baseline.lower < one.baseline.point < one.baseline.upper
        assert one.gain.point == pytest.approx(one.estimate.point - one.baseline.point, abs=2e-6)
        assert one.gain.lower < one.gain.point < one.gain.upper


def test_the_hull_is_said_where_rows_are_missing_and_the_model_where_they_are_not(model):
    objective = first(model)
    for value in (0.0, 1.0, 4.0, 9.0):
        for one in objective.appraise(at(value)):
            trace, (lower, upper) = one.trace, (one.gain.lower, one.gain.upper)
            said = trace["hull" if trace["beyond"] > 0.05 else "model"]["gain"]
            assert (lower, upper) == pytest.approx((max(said[0], -1), min(said[1], 1)), abs=1e-6)
            # Anything from 0 to 1 where no row is near: the hull holds both ends of what is possible there.
            hull = trace["hull"]["gain"]
            assert hull[0] <= trace["worst"] + 1e-6
            assert hull[1] >= min(trace["worst"] + trace["beyond"], 1 - one.baseline.point) - 1e-4
            assert trace["worst"] <= trace["credit"] + one.estimate.point
    near, far = (objective.appraise(at(value))[0].trace for value in (0.0, 9.0))
    assert near["beyond"] <= 0.05 < 0.9 < far["beyond"]


def test_the_gain_that_is_said_is_that_of_its_draws(model):
    for value in (0.0, 1.0, 2.5):
        for one in first(model).appraise(at(value)):
            drawn = one.gain_draws.estimate()
            for end in ("point", "lower", "upper"):
                assert getattr(one.gain, end) == pytest.approx(getattr(drawn, end), abs=2e-6)


def test_beyond_the_rows_an_action_is_withheld_or_has_a_credit(model):
    objective = first(model)
    far = objective.appraise(at(60.0))
    assert not objective.acceptable(at(60.0)).any()
    assert objective.acceptable(at(0.5)).all()
    for one in far:
        assert one.unsupported.kind == "no_support"
        assert one.unsupported.text.startswith("the records cannot tell: for 100 % of such cases too few")
        assert one.unsupported.numbers["beyond"] == 1.0
        assert (one.refused, one.findings) == (None, ())
    # An action with a credit is told with the share that no row is like.
    some = says(0.9, 0.4, 0.1, 0.2, beyond=0.6)
    objective._last = (
        objective.judging,
        at(0.7).unsqueeze(0),
        Values(*(each.expand(1, 3, *each.shape[1:]) for each in vars(some).values())),
    )
    (one, *_) = objective.appraise(at(0.7))
    assert one.unsupported is None
    assert one.findings[0].text.startswith("too few rows are like this for 60 % of such cases; the model")
    assert one.gain.lower < 0, "it is a may"


def test_a_decision_is_do_where_the_gain_is_told_from_zero(model):
    made = SupportedGain.for_cases(model, some_cases(model.task, 3), **QUICK)
    decisions = ruled(made, SampledRefinement(starts=8, samples=8, rounds=2).batch_search(made))
    for each in decisions:
        assert each.status == ("do" if each.gain.lower > 0 else "may")
        assert float(each.alteration.values[0]) > 0.3
        assert each.value > 1
    narrow = replace(decisions[0], gain=replace(decisions[0].gain, lower=-0.01))
    assert narrow.status == "may"


def test_where_nothing_has_an_effect_hardly_anything_is_told():
    table = confounded_table(300, freedom=2.0)
    values = table.values.clone()
    values[:, -1] = torch.randn(300, generator=torch.Generator().manual_seed(3), dtype=torch.float64) + 2
    rows = type(table).observed(table.names, values)
    model = fit(OutcomeRegression(confounded(), **{**SMALL, "functions": 12}), rows)
    made = SupportedGain.for_cases(model, some_cases(model.task, 8), **QUICK)
    decisions = ruled(made, SampledRefinement(starts=8, samples=8, rounds=2).batch_search(made))
    assert sum(each.status == "do" for each in decisions) <= 1


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
        assert (back.point, back.lower, back.upper) == pytest.approx(
            (-apart.point, -apart.upper, -apart.lower), abs=1e-6
        )
        assert apart.lower < apart.point < apart.upper
        assert apart.upper - apart.lower < sum(
            each.estimate.upper - each.estimate.lower for each in (one, other)
        )


def test_cases_decided_alone_are_decided_as_in_a_batch(model):
    cases, search = some_cases(model.task, 16), SampledRefinement(starts=6, samples=6, rounds=1)
    whole = search.batch_search(SupportedGain.for_cases(model, cases, **QUICK))
    for index in (0, 7, 15):
        (alone,) = search.batch_search(SupportedGain.for_cases(model, cases[index : index + 1], **QUICK))
        beside = whole[index]
        assert alone.alteration.names == beside.alteration.names
        torch.testing.assert_close(alone.alteration.values, beside.alteration.values, rtol=0, atol=1e-9)
        for name in ("estimate", "baseline", "gain"):
            one, other = (getattr(each, name) for each in (alone, beside))
            assert (one.point, one.lower, one.upper) == pytest.approx(
                (other.point, other.lower, other.upper), abs=2e-6
            )


def test_an_adjustment_that_does_not_hold_is_no_reason_to_act():
    model = fit(OutcomeRegression(sequential(), **SMALL, sequential=False), sequential_table(60))
    (one, _) = first(model, 2).appraise(at(0.0, 2, 2))
    assert one.unsupported.kind == "adjustment"
    assert "v lie between alterations" in one.unsupported.text


SHAPES = {
    "line": lambda u: u,
    "parabola": lambda u: u**2 / 1.5,
    "wave": lambda u: 1.5 * np.sin(2 * u),
    "step": lambda u: 2.0 * (u > 0),
}


def dosed(kind, stream, count, x=None, dose=None):
    """Experts dose by x and u, nearly without freedom, and are right: another dose does harm."""
    x = stream.normal(size=count) if x is None else np.full(count, x)
    u = 0.3 * x + stream.normal(size=count)
    rule = SHAPES[kind](u) + 0.5 * x
    a = rule + 0.15 * stream.normal(size=count) if dose is None else np.full(count, dose)
    y = -1.2 * (a - rule) ** 2 + 0.3 * stream.normal(size=count)
    return pd.DataFrame({"x": x, "u": u, "a": a, "y": y})


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHAPES)
def test_where_experts_leave_no_freedom_nobody_is_harmed_by_a_dose_of_his_own(kind):
    task = {
        "graph": {"parents": {"u": ["x"], "a": ["x", "u"], "y": ["x", "u", "a"]}},
        "context": ["x"],
        "box": {"a": [-3, 3]},
        "region": {"y": [-0.5, None]},
    }
    cases = [{"x": float(value)} for value in np.linspace(-1.5, 1.5, 24 if kind == "line" else 9)]
    decisions = rt.rehearse(dosed(kind, np.random.default_rng([1, 11]), 1000), task, cases, seed=1)
    for case, each in zip(cases, decisions, strict=True):
        truth = np.random.default_rng(5)
        usual = float((dosed(kind, truth, 20_000, case["x"]).y >= -0.5).mean())
        assert usual == pytest.approx(0.94, abs=0.01)
        assert each.baseline.point == pytest.approx(usual, abs=0.03 if kind == "line" else 0.06)
        if each.alteration is not None:
            dose = float(each.alteration.values[0])
            assert float((dosed(kind, truth, 20_000, case["x"], dose).y >= -0.5).mean()) > usual - 0.02
