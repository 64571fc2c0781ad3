import pytest
import torch

from rehearsal_torch.estimators.gp_kernel import MANY
from rehearsal_torch.estimators.hsic import dependence, independent_probability

DOUBLE = torch.float64


def pair(count=80, seed=0):
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.rand(count, 2, generator=stream, dtype=DOUBLE)
    return torch.randn(count, generator=stream, dtype=DOUBLE), inputs


def test_noise_of_another_scale_everywhere_is_seen_and_independent_noise_is_not():
    noise, inputs = pair()
    clean, scaled = dependence(noise, inputs), dependence(noise * (0.1 + 2 * inputs[:, 0]), inputs)
    assert clean.probability > 0.1
    assert scaled.probability == pytest.approx(1 / 201)
    assert scaled.value > 2 * scaled.usual


def test_the_quick_probability_agrees_with_permutations():
    cases = [pair(seed=seed) for seed in range(6)]
    inputs = torch.stack([where for _, where in cases])
    noise = torch.stack([own * (0.3 + (seed % 3) * where[:, 0]) for seed, (own, where) in enumerate(cases)])
    quick = independent_probability(noise, inputs, torch.ones_like(noise, dtype=torch.bool))
    slow = torch.tensor(
        [dependence(*each, permutations=400).probability for each in zip(noise, inputs, strict=True)],
        dtype=DOUBLE,
    )
    assert float((quick - slow).abs().max()) < 0.08


def test_of_many_rows_evenly_spaced_ones_are_compared():
    noise, inputs = pair(2 * MANY - 1)
    half, every = (noise[::2], inputs[::2]), torch.ones(1, len(noise), dtype=torch.bool)
    assert dependence(noise, inputs, 5) == dependence(*half, 5)
    few = independent_probability(half[0][None], half[1][None], every[:, ::2])
    assert torch.equal(independent_probability(noise[None], inputs[None], every), few)
