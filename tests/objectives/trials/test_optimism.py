"""Optimism on networks whose best is known, or found by trying pushes one by one."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.known_reward import FunctionReward
from rehearsal_torch.objectives.trials.expected_reward import PosteriorMean
from rehearsal_torch.objectives.trials.network_acquisition import mean_reward
from rehearsal_torch.objectives.trials.optimism import Optimism
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, one_case, plain

DOUBLE = torch.float64
POINTS = torch.tensor([[0.1, 0.2], [0.7, 1.9], [1.0, 0.0]], dtype=DOUBLE)


def optimism(model=None, beta=2.0, **more):
    model = linear_chain() if model is None else model
    return Optimism(model, one_case(model.task), beta, **more)


def constant(*perturbations):
    return lambda place, scaled: scaled.new_full((), perturbations[place])


def believed(objective, points=POINTS):
    """The mean bound of the linear chain without any push, with the little that fixed draws are off by."""
    luck = objective.noise.mean(0)
    return 3 * points[:, 0] - points[:, 1] + 0.15 * luck[0] + 0.1 * luck[1]


@pytest.mark.parametrize("perturbation", [-1.0, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_the_value_of_a_linear_chain_is_exact_for_every_push(perturbation, beta):
    objective = optimism(beta=beta)
    found = objective.optimistic(POINTS, constant(perturbation, -0.7), objective.noise)
    upstream, own = 0.45 * (1 + POINTS[:, 0]), 0.2 * (1 + POINTS[:, 1])
    # The reward is Y, which causes nothing: it is pushed all the way, whatever is asked of it.
    wanted = believed(objective) + beta * (perturbation * upstream + own)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_as_an_objective_of_actions_every_other_node_stays_where_it_is_believed():
    objective = optimism()
    own = 0.2 * (1 + POINTS[:, 1])
    torch.testing.assert_close(objective(POINTS), believed(objective) + 2 * own, rtol=0, atol=1e-12)
    assert objective.further == 0


def test_without_optimism_it_is_the_posterior_mean():
    model = linear_chain()
    for draws in (8, 64):
        objective = optimism(model, 0.0, draws=draws)
        torch.testing.assert_close(
            objective(POINTS), PosteriorMean(model, one_case(model.task), draws)(POINTS), rtol=0, atol=1e-12
        )


@settings(max_examples=4, deadline=None, derandomize=True)
@given(
    weight=st.floats(-2, 2).filter(lambda w: abs(w) > 0.05), beta=st.floats(0.1, 4), seed=st.integers(0, 9)
)
def test_the_value_of_actions_alone_bounds_the_best_network_from_below(weight, beta, seed):
    task = plain({"X": ["a"], "Y": ["X"]}, {"a": [0, 1]}, {"weights": {"X": 0.5, "Y": weight}})
    model = WrittenModel(
        task,
        {
            "X": WrittenLaw(lambda w: (3 * w[..., 0]).sin(), lambda w: 0.2 + w[..., 0]),
            "Y": WrittenLaw(lambda w: w[..., 0] ** 2, lambda w: 0.1 + w[..., 0].abs()),
        },
    )
    objective = optimism(model, beta, seed=seed, draws=8)
    points = torch.tensor([[0.1], [0.8]], dtype=DOUBLE)
    network, noise = model.network(), objective.noise
    side = [place / 5 for place in range(-5, 6)]
    networks = torch.stack(
        [
            mean_reward(network, points, noise, constant(beta * first, beta * last))
            for first in side
            for last in side
        ]
    )
    chosen = torch.stack([objective.optimistic(points, constant(first, 0.0), noise) for first in side])
    # X causes Y, so that its push is a choice; Y is pushed to where the reward grows.
    torch.testing.assert_close(chosen.amax(0), networks.amax(0), rtol=0, atol=1e-10)
    assert bool((objective(points) <= networks.amax(0) + 1e-9).all())
    assert bool((objective(points) > mean_reward(network, points, noise)).all())


def test_pushes_are_functions_of_what_the_node_sees():
    objective = optimism()
    seen = []

    def perturbation(place, scaled):
        seen.append((place, scaled.shape[-1]))
        return torch.where(scaled[..., 0] > 0.5, 1.0, -1.0)

    found = objective.optimistic(POINTS, perturbation, objective.noise)
    sign = torch.tensor([-1.0, 1.0, 1.0], dtype=DOUBLE)
    upstream, own = 0.45 * (1 + POINTS[:, 0]), 0.2 * (1 + POINTS[:, 1])
    torch.testing.assert_close(found, believed(objective) + 2 * (sign * upstream + own), rtol=0, atol=1e-12)
    assert seen == [(0, 1)]


def test_a_reward_that_is_no_weighted_sum_has_no_push_of_its_own():
    task = plain({"X": ["a"]}, {"a": [0, 1]}, FunctionReward(("X",), lambda x: -(x[..., 0] ** 2)))
    model = WrittenModel(task, {"X": WrittenLaw(lambda w: w[..., 0], lambda w: 0.5 + 0 * w[..., 0])})
    objective = optimism(model)
    assert objective.perturbations == (None,)
    points = torch.tensor([[0.3]], dtype=DOUBLE)
    torch.testing.assert_close(objective(points), PosteriorMean(model, one_case(task))(points))
    # Pushed by -0.3 of one standard deviation times two, the node is believed to be where the reward peaks.
    best = objective.optimistic(points, constant(-0.3), objective.noise)
    assert float(best) == pytest.approx(-0.01, abs=5e-3)


@pytest.mark.parametrize("beta", [-0.5, math.inf, math.nan])
def test_a_beta_that_is_no_number_of_standard_deviations_is_refused(beta):
    with pytest.raises(ValueError, match=f"expected beta >= 0; got beta={beta}"):
        optimism(beta=beta)


def test_screening_looks_at_a_quarter_of_the_draws():
    objective = optimism(draws=8)
    luck, own = objective.noise[:2].mean(0), 0.2 * (1 + POINTS[:, 1])
    wanted = 3 * POINTS[:, 0] - POINTS[:, 1] + 0.15 * luck[0] + 0.1 * luck[1] + 2 * own
    torch.testing.assert_close(objective.rough(POINTS), wanted, rtol=0, atol=1e-12)
