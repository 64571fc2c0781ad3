"""Which action is recommended, how sure it is, and what is said of the best visited one beside it."""

import math

import pytest
import torch

from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.search.trials.recommendation import recommend
from tests.toys.causal_toys import hills, linear_chain, one_case

VISITED = [[0.5, 0.5], [1.0, 0.0], [0.2, 1.5]]


def asked(model, **settings):
    return recommend(PosteriorMean(model, one_case(model.task)), 0, **settings)


def test_without_caution_it_is_the_maximiser_of_the_posterior_mean():
    # The highest of the three hills stands at (2.5, 8.5), 1.6 high, on the tail of another one.
    found = asked(hills(), caution=0.0)
    assert found.action.tolist() == pytest.approx([2.5, 8.5], abs=0.05)
    assert found.predicted == pytest.approx(1.645, abs=0.03)


def test_with_caution_a_surer_hill_is_recommended():
    plain, sure = asked(hills(), caution=0.0), asked(hills(), caution=5.0)
    assert sure.predicted < plain.predicted
    assert sure.std < plain.std
    assert sure.predicted - 5 * sure.std > plain.predicted - 5 * plain.std


def test_mean_and_standard_deviation_are_those_of_the_chain():
    # Y = 1.5 X - b, X = 2 a: E[Y] = 3 a - b, sd^2 = (1.5 .3 (1 + a))^2 + (.2 (1 + b))^2, largest at (1, 0).
    found = asked(linear_chain(VISITED), caution=0.0)
    assert found.action.tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert found.predicted == pytest.approx(3.0, abs=0.05)
    assert found.std == pytest.approx(math.hypot(0.9, 0.2), rel=0.1)


def test_the_runner_up_was_visited_and_is_another_action():
    found = asked(linear_chain(VISITED), caution=0.0)
    assert found.runner_up.tolist() in VISITED
    assert found.runner_up.tolist() != found.action.tolist()
    assert found.runner_up_predicted == pytest.approx(
        3 * float(found.runner_up[0]) - float(found.runner_up[1]), abs=0.1
    )


def test_the_chance_counts_networks_in_which_it_is_better():
    # The two differ by 3 a + ... in the mean; in a network e by .9 e_X (a - a') and .2 e_Y (b - b').
    found = asked(linear_chain([[0.9, 0.0], [0.1, 2.0]]), caution=0.0)
    assert found.runner_up.tolist() == [0.9, 0.0]
    # f_e(1, 0) - f_e(.9, 0) = .3 + .045 e_X: negative only for e_X < -6.7.
    assert found.chance == 1.0
    close = asked(linear_chain([[0.2, 0.0]]), caution=0.0)
    # 2.4 + .36 e_X: negative for e_X < -6.7 as well; the two share their networks.
    assert close.chance == 1.0


def test_a_recommended_visited_action_is_compared_with_the_next_one():
    model = linear_chain([[1.0, 0.0], [0.5, 0.5]])
    found = asked(model, caution=0.0)
    assert found.action.tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert found.runner_up is not None
    assert found.chance >= 0


def test_without_visited_actions_there_is_no_runner_up():
    found = asked(linear_chain([]), caution=0.0)
    assert found.runner_up is None
    assert math.isnan(found.chance)


def test_the_same_seed_recommends_the_same():
    one, other = asked(hills()), asked(hills())
    assert torch.equal(one.action, other.action)
    assert (one.predicted, one.std, one.chance) == (other.predicted, other.std, other.chance)
