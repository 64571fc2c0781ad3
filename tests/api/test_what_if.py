"""What a method claims of alterations that somebody else proposes, and of two beside each other."""

import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.api.what_if import Comparison, WhatIf
from rehearsal_torch.data.estimate import DIFFERENCE
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.user_error import RequestError
from tests.api.test_rehearse import CASES, SMALL, TASK
from tests.api.test_rehearsed import frame as loans  # noqa: F401  the fixture
from tests.toys.linear_truth import chain

CASE = CASES[0]


@pytest.fixture(scope="module")
def models(care, loans):  # noqa: F811
    return {"care": care, "outcome_regression": rt.learn(loans, TASK, method="outcome_regression", **SMALL)}


@pytest.mark.parametrize("method", ["care", "outcome_regression"])
def test_of_the_recommended_values_it_claims_what_the_decision_does(models, method):
    model = models[method]
    (decision,) = model.decide(CASE)
    assert decision.alteration is not None
    found = model.what_if(
        CASE, dict(zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True))
    )
    assert found.estimate.to_dict() == pytest.approx(decision.estimate.to_dict(), abs=1e-9)
    assert found.baseline == decision.baseline
    # What would overturn it is said of decisions alone.
    assert found.warnings == tuple(each.text for each in decision.findings if each.kind != "hidden_cause")
    if method == "outcome_regression":
        assert found.gain == decision.gain
        assert ": a difference of " in found.sentence()
    assert found.distance == decision.trace["distance"]
    assert found.support == decision.trace.get("support")
    assert found.against == ""


@pytest.mark.parametrize("method", ["care", "outcome_regression"])
def test_a_comparison_is_the_difference_of_two_claims_and_narrower_than_both(models, method):
    model, first, second = models[method], {"A2": 0.30}, {"A2": 0.35}
    found = model.compare(CASE, first, second)
    assert (found.first, found.second) == (model.what_if(CASE, first), model.what_if(CASE, second))
    apart = found.first.estimate.point - found.second.estimate.point
    assert found.difference.point == pytest.approx(apart, abs=3e-6)
    assert found.difference.lower <= found.difference.point <= found.difference.upper
    width = found.difference.upper - found.difference.lower
    assert width < 0.5 * sum(
        each.estimate.upper - each.estimate.lower for each in (found.first, found.second)
    )
    back = model.compare(CASE, second, first).difference
    assert (back.point, back.lower, back.upper) == pytest.approx(
        (-found.difference.point, -found.difference.upper, -found.difference.lower), abs=1e-9
    )
    same = model.compare(CASE, first, first).difference
    assert (same.point, same.lower, same.upper) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("method", ["care", "outcome_regression"])
def test_present_values_of_a_case_are_compared_with(models, method):
    model, present = models[method], CASE | {"A2": 0.45}
    found = model.what_if(present, {"A2": 0.30})
    apart = model.compare(CASE, {"A2": 0.30}, {"A2": 0.45})
    assert found.estimate == apart.first.estimate
    assert found.unchanged == apart.second.estimate
    assert found.gain == apart.difference
    assert f", against {100 * found.unchanged.point:.0f} % (" in found.sentence()
    points = f"{100 * found.gain.point:.0f} percentage points ("
    assert f" with the present values: a difference of {points}" in found.sentence()
    assert model.what_if(CASE, {"A2": 0.30}).unchanged is None


@pytest.mark.bench
def test_intervals_of_differences_hold_the_truth_where_single_intervals_overlap():
    world = chain()
    task = world.task.to_plain() | {"candidates": [["m"]]}
    (case,) = world.cases(1)
    context = {name: float(value) for name, value in case.given.items()}
    first, second = {"m": 0.8}, {"m": 0.4}
    truth = world.success(case, first) - world.success(case, second)
    found = [
        rt.learn(world.table(60, seed).to_frame(), task, method="care").compare(context, first, second)
        for seed in range(20)
    ]
    held = [each.difference.lower - 0.01 <= truth <= each.difference.upper + 0.01 for each in found]
    assert sum(held) >= 17
    assert torch.tensor([each.difference.point for each in found]).mean() == pytest.approx(truth, abs=0.05)


