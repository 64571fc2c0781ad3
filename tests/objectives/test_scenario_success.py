import numpy as np
import pytest
import torch
from scipy.stats import norm

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.scenario_success import (
    ScenarioCount,
    Scenarios,
    rowwise,
    scenarios_of,
    success,
)
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain, managing


def test_its_share_is_the_probability_and_the_interval_holds_it():
    world = managing()
    made = fit(LinearStructural(world.task, 3000), world.table(400))
    some_cases = world.cases(3)
    (one,) = ScenarioCount.for_cases(
        made, some_cases, search_scenarios=1800, validation_scenarios=1000, test_scenarios=200
    ).sets
    actions = torch.tensor([[4.0, 5.8], [3.5, 5.0], [4.2, 6.0]], dtype=torch.float64)
    said, true = (
        one.appraise(actions),
        [
            world.success(s, dict(zip(one.names, a.tolist(), strict=True)))
            for s, a in zip(some_cases, actions, strict=True)
        ],
    )
    assert one(actions).tolist() == pytest.approx(true, abs=0.06)
    assert one.compared_probability(actions).tolist() == pytest.approx(true, abs=0.06)
    for fact, value in zip(said, true, strict=True):
        assert fact.estimate.lower - 0.01 <= value <= fact.estimate.upper + 0.01
        assert fact.estimate.upper - fact.estimate.lower < 0.3


def test_scenarios_are_the_same_at_every_call_and_others_for_another_seed():
    world = chain()
    made, some_cases = fit(LinearStructural(world.task, 60), world.table(50)), world.cases(2)
    one, again, other = (
        ScenarioCount.for_cases(
            made, some_cases, search_scenarios=40, validation_scenarios=10, test_scenarios=10, seed=seed
        )
        .sets[0]
        .search_scenarios
        for seed in (0, 0, 1)
    )
    assert torch.equal(one.slack, again.slack)
    assert torch.equal(one.gains, again.gains)
    assert not torch.equal(one.slack, other.slack)


def test_differences_are_counted_under_the_same_parameters():
    world = managing()
    made = fit(LinearStructural(world.task, 3000), world.table(400))
    (one,) = ScenarioCount.for_cases(
        made, world.cases(1), search_scenarios=1800, validation_scenarios=1000, test_scenarios=200
    ).sets
    first, second = (torch.tensor([each], dtype=torch.float64) for each in ([4.0, 5.8], [3.9, 5.6]))
    (apart,) = one.contrast(first, second)
    claims = [one.appraise(each)[0].estimate for each in (first, second)]
    assert apart.point == pytest.approx(claims[0].point - claims[1].point, abs=1e-6)
    truths = [
        world.success(one.cases[0], dict(zip(one.names, each[0].tolist(), strict=True)))
        for each in (first, second)
    ]
    assert apart.lower - 0.01 < truths[0] - truths[1] < apart.upper + 0.01
    assert apart.upper - apart.lower < 0.7 * (claims[0].upper - claims[0].lower)
    (none,) = one.contrast(first, first)
    assert (none.lower, none.upper) == (0.0, 0.0)


DOUBLE = torch.float64


def number(values):
    return torch.tensor(values, dtype=DOUBLE)


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def written(lower=-1.0, upper=2.0, level=0.95, gains=None, slack=None, before=(0.1, 0.9)):
    """Counts of five scenarios with two faces, of one variable in two cases."""
    cases = [RehearsalCase(str(place), {}, {"a": (lower, upper)}) for place in range(2)]
    gains = drawn(5, 2, 1) if gains is None else gains
    slack = drawn(5, 2, 2, seed=1) + 0.5 if slack is None else slack
    search, other = (Scenarios(gains, slack + more) for more in (0.0, 0.4))
    sets = AffineResponse(
        drawn(4, 1, 1),
        drawn(4, 1, 1, seed=2),
        drawn(4, 1),
        torch.empty(0),
        number([0.3, 0.5, 0.8, 1.0])[:, None, None],
    )
    wanted, contexts = Polytope.of({"y": (0.0, 1.5)}), number([[0.2], [-0.4]])
    return ScenarioCount(cases, ("a",), search, other, sets, contexts, wanted, number(before), level)


