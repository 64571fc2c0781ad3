"""Ridge regression under a metric, against a kernel ridge regression that is written down."""

import math
from copy import deepcopy

import pytest
import torch

from rehearsal_torch.surrogates.kernel.metric import (
    MIN_SCALE,
    Metric,
    MetricRidge,
    evidence,
    free_metric,
    gradient_products,
    gram,
    relevant_directions,
    scaled_metric,
    with_few_rows,
)


def data(count=120, seed=0):
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 2, generator=stream, dtype=torch.float64)
    noise = torch.randn(count, 2, generator=stream, dtype=torch.float64)
    return inputs, torch.stack([torch.sin(2 * inputs[:, 0]), inputs[:, 1]], -1) + 3 + 0.1 * noise


def made(inputs, outputs, telling=None, **settings):
    found = MetricRidge(**settings)
    found.solve(inputs, outputs, outputs if telling is None else telling)
    return found


def naive(found, inputs, outputs, at):
    """m and the unknown share, kernel value by kernel value."""

    def kernel(one, other):
        return (-((one - other) @ found.directions.mT).square().sum() / 2).exp()

    matrix = torch.stack(
        [torch.stack([kernel(one, other) for other in inputs]) for one in inputs]
    ) + found.ratio * torch.eye(len(inputs))
    near = torch.stack([torch.stack([kernel(one, other) for other in inputs]) for one in at])
    mean = outputs.mean(0)
    return mean + near @ torch.linalg.inv(matrix) @ (outputs - mean), 1 - (
        near @ torch.linalg.inv(matrix) * near
    ).sum(-1)


def test_it_is_kernel_ridge_regression():
    inputs, outputs = data(40)
    found, (at, _) = made(inputs, outputs), data(6, seed=1)
    values, left = naive(found, inputs, outputs, at)
    assert torch.allclose(found(at), values, atol=1e-8)
    assert torch.allclose(found.left(at), left, atol=1e-8)
    assert torch.allclose(found(at.reshape(2, 3, 2)).reshape(6, 2), found(at))
    assert torch.allclose(found.left(at.reshape(2, 3, 2)).reshape(6), found.left(at))


def test_what_is_left_unknown_is_a_share_one_far_from_the_rows():
    inputs, outputs = data()
    found = made(inputs, outputs)
    near, far = found.left(inputs), found.left(inputs + 1e3)
    assert (near >= 0).all()
    assert (near < 0.7).all()
    assert torch.equal(far, torch.ones_like(far))
    assert torch.allclose(found(inputs + 1e3), outputs.mean(0)), "the mean, where nothing is known"


def test_the_amplitude_is_that_of_largest_evidence():
    inputs, outputs = data(50)
    found = made(inputs, outputs)
    mixture = torch.tensor([[1.0, 0.0], [0.5, -2.0]], dtype=torch.float64)
    matrix = torch.eye(50) * found.ratio + found.similar(inputs)
    for weights, amplitude in zip(mixture, found.amplitude(mixture), strict=True):
        values = (outputs - outputs.mean(0)) @ weights
        assert float(amplitude) == pytest.approx(
            float(values @ torch.linalg.solve(matrix, values) / 50), rel=1e-8
        )


def test_waves_of_one_variable_need_few_rows_and_others_as_many_as_they_have():
    stream = torch.Generator().manual_seed(0)
    values = torch.randn(300, 2, generator=stream, dtype=torch.float64)
    phases = values[:, :1] * torch.randn(80, generator=stream, dtype=torch.float64)
    narrow = 1e3 * torch.cat((phases.cos(), phases.sin()), -1)
    wide = torch.randn(300, 160, generator=stream).double()
    few, all_of_them = with_few_rows(narrow.mT @ narrow), with_few_rows(wide.mT @ wide)
    assert few.shape[1] == 160
    assert len(few) < 50
    assert torch.allclose(few.mT @ few, narrow.mT @ narrow, rtol=0, atol=1e-13 * 300 * 1e6)
    assert all_of_them.shape == (160, 160)
    assert torch.allclose(all_of_them.mT @ all_of_them, wide.mT @ wide, rtol=0, atol=1e-13 * 300)
    assert with_few_rows(wide[:40].mT @ wide[:40]).shape == (40, 160)
    assert with_few_rows(0 * wide.mT @ wide).shape == (0, 160)
    assert with_few_rows(wide[:0].mT @ wide[:0]).shape == (0, 160)
    assert with_few_rows(wide[:0, :0].mT @ wide[:0, :0]).shape == (0, 0)
    assert with_few_rows(wide.mT @ wide * torch.nan).isnan().all()


