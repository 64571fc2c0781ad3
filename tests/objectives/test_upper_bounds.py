import math

import pytest
import torch
from botorch.exceptions import UnsupportedError
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.known_reward import FunctionReward, WeightedSum
from rehearsal_torch.objectives.upper_bounds import (
    ConfidenceBound,
    Optimism,
    mean_reward,
    monotone_perturbations,
    reward_spread,
    safe_root,
)
from rehearsal_torch.surrogates.network.causal_surrogate import standard_draws
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, one_case, plain

DOUBLE = torch.float64
POINTS = torch.tensor([[0.1, 0.2], [0.7, 1.9], [1.0, 0.0]], dtype=DOUBLE)


def made(kind, model=None, beta=2.0, **more):
    model = linear_chain() if model is None else model
    return kind(model, one_case(model.task), beta, **more)


def in_units(objective, values):
    best, spread = objective.scale
    return best + spread * values


def believed(objective, points=POINTS):
    """The mean reward of the linear chain, with the little that fixed draws are off by."""
    luck = objective.noise.mean(0)
    return 3 * points[:, 0] - points[:, 1] + 0.15 * luck[0] + 0.1 * luck[1]


@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_the_bound_of_a_linear_chain_counts_the_reward_node_alone(beta):
    objective = made(ConfidenceBound, beta=beta)
    wanted = believed(objective) + beta * 0.2 * (1 + POINTS[:, 1])
    torch.testing.assert_close(objective.bound(POINTS), wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(in_units(objective, objective(POINTS)), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [ConfidenceBound, Optimism])
def test_as_acquisition_functions_they_take_single_actions_in_any_batch(kind):
    function = made(kind).acquisition
    wide = function(POINTS.expand(2, 4, 3, 2).unsqueeze(-2))
    assert wide.shape == (2, 4, 3)
    torch.testing.assert_close(wide[1, 2], function(POINTS.unsqueeze(-2)))
    assert torch.autograd.gradcheck(function, (POINTS[:, None].clone().requires_grad_(),))
    with pytest.raises(UnsupportedError, match="does not account for X_pending"):
        function.set_X_pending(POINTS)
    with pytest.raises(AssertionError, match="q=1"):
        function(POINTS.unsqueeze(0))


def test_only_nodes_of_a_weighted_sum_that_cause_nothing_are_pushed_as_far_as_they_go():
    def signs(parents, reward):
        task = plain(parents, {"a": [0, 1]}, reward)
        law = WrittenLaw(lambda w: w[..., 0], lambda w: 0.3 + 0 * w[..., 0])
        return monotone_perturbations(WrittenModel(task, dict.fromkeys(task.nodes, law)).network())

    apart = {"X": ["a"], "Y": ["a"]}
    assert signs(apart, {"weights": {"X": 2.0, "Y": -1.0}}) == (1.0, -1.0)
    assert signs({"X": ["a"], "Y": ["X"]}, {"weights": {"X": 2.0, "Y": -1.0}}) == (None, -1.0)
    assert signs(apart, FunctionReward(("X", "Y"), lambda x: x[..., 0] * x[..., 1])) == (None, None)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    weights=st.lists(st.floats(-3, 3).filter(lambda w: abs(w) > 1e-3), min_size=1, max_size=4),
    seed=st.integers(0, 100),
)
def test_the_spread_of_a_weighted_sum_is_that_of_independent_nodes(weights, seed):
    stream = torch.Generator().manual_seed(seed)
    width = len(weights)
    means, stds = torch.randn(2, 5, width, generator=stream, dtype=DOUBLE).unbind(0)
    names = tuple(f"x{place}" for place in range(width))
    reward = WeightedSum(dict(zip(names, weights, strict=True)))
    found = reward_spread(reward, means, stds.abs(), standard_draws(4, width, 0))
    wanted = [
        math.sqrt(sum((weight * std) ** 2 for weight, std in zip(weights, row, strict=True)))
        for row in stds.tolist()
    ]
    assert found.tolist() == pytest.approx(wanted)
    # The same sum as a function without a closed form: its spread over draws, which for one node is exact.
    plainly = FunctionReward(names, lambda values: values @ values.new_tensor(weights))
    by_draws = reward_spread(plainly, means, stds.abs(), standard_draws(4096, width, 0))
    assert by_draws.tolist() == pytest.approx(wanted, rel=1e-9 if width == 1 else 0.1)


