"""Outer products of gradients: the matrix by autograd, and an index that was planted."""

import torch

from rehearsal_torch.surrogates.kernel.metric import (
    LEAST,
    Metric,
    free_metric,
    gradient_products,
    gram,
    relevant_directions,
)


def data(count=300, width=5, seed=0):
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, width, generator=stream, dtype=torch.float64)
    index = torch.tensor([1.0, -2.0, 0.5, 0.0, 0.0], dtype=torch.float64)
    index /= index.norm()
    values = torch.sin(1.5 * inputs @ index) + 0.2 * torch.randn(count, generator=stream, dtype=torch.float64)
    return inputs, (values - values.mean()).unsqueeze(-1), index


def test_the_matrix_is_the_mean_of_outer_products_of_the_regressions_gradients():
    inputs, outputs, _ = data(30)
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
        (slope,) = torch.autograd.grad(regressions[:, column].sum(), at, retain_graph=True)
        wanted += slope.mT @ slope / 30
    assert torch.allclose(gradient_products(inputs, both, metric), wanted, atol=1e-10)


def test_a_planted_index_is_found():
    inputs, outputs, index = data()
    basis, relevance = relevant_directions(inputs, outputs, free_metric(inputs, outputs, 50))
    assert abs(float(basis[:, 0] @ index)) > 0.98
    assert torch.allclose(basis.mT @ basis, torch.eye(5, dtype=torch.float64), atol=1e-10)
    assert float(relevance[0]) == 1
    assert relevance.tolist() == sorted(relevance.tolist(), reverse=True)
    assert (relevance[1:] < 0.5).all()
    assert (relevance >= LEAST).all()