def test_without_a_path_to_an_outcome_the_method_cannot_answer(loans):  # noqa: F811
    parents = {"U1": ["X1", "X2"], "Y1": ["X1", "X2", "U1"]}
    task = TASK | {"graph": {"parents": parents | {"A2": ["X1"]}}, "region": {"Y1": [None, 0.5]}}
    found = rt.learn(loans, task, method="care").what_if(CASE, {"A2": 0.3})
    assert found.refused.startswith("the graph has no directed path from A2 to Y1")
    assert found.against == found.refused


def test_a_question_that_cannot_be_answered_is_refused(models):
    with pytest.raises(RequestError, match=r"one of the candidate sets {A2}; got \['A2', 'U1'\]") as caught:
        models["care"].what_if(CASE, {"A2": 0.2, "U1": 0.1})
    assert caught.value.__cause__ is None


TWO = TASK | {"box": {"A2": [0, 1], "U1": [0, 1]}, "candidates": [["A2"], ["U1"], ["A2", "U1"]]}


def test_alterations_of_other_variables_are_compared_by_joint_draws_of_the_equations(loans):  # noqa: F811
    model, first, second = rt.learn(loans, TWO, method="care"), {"A2": 0.3}, {"U1": 0.5}
    found = model.compare(CASE, first, second)
    assert (found.first, found.second) == (model.what_if(CASE, first), model.what_if(CASE, second))
    assert found.difference.point == pytest.approx(
        found.first.estimate.point - found.second.estimate.point, abs=3e-6
    )
    assert found.basis == "both follow from the same draws of the equations"
    assert "interval" in found.sentence()
    assert found.basis in found.sentence()
    back = model.compare(CASE, second, first).difference
    assert (back.point, back.lower, back.upper) == pytest.approx(
        (-found.difference.point, -found.difference.upper, -found.difference.lower), abs=1e-9
    )
    # U1 has no mechanism once both are set: what remains unknown of A2's equations is common.
    narrow = model.compare(CASE, {"A2": 0.3}, {"A2": 0.3, "U1": 0.5}).difference
    claims = (model.what_if(CASE, each).estimate for each in ({"A2": 0.3}, {"A2": 0.3, "U1": 0.5}))
    assert narrow.upper - narrow.lower < sum(each.upper - each.lower for each in claims)


@pytest.mark.slow
def test_without_joint_draws_the_interval_of_a_difference_allows_for_any_dependence(loans):  # noqa: F811
    model = rt.learn(loans, TWO, method="outcome_regression", **SMALL)
    found = model.compare(CASE, {"A2": 0.3}, {"U1": 0.5})
    one, other = found.first.estimate, found.second.estimate
    assert found.difference.point == pytest.approx(one.point - other.point, abs=3e-6)
    assert found.difference.level == one.level == 0.95
    # Each claim has 97.5 %, so that both hold with 95 %: wider than the two intervals of 95 %.
    assert found.difference.lower <= one.lower - other.upper
    assert found.difference.upper >= min(1.0, one.upper - other.lower)
    assert found.basis.startswith("conservative: each set of variables has a regression of its own")
    assert found.basis in found.sentence()


@pytest.mark.slow
def test_methods_without_intervals_are_refused_by_name(loans):  # noqa: F811
    published = rt.learn(loans, TASK, method="cme_published")
    assert published.what_if(CASE, {"A2": 0.3}).estimate.lower is not None
    with pytest.raises(
        RequestError, match="the method 'cme_published' has no interval for the difference of two"
    ):
        published.compare(CASE, {"A2": 0.3}, {"A2": 0.4})
    posterior = rt.learn(loans, TASK, method="qwz23_success")
    with pytest.raises(
        RequestError, match="the method 'qwz23_success' has no interval of the probability of a"
    ):
        posterior.what_if(CASE, {"A2": 0.3})


