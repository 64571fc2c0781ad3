"""Learnt kernel metrics (metric learning): relevant directions of the inputs, by Gaussian-process evidence.

The kernel is k(h, h') = exp(-|W (h - h')|^2 / 2) with a matrix W (r, p): one width per direction, and
directions that need not be axes. For outputs Y (n, q) that share the kernel and the noise-to-signal ratio
rho, each with its own amplitude, the negative log evidence with the amplitudes profiled out is

    E(W, rho) = sum_j n/2 log(y_j' A^-1 y_j / n) + q/2 log |A|,    A = K + rho I,

and with G = dE/dA = (q A^-1 - sum_j a_j a_j' / s_j) / 2, a_j = A^-1 y_j, s_j = y_j' a_j / n, S = G o K,

    dE/dW = -2 (diag(S 1) Z - S Z)' H,    Z = H W'.

One factorisation serves all outputs. A weak prior keeps W finite. The minimum is found by L-BFGS-B.

Relevant directions are the eigenvectors with large eigenvalues of the average outer product of gradients

    M = sum_j (1/n) sum_i grad f_j(h_i) grad f_j(h_i)'

of the regressions f_j(h) = E[y_j | h] (kernel ridge fits, each with its metric). The outcomes carry much more
information about them than a desirability that is rarely high.

`MetricRidge` predicts the conditional means of many outputs with one factorisation. With centred outputs,

    m(v) = mean + k(v)' A^-1 (Y - mean),    left(v) = 1 - k(v)' A^-1 k(v),

where left is the posterior variance per unit of amplitude: 1 far from all rows. Fitted to features of
covariates, which also select the metric, this is their conditional mean embedding, the second stage of the
nested estimator.

Source: Rasmussen and Williams (2006), Eq. (5.8)-(5.9); Du et al. (2026), Eq. (5) and (8) (gamma(x); the
shared ratio is the lambda of the conditional mean embedding); Xia, Tong, Li and Zhu (2002) (outer products of
gradients); Radhakrishnan et al. (2024) (with kernel machines).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg.lapack import dpstrf
from torch import Tensor

from rehearsal_torch.data.table import evenly
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.estimators.feature_regression import minimum

FLOOR = 1e-4
NARROWEST = math.log(1e3)
RATIO = math.log(0.3)
ROUNDING = 1e-14
ENTRY_SPREAD, WIDTH_MEAN, WIDTH_SPREAD = 3.0, math.log(0.5), 1.5


@dataclass(frozen=True)
class Metric:
    """W (r, p), the noise-to-signal ratio, and the log evidence without constants and priors."""

    directions: Tensor
    ratio: float
    evidence: float


def gram(left: Tensor, right: Tensor) -> Tensor:
    """exp(-|l - r|^2 / 2) of rows (..., n, r) and (m, r), (..., n, m)."""
    squares = left.square().sum(-1, keepdim=True) + right.square().sum(-1) - 2 * left @ right.mT
    return squares.clamp_min(0).mul_(-0.5).exp_()


def _root(kernel: Tensor, ratio: float | Tensor) -> Tensor:
    """The lower Cholesky factor of K + rho I."""
    shifted = kernel.clone()
    shifted.diagonal().add_(ratio)
    return torch.linalg.cholesky(shifted)


def evidence(
    inputs: Tensor, outputs: Tensor, directions: Tensor, log_ratio: float
) -> tuple[float, Tensor, float]:
    """E, dE/dW (r, p) and dE/d log sqrt(rho) for inputs (n, p) and outputs (n, q)."""
    count, width = outputs.shape
    projected = inputs @ directions.mT
    kernel = gram(projected, projected)
    ratio = math.exp(2 * log_ratio)
    factor = _root(kernel, ratio + FLOOR)
    dual = torch.cholesky_solve(outputs, factor)
    signal = (outputs * dual).sum(0) / count
    value = 0.5 * count * signal.log().sum() + width * factor.diagonal().log().sum()
    kernel_gradient = 0.5 * (width * torch.cholesky_inverse(factor) - (dual / signal) @ dual.mT)
    trace = float(kernel_gradient.diagonal().sum())
    kernel_gradient *= kernel
    projected_gradient = -2 * (kernel_gradient.sum(1, keepdim=True) * projected - kernel_gradient @ projected)
    return float(value), projected_gradient.mT @ inputs, trace * 2 * ratio


def free_metric(inputs: Tensor, outputs: Tensor, iterations: int) -> Metric:
    """Fits all entries of W, from equal axes, to standardised inputs (n, p) and centred outputs (n, q)."""
    width = inputs.shape[1]
    initial = torch.eye(width, dtype=inputs.dtype, device=inputs.device) / math.sqrt(width)

    def directions(parameters: Tensor) -> Tensor:
        return parameters.reshape(width, width)

    def pullback(kernel_gradient: Tensor, parameters: Tensor) -> Tensor:  # noqa: ARG001
        return kernel_gradient.reshape(-1)

    return _descend(
        inputs, outputs, initial.reshape(-1), directions, pullback, (0.0, ENTRY_SPREAD), iterations
    )


def scaled_metric(inputs: Tensor, outputs: Tensor, basis: Tensor, scales: Tensor, iterations: int) -> Metric:
    """Fits W = diag(s) V' to inputs (n, p), outputs (n, q), with directions V (p, r), from scales s (r,)."""

    def directions(parameters: Tensor) -> Tensor:
        # A line search may evaluate extreme widths; beyond NARROWEST only the prior has a gradient.
        return parameters.clamp_max(NARROWEST).exp().unsqueeze(-1) * basis.mT

    def pullback(kernel_gradient: Tensor, parameters: Tensor) -> Tensor:
        return (kernel_gradient * basis.mT).sum(-1) * parameters.exp().where(parameters <= NARROWEST, 0.0)

    initial, prior = scales.clamp_min(1e-3).log(), (WIDTH_MEAN, WIDTH_SPREAD)
    return _descend(inputs, outputs, initial, directions, pullback, prior, iterations)


