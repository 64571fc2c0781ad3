"""The kernel value: caution, what is refused, and what bears a warning."""

import pytest
import torch

from rehearsal_torch.objectives.kernel_value import KernelValue
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue
from tests.toys.rehearsal_toys import (
    confounded,
    confounded_table,
    fitted,
    sequential,
    sequential_table,
    some_cases,
)


@pytest.fixture(scope="module")
def model():
    return fitted(confounded(candidates=[["a"], ["a", "c"]]), confounded_table(400))


def points(objective, spread=1.0, seed=0):
    shape = (len(objective.cases), len(objective.names))
    return spread * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_values_and_slopes_are_in_the_units_of_the_actions(model):
    for objective in KernelValue.for_cases(model, some_cases(model.task, 4)).sets:
        actions = points(objective)
        value, gradients = objective.value_and_gradient(actions)
        at = actions.clone().requires_grad_(True)
        (wanted,) = torch.autograd.grad(objective(at).sum(), at)
        assert torch.allclose(value, objective(actions), atol=1e-9)
        assert torch.allclose(gradients, wanted, atol=1e-8)
        assert objective(actions.expand(3, -1, -1)).shape == (3, 4)


def test_caution_takes_off_that_many_standard_deviations(model):
    objective = KernelValue.for_cases(model, some_cases(model.task, 4), caution=3.0).sets[0]
    actions = points(objective)
    value, std = objective.estimator.value_and_std(objective.prepared, objective.standardised(actions))
    assert torch.equal(objective.comparison_value(actions), value - 3.0 * std)


def test_intervals_grow_with_their_level_and_hold_the_estimate(model):
    appraisals = [
        KernelValue.for_cases(model, some_cases(model.task, 6), level=level)
        .sets[0]
        .appraise(torch.zeros(6, 1, dtype=torch.float64))
        for level in (0.5, 0.99)
    ]
    for narrow, wide in zip(*appraisals, strict=True):
        assert (
            0
            <= wide.estimate.lower
            <= narrow.estimate.lower
            <= narrow.estimate.point
            <= narrow.estimate.upper
            <= wide.estimate.upper
            <= 1
        )
        assert wide.estimate.upper - wide.estimate.lower > narrow.estimate.upper - narrow.estimate.lower
        assert 0 <= narrow.baseline.point <= 1


def test_starts_are_historical_actions_inside_the_box(model):
    for objective in KernelValue.for_cases(model, some_cases(model.task, 6)).sets:
        starts = objective.starts(8)
        assert starts.shape == (8, 6, len(objective.names))
        assert ((starts >= objective.lower - 1e-12) & (starts <= objective.upper + 1e-12)).all()
        assert torch.equal(objective.project(starts), starts)
        weights = objective.estimator.weights(objective.prepared)
        first = objective.estimator.actions[weights.argmax(1)]
        assert torch.equal(
            starts[0], objective.project(objective.surrogate.scaler.units(objective.names, first))
        )
        assert len(objective.starts(10_000)) == weights.shape[1]


def test_a_decision_that_no_row_comes_near_is_refused(model):
    objective = KernelValue.for_cases(model, some_cases(model.task, 3)).sets[0]
    for one in objective.appraise(torch.full((3, 1), 40.0, dtype=torch.float64)):
        assert one.trace["support"] < 1
        assert "no support" in one.refused.text
        assert "collect data there" in one.refused.text
        assert any(each.text.startswith("no observation lies near") for each in one.findings)
    for one in objective.appraise(torch.zeros(3, 1, dtype=torch.float64)):
        assert one.trace["support"] > 5
        assert not one.refused
        assert not one.findings


def test_how_much_support_is_enough_is_a_setting(model):
    cases = some_cases(model.task, 3)
    at = torch.zeros(3, 1, dtype=torch.float64)
    low_support = KernelValue.for_cases(model, cases, min_support=1.0, low_support=1e6).sets[0].appraise(at)
    assert all("only" in one.findings[0].text and not one.refused for one in low_support)
    assert all(
        one.refused
        for one in KernelValue.for_cases(model, cases, min_support=1e6, low_support=1e6).sets[0].appraise(at)
    )
    decisions = ProjectedAscent(starts=2, steps=3).batch_search(
        KernelValue.for_cases(model, cases, min_support=1e6, low_support=1e6)
    )
    for decision in decisions:
        assert decision.alteration is None
        assert decision.reason.text.startswith("no support")
        assert set(decision.trace["would_set"]) <= {"a", "c"}
        assert decision.undecided


