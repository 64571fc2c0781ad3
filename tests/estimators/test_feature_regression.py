"""Bayesian regression on random features: means, drawn functions, residuals."""

import pytest
import torch

from rehearsal_torch.estimators.response_regression import ResponseRegression, products
from rehearsal_torch.seeding import generator


def rows(count=250, seed=0):
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 3, generator=stream, dtype=torch.float64)
    noise = torch.randn(count, 2, generator=stream, dtype=torch.float64)
    first = 5 + 3 * (inputs[:, 0].sin() + inputs[:, 1] * inputs[:, 2] + 0.3 * noise[:, 0])
    return inputs, torch.stack((first, -100 + 10 * (inputs[:, 1] + 0.1 * noise[:, 1])), -1)


def fitted(**settings):
    made = ResponseRegression(**{"frequencies": 60, "evidence_rows": 100, "iterations": 15, **settings})
    made.solve(*rows())
    return made


def test_the_features_have_the_inner_products_of_the_kernel():
    made, inputs = fitted(frequencies=500, iterations=3), rows(5, 2)[0]
    shown = made.features(inputs, 0)
    smooth, linear, product, _ = made.amplitudes[0].tolist()
    apart = ((inputs.unsqueeze(1) - inputs) * made.widths[0]).square().sum(-1)
    paired = products(inputs)
    wanted = smooth * (-apart / 2).exp() + linear * inputs @ inputs.mT + product * paired @ paired.mT + 1
    assert torch.allclose(shown @ shown.mT, wanted, atol=0.1 * max(1.0, smooth))


@pytest.mark.parametrize("moving", [(1, 2), (0,), (2, 0)])
def test_functions_around_a_base_are_those_of_the_whole_input(moving):
    made = fitted()
    functions = made.draws(4, generator(0))
    base, moves = rows(2 * 4 * 5, 3)[0].reshape(2, 4, 5, 3), rows(3 * 2, 4)[0][:, : len(moving)]
    moves = moves.reshape(3, 2, len(moving))
    moved = base.expand(3, -1, -1, -1, -1).clone()
    moved[..., list(moving)] += moves[:, :, None, None]
    direct = made.drawn(functions, moved)
    around, shown = made.along(functions, base, moving), made.moved_features(moves, moving)
    values = torch.einsum("bqdmc,nbqc->nbdmq", around, shown)
    assert torch.allclose(made.in_units(values), direct, atol=1e-9)


def test_other_rows_with_the_same_kernels():
    made, again = fitted(), fitted()
    inputs, outputs = rows()
    again.condition(inputs[:125], outputs[:125])
    assert torch.equal(again.widths, made.widths)
    assert again.residuals.shape == (125, 2)
    assert not torch.allclose(again.coefficients, made.coefficients)
    again.condition(inputs, outputs)
    assert torch.equal(again.coefficients, made.coefficients)


def test_means_predict_other_rows():
    made, (inputs, outputs) = fitted(), rows(300, 1)
    left = (made(inputs) - outputs).square().mean(0).sqrt()
    assert float(left[0]) < 0.5 * float(outputs[:, 0].std())
    assert float(left[1]) < 1.2


def test_damage_is_noticed():
    made = fitted()
    assert made.faults() == []
    made.noise = -made.noise
    assert "noise: expected numbers above 0" in made.faults()[0]
    other = fitted()
    other.coefficients, other.root = other.coefficients[:, :124], other.root[:, :124, :124]
    assert other.faults() == ["coefficients: expected 130 features for 3 inputs; got 124"]


def test_residuals_have_the_variance_of_the_noise():
    made = fitted()
    assert made.residuals.shape == (250, 2)
    whole = made.residuals * made.scales(rows()[0][:1])
    assert whole.std(0).tolist() == pytest.approx([0.9, 1.0], rel=0.12)
    assert (made.noise.sqrt() * made.scale).tolist() == pytest.approx([0.9, 1.0], rel=0.12)
