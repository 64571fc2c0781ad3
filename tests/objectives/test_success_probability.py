from dataclasses import replace

import pytest
import torch

from rehearsal_torch.objectives import success_probability
from rehearsal_torch.objectives.success_probability import SuccessProbability, fresh
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.sampled_models import ScenarioModel
from tests.toys.linear_truth import managing
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


def few(toy, cases, **settings):
    """Small samples, of different sizes."""
    sizes = {"search_scenarios": 6, "validation_scenarios": 5, "test_scenarios": 4, "information_models": 3}
    (one,) = SuccessProbability.for_sets(toy, cases, **{**sizes, "entropy": "sampled", **settings})
    return one


def test_samples_have_the_sizes_asked_for_and_one_of_each_is_enough() -> None:
    one = few(TOY, toy_cases(2))
    parts = (one.search_scenarios, one.validation_scenarios, one.test_scenarios)
    assert [len(part.gains) for part in parts] == [6, 5, 4]
    assert len(one.information.scenarios.gain) == 3
    assert {each.draws for each in one.appraise(torch.ones(2, 1, dtype=torch.float64))} == {4}
    assert (one.enumerable, one.of_success, one.takes) == (False, True, (ScenarioModel,))
    names = ("search_scenarios", "validation_scenarios", "test_scenarios", "information_models")
    few(TOY, toy_cases(1), **dict.fromkeys(names, 1))
    for name in names:
        with pytest.raises(ValueError, match=r"expected positive numbers of scenarios .* and of models; got"):
            few(TOY, toy_cases(1), **{name: 0})


def test_one_case_is_counted_in_the_sample_asked_for_wherever_its_box_lies() -> None:
    far = [replace(each, feasible={"a": (1e6, 1e6 + 2.0)}) for each in toy_cases(2)]
    for cases, start in ((toy_cases(2), -3.0), (far, 1e6)):
        one = few(TOY, cases, search_scenarios=40, validation_scenarios=30)
        actions = start + torch.linspace(0.0, 2.0, 5, dtype=torch.float64).reshape(5, 1)
        both = actions.unsqueeze(1).expand(5, 2, 1)
        assert one.origin.tolist() == [[max(start, 0.0)]] * 2
        for index in (0, 1):
            assert torch.equal(one.share_of(index, actions), one.share(both)[:, index])
            assert torch.equal(one.share_of(index, actions, validating=False), one(both)[:, index])
        at = torch.tensor([[start], [start + 2.0]], dtype=torch.float64)
        desired = one.test_scenarios.desired(at - one.origin).double().mean(0)
        assert [each.estimate.point for each in one.appraise(at)] == desired.tolist()


def test_only_several_graphs_are_judged_one_by_one() -> None:
    at = torch.ones(1, 1, dtype=torch.float64)
    (several,) = few(TOY, toy_cases(1), test_scenarios=50).appraise(at)
    (single,) = few(Toy(), toy_cases(1), test_scenarios=50).appraise(at)
    assert list(several.trace) == ["graphs"]
    assert single.trace == {}


def test_no_sample_of_a_seed_is_one_of_another_seed() -> None:
    asked = []

    class Asked(Toy):
        def sampled(self, count, seed=0):
            asked.append(seed)
            return super().sampled(count, seed)

    for seed in (0, 1):
        few(Asked(), toy_cases(1), seed=seed)
        fresh(Asked(), toy_cases(1), ("a",), 5, seed)
        asked.append(success_probability.STAGES * seed + success_probability.MODELS)
    assert len(set(asked)) == len(asked) == 12
    # Those of a certificate are the last of a seed, so that there is room for further samples of a search.
    assert max(asked[:6]) < min(asked[6:])
    assert sorted(asked[:6])[-2:] == [6, 7] == [success_probability.MODELS, success_probability.FRESH]
