import pytest
import torch

from rehearsal_torch.objectives.scenario_success import ScenarioCount, Scenarios, origin_of
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
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
    assert one.share(actions).tolist() == pytest.approx(true, abs=0.06)
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


def test_a_situation_does_not_depend_on_the_others():
    world = chain()
    made, some_cases = fit(LinearStructural(world.task, 60), world.table(50)), world.cases(3)
    all_three, last = (
        ScenarioCount.for_cases(
            made, some, search_scenarios=40, validation_scenarios=10, test_scenarios=10
        ).sets[0]
        for some in (some_cases, some_cases[2:])
    )
    assert torch.allclose(all_three.search_scenarios.slack[:, 2:], last.search_scenarios.slack)


def test_too_few_draws_are_refused():
    world = chain()
    with pytest.raises(ValueError, match="raise its `draws`"):
        ScenarioCount.for_cases(
            fit(LinearStructural(world.task, 30), world.table(50)),
            world.cases(1),
            search_scenarios=40,
            validation_scenarios=10,
            test_scenarios=10,
        )


def test_it_refuses_to_make_things_worse():
    world = chain()
    made = fit(LinearStructural(world.task, 300), world.table(500))
    some_cases = world.cases(8)
    one = ScenarioCount.for_cases(
        made, some_cases, search_scenarios=200, validation_scenarios=50, test_scenarios=50
    ).sets[0]
    said = one.appraise(torch.full((8, 1), -1.0, dtype=torch.float64))
    assert all(
        "no alteration helps" in fact.declined for fact in said if fact.estimate.point < fact.baseline.point
    )
    assert any(fact.declined for fact in said)


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


@pytest.mark.parametrize(
    ("lower", "upper", "origin"),
    [(-1.0, 2.0, 0.0), (3.0, 5.0, 0.0), (1e9, 1e9 + 1, 1e9), (-1e9 - 1, -1e9, -1e9), (4.0, 4.0, 4.0)],
)
def test_alterations_are_measured_from_zero_unless_the_box_is_far_away(lower, upper, origin):
    found = origin_of(*(torch.tensor([[end]], dtype=torch.float64) for end in (lower, upper)))
    assert found.tolist() == [[origin]]


@pytest.mark.parametrize("far", [1.0, 1e6])
def test_what_lies_on_a_face_is_desired_in_any_unit(far):
    scenarios = Scenarios(
        torch.ones(2, 1, 1, dtype=torch.float64), torch.tensor([[[far]], [[far * (1 - 1e-3)]]]).double()
    )
    assert scenarios.desired(torch.tensor([[far]], dtype=torch.float64)).tolist() == [[True], [False]]
    assert scenarios.one(0).share(torch.tensor([[far * 0.9]], dtype=torch.float64)).tolist() == [1.0]
