import pytest
import torch

from rehearsal_torch.estimators.gaussian_process import SolvedProcesses
from rehearsal_torch.estimators.heteroskedastic import InputDependentNoise
from tests.toys.noisy_nodes import node


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


@pytest.mark.slow
def test_noise_of_one_scale_keeps_it():
    for seed in range(4):
        made, process, inputs, _ = fitted("additive", seed=seed)
        assert not bool(made.varies.any())
        assert torch.allclose(made.at(inputs), process.log_noises.exp().expand(120, 1))


@pytest.mark.parametrize("seed", range(3))
def test_a_scale_that_follows_the_input_is_found(seed):
    made, _, inputs, spread = fitted("location-scale", seed=seed)
    assert bool(made.varies.all())
    assert float(made.gain) > 10
    told = ((0.1 + 0.9 * inputs[:, 0, 0] ** 2) * 0.5292 / spread).log()
    found = 0.5 * made.at(inputs)[:, 0].log()
    assert float(torch.corrcoef(torch.stack([told, found]))[0, 1]) > 0.9
    assert float((found - told).mean().abs()) < 0.35
