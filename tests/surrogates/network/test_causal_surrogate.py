import pytest
import torch

from rehearsal_torch.surrogates.network.causal_surrogate import standard_draws
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.structural_counterfactuals import counterfactual, recover, sample
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.causal_toys import linear_chain
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


@pytest.mark.parametrize("count", [2, 16, 64])
@pytest.mark.parametrize("width", [0, 1, 3])
def test_standard_draws_are_mirrored_and_exactly_standard(count, width):
    draws = standard_draws(count, width, 0)
    assert draws.shape == (count, width)
    torch.testing.assert_close(draws[: count // 2], -draws[count // 2 :])
    torch.testing.assert_close(draws.square().mean(0), torch.ones(width, dtype=torch.float64))
    assert torch.equal(draws, standard_draws(count, width, 0))
    if width and count > 2:
        assert not torch.equal(draws, standard_draws(count, width, 1))


@pytest.mark.parametrize("count", [-2, 0, 1, 7])
def test_an_odd_number_of_draws_is_refused(count):
    with pytest.raises(ValueError, match="even number of members"):
        MODEL.plausible(count)


def test_plausible_networks_of_written_laws_deviate_node_by_node():
    model = linear_chain()
    network, actions = model.plausible(6, 1), torch.tensor([[0.1, 0.2], [0.7, 1.9]], dtype=torch.float64)
    own, deviations = model.draws(4, 2), standard_draws(6, 2, 1)
    found = network.propagate(actions, own)
    for member in range(6):
        wanted, _ = model.network().propagate(
            actions, own, lambda place, _, member=member: deviations[member, place]
        )
        torch.testing.assert_close(found[member], wanted)
    torch.testing.assert_close(network.few(2).propagate(actions, own), found[[0, 3]])
    assert torch.equal(network.reward(found), found[..., 1])


@pytest.mark.parametrize("phi", ["homoskedastic", "heteroskedastic", "mixture"])
def test_plausible_networks_of_a_fitted_model_surround_its_means(phi):
    model = fit(ExogenousModel(CHAIN, phi=phi), chain(60, 0))
    actions = torch.tensor([[0.5, 0.2], [1.5, -0.8]], dtype=torch.float64)
    own, network = model.draws(64, 2), model.plausible(64, 1)
    found = network.propagate(actions, own)
    assert found.shape == (64, 2, 64, 3)
    mean, _ = model.network().propagate(actions, own)
    spread = chain(250, 0).columns(model.task.nodes).std(0)
    apart = found.mean((0, 2)) - mean.mean(1)
    assert bool((apart.abs() < 0.25 * spread).all())
    assert bool((found.mean(2).std(0) > 0).all())
    assert torch.equal(found, model.plausible(64, 1).propagate(actions, own))
    assert not torch.equal(found, model.plausible(64, 3).propagate(actions, own))