def _descend(
    inputs: Tensor,
    outputs: Tensor,
    initial: Tensor,
    directions: Callable[[Tensor], Tensor],  # W of the parameters
    pullback: Callable[[Tensor, Tensor], Tensor],  # dE/d parameters from dE/dW
    prior: tuple[float, float],  # mean and standard deviation of the parameters
    iterations: int,
) -> Metric:
    mean, spread = prior

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        parameters, log_ratio = torch.from_numpy(point[:-1]).to(inputs), float(point[-1])
        value, kernel_gradient, ratio_gradient = evidence(inputs, outputs, directions(parameters), log_ratio)
        excess = parameters - mean
        gradient = pullback(kernel_gradient, parameters) + excess / spread**2
        value += float(excess.square().sum()) / (2 * spread**2)
        value += (log_ratio - RATIO) ** 2 / 8
        return value, np.append(gradient.cpu().numpy(), ratio_gradient + (log_ratio - RATIO) / 4)

    start = np.append(initial.detach().cpu().numpy(), RATIO)
    # Bounds keep the factorisation stable: a ratio of 1e-4 to 1e6.
    bounds = [(None, None)] * (len(start) - 1) + [(math.log(1e-2), math.log(1e3))]
    optimum = minimum(objective, start, bounds, iterations)
    parameters, log_ratio = torch.from_numpy(optimum[:-1]).to(inputs), float(optimum[-1])
    best = directions(parameters)
    return Metric(best, math.exp(2 * log_ratio) + FLOOR, -evidence(inputs, outputs, best, log_ratio)[0])


MIN_SCALE = 0.1


def gradient_products(inputs: Tensor, outputs: Tensor, metric: Metric) -> Tensor:
    """M for inputs (n, p) and outputs (n, q), (p, p)."""
    projected = inputs @ metric.directions.mT
    kernel = gram(projected, projected)
    weights = torch.cholesky_solve(outputs, _root(kernel, metric.ratio))
    total = inputs.new_zeros(inputs.shape[1], inputs.shape[1])
    for column in weights.T:
        weighted = kernel * column
        gradients = (weighted @ projected - weighted.sum(1, keepdim=True) * projected) @ metric.directions
        total += gradients.mT @ gradients / len(inputs)
    return total


def relevant_directions(inputs: Tensor, outputs: Tensor, metric: Metric) -> tuple[Tensor, Tensor]:
    """Orthonormal directions, most relevant first, (p, p), and relative roots of eigenvalues, at least .1."""
    values, vectors = torch.linalg.eigh(gradient_products(inputs, outputs, metric))
    values, vectors = values.flip(0).clamp_min(0), vectors.flip(1)
    return vectors, (values / values[0].clamp_min(1e-300)).sqrt().clamp_min(MIN_SCALE)


