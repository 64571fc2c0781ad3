import pytest
import torch

from rehearsal_torch.objectives.success_probability import SuccessProbability, fresh
from rehearsal_torch.spaces.polytope import Polytope
from tests.toys.linear_truth import chain, managing
from tests.toys.rehearsal_methods import learnt
from tests.toys.toy_posteriors import Toy, toy_cases

TOY = Toy((0.6, 0.4), (1.0, 0.2), (0.3, 0.5))


def test_each_sample_says_the_probability_of_the_closed_form():
    (one,) = SuccessProbability.for_cases(
        TOY,
        toy_cases(2),
        search_scenarios=6000,
        validation_scenarios=6000,
        test_scenarios=6000,
        information_models=10,
        entropy="sampled",
    ).sets
    for z in (-2.0, 0.0, 1.5, 3.0):
        actions = torch.full((2, 1), z, dtype=torch.float64)
        said = [
            one(actions),
            one.share(actions),
            torch.tensor([fact.estimate.point for fact in one.appraise(actions)]),
        ]
        for each in said:
            assert each.tolist() == pytest.approx([TOY.success(z)] * 2, abs=0.025)
        assert float(one.share_of(1, actions[:1])) == float(one.share(actions)[1])


def test_samples_are_independent_and_repeatable():
    once, again, other = (
        SuccessProbability.for_cases(
            TOY,
            toy_cases(1),
            search_scenarios=50,
            validation_scenarios=50,
            test_scenarios=50,
            information_models=10,
            entropy="sampled",
            seed=seed,
        ).sets[0]
        for seed in (0, 0, 1)
    )
    rooms = [
        once.search_scenarios.slack,
        once.validation_scenarios.slack,
        once.test_scenarios.slack,
        other.search_scenarios.slack,
        other.validation_scenarios.slack,
    ]
    assert torch.equal(once.search_scenarios.slack, again.search_scenarios.slack)
    values = [tuple(sorted(each.flatten().tolist())) for each in rooms]
    assert len(set(values)) == len(values)
    late = tuple(sorted(fresh(TOY, toy_cases(1), ("a",), 50, 0).slack.flatten().tolist()))
    assert late not in values


def test_the_first_of_the_scenarios_that_a_search_sees_are_a_sample_of_the_graphs():
    # Models come sorted by graph: the slopes of the first graph alone would be 1.
    sure = Toy((0.5, 0.5), (1.0, 0.0), (0.0, 0.0))
    (one,) = SuccessProbability.for_cases(
        sure,
        toy_cases(1),
        search_scenarios=1000,
        validation_scenarios=10,
        test_scenarios=10,
        information_models=10,
        entropy="sampled",
    ).sets
    assert float(one.search_scenarios.first(200).gains.abs().amax(1).mean()) == pytest.approx(0.5, abs=0.1)


def test_doing_nothing_is_the_same_beside_every_alteration():
    (one,) = SuccessProbability.for_cases(
        TOY,
        toy_cases(1),
        search_scenarios=10,
        validation_scenarios=10,
        test_scenarios=4000,
        information_models=10,
        entropy="sampled",
    ).sets
    (worse,), (better,) = (one.appraise(torch.tensor([[z]], dtype=torch.float64)) for z in (-3.0, 1.5))
    assert worse.estimate.point < worse.baseline.point < better.estimate.point
    assert worse.baseline == better.baseline


@pytest.mark.parametrize(
    "world",
    [
        managing(),
        managing(
            Polytope(
                ("profit", "customers"),
                torch.tensor([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]]),
                torch.tensor([-0.2, -0.3, 2.5]),
            )
        ),
    ],
)
def test_any_polytope_and_several_outcomes_come_near_the_truth(world):
    made = learnt("structural_posterior", world.task, world.table(600))
    (one_case,) = world.cases(1)
    (one,) = SuccessProbability.for_cases(
        made,
        [one_case],
        search_scenarios=3000,
        validation_scenarios=10,
        test_scenarios=10,
        information_models=10,
    ).sets
    for action in ([4.2, 6.0], [3.5, 5.0]):
        true = world.success(one_case, dict(zip(one.names, action, strict=True)))
        assert float(one(torch.tensor([action], dtype=torch.float64))) == pytest.approx(true, abs=0.07)


def test_numbers_that_are_not_positive_and_missing_contexts_are_refused():
    with pytest.raises(ValueError, match="expected positive"):
        SuccessProbability.for_cases(TOY, toy_cases(1), search_scenarios=0)
    world = chain()
    one_case = world.cases(1)[0]
    one_case.given.clear()
    with pytest.raises(ValueError, match="is not given"):
        SuccessProbability.for_cases(
            learnt("structural_posterior", world.task, world.table(30)),
            [one_case],
            search_scenarios=10,
            validation_scenarios=10,
            test_scenarios=10,
            information_models=10,
        )
