import pytest
import torch
from sklearn.mixture import GaussianMixture

from rehearsal_torch.estimators.gaussian_process import SolvedProcesses
from rehearsal_torch.estimators.noise_models import (
    MARGIN,
    GaussianMixtures,
    InputDependentNoise,
    log_densities,
)
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.noisy_nodes import TASK, node

GRID = torch.linspace(0.02, 0.98, 97, dtype=torch.float64).unsqueeze(-1)


def normal(count, stream, sigma=0.2):
    return 2 * sigma * torch.randn(count, generator=stream, dtype=torch.float64)


def error(phi, table):
    """Root mean square error of E[X | a]: the noise's mean is 0."""
    made = fit(ExogenousModel(TASK, phi=phi), table)
    with torch.no_grad():
        values, _ = made.network().propagate(GRID, made.draws(256))
    return float((values[..., 0].mean(-1) - (6 * GRID[:, 0]).sin()).square().mean().sqrt()), made


@pytest.mark.slow
def test_two_modes_that_stand_apart_make_the_mean_better_known():
    errors = []
    for seed in range(4):
        table = node("additive", 120, seed).table
        plain, _ = error("heteroskedastic", table)
        mixed, made = error("mixture", table)
        assert float(made.mixed.gain) > MARGIN
        errors.append((plain, mixed))
    plain, mixed = torch.tensor(errors).mean(0)
    assert float(mixed) < 0.85 * float(plain)


def test_recovered_noise_has_mean_zero_and_variance_one_and_the_rows_come_back():
    table = node("additive", 150, 1).table
    _, made = error("mixture", table)
    assert abs(float(made.recovered().mean())) < 0.1
    assert 0.9 < float(made.recovered().std()) < 1.1
    (components,) = made.network().mechanisms
    inputs, values = components.scaled(table.columns(["a"])), table.columns(["X"])
    noise = components.abduct(inputs, values)
    assert torch.allclose(components.forward(inputs, noise), values, atol=1e-10)
    assert torch.allclose(noise.squeeze(-1), made.abducted()[0], atol=1e-8)
    made.condition(table)
    assert torch.allclose(made.network().mechanisms[0].forward(inputs, noise), values, atol=0.05)


def test_too_few_rows_or_noise_that_depends_on_the_inputs_keep_normal_noise():
    _, few = error("mixture", node("additive", 30, 0).table)
    assert float(few.mixed.gain) == 0
    assert torch.equal(few.mixed.targets, few.weighted.targets)


def fitted(kind, count=120, seed=0):
    table = node(kind, count, seed).table
    inputs, values = table.columns(["a"]).unsqueeze(1), table.columns(["X"])
    standard, kept = (values - values.mean(0)) / values.std(0), torch.ones(count, 1, dtype=torch.bool)
    process = SolvedProcesses([1])
    process.solve(inputs, standard, kept)
    residual, variance = (each.mT for each in process.factors().left_out())
    made = InputDependentNoise([1])
    made.solve(inputs, residual, variance, process.log_noises.exp().expand(count, 1), kept)
    return made, process, inputs, values.std()


@pytest.mark.parametrize("seed", range(3))
def test_a_scale_that_follows_the_input_is_found(seed):
    made, _, inputs, spread = fitted("location-scale", seed=seed)
    assert bool(made.varies.all())
    assert float(made.gain) > 10
    told = ((0.1 + 0.9 * inputs[:, 0, 0] ** 2) * 0.5292 / spread).log()
    found = 0.5 * made.at(inputs)[:, 0].log()
    assert float(torch.corrcoef(torch.stack([told, found]))[0, 1]) > 0.9
    assert float((found - told).mean().abs()) < 0.35


DOUBLE = torch.float64


def noises(count=200, seed=0):
    """Two modes, one mode, three modes; standardised."""
    stream = torch.Generator().manual_seed(seed)
    normal = torch.randn(count, 3, generator=stream, dtype=DOUBLE)
    which = torch.randint(2, (count,), generator=stream)
    third = torch.randint(3, (count,), generator=stream) - 1
    values = torch.stack(
        [(2.0 * which - 1) + 0.3 * normal[:, 0], normal[:, 1], 2.0 * third + 0.2 * normal[:, 2]], -1
    )
    return (values - values.mean(0)) / values.std(0), torch.ones(count, 3, dtype=torch.bool)


def log_density(made, values):
    return log_densities(values, made.weights, made.means, made.variances).logsumexp(-1).sum(0)


@pytest.mark.parametrize("components", [2, 3])
def test_likelihood_is_that_of_scikit_learn_with_several_starts(components):
    values, kept = noises()
    made = GaussianMixtures(3, components)
    made.solve(values, kept)
    own = log_density(made, values)
    for place in range(3):
        column = values[:, place : place + 1].numpy()
        told = GaussianMixture(components, n_init=5, random_state=0).fit(column).score(column) * len(column)
        assert float(own[place]) > told - 2.5


def test_few_rows_and_rows_left_out():
    values, kept = noises()
    kept[9:, 1] = False
    made = GaussianMixtures(3, 2)
    made.solve(values, kept)
    assert (made.weights > 0).sum(-1).tolist() == [2, 1, 2]
    assert float(made.means[1, 0]) == pytest.approx(float(values[:9, 1].mean()))
    assert float(made.variances[1, 0]) == pytest.approx(float(values[:9, 1].var(correction=0)))


def test_starting_from_the_last_fit_is_repeatable_and_not_worse():
    values, kept = noises(201)
    ends = []
    for _ in range(2):
        made = GaussianMixtures(3, 2)
        made.solve(values[:200], kept[:200])
        made.solve(values, kept)
        ends.append(made)
    fresh = GaussianMixtures(3, 2)
    fresh.solve(values, kept)
    assert torch.equal(ends[0].means, ends[1].means)
    assert bool((log_density(ends[0], values) >= log_density(fresh, values) - 1e-2).all())


def test_quantiles_invert_the_distribution_function_and_stay_near_what_was_seen():
    values, kept = noises()
    made = GaussianMixtures(3, 2)
    made.solve(values, kept)
    levels = torch.linspace(0.01, 0.99, 25, dtype=DOUBLE).unsqueeze(-1).expand(25, 3)
    assert torch.allclose(made.cdf(made.quantile(levels)), levels, atol=1e-9)
    ends = made.quantile(torch.tensor([[1e-12] * 3, [1 - 1e-12] * 3], dtype=DOUBLE))
    assert bool((ends[0] >= values.amin(0) - 1).all())
    assert bool((ends[1] <= values.amax(0) + 1).all())


def test_bic_counts_the_modes():
    made = GaussianMixtures(3, "bic")
    made.solve(*noises())
    assert (made.weights > 0).sum(-1).tolist() == [2, 1, 3]
    assert torch.allclose(made.weights.sum(-1), torch.ones(3, dtype=DOUBLE))


@pytest.mark.slow
def test_noise_of_one_scale_keeps_it():
    for seed in range(4):
        made, process, inputs, _ = fitted("additive", seed=seed)
        assert not bool(made.varies.any())
        assert torch.allclose(made.at(inputs), process.log_noises.exp().expand(120, 1))
