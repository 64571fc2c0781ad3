"""Acquisition functions of written networks against sums that are done by hand, draw by draw."""

import pytest
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions import UnsupportedError
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.optim import optimize_acqf

from rehearsal_torch.objectives.expected_reward import (
    DrawnNetwork,
    ExpectedReward,
    candidate_bounds,
    mean_reward,
    plausible_rewards,
    standard_draws,
)
from rehearsal_torch.objectives.improvement import NetworkLogExpectedImprovement
from rehearsal_torch.objectives.upper_bounds import PROPAGATE, OptimisticBound, OptimisticReward, SampleBound
from rehearsal_torch.surrogates.network.network_model import NetworkModel
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, plain
from tests.toys.fitted_pair import PAIR, fitted_pair, pair_table

DOUBLE = torch.float64
POINTS = torch.tensor([[0.1, 0.2], [0.7, 1.9], [1.0, 0.0]], dtype=DOUBLE)
MADE = {
    "expected": ExpectedReward,
    **PROPAGATE,
    "improvement": lambda model: NetworkLogExpectedImprovement(model, 0.5),
    "optimism": OptimisticReward,
}
every = pytest.mark.parametrize("name", MADE)


def bent_chain():
    """X = a^2 + .1 u, s = .3 (1 + a); Y = X^2 - b + .1 u, s = .2: bent, so that draws do not average out."""
    task = plain({"X": ["a"], "Y": ["X", "b"]}, {"a": [0, 1], "b": [0, 2]}, "Y")
    place = task.inputs("Y").index
    return WrittenModel(
        task,
        {
            "X": WrittenLaw(lambda w: w[..., 0] ** 2, lambda w: 0.3 * (1 + w[..., 0])),
            "Y": WrittenLaw(
                lambda w: w[..., place("X")] ** 2 - w[..., place("b")], lambda w: 0.2 + 0 * w[..., 0]
            ),
        },
    )


def by_hand(action, noise, perturbation=(0.0, 0.0)):
    """The mean reward of `bent_chain` by plain numbers."""
    (a, b), total = action.tolist(), 0.0
    for first, second in noise.tolist():
        x = a**2 + 0.1 * first + perturbation[0] * 0.3 * (1 + a)
        total += x**2 - b + 0.1 * second + perturbation[1] * 0.2
    return total / len(noise)


@pytest.mark.parametrize("count", [2, 16, 64])
@pytest.mark.parametrize("width", [0, 1, 3])
def test_standard_draws_are_mirrored_and_exactly_standard(count, width):
    draws = standard_draws(count, width, 0)
    assert draws.shape == (count, width)
    assert draws.dtype == DOUBLE
    torch.testing.assert_close(draws[0::2], -draws[1::2])
    torch.testing.assert_close(draws.mean(0), torch.zeros(width, dtype=DOUBLE))
    torch.testing.assert_close(draws.square().mean(0), torch.ones(width, dtype=DOUBLE))
    assert torch.equal(draws, standard_draws(count, width, 0))
    if width and count > 2:
        assert not torch.equal(draws, standard_draws(count, width, 1))


@pytest.mark.parametrize("count", [-2, 0, 1, 7])
def test_an_odd_number_of_draws_is_refused(count):
    with pytest.raises(ValueError, match=f"even number of draws, in antithetic pairs; got count={count}"):
        standard_draws(count, 2, 0)


def test_the_mean_reward_is_the_average_over_the_draws():
    model = bent_chain()
    noise = model.draws(8, 3)
    found = mean_reward(model.network(), POINTS, noise)
    assert found.tolist() == pytest.approx([by_hand(each, noise) for each in POINTS])
    perturbed = mean_reward(model.network(), POINTS, noise, lambda place, _: torch.tensor((0.5, -2.0)[place]))
    assert perturbed.tolist() == pytest.approx([by_hand(each, noise, (0.5, -2.0)) for each in POINTS])


def test_one_draw_of_what_is_not_known_is_one_network():
    model = bent_chain()
    noise, epistemic = model.draws(8, 3), standard_draws(6, 2, 1)
    found = plausible_rewards(model.network(), POINTS, noise, epistemic)
    assert found.shape == (3, 6)
    for row, action in zip(found, POINTS, strict=True):
        assert row.tolist() == pytest.approx(
            [by_hand(action, noise, perturbation) for perturbation in epistemic.tolist()]
        )


def drawn(model=None, draws=8, epistemic=16):
    model = linear_chain() if model is None else model
    return DrawnNetwork(model.network(), model.draws(draws, 3), standard_draws(epistemic, 2, 0))


def candidates(function, points=POINTS):
    """As BoTorch gives them: one point in a t-batch, perturbations of .3."""
    return torch.nn.functional.pad(points, (0, function.further), value=0.3).unsqueeze(-2)


def test_the_expected_reward_is_the_average_over_the_draws():
    made = drawn(bent_chain())
    found = ExpectedReward(made)(candidates(ExpectedReward(made)))
    assert found.tolist() == pytest.approx([by_hand(each, made.noise) for each in POINTS])


@every
def test_each_is_an_acquisition_function_without_parameters_or_state(name):
    for model in (drawn(), NetworkModel(fitted_pair(), members=4, draws=4)):
        function = MADE[name](model)
        assert isinstance(function, AcquisitionFunction)
        assert list(function.parameters()) == []
        assert list(function.buffers()) == []
        assert function.state_dict() == {}
        function.load_state_dict({})