def test_amplitudes_follow_weights_that_are_replaced_or_changed():
    inputs, outputs = data(50)
    found, mixture = made(inputs, outputs), torch.ones(1, 2, dtype=torch.float64)
    before = found.amplitude(mixture)
    found.weights *= 4
    assert torch.allclose(found.amplitude(mixture), 4 * before)
    found.weights = found.weights / 4
    assert torch.allclose(found.amplitude(mixture), before)


def test_a_copy_holds_nothing_that_is_computed_from_the_rest():
    inputs, outputs = data(50)
    found = made(inputs, outputs)
    mixtures = torch.ones(1, 2, dtype=torch.float64)
    before = found.amplitude(mixtures)
    assert found._solved is not None
    other = deepcopy(found)
    assert other._solved is None
    assert torch.equal(other.amplitude(mixtures), before)


def test_no_inputs_or_nothing_to_tell_gives_the_mean():
    inputs, outputs = data()
    for found, at in (
        (made(inputs[:, :0], outputs), inputs[:3, :0]),
        (made(inputs, outputs, torch.ones_like(outputs)), inputs[:3]),
    ):
        assert torch.allclose(found(at), outputs.mean(0).expand(3, -1), atol=1e-6)
        assert ((found.left(at) >= 0) & (found.left(at) <= 1)).all()


def data_evidence(count=40, width=3, outputs=2, seed=0):
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, width, generator=stream, dtype=torch.float64)
    noise = torch.randn(count, outputs, generator=stream, dtype=torch.float64)
    values = (
        torch.stack([torch.sin(inputs[:, 0] + inputs[:, 1]), inputs[:, 0] * inputs[:, 1]], -1)[:, :outputs]
        + 0.2 * noise
    )
    return inputs, values - values.mean(0)


def test_maximising_finds_what_matters_and_how_noisy_it_is():
    inputs, values = data_evidence(200, 5)
    found = free_metric(inputs, values, 40)
    widths = found.directions.square().sum(0)
    assert float(widths[2:].max()) < 0.2 * float(widths[:2].min()), "columns that do nothing get long widths"
    assert 1e-3 < found.ratio < 0.5
    start = torch.eye(5, dtype=torch.float64) / math.sqrt(5)
    before = -evidence(inputs, values, start, math.log(0.3))[0]
    assert found.evidence > before
    assert free_metric(inputs, values, 40).evidence == found.evidence, "the same every time"


def test_noise_alone_is_taken_for_noise():
    inputs, _ = data_evidence(150, 2)
    noise = torch.randn(150, 1, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    assert free_metric(inputs, noise, 40).ratio > 3


def test_scaled_directions_stay_what_they_were():
    inputs, values = data_evidence(120, 3)
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


def data_directions(count=300, width=5, seed=0):
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, width, generator=stream, dtype=torch.float64)
    index = torch.tensor([1.0, -2.0, 0.5, 0.0, 0.0], dtype=torch.float64)
    index /= index.norm()
    values = torch.sin(1.5 * inputs @ index) + 0.2 * torch.randn(count, generator=stream, dtype=torch.float64)
    return inputs, (values - values.mean()).unsqueeze(-1), index


def test_the_matrix_is_the_mean_of_outer_products_of_the_regressions_gradients():
    inputs, outputs, _ = data_directions(30)
    metric = Metric(0.5 * torch.eye(5, dtype=torch.float64)[:3], 0.1, 0.0)
    both = torch.cat([outputs, outputs.square()], -1)
    shown = inputs @ metric.directions.mT
    weights = torch.linalg.solve(gram(shown, shown) + 0.1 * torch.eye(30, dtype=torch.float64), both)
    at = inputs.clone().requires_grad_(True)
    regressions = (
        -(((at @ metric.directions.mT).unsqueeze(1) - shown.unsqueeze(0)).square().sum(-1)) / 2
    ).exp() @ weights
    wanted = torch.zeros(5, 5, dtype=torch.float64)
    for column in range(2):
        (kernel_gradient,) = torch.autograd.grad(regressions[:, column].sum(), at, retain_graph=True)
        wanted += kernel_gradient.mT @ kernel_gradient / 30
    assert torch.allclose(gradient_products(inputs, both, metric), wanted, atol=1e-10)


def test_a_planted_index_is_found():
    inputs, outputs, index = data_directions()
    basis, relevance = relevant_directions(inputs, outputs, free_metric(inputs, outputs, 50))
    assert abs(float(basis[:, 0] @ index)) > 0.98
    assert torch.allclose(basis.mT @ basis, torch.eye(5, dtype=torch.float64), atol=1e-10)
    assert float(relevance[0]) == 1
    assert relevance.tolist() == sorted(relevance.tolist(), reverse=True)
    assert (relevance[1:] < 0.5).all()
    assert (relevance >= MIN_SCALE).all()
