import pytest
import torch

from rehearsal_torch.estimators.mixture_regression import MARGIN
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.fit import fit
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


@pytest.mark.slow
def test_normal_noise_loses_next_to_nothing():
    errors = torch.tensor(
        [
            [
                error(phi, node("additive", 120, seed, normal).table)[0]
                for phi in ("heteroskedastic", "mixture")
            ]
            for seed in range(4)
        ]
    )
    assert float(errors[:, 1].mean()) < 1.1 * float(errors[:, 0].mean())


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
