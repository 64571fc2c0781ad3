"""Causal worlds as BoTorch's test functions."""

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf

from rehearsal_torch.adapters.botorch import WorldFunction
from rehearsal_torch.problems.causal.dropwave import Dropwave
from rehearsal_torch.problems.causal.noise import ModalNoise
from rehearsal_torch.problems.causal.rosenbrock import Rosenbrock
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.network.network_model import NetworkModel
from rehearsal_torch.training.fit import fit


def test_noise_is_that_of_experiments():
    world = Dropwave()
    function, again = WorldFunction(world), WorldFunction(world)
    actions = world.optimal_action.expand(4000, -1)
    first = function(actions)
    assert torch.equal(first, again(actions))
    assert not torch.equal(first, function(actions))
    assert abs(float(first.mean()) - world.optimal_value) < 5 * float(first.std()) / 4000**0.5
    # Two modes upstream, bent by the wave: not a normal error of one deviation everywhere.
    assert (
        abs(float(first.std()) - float(function(torch.full((4000, 2), 0.9, dtype=torch.float64)).std()))
        > 0.05
    )


def test_turned_over_it_is_made_small():
    function = WorldFunction(Rosenbrock(ModalNoise(0.1, means=(-0.2, 0.4))), negate=True)
    assert function.is_minimization_problem
    assert abs(function.optimal_value + 0.4) < 1e-12
    torch.testing.assert_close(
        function(function.optimizers, noise=False)[0], torch.tensor(-0.4, dtype=torch.float64)
    )


def test_botorch_runs_on_it():
    function = WorldFunction(Dropwave())
    torch.manual_seed(0)
    actions = function.bounds[0] + (function.bounds[1] - function.bounds[0]) * torch.rand(
        8, 2, dtype=torch.float64
    )
    rewards = function.evaluate_true(actions)
    model = SingleTaskGP(actions, rewards[:, None])
    found, _ = optimize_acqf(
        LogExpectedImprovement(model, rewards.max()), function.bounds, q=1, num_restarts=2, raw_samples=16
    )
    assert function.evaluate_true(found).shape == (1,)


def test_a_network_model_proposes_on_its_bounds():
    world = Dropwave()
    function, model = (
        WorldFunction(world),
        NetworkModel(fit(ExogenousModel(world.task), world.observations())),
    )
    assert torch.equal(function.bounds, model.bounds)
    torch.manual_seed(0)
    proposed, _ = optimize_acqf(
        qLogNoisyExpectedImprovement(model, model.train_inputs[0]),
        function.bounds,
        q=1,
        num_restarts=2,
        raw_samples=16,
        options={"maxiter": 10},
    )
    assert bool(function(proposed).isfinite().all())