def chances_of(made, actions):
    """P(y in [0, 1.5]) under each set of parameters by SciPy, (4, 2)."""
    sets = made.test_scenarios
    mean = sets.context[:, :, 0] * made.contexts.T + sets.action[:, :, 0] * actions.T + sets.constant
    spread = sets.covariance[:, :, 0].sqrt()
    return norm.cdf((1.5 - mean) / spread) - norm.cdf(-mean / spread)


def test_what_happens_without_an_action_does_not_depend_on_the_unit_of_the_outcome() -> None:
    """What missed the region by less than 1e-9 of any unit was once desired."""
    outcomes, slopes, nothing = drawn(50, 2, 1), drawn(50, 1, 0), torch.zeros(2, 0, dtype=torch.float64)

    def desired(unit: float) -> torch.Tensor:
        region = Polytope.of({"y": (0.0, 1.5 * unit)})
        return rowwise(unit * outcomes, slopes, region).desired(nothing)

    assert 0 < int(desired(1.0).sum()) < 100
    for unit in (2.0**-40, 1e-12, 1e12):
        assert torch.equal(desired(unit), desired(1.0))


@pytest.mark.parametrize(
    ("slack", "unit"), [(1.0, 1.0), (1e-3, 1.0), (0.9e-3, 0.9e-3), (1e3, 1.0), (1.1e3, 1.1e3), (1e-9, 1e-9)]
)
def test_the_scale_of_a_face_is_one_unless_its_numbers_are_of_another_order(slack, unit) -> None:
    made = Scenarios(torch.zeros(3, 1, 1, dtype=DOUBLE), number([[[slack]], [[-slack]], [[1e12]]]))
    box = number([[1.0]])
    assert made.relative_to(0 * box, 0 * box, box).unit.tolist() == [unit]


def test_undefined_scenarios_are_never_desired_and_none_at_all_leaves_no_share() -> None:
    gains, slack = torch.zeros(5, 2, 1, dtype=DOUBLE), torch.ones(5, 2, 2, dtype=DOUBLE)
    gains[0, 1, 0], slack[1, 0, 1] = torch.nan, torch.inf
    made = written(gains=gains, slack=slack)
    at = number([[0.5], [0.5]])
    assert Scenarios(gains, slack).defined().tolist() == [[False] * 2, [False, True], *([[True] * 2] * 3)]
    assert made(at).tolist() == made.compared_probability(at).tolist() == [0.6, 0.8]
    slack[:, 0] = torch.nan
    made = written(gains=gains, slack=slack)
    for found in (made(at), made.compared_probability(at)):
        assert found.isnan().tolist() == [True, False]
        assert float(found[1]) == 0.8


@pytest.mark.parametrize(("shift", "origin"), [(0.0, 0.0), (1e6, 1e6 - 1.0)])
def test_counts_are_of_actions_in_their_units_wherever_the_box_lies(shift, origin) -> None:
    gains, slack = drawn(5, 2, 1), drawn(5, 2, 2, seed=1) + 0.5
    made = written(shift - 1.0, shift + 2.0, slack=slack + shift * gains.mT)
    assert (made.of_success, made.origin.tolist()) == (True, [[origin]] * 2)
    at = torch.linspace(-1.0, 2.0, 7, dtype=DOUBLE).reshape(7, 1, 1).expand(7, 2, 1)
    for share, more in ((made, 0.0), (made.compared_probability, 0.4)):
        inside = np.einsum("nlk,mbk->mnbl", gains, at) <= slack.numpy() + more
        np.testing.assert_allclose(share(at + shift), inside.all(-1).mean(1))


