"""Ren et al. (2025), Theorem 4.1: the encoder recovers the noise of a decomposable node, up to f_c, its mean
and its scale.

x = f_a(z) + f_b(z) f_c(u); the recovered noise has mean 0 and variance 1, follows f_c(u), and is independent
of z.
"""

import pytest
import torch

from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.noisy_nodes import node

SEEDS = range(4)


def recovered(kind, phi, seed, count=200):
    case = node(kind, count, seed)
    return fit(ExogenousModel(case.task, phi=phi), case.table), case.recoverable


def correlation(kind, phi):
    found = []
    for seed in SEEDS:
        made, told = recovered(kind, phi, seed)
        found.append(torch.corrcoef(torch.stack([made.recovered()[0], told]))[0, 1].abs())
    return float(torch.stack(found).mean())


@pytest.mark.parametrize("phi", ["heteroskedastic", "mixture"])
@pytest.mark.parametrize(
    ("kind", "least"), [("additive", 0.98), ("location-scale", 0.95), ("decomposable", 0.93)]
)
def test_recovered_noise_follows_the_true_one(kind, least, phi):
    assert correlation(kind, phi) >= least


@pytest.mark.parametrize("kind", ["location-scale", "decomposable"])
def test_one_scale_for_all_inputs_does_not_recover_noise_whose_scale_varies(kind):
    assert correlation(kind, "homoskedastic") <= 0.87


@pytest.mark.parametrize("kind", ["additive", "location-scale", "decomposable"])
def test_recovered_noise_has_mean_zero_and_variance_one(kind):
    for seed in SEEDS:
        noise = recovered(kind, "mixture", seed)[0].recovered()[0]
        assert abs(float(noise.mean())) < 0.12
        assert 0.88 < float(noise.std()) < 1.15


@pytest.mark.parametrize("kind", ["additive", "location-scale"])
def test_recovered_noise_is_independent_of_the_parents(kind):
    found = [recovered(kind, "heteroskedastic", seed)[0].dependences()["X"] for seed in SEEDS]
    assert all(each.probability > 0.02 for each in found)
    assert max(each.value for each in found) < 0.05


def test_noise_that_one_scale_recovers_still_depends_on_the_parents():
    found = [recovered("location-scale", "homoskedastic", seed)[0].dependences()["X"] for seed in SEEDS]
    assert all(each.probability < 0.02 for each in found)
    assert min(each.value for each in found) > 0.15


@pytest.mark.parametrize("count", [50, 100])
def test_the_latent_deviation_would_be_the_wrong_scale(count):
    made, _ = recovered("additive", "homoskedastic", 0, count)
    residual, std, unknown = made.encoder.in_sample_residuals()
    assert 0.85 < float((residual / std).std()) < 1.05
    assert float((residual / unknown).std()) > 2