def test_sentences_and_html_say_who_is_better_and_escape_names():
    def claim(point, lower, upper, of="probability of a desired outcome"):
        return rt.Estimate(point, of, lower, upper, 0.95)

    one = WhatIf(
        {"<b>": 1.0}, claim(0.7, 0.6, 0.8), claim(0.5, 0.4, 0.6), 3.0, 0.2, (Finding("gain", "<i>"),)
    )
    other = WhatIf({"<b>": 2.0}, claim(0.6, 0.5, 0.7))
    assert one.sentence() == (
        "With <b> at 1, the estimated chance of a desired outcome is 70 % (95% interval 60 % to 80 %), "
        "against 50 % (40 % to 60 %) with no action. Note: <i>."
    )
    better = Comparison(one, other, claim(0.1, 0.05, 0.15, DIFFERENCE))
    assert better.sentence() == (
        "<b>=1 against <b>=2: the first is better: a difference of 10 percentage points (95% interval 5 to "
        "15) in the estimated chance of a desired outcome."
    )
    assert "the second is better" in Comparison(one, other, claim(-0.1, -0.2, -0.05)).sentence()
    assert "not told apart" in Comparison(one, other, claim(0.1, -0.1, 0.2)).sentence()
    for page in (one._repr_html_(), better._repr_html_()):
        assert "With &lt;b&gt; at 1" in page
        assert "<b>" not in page
        assert "<i>" not in page


def test_outside_the_data_the_reason_stands_in_place_of_the_number(models):
    far = {"X1": 0.3, "X2": 40.0}
    found = models["care"].what_if(far, {"A2": 0.3})
    assert found.sentence().startswith("A2=0.3: outside the data: X2 is 40; the observations lie between ")
    assert f"{found.estimate.point:.3f}" not in found.sentence()
    apart = models["care"].compare(far, {"A2": 0.3}, {"A2": 0.4})
    assert apart.sentence().startswith(
        "A2=0.3 against A2=0.4: not compared; A2=0.3: outside the data: X2 is 40; "
    )
    refused = models["outcome_regression"].what_if({"X1": 9.0, "X2": 0.4}, {"A2": 0.3})
    assert refused.sentence() == f"A2=0.3: refused: {refused.refused}"
    assert any(text.startswith("X1 is 9") for text in str(refused).splitlines())


def test_what_the_method_would_not_set_is_said_beside_the_number(models):
    worse = models["outcome_regression"].what_if(CASE, {"A2": 0.75})
    assert worse.sentence().endswith(f". Note: the method would not set this: {worse.against}.")
    assert str(worse).count(worse.against) == 1
    apart = models["outcome_regression"].compare(CASE, {"A2": 0.3}, {"A2": 0.75})
    assert apart.sentence().endswith(f". Note: A2=0.75: the method would not set this: {worse.against}.")


@pytest.mark.slow
def test_it_says_what_an_alteration_costs_and_nets(loans):  # noqa: F811
    model = rt.learn(loans, TASK | {"costs": {"A2": {"up": 10, "down": 1}}, "worth": 100}, method="care")
    found = model.what_if(CASE | {"A2": 0.2}, {"A2": 0.5})
    assert found.cost == pytest.approx(3.0)
    gain = 100 * (found.estimate.point - found.unchanged.point) - 3.0
    assert found.net_gain.point == pytest.approx(gain, abs=1e-3)
    assert f"costs 3, nets {found.net_gain.point:+.4g} [" in found.sentence()
    told = rt.learn(loans, TASK | {"costs": {"A2": 10}}, method="care").what_if(
        CASE | {"A2": 0.2}, {"A2": 0.5}
    )
    assert ". It costs 3." in told.sentence()
    assert told.net_gain is None
