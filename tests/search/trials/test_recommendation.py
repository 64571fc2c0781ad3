"""Which action is recommended, how sure it is, and what is said of the best visited one beside it."""

import math

import pytest
import torch

from rehearsal_torch.objectives.trials.confidence_bound import ConfidenceBound
from rehearsal_torch.objectives.trials.expected_reward import PosteriorMean
from rehearsal_torch.search.trials.recommendation import Recommendation, Sureness, recommend, sureness
from tests.toys.causal_toys import hills, linear_chain, one_case

VISITED = [[0.5, 0.5], [1.0, 0.0], [0.2, 1.5]]


def asked(model):
    return recommend(PosteriorMean(model, one_case(model.task)), 0)


def both(model):
    objective = PosteriorMean(model, one_case(model.task))
    found = recommend(objective, 0)
    return found, sureness(objective, found)


def test_mean_and_standard_deviation_are_those_of_the_chain():
    # Y = 1.5 X - b, X = 2 a: E[Y] = 3 a - b, sd^2 = (1.5 .3 (1 + a))^2 + (.2 (1 + b))^2, largest at (1, 0).
    found, sure = both(linear_chain(VISITED))
    assert found.action.tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert found.predicted == pytest.approx(3.0, abs=0.05)
    assert sure.std == pytest.approx(math.hypot(0.9, 0.2), rel=0.1)


def test_the_runner_up_is_the_best_other_visited_action():
    found, sure = both(linear_chain([[0.9, 0.0], [0.1, 2.0], [0.2, 1.5]]))
    assert found.visited.tolist()[0] == [0.9, 0.0]
    assert sure.runner_up.tolist() == [0.9, 0.0]
    assert sure.runner_up_predicted == pytest.approx(2.7, abs=0.1)
    assert not sure.tried


def test_the_chance_is_that_of_the_difference_in_the_same_networks():
    # f_e(1, 0) - f_e(.9, 0) = .3 + .045 e_X: negative only for e_X < -6.7, however little is known of each.
    _, sure = both(linear_chain([[0.9, 0.0]]))
    assert sure.std > 0.5
    assert sure.chance > 0.999


def test_a_chance_is_even_where_the_two_are_equally_good():
    objective = PosteriorMean(linear_chain([[0.5, 1.5]]), one_case(linear_chain().task))
    # 3 a - b is 0 at both; their difference in a network is .075 e_X - .1 e_Y.
    even = Recommendation(torch.tensor([1 / 3, 1.0]).double(), 0.0, torch.tensor([[0.5, 1.5]]).double(), 0)
    assert sureness(objective, even).chance == pytest.approx(0.5, abs=0.15)


def test_a_recommended_visited_action_is_compared_with_another_one():
    found, sure = both(linear_chain([[1.0, 0.0], [0.9999, 0.0], [0.5, 0.5]]))
    assert found.action.tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert sure.tried
    assert sure.runner_up.tolist() == [0.5, 0.5]
    _, alone = both(linear_chain([[1.0, 0.0]]))
    assert alone.tried
    assert alone.runner_up is None


def test_without_visited_actions_there_is_no_runner_up():
    _, sure = both(linear_chain([]))
    assert sure.runner_up is None
    assert math.isnan(sure.chance)
    assert not sure.tried


def test_it_is_at_a_level_and_so_is_the_runner_up():
    # Of the hills at (2.5, 8.5), (1.5, 4) and (0, 2) the second is the nearest to a level.
    levels = (-1.0, 0.4, 1.5, 3.0)
    model = hills(None, [[1.5, 4.5], [2.5, 8.5], [0.4, 2.0]], {"a": {"values": levels}, "b": [0, 10]})
    found, sure = both(model)
    objective = PosteriorMean(model, one_case(model.task))
    axis = torch.linspace(0, 10, 20_001, dtype=torch.float64)
    values = [float(objective(torch.stack([torch.full_like(axis, a), axis], -1)).max()) for a in levels]
    assert float(objective(found.action)) >= max(values) - 1e-4
    assert float(found.action[0]) == levels[values.index(max(values))]
    assert sorted(found.visited[:, 0].tolist()) == [0.4, 1.5]
    assert sure.runner_up.tolist() in ([1.5, 4.5], [0.4, 2.0])


def test_the_pushes_of_a_candidate_are_no_part_of_a_recommendation() -> None:
    model = linear_chain()
    objective = ConfidenceBound(model, one_case(model.task), draws=4, propagate="optimistic")
    assert objective.further == 1
    found = recommend(objective, 0)
    assert found.action.tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert found.visited.tolist() == [[0.6, 0.1], [0.2, 0.4]]
    assert sureness(objective, found).runner_up.tolist() == [0.6, 0.1]
    assert (Sureness(1.0).tried, Sureness(1.0).runner_up) == (False, None)


class Asked(PosteriorMean):
    """Notes for how many actions, with how many draws, and with which gradients it is asked."""

    calls = ()

    def expected(self, actions, noise=None):
        self.calls = (
            *self.calls,
            (actions.requires_grad, len(actions), len(self.noise if noise is None else noise)),
        )
        return super().expected(actions, noise)


@pytest.mark.parametrize(("draws", "few"), [(3, 1), (8, 2)])
def test_half_of_twelve_starts_are_visited_actions_and_the_best_of_256_points_the_others(draws, few) -> None:
    model = linear_chain([[place / 9, 0.2] for place in range(9)])
    objective = Asked(model, one_case(model.task), draws=draws, evaluation_draws=16)
    found = recommend(objective, 0)
    assert found.visited.tolist() == [[place / 9, 0.2] for place in range(8, 2, -1)]
    calls = objective.calls
    assert (False, 256, few) in calls
    begun = next(place for place, each in enumerate(calls) if each[0])
    assert calls[begun] == (True, 12, few)
    # Three go on with all draws; the best of their ends and the visited is found with the other draws.
    assert next(count for gradient, count, noise in calls[begun:] if gradient and noise == draws) <= 3
    assert calls[-1][0] is False
    assert 7 <= calls[-1][1] <= 9
    assert calls[-1][2] == 16