def test_scenarios_are_draws_of_noise_that_all_cases_share() -> None:
    # Outcomes that are functions of each other have noise, too: w follows y exactly.
    effect, constant = number([[2.0], [1.0]]), number([1.0, -1.0])
    response = AffineResponse(
        effect.expand(4000, 2, 1),
        number([[0.5], [3.0]]).expand(4000, 2, 1),
        constant.expand(4000, 2),
        torch.empty(0),
        number([[4.0, 4.0], [4.0, 4.0]]).expand(4000, 2, 2),
    )
    region, contexts = Polytope.of({"y": (None, 0.0), "w": (None, 0.0)}), number([[0.0], [3.0]])
    found = scenarios_of(response, contexts, region, torch.Generator().manual_seed(0))
    assert found.gains[0].tolist() == [[0.5], [3.0]]
    noise = -found.slack - (contexts @ effect.mT + constant)
    np.testing.assert_allclose(noise[:, 0], noise[:, 1], atol=1e-12)
    np.testing.assert_allclose(noise[:, 0, 0], noise[:, 0, 1], atol=1e-3)
    assert float(noise[:, 0, 0].mean()) == pytest.approx(0.0, abs=0.1)
    assert float(noise[:, 0, 0].std()) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("level", [0.95, 0.5])
def test_intervals_are_quantiles_over_the_sets_of_parameters(level) -> None:
    made = written().at_level(level)
    first, second = number([[0.4], [-0.3]]), number([[1.0], [0.9]])
    one, other = chances_of(made, first), chances_of(made, second)
    np.testing.assert_allclose(
        success(made.test_scenarios, made.region, made.contexts, first), one, atol=1e-7
    )
    orders = [(1 - level) / 2, (1 + level) / 2]
    said = made.appraise(first)
    assert [each.estimate.point for each in said] == pytest.approx(one.mean(0), abs=1e-6)
    ends = [(each.estimate.lower, each.estimate.upper) for each in said]
    np.testing.assert_allclose(np.transpose(ends), np.quantile(one, orders, axis=0), atol=1e-6)
    apart = made.contrast(first, second)
    assert [each.point for each in apart] == pytest.approx((one - other).mean(0), abs=1e-6)
    ends = [(each.lower, each.upper) for each in apart]
    np.testing.assert_allclose(np.transpose(ends), np.quantile(one - other, orders, axis=0), atol=2e-6)
    assert {each.level for each in apart} == {each.estimate.level for each in said} == {level}
    assert [each.baseline.point for each in said] == [0.1, 0.9]
    assert [bool(each.declined) for each in said] == [False, True]
    even = written(before=[each.estimate.point for each in said]).appraise(first)
    assert [each.declined for each in even] == [None, None]


@pytest.fixture(scope="module")
def fitted():
    world = chain()
    return world, fit(LinearStructural(world.task, 6), world.table(50))


def test_every_sample_has_parameters_of_its_own(fitted) -> None:
    world, made = fitted
    cases = world.cases(2)
    sets = ScenarioCount.for_sets(made, cases, 3, 2, 1, level=0.8)
    assert [one.names for one in sets] == list(world.task.candidates)
    for one, linear in zip(sets, made.linear_models_of(world.task.candidates), strict=True):
        whole = linear.response(world.task.context, world.task.outcomes)
        for part, rows in ((one.search_scenarios, slice(0, 3)), (one.validation_scenarios, slice(3, 5))):
            np.testing.assert_allclose(part.gains, torch.cat([whole.action[rows], -whole.action[rows]], 1))
        for name in ("context", "action", "constant", "noise", "covariance"):
            assert torch.equal(getattr(one.test_scenarios, name), getattr(whole, name)[5:6])
        assert one.level == 0.8
    (nothing,) = made.linear_models_of([()])
    law = nothing.response(world.task.context, world.task.outcomes)
    mean, spread = law.base(world.task.given(cases))[5, :, 0], law.covariance[5, 0, 0].sqrt()
    expected = norm.cdf((2.0 - mean) / spread) - norm.cdf((1.0 - mean) / spread)
    for one in sets:
        np.testing.assert_allclose(one.before, expected, atol=1e-6)


def test_settings_out_of_range_are_refused(fitted) -> None:
    world, made = fitted
    assert len(ScenarioCount.for_sets(made, world.cases(1), 1, 1, 1)) == 3
    for counts in ((4, 2, 1), (1, 4, 2), (3, 2, 2)):
        with pytest.raises(ValueError, match="expected 7 draws of the parameters; the surrogate provides 6"):
            ScenarioCount.for_sets(made, world.cases(1), *counts)
