"""The evidence of a metric: its value by hand, its gradient by autograd, and what maximising it finds."""

import math

import pytest
import torch

from rehearsal_torch.surrogates.kernel.metric import FLOOR, evidence, free_metric, gram, scaled_metric


def data(count=40, width=3, outputs=2, seed=0):
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, width, generator=stream, dtype=torch.float64)
    noise = torch.randn(count, outputs, generator=stream, dtype=torch.float64)
    values = (
        torch.stack([torch.sin(inputs[:, 0] + inputs[:, 1]), inputs[:, 0] * inputs[:, 1]], -1)[:, :outputs]
        + 0.2 * noise
    )
    return inputs, values - values.mean(0)


def by_hand(inputs, outputs, directions, log_ratio):
    """-log of the evidence at the best amplitudes, with the distances taken one by one."""
    shown = inputs @ directions.mT
    distances = (shown.unsqueeze(1) - shown.unsqueeze(0)).square().sum(-1)
    matrix = (-distances / 2).exp() + ((2 * log_ratio).exp() + FLOOR) * torch.eye(
        len(inputs), dtype=torch.float64
    )
    total = sum(
        0.5 * len(inputs) * (column @ torch.linalg.solve(matrix, column) / len(inputs)).log()
        for column in outputs.T
    )
    return total + outputs.shape[1] / 2 * torch.logdet(matrix)


@pytest.mark.parametrize("outputs", [1, 2])
def test_value_and_gradient_are_those_of_the_formula(outputs):
    inputs, values = data(outputs=outputs)
    directions = torch.randn(
        2, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64
    ).requires_grad_(True)
    log_ratio = torch.tensor(-0.7, dtype=torch.float64, requires_grad=True)
    wanted = by_hand(inputs, values, directions, log_ratio)
    slope, ratio_slope = torch.autograd.grad(wanted, (directions, log_ratio))
    value, found, ratio_found = evidence(inputs, values, directions.detach(), log_ratio.item())
    assert value == pytest.approx(wanted.item(), rel=1e-10)
    assert torch.allclose(found, slope, rtol=1e-6, atol=1e-8)
    assert ratio_found == pytest.approx(float(ratio_slope), rel=1e-6)


def test_the_gram_matrix_is_that_of_a_gaussian_kernel_in_any_batch():
    left, right = (
        torch.randn(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)),
        data()[0],
    )
    assert torch.allclose(gram(left, right), (-torch.cdist(left, right).square() / 2).exp(), atol=1e-12)
    assert torch.allclose(gram(right, right).diagonal(), torch.ones(40, dtype=torch.float64))


def test_maximising_finds_what_matters_and_how_noisy_it_is():
    inputs, values = data(200, 5)
    found = free_metric(inputs, values, 40)
    widths = found.directions.square().sum(0)
    assert float(widths[2:].max()) < 0.2 * float(widths[:2].min()), "columns that do nothing get long widths"
    assert 1e-3 < found.ratio < 0.5
    start = torch.eye(5, dtype=torch.float64) / math.sqrt(5)
    before = -evidence(inputs, values, start, math.log(0.3))[0]
    assert found.evidence > before
    assert free_metric(inputs, values, 40).evidence == found.evidence, "the same every time"


def test_noise_alone_is_taken_for_noise():
    inputs, _ = data(150, 2)
    noise = torch.randn(150, 1, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    assert free_metric(inputs, noise, 40).ratio > 3


def test_scaled_directions_stay_what_they_were():
    inputs, values = data(120, 3)
    basis = torch.linalg.qr(
        torch.randn(3, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    )[0]
    found = scaled_metric(inputs, values, basis, torch.ones(3, dtype=torch.float64), 20)
    lengths = found.directions.norm(dim=-1)
    assert torch.allclose(found.directions / lengths.unsqueeze(-1), basis.mT, atol=1e-9)
    assert (lengths - 1).abs().max() > 0.05
    one = scaled_metric(inputs, values, basis[:, :1], torch.ones(1, dtype=torch.float64), 20)
    assert one.directions.shape == (1, 3)
    assert one.evidence < found.evidence
