"""Pooled estimates: Rubin's rules against numbers by hand, and an objective that is its members' mean."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from rehearsal_torch.data.decision import CHANCE, Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.imputation import ImputedTable
from rehearsal_torch.data.mean_gain import GainDraws
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.imputation_success import MOST_DRAWS, ImputedSuccess, _joined_draws, pool
from rehearsal_torch.objectives.objective import Appraisal
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.imputation_ensemble import ImputedSurrogate
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain

WORLD = chain()
Z = 1.959964


def test_rubins_rules_by_hand():
    errors = (0.02, 0.03, 0.04)
    points = (0.5, 0.6, 0.7)
    several = [
        Estimate(point, CHANCE, point - Z * error, point + 2 * Z * error, 0.95)
        for point, error in zip(points, errors, strict=True)
    ]
    found = pool(several)
    below, between = sum(each**2 for each in errors) / 3, 0.01
    above, extra = 4 * below, (1 + 1 / 3) * between
    freedom = 2 * (1 + (below + above) / 2 / extra) ** 2
    quantile = t.ppf(0.975, freedom)
    assert found.point == pytest.approx(0.6)
    assert found.between == pytest.approx(0.1)
    assert found.lower == pytest.approx(0.6 - quantile * math.sqrt(below + extra))
    assert found.upper == pytest.approx(0.6 + quantile * math.sqrt(above + extra))
    assert found.missing == pytest.approx(extra / ((below + above) / 2 + extra))


@given(
    st.floats(0.05, 0.95),
    st.floats(0.001, 0.2),
    st.floats(0.001, 0.2),
    st.integers(2, 30),
    st.floats(0.5, 0.99),
)
def test_equal_estimates_keep_their_interval(point, below, above, count, level):
    found = pool([Estimate(point, CHANCE, point - below, point + above, level)] * count)
    assert (found.point, found.lower, found.upper) == pytest.approx((point, point - below, point + above))
    assert found.missing == pytest.approx(0, abs=1e-6)


def holes(share, rows=120):
    table = WORLD.table(rows)
    values = table.values.clone()
    values[torch.rand(values.shape, generator=torch.Generator().manual_seed(1)) < share] = torch.nan
    return ImputedTable.of(table.names, values, 4, 0)


@pytest.fixture(scope="module")
def surrogate():
    return fit(ImputedSurrogate(WORLD.task, partial(LinearStructural), 4), holes(0.2))


def objective(surrogate, count=3):
    return ImputedSuccess.for_cases(surrogate, WORLD.cases(count), member=GaussianSuccess)


def test_values_are_means_and_follow_bounds_and_levels(surrogate):
    (one, *_) = objective(surrogate).whole
    actions = one.starts(6)
    assert actions.shape[1:] == (3, len(one.names))
    assert len(actions) == 6
    members = [GaussianSuccess.for_sets(each, WORLD.cases(3))[0] for each in surrogate.each]
    torch.testing.assert_close(one(actions), torch.stack([each(actions) for each in members]).mean(0))
    value, gradients = one.value_and_gradient(actions)
    at = actions.clone().requires_grad_(True)
    (expected,) = torch.autograd.grad(one(at).sum(), at)
    torch.testing.assert_close(value, one(actions))
    torch.testing.assert_close(gradients, expected, rtol=1e-6, atol=1e-9)
    narrow = one.within(one.lower, one.lower, {})
    assert all(torch.equal(each.upper, one.lower) for each in (narrow, *narrow.members))
    wide, slim = (one.at_level(level).appraise(actions[0])[0].estimate for level in (0.99, 0.5))
    assert slim.upper - slim.lower < wide.upper - wide.lower


def test_a_search_has_as_many_different_starts_as_without_imputation(surrogate):
    (one, *_) = objective(surrogate).whole
    (alone, *_) = GaussianSuccess.for_sets(surrogate.each[0], WORLD.cases(3))
    assert len(one.starts(16).unique(dim=0)) == len(alone.starts(16).unique(dim=0)) == 16


def test_decisions_pool_the_claims_of_all_tables(surrogate):
    made = objective(surrogate)
    decisions = ProjectedAscent().batch_search(made)
    assert any(each.alteration is not None for each in decisions)
    for index, each in enumerate(decisions):
        if each.alteration is None:
            continue
        facts = each.trace["imputation"]
        assert facts["imputations"] == 4
        assert 0 < facts["missing_information"] < 1
        points = []
        for model in surrogate.each:
            (own,) = [
                one
                for one in GaussianSuccess.for_sets(model, WORLD.cases(3))
                if one.names == each.alteration.names
            ]
            actions = own.starts(1)[0]
            actions[index] = each.alteration.values
            points.append(own.appraise(actions)[index].estimate.point)
        assert each.estimate.point == pytest.approx(sum(points) / 4, abs=1e-6)
        assert each.estimate.lower < min(points) or each.estimate.upper > max(points)


def test_of_equal_tables_it_says_what_the_method_says():
    table = WORLD.table(80)
    pooled = fit(ImputedSurrogate(WORLD.task, partial(LinearStructural), 2), table)
    alone = fit(LinearStructural(WORLD.task), table)
    found = ProjectedAscent(starts=8).batch_search(objective(pooled))
    expected = ProjectionNewton().batch_search(GaussianSuccess.for_cases(alone, WORLD.cases(3)))
    for one, other in zip(found, expected, strict=True):
        assert one.status == other.status
        assert one.baseline.point == pytest.approx(other.baseline.point, abs=1e-6)
        assert one.estimate.point == pytest.approx(other.estimate.point, abs=1e-3)
    (own, *_), (mine, *_) = (
        each.whole for each in (GaussianSuccess.for_cases(alone, WORLD.cases(3)), objective(pooled))
    )
    actions = own.starts(1)[0]
    for one, other in zip(mine.appraise(actions), own.appraise(actions), strict=True):
        for end in ("point", "lower", "upper"):
            assert getattr(one.estimate, end) == pytest.approx(getattr(other.estimate, end), abs=1e-6)


def test_differences_are_pooled(surrogate):
    (one, *_) = objective(surrogate).whole
    first, second = one.lower, one.upper
    found = one.contrast(first, second)
    each = [
        GaussianSuccess.for_sets(model, WORLD.cases(3))[0].contrast(first, second) for model in surrogate.each
    ]
    for index, pooled in enumerate(found):
        points = [several[index].point for several in each]
        assert pooled.point == pytest.approx(sum(points) / 4, abs=1e-6)
        assert pooled.lower <= pooled.point <= pooled.upper


def test_warnings_and_refusals_of_most_tables_count(surrogate):
    (one, *_) = objective(surrogate).whole
    estimate, none = Estimate(0.5, CHANCE, 0.4, 0.6, 0.95), Estimate(0.2, CHANCE)

    few = partial(Finding, "support")

    def rows(count):
        return few(f"only {count} rows", {"rows": count})

    def pooled(*several):
        return one._pooled([Appraisal(estimate, none, *each) for each in several])

    found = pooled(
        ((rows(2.5), few("no")), few("too few")),
        ((rows(3.0),), few("too few")),
        ((rows(1e-05),), few("too few")),
        ((), None),
    )
    assert found.findings == (rows(2.5),)
    assert found.refused.text == "too few (in 3 of 4 imputed tables)"
    assert pooled(((), few("too few")), ((), few("too few")), ((), None), ((), None)).refused is None
    worse = one._pooled([Appraisal(estimate, Estimate(0.9, CHANCE))] * 4)
    assert worse.declined.text == "no alteration helps: 0.500 at best, 0.900 without one"


def test_only_objectives_of_alterations_are_pooled(surrogate):
    with pytest.raises(TypeError, match="expected a class of objectives of alterations"):
        ImputedSuccess.for_sets(surrogate, WORLD.cases(1), member=lambda model, cases: None)


def test_the_probability_that_is_weighed_against_costs_is_the_mean():
    cases = WORLD.cases(2)
    made = [
        GaussianSuccess.for_sets(fit(LinearStructural(WORLD.task), WORLD.table(60, seed)), cases)[0]
        for seed in (0, 1)
    ]
    actions = torch.tensor([[[0.2], [0.3]], [[-0.5], [0.9]]], dtype=torch.float64)
    found = ImputedSuccess(cases, made).probability(actions)
    assert torch.allclose(found, (made[0].probability(actions) + made[1].probability(actions)) / 2)
    one = ImputedSuccess(cases, made).compared_probability(actions[1])
    assert torch.allclose(one, found[1])
    # The predictive probability is what is reported.
    told = [each.estimate.point for each in made[0].appraise(actions[0])]
    assert made[0].probability(actions)[0].tolist() == pytest.approx(told)


def test_draws_of_all_models_stand_side_by_side():
    models = [
        GainDraws(torch.arange(200.0).double() + 1000 * model, torch.zeros(200).double(), 0.1 * model, 4)
        for model in range(10)
    ]
    pooled = _joined_draws(models)
    assert len(pooled.gain) <= MOST_DRAWS
    assert (pooled.fits, pooled.beyond) == (40, pytest.approx(0.45))
    blocks = pooled.gain.unflatten(-1, (40, -1))
    assert bool(((blocks // 50) == (blocks[:, :1] // 50)).all())
    assert _joined_draws([*models, None]) is None