def test_the_spread_of_a_bent_reward_is_the_standard_deviation_over_the_draws():
    reward = FunctionReward(("X",), lambda x: x[..., 0] ** 2)
    epistemic = standard_draws(4096, 1, 0)
    found = reward_spread(
        reward, torch.tensor([[0.5], [0.0]], dtype=DOUBLE), torch.full((2, 1), 0.3).double(), epistemic
    )
    # Var (m + s e)^2 = 4 m^2 s^2 + 2 s^4.
    wanted = [math.sqrt(4 * m**2 * 0.09 + 2 * 0.3**4) for m in (0.5, 0.0)]
    assert found.tolist() == pytest.approx(wanted, rel=0.01)


def test_the_root_has_a_finite_gradient_at_zero():
    squares = torch.tensor([0.0, 4.0], dtype=DOUBLE, requires_grad=True)
    roots = safe_root(squares)
    roots.sum().backward()
    assert roots.tolist() == pytest.approx([0.0, 2.0], abs=1e-14)
    assert squares.grad.isfinite().all()
    assert float(squares.grad[1]) == pytest.approx(0.25)


def constant(*perturbations):
    return lambda place, scaled: scaled.new_full((), perturbations[place])


@pytest.mark.parametrize("perturbation", [-1.0, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_the_value_of_a_linear_chain_is_exact_for_every_push(perturbation, beta):
    objective = made(Optimism, beta=beta)
    found = objective.optimistic(POINTS, constant(perturbation, -0.7), objective.noise)
    upstream, own = 0.45 * (1 + POINTS[:, 0]), 0.2 * (1 + POINTS[:, 1])
    # The reward is Y, which causes nothing: it is pushed all the way, whatever is asked of it.
    wanted = believed(objective) + beta * (perturbation * upstream + own)
    torch.testing.assert_close(in_units(objective, found), wanted, rtol=0, atol=1e-12)
    if perturbation == 0:
        # As an objective of actions every other node stays where it is believed.
        torch.testing.assert_close(objective(POINTS), found)


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
    objective = made(Optimism, model, beta, seed=seed, draws=8)
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
    chosen = in_units(objective, chosen)
    # X causes Y, so that its push is a choice; Y is pushed to where the reward grows.
    torch.testing.assert_close(chosen.amax(0), networks.amax(0), rtol=0, atol=1e-10)
    assert bool((in_units(objective, objective(points)) <= networks.amax(0) + 1e-9).all())
    assert bool((in_units(objective, objective(points)) > mean_reward(network, points, noise)).all())


def test_pushes_are_functions_of_what_the_node_sees():
    objective = made(Optimism)
    seen = []

    def perturbation(place, scaled):
        seen.append((place, scaled.shape[-1]))
        return torch.where(scaled[..., 0] > 0.5, 1.0, -1.0)

    found = objective.optimistic(POINTS, perturbation, objective.noise)
    sign = torch.tensor([-1.0, 1.0, 1.0], dtype=DOUBLE)
    upstream, own = 0.45 * (1 + POINTS[:, 0]), 0.2 * (1 + POINTS[:, 1])
    torch.testing.assert_close(
        in_units(objective, found), believed(objective) + 2 * (sign * upstream + own), rtol=0, atol=1e-12
    )
    assert seen == [(0, 1)]


def test_a_reward_that_is_no_weighted_sum_has_no_push_of_its_own():
    task = plain({"X": ["a"]}, {"a": [0, 1]}, FunctionReward(("X",), lambda x: -(x[..., 0] ** 2)))
    model = WrittenModel(task, {"X": WrittenLaw(lambda w: w[..., 0], lambda w: 0.5 + 0 * w[..., 0])})
    objective = made(Optimism, model)
    assert objective.perturbations == (None,)
    points = torch.tensor([[0.3]], dtype=DOUBLE)
    torch.testing.assert_close(
        in_units(objective, objective(points)), mean_reward(model.network(), points, objective.noise)
    )
    # Pushed by -0.3 of one standard deviation times two, the node is believed to be where the reward peaks.
    best = objective.optimistic(points, constant(-0.3), objective.noise)
    assert float(in_units(objective, best)) == pytest.approx(-0.01, abs=5e-3)
