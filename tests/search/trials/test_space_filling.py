"""Spread actions: where they lie, what decides them, and what is recommended beside them."""

import pytest
import torch
from scipy.stats import kstest, qmc

from rehearsal_torch.objectives.trials.confidence_bound import ConfidenceBound
from rehearsal_torch.objectives.trials.expected_reward import PosteriorMean
from rehearsal_torch.search.trials.recommendation import recommend
from rehearsal_torch.search.trials.space_filling import SAMPLINGS, SpaceFilling
from rehearsal_torch.seeding import round_seed
from tests.toys.causal_toys import hills, linear_chain, one_case

LIMITS = {"normals": [[1.0, 0.1], [0.0, 1.0]], "offsets": [1.0, 7.0]}
NARROW = {"normals": [[1.0, 0.0], [-1.0, 0.0]], "offsets": [0.001, 0.0]}


def asked(model, sampling, identity="0", seed=0):
    return SpaceFilling(sampling, seed)(PosteriorMean(model, one_case(model.task, identity)))


def actions_of(sampling, count, limits=None):
    """The actions of `count` rounds, each with the ones before it among the visited, (count, 2)."""
    visited = []
    for number in range(count):
        model = hills(limits, visited)
        search, objective = SpaceFilling(sampling), PosteriorMean(model, one_case(model.task, str(number)))
        region = objective.region(further=False)
        visited.append(search._next(objective, region, str(number)).tolist())
    return torch.tensor(visited, dtype=torch.float64)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("limits", [LIMITS, NARROW])
def test_nothing_leaves_the_region(sampling, limits):
    model = hills(limits)
    model.task.check_action(asked(model, sampling).alteration.values)
    for action in actions_of(sampling, 2, limits):
        model.task.check_action(action)


def test_uniform_actions_are_uniform_over_the_box_and_independent():
    unit = (actions_of("uniform", 300) - torch.tensor([-1.0, 0.0])) / torch.tensor([4.0, 10.0])
    for column in unit.T.numpy():
        assert kstest(column, "uniform").pvalue > 0.01
    assert abs(float(torch.corrcoef(unit.T)[0, 1])) < 0.15
    later = torch.stack([unit[:-1, 0], unit[1:, 0]])
    assert abs(float(torch.corrcoef(later)[0, 1])) < 0.15


def test_sobol_actions_fill_the_box_more_evenly_than_uniform_ones():
    spread = {sampling: actions_of(sampling, 32) for sampling in SAMPLINGS}
    uneven = {
        sampling: qmc.discrepancy(
            ((each - torch.tensor([-1.0, 0.0])) / torch.tensor([4.0, 10.0])).numpy().clip(0, 1)
        )
        for sampling, each in spread.items()
    }
    assert uneven["sobol"] < uneven["uniform"] / 3


def test_sobol_actions_go_on_and_uniform_ones_differ_by_round():
    one, two = hills(visited=[[0.0, 1.0]]), hills(visited=[[0.0, 1.0], [1.0, 1.0]])

    def values(model, sampling, identity, seed=0):
        return asked(model, sampling, identity, seed).alteration.values.tolist()

    assert values(one, "sobol", "0") == values(one, "sobol", "8") != values(two, "sobol", "0")
    assert values(one, "uniform", "0") == values(two, "uniform", "0") != values(one, "uniform", "1")
    assert values(one, "uniform", "0") != values(one, "uniform", "0", seed=1)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_what_is_recommended_is_the_maximiser_of_the_posterior_mean_all_the_same(sampling):
    model = hills()
    objective = PosteriorMean(model, one_case(model.task, "3"))
    decision = SpaceFilling(sampling, 5)(objective)
    found = recommend(objective, round_seed(5, "3"))
    assert torch.equal(decision.recommendation.values, found.action)
    assert decision.estimate.point == found.predicted
    # The highest of the three hills stands at (2.5, 8.5), 1.6 high, on the tail of another one.
    assert decision.recommendation.values.tolist() == pytest.approx([2.5, 8.5], abs=0.05)
    assert decision.estimate.point == pytest.approx(1.645, abs=0.03)
    at = decision.alteration.values.unsqueeze(0)
    with torch.no_grad():
        assert decision.value == decision.trace["acquisition"] == float(objective.expected(at))
        assert decision.trace["predicted_reward"] == float(objective.expected(at, objective.other))
    assert decision.trace["search"] == f"{sampling}_actions"


def test_an_unknown_sampling_is_refused():
    with pytest.raises(ValueError, match=r"expected sampling in \['uniform', 'sobol'\]; got 'halton'"):
        SpaceFilling("halton")


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_pushes_of_a_candidate_are_no_part_of_the_action(sampling) -> None:
    model = linear_chain()
    objective = ConfidenceBound(model, one_case(model.task), draws=4, propagate="optimistic")
    assert objective.further == 1
    assert SpaceFilling(sampling)(objective).alteration.names == ("a", "b")
    assert SpaceFilling(sampling).seed == 0