@every
def test_t_batches_keep_their_shape(name):
    function = MADE[name](drawn())
    X = candidates(function)
    flat = function(X)
    assert flat.shape == (3,)
    assert function(X[0]).shape == (1,)
    assert function(X[:0]).shape == (0,)
    wide = function(X.expand(2, 4, *X.shape))
    assert wide.shape == (2, 4, 3)
    torch.testing.assert_close(wide[1, 2], flat, rtol=0, atol=1e-12)
    torch.testing.assert_close(function(X[1:2]), flat[1:2], rtol=0, atol=1e-12)


@every
def test_gradients_are_those_of_finite_differences(name):
    function = MADE[name](drawn(bent_chain()))
    assert torch.autograd.gradcheck(function, (candidates(function).requires_grad_(),), atol=1e-6)


@every
def test_the_optimiser_of_botorch_finds_the_best_of_a_grid(name):
    function = MADE[name](drawn(bent_chain()))
    candidate, value = optimize_acqf(
        function, function.bounds, q=1, num_restarts=4, raw_samples=32, options={"seed": 0}
    )
    sides = [
        torch.linspace(float(low), float(high), 21, dtype=DOUBLE) for low, high in function.bounds.unbind(-1)
    ]
    with torch.no_grad():
        grid = function(torch.cartesian_prod(*sides).unsqueeze(-2))
    assert candidate.shape == (1, 2 + function.further)
    assert float(value) >= float(grid.max()) - 1e-6
    assert float(value) == pytest.approx(float(function(candidate)), abs=1e-9)


@every
def test_pending_points_are_refused_and_none_are_not(name):
    function = MADE[name](drawn())
    function.set_X_pending(None)
    with pytest.raises(UnsupportedError, match=f"{type(function).__name__} does not account for X_pending"):
        function.set_X_pending(POINTS)
    with pytest.raises(UnsupportedError, match="does not account for X_pending"):
        optimize_acqf(function, function.bounds, q=2, num_restarts=1, raw_samples=2, sequential=True)


@every
def test_candidates_of_another_shape_are_refused(name):
    function = MADE[name](drawn())
    X = candidates(function)
    with pytest.raises(ValueError, match=rf"X: expected the shape \(\.\.\., 1, {2 + function.further}\)"):
        function(torch.nn.functional.pad(X, (0, 1)))
    with pytest.raises(ValueError, match=r"a column for each of \['a', 'b'\]"):
        function(X[..., :1])
    with pytest.raises(AssertionError, match="q=1"):
        function(X.expand(-1, 2, -1))


def test_bounds_are_those_of_the_actions_and_of_perturbations():
    assert ExpectedReward(drawn()).bounds.tolist() == [[0.0, 0.0], [1.0, 2.0]]
    assert OptimisticBound(drawn()).bounds.tolist() == [[0.0, 0.0, -1.0], [1.0, 2.0, 1.0]]
    assert candidate_bounds(PAIR.box, 2).tolist() == [[0.0, -1.0, -1.0, -1.0], [2.0, 1.0, 1.0, 1.0]]


def test_on_a_network_model_they_take_its_draws():
    model = NetworkModel(fitted_pair(), members=16, draws=8)
    X = candidates(SampleBound(model))
    posterior = model.fewer(16, 2).posterior(X)
    with torch.no_grad():
        # A quarter of the noise draws; BoTorch divides the variance by one less than the number of members.
        wanted = posterior.mean + 3 * (posterior.variance * 15 / 16).sqrt()
        torch.testing.assert_close(SampleBound(model, 3.0)(X), wanted[..., 0, 0])
        made = DrawnNetwork(model.network, model.noise, model.epistemic)
        assert torch.equal(SampleBound(made, 3.0)(X), SampleBound(model, 3.0)(X))


def test_a_model_after_further_experiments_is_taken_as_it_is():
    model = NetworkModel(fitted_pair(), members=4, draws=8)
    told = pair_table(4, seed=9)
    after = model.condition_on_observations(told.columns(["a", "b"]), told.columns(["X", "Y"]))
    X = candidates(ExpectedReward(after))
    with torch.no_grad():
        members = torch.zeros(1, 2, dtype=DOUBLE)
        wanted = plausible_rewards(after.network, X[:, 0], after.noise, members)[:, 0]
        torch.testing.assert_close(ExpectedReward(after)(X), wanted)
        assert float((ExpectedReward(model)(X) - wanted).abs().max()) > 1e-3


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda: NetworkModel(fitted_pair(), outputs=("Y", "X")), r"outputs=\('Y', 'X'\)"),
        (lambda: NetworkModel(fitted_pair(), input_transform=Normalize(2)), r"\['input_transform'\]"),
        (lambda: NetworkModel(fitted_pair(), outcome_transform=Standardize(1)), r"\['outcome_transform'\]"),
        (
            lambda: NetworkModel(fitted_pair()).condition_on_observations(
                POINTS.reshape(3, 1, 2), POINTS.reshape(3, 1, 2)
            ),
            r"batch_shape=\(3,\)",
        ),
    ],
)
def test_a_model_of_something_else_is_refused(model, said):
    with pytest.raises(ValueError, match=rf"model: expected outputs=\('reward',\).*{said}"):
        ExpectedReward(model())


@pytest.mark.parametrize("shape", [(8, 3), (0, 2), (8,), (1, 8, 2)])
def test_draws_of_another_shape_are_refused(shape):
    made = drawn()
    with pytest.raises(ValueError, match=r"noise: expected at least one draw, \(draws, 2\), .* \['X', 'Y'\]"):
        DrawnNetwork(made.network, torch.zeros(shape), made.epistemic)
    with pytest.raises(ValueError, match="epistemic: expected at least one draw"):
        DrawnNetwork(made.network, made.noise, torch.zeros(shape))