class MetricRidge(Solved):
    """Kernel ridge regression of q outputs on p inputs with a learnt metric, on at most `rows` rows."""

    def __init__(self, rows: int = 2000, metric_rows: int = 300, iterations: int = 25) -> None:
        super().__init__()
        self.rows, self.metric_rows, self.iterations = rows, metric_rows, iterations
        self.register_fitted(directions=("r", "p"), ratio=(1,), projected=("n", "r"), mean=("q",))
        self.register_fitted(factor=("n", "n"), weights=("n", "q"), centred=("n", "q"), derived=True)
        self._solved: tuple[Tensor, int, Tensor] | None = None  # cache of `_whitened`

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickles and copies, without the cache."""
        return self.__dict__ | {"_solved": None}

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """L and the weights; the centred outputs are derived by the owner."""
        count = len(self.projected)
        if self.projected.ndim != 2 or self.mean.ndim != 1 or count > self.rows:
            return {}
        return {"factor": (count, count), "weights": (count, len(self.mean))}

    def derive(self, name: str) -> Tensor:
        """See `Part.derive`."""
        if name == "weights":
            return torch.cholesky_solve(self.centred, self.factor)
        return _root(gram(self.projected, self.projected), self.ratio)

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, p), outputs (n, q), and, for the metric, responses (n, r)."""
        inputs, outputs, guides = (rows[evenly(len(rows), self.rows, rows.device)] for rows in examples)
        metric_rows = evenly(len(inputs), self.metric_rows, inputs.device)
        responses = guides[metric_rows] - guides[metric_rows].mean(0)
        responses = responses[:, responses.std(0) > 1e-6]
        if inputs.shape[1] and responses.shape[1]:
            metric = free_metric(inputs[metric_rows], responses / responses.std(0), self.iterations)
            self.directions, self.ratio = metric.directions, inputs.new_tensor([metric.ratio])
        else:
            self.directions = inputs.new_zeros(0, inputs.shape[1])
            self.ratio = inputs.new_tensor([float(len(inputs))])
        self.projected = inputs @ self.directions.mT
        self.mean = outputs.mean(0)
        self.centred = outputs - self.mean
        self.factor = self.derive("factor")
        self.weights = self.derive("weights")

    def similar(self, inputs: Tensor) -> Tensor:
        """k(v) of inputs (..., p), (..., n)."""
        directions, projected = self.directions.to(inputs), self.projected.to(inputs)
        # Not -1, which cannot be inferred without directions.
        points = (inputs @ directions.mT).reshape(math.prod(inputs.shape[:-1]), len(directions))
        return gram(points, projected).reshape(*inputs.shape[:-1], len(projected))

    def forward(self, inputs: Tensor) -> Tensor:
        """m(v), (..., p) -> (..., q)."""
        return self.mean + self.similar(inputs) @ self.weights

    def left(self, inputs: Tensor) -> Tensor:
        """Posterior variance per unit of amplitude, (..., p) -> (...) in [0, 1]."""
        k = self.similar(inputs)
        k_rows = k.reshape(-1, k.shape[-1])
        whitened = torch.linalg.solve_triangular(self.factor, k_rows.mT, upper=False)
        return (1 - whitened.square().sum(0)).clamp(0, 1).reshape(k.shape[:-1])

    def amplitude(self, mixture: Tensor) -> Tensor:
        """The maximum-evidence prior variance of a linear combination (..., q) of the outputs, (...)."""
        return (mixture @ self._whitened().mT).square().sum(-1) / len(self.centred)

    def _whitened(self) -> Tensor:
        """T (r, q) with T'T = (Y - mean)' A^-1 (Y - mean), r <= min(n, q); cached for unchanged weights."""
        weights = self.weights
        if weights.is_inference():
            # It has no version counter.
            return with_few_rows(self.centred.mT @ weights)
        version = weights._version
        if self._solved is None or self._solved[0] is not weights or self._solved[1] != version:
            self._solved = weights, version, with_few_rows(self.centred.mT @ weights)
        return self._solved[2]


def with_few_rows(products: Tensor) -> Tensor:
    """T (r, q) with T'T = G up to rounding, for a positive semi-definite G (q, q) of numerical rank r, which
    is small for the waves of a few covariates.

    Source: Higham (1990); Hammarling, Higham and Lucas (2007) (truncated pivoted Cholesky; LAPACK's
    ``pstrf``).
    """
    largest = float(products.diagonal().max()) if products.numel() else 0.0
    if not math.isfinite(largest) or largest <= 0:
        # Non-finite values must show in the results.
        return products[: 0 if math.isfinite(largest) else None]
    symmetric = (products + products.mT).detach().cpu().numpy() / 2
    factor, order, rank, _ = dpstrf(symmetric, tol=ROUNDING * largest, overwrite_a=True)
    rows = np.empty((rank, len(symmetric)))
    rows[:, order - 1] = np.triu(factor[:rank])
    return torch.from_numpy(rows).to(products)