def test_a_decision_that_is_surely_worse_than_nothing_is_refused(model):
    objective = KernelValue.for_cases(model, some_cases(model.task, 3), level=0.1).sets[0]
    objective.before = torch.ones(3, dtype=torch.float64)
    assert all(
        "worse than doing nothing" in one.declined.text
        for one in objective.appraise(torch.full((3, 1), -1.0, dtype=torch.float64))
    )


def test_an_adjustment_that_does_not_hold_bears_a_warning():
    model = fitted(sequential(), sequential_table(150), sequential=False)
    for decision in ProjectedAscent(starts=2, steps=5).batch_search(
        KernelValue.for_cases(model, some_cases(sequential(), 2))
    ):
        assert any(text.startswith("v lie between alterations") for text in decision.warnings)


@pytest.mark.parametrize(
    "settings",
    [{"caution": -1}, {"level": 0}, {"level": 1}, {"min_support": -1}, {"min_support": 3, "low_support": 2}],
)
def test_wrong_settings_are_refused(model, settings):
    with pytest.raises(ValueError, match="expected caution >= 0"):
        KernelValue.for_cases(model, some_cases(model.task, 1), **settings)


def test_too_few_rows_are_the_reason_even_where_nothing_is_better_than_doing_nothing(model):
    objective = KernelValue.for_cases(
        model, some_cases(model.task, 3), level=0.1, min_support=1e6, low_support=1e6
    ).sets[0]
    objective.before = torch.ones(3, dtype=torch.float64)
    assert all(
        one.refused.text.startswith("no support")
        for one in objective.appraise(torch.full((3, 1), -1.0, dtype=torch.float64))
    )


@pytest.mark.parametrize("beside", [-1e-3, 1e-3])
def test_a_wide_interval_around_the_baseline_is_no_reason_to_refuse(model, beside):
    objective = KernelValue.for_cases(model, some_cases(model.task, 3), level=0.999).sets[0]
    at = torch.zeros(3, 1, dtype=torch.float64)
    predicted = objective.estimator.value(objective.prepared, objective.standardised(at), 1)
    objective.before = predicted + beside
    for one in objective.appraise(at):
        assert one.estimate.lower < one.baseline.point < one.estimate.upper
        assert not one.refused
        assert not one.declined


def test_another_level_changes_the_interval_alone(model):
    made, actions = KernelValue.for_cases(model, some_cases(model.task, 3)).sets[0], torch.zeros(3, 1)
    direct = KernelValue.for_cases(model, some_cases(model.task, 3), level=0.5).sets[0]
    assert made.at_level(0.5).appraise(actions.double()) == direct.appraise(actions.double())
    assert made.level == 0.95


def test_differences_are_those_of_the_estimates_with_an_interval_of_their_own(model):
    for objective in KernelValue.for_cases(model, some_cases(model.task, 4)).sets:
        first, second = points(objective), points(objective, 0.5, 1)
        rows = zip(
            objective.contrast(first, second),
            objective.contrast(second, first),
            objective.appraise(first),
            objective.appraise(second),
            strict=True,
        )
        for apart, back, one, other in rows:
            assert apart.point == pytest.approx(one.estimate.point - other.estimate.point, abs=2e-6)
            assert (back.point, back.lower, back.upper) == (-apart.point, -apart.upper, -apart.lower)
            assert -1 <= apart.lower <= apart.point <= apart.upper <= 1
            assert apart.level == 0.95
        for none in objective.contrast(first, first):
            # Members agree that an action is as good as itself.
            assert (none.point, none.lower, none.upper) == (0.0, 0.0, 0.0)
        near, most = objective.contrast(first, first + 1e-3)[0], objective.appraise(first)[0].estimate
        assert near.upper - near.lower < 0.1 * (most.upper - most.lower)


def test_an_estimator_without_a_covariance_between_actions_has_no_differences(model, monkeypatch):
    objective = KernelValue.for_cases(model, some_cases(model.task, 2)).sets[0]
    monkeypatch.setattr(type(objective.estimator), "difference_and_std", AlterationValue.difference_and_std)
    assert objective.contrast(points(objective), points(objective)) is None
