import inspect

import pytest
import torch
import yaml

from rehearsal_torch.data.known_reward import FunctionReward
from rehearsal_torch.objectives.trials import propagation
from rehearsal_torch.objectives.trials.expected_reward import mean_reward, standard_draws
from rehearsal_torch.objectives.trials.propagation import (
    PROPAGATE,
    Linear,
    Optimistic,
    Propagation,
    monotone_perturbations,
)
from tests.places import ROOT
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, plain

POINTS = torch.tensor([[0.1, 0.2], [0.7, 1.9]], dtype=torch.float64)


def made(kind, beta=2.0, model=None):
    network = (linear_chain() if model is None else model).network()
    return kind(network, beta, standard_draws(16, len(network.mechanisms), 0))


def noise(count=8):
    return linear_chain().draws(count, 3)


def test_the_table_holds_every_propagation_under_its_own_name():
    classes = {
        each.__name__.lower(): each
        for each in vars(propagation).values()
        if inspect.isclass(each) and issubclass(each, Propagation) and not inspect.isabstract(each)
    }
    assert classes == PROPAGATE
    shipped = yaml.safe_load((ROOT / "conf/objective/confidence_bound.yaml").read_text(encoding="utf-8"))
    assert shipped["propagate"] in PROPAGATE


@pytest.mark.parametrize("name", PROPAGATE)
def test_a_larger_beta_makes_a_larger_bound(name):
    low, high = (made(PROPAGATE[name], beta) for beta in (0.5, 2.0))
    points = torch.nn.functional.pad(POINTS, (0, low.further), value=1.0)
    assert low.further == (1 if name in ("optimistic", "separate") else 0)
    assert bool((high.bound(points, noise()) > low.bound(points, noise())).all())


def test_the_gradient_is_what_a_push_changes():
    strategy = made(Linear)
    draws = strategy.few(noise())
    gradients = strategy.gradient(POINTS, noise())
    for node in range(2):
        perturbation = torch.zeros(2, 2, dtype=torch.float64)
        perturbation[:, node] = 1e-3
        change = strategy.perturbed(POINTS, draws, perturbation) - mean_reward(
            strategy.network, POINTS, draws
        )
        torch.testing.assert_close(change / 1e-3, gradients[:, node], rtol=1e-9, atol=1e-9)


def test_pushes_that_are_open_follow_the_action_and_others_are_fixed():
    strategy = made(Optimistic, beta=3.0)
    actions, perturbations = strategy.split(torch.cat([POINTS, torch.tensor([[0.5], [-1.0]]).double()], -1))
    assert torch.equal(actions, POINTS)
    assert perturbations.tolist() == [[1.5, 3.0], [-3.0, 3.0]]


def test_only_nodes_of_a_weighted_sum_that_cause_nothing_are_pushed_as_far_as_they_go():
    def signs(parents, reward):
        task = plain(parents, {"a": [0, 1]}, reward)
        law = WrittenLaw(lambda w: w[..., 0], lambda w: 0.3 + 0 * w[..., 0])
        return monotone_perturbations(WrittenModel(task, dict.fromkeys(task.nodes, law)).network())

    apart = {"X": ["a"], "Y": ["a"]}
    assert signs(apart, {"weights": {"X": 2.0, "Y": -1.0}}) == (1.0, -1.0)
    assert signs({"X": ["a"], "Y": ["X"]}, {"weights": {"X": 2.0, "Y": -1.0}}) == (None, -1.0)
    assert signs(apart, FunctionReward(("X", "Y"), lambda x: x[..., 0] * x[..., 1])) == (None, None)
