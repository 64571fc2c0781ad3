import pytest
import torch

from rehearsal_torch.surrogates.counterfactual import counterfactual, recover, sample
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.fit import fit
from tests.toys.noisy_nodes import CHAIN, chain, equations

MODEL = fit(ExogenousModel(CHAIN), chain(250, 0))


def noise(count, seed):
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_counterfactuals_are_those_of_the_true_equations():
    own = noise(40, 3)
    table = chain(40, 5, noise=own)
    a, b = table.columns(["a"])[:, 0], table.columns(["b"])[:, 0]
    # Within what the rows have seen: elsewhere the model does not know.
    for changed, fixed in (({"a": 0.4}, {}), ({}, {"X": 1.0}), ({"b": -0.2}, {"R": 3.2})):
        others = [
            torch.full_like(own_action, changed[name]) if name in changed else own_action
            for name, own_action in (("a", a), ("b", b))
        ]
        told = equations(*others, own, fixed)
        found = counterfactual(MODEL.network(), table, changed, fixed)
        for node in CHAIN.nodes:
            apart = (found.columns([node]) - told.columns([node])).square().mean().sqrt()
            assert float(apart) < 0.3 * float(chain(250, 0).columns([node]).std()), (changed, fixed, node)
        if "X" in fixed:
            assert bool((found.columns(["X"]) == 1.0).all())
            assert torch.allclose(found.columns(["R"]), table.columns(["R"]))


def test_recovered_noise_follows_the_true_one():
    own = noise(200, 3)
    found = recover(MODEL.network(), chain(200, 5, noise=own))
    for place in range(3):
        assert float(torch.corrcoef(torch.stack([found[:, place], own[:, place]]))[0, 1]) > 0.93


def test_samples_are_those_of_the_interventions():
    actions = torch.tensor([[0.5, 0.2], [1.5, -0.8]], dtype=torch.float64)
    own = noise(20_000, 8)
    for fixed in ({}, {"X": 1.0}):
        drawn = sample(MODEL, actions, 512, fixed=fixed)
        for place, (a, b) in enumerate(actions):
            told = equations(a.expand(20_000), b.expand(20_000), own, fixed).columns(CHAIN.nodes)
            spread = chain(250, 0).columns(CHAIN.nodes).std(0)
            assert bool(((drawn[place].mean(0) - told.mean(0)).abs() < 0.2 * spread).all())
            assert bool(((drawn[place].std(0) - told.std(0)).abs() < 0.2 * spread).all())
    assert drawn.shape == (2, 512, 3)
    assert torch.equal(sample(MODEL, actions, 32, seed=1), sample(MODEL, actions, 32, seed=1))


def test_strange_names_are_refused():
    with pytest.raises(ValueError, match=r"\['X'\] are not actions"):
        counterfactual(MODEL.network(), chain(5, 0), {"X": 1.0})
    with pytest.raises(ValueError, match=r"\['a'\] are not nodes"):
        sample(MODEL, torch.zeros(1, 2, dtype=torch.float64), 4, fixed={"a": 1.0})


@pytest.mark.parametrize(
    ("phi", "scale"),
    [
        ("homoskedastic", "predictive"),
        ("heteroskedastic", "noise"),
        ("mixture", "noise"),
        ("mixture", "predictive"),
    ],
)
def test_a_conditioned_network_is_that_of_a_model_conditioned_on_the_table(phi, scale):
    model, further = fit(ExogenousModel(CHAIN, phi=phi, scale=scale), chain(30, 0)), chain(3, 4)
    network = model.network()
    nodes = network.task.nodes
    conditioned = network.conditioned(further.columns(CHAIN.actions), further.columns(nodes))
    model.condition(chain(30, 0) + further)
    own, deviations = noise(5, 1), noise(5, 2)
    actions = torch.rand(4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, expected = (
        each.propagate(actions, own, lambda place, _: deviations[:, place], spread=nodes)
        for each in (conditioned, model.network())
    )
    torch.testing.assert_close(found[0], expected[0], rtol=0, atol=1e-9)
    for node in nodes:
        torch.testing.assert_close(found[1][node], expected[1][node], rtol=0, atol=1e-9)


def test_experiments_that_are_far_apart_are_those_of_one_network_and_its_noise():
    network = fit(ExogenousModel(CHAIN, phi="homoskedastic"), chain(30, 0)).network()
    actions = torch.tensor([[0.3, 0.2]], dtype=torch.float64)
    own, deviations = noise(6, 1), noise(6, 2)
    values, _ = network.propagate(actions, own, lambda place, _: deviations[:, place])
    # One experiment in each of six batches: the joint distribution is that of a single action.
    alone = network.experiments(actions.expand(6, 1, 2), deviations.unsqueeze(1), own.unsqueeze(1))
    torch.testing.assert_close(alone[:, 0], values[0])
    # Without what is not known, any number of experiments are predictions.
    together = network.experiments(actions.expand(6, 2), 0 * deviations, own)
    torch.testing.assert_close(together, network.propagate(actions, own)[0][0])
