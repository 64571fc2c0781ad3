"""Relevant directions: along which inputs do the outcomes change at all?

The average outer product of gradients of the regressions f_j(h) = E[y_j | h],

    M = sum_j (1/n) sum_i grad f_j(h_i) grad f_j(h_i)',

has its large eigenvalues along the directions that matter. A desirability that is rarely high says little about them; the
outcomes themselves, seen in every row, say much more. The regressions are kernel ridge fits with a metric of their own.

Source: Xia, Tong, Li and Zhu (2002) (outer products of gradients); Radhakrishnan et al. (2024) (with kernel machines).
"""

import torch
from torch import Tensor

from rehearsal_torch.surrogates.evidence_metric import Metric, gram

LEAST = 0.1


def gradient_products(inputs: Tensor, outputs: Tensor, metric: Metric) -> Tensor:
    """M of inputs (n, p) and outputs (n, q), (p, p)."""
    shown = inputs @ metric.directions.mT
    kernel = gram(shown, shown)
    factor = torch.linalg.cholesky(kernel + metric.ratio * torch.eye(len(kernel), dtype=kernel.dtype, device=kernel.device))
    weights = torch.cholesky_solve(outputs, factor)
    total = inputs.new_zeros(inputs.shape[1], inputs.shape[1])
    for column in weights.T:
        weighted = kernel * column
        gradients = (weighted @ shown - weighted.sum(1, keepdim=True) * shown) @ metric.directions
        total += gradients.mT @ gradients / len(inputs)
    return total


def relevant_directions(inputs: Tensor, outputs: Tensor, metric: Metric) -> tuple[Tensor, Tensor]:
    """Directions in falling order of relevance, and how relevant they are.

    Returns:
        Orthonormal directions as columns (p, p), and the roots of their eigenvalues relative to the largest, at least .1, (p,).
    """
    values, vectors = torch.linalg.eigh(gradient_products(inputs, outputs, metric))
    values, vectors = values.flip(0).clamp_min(0), vectors.flip(1)
    return vectors, (values / values[0].clamp_min(1e-300)).sqrt().clamp_min(LEAST)
