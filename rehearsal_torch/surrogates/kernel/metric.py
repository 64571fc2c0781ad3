"""Metrics by evidence: which directions of the inputs a Gaussian process finds relevant.

The kernel is k(h, h') = exp(-|W (h - h')|^2 / 2) with a matrix W (r, p): one width a direction, and
directions that need not be axes. For outputs Y (n, q) that share kernel and noise-to-signal ratio rho, each
with its own amplitude, minus the log evidence with the amplitudes at their best is

    E(W, rho) = sum_j n/2 log(y_j' A^-1 y_j / n) + q/2 log |A|,    A = K + rho I,

and with G = dE/dA = (q A^-1 - sum_j a_j a_j' / s_j) / 2, a_j = A^-1 y_j, s_j = y_j' a_j / n, S = G o K,

    dE/dW = -2 (diag(S 1) Z - S Z)' H,    Z = H W'.

One factorisation serves all outputs. A weak prior keeps W finite. Maximised by L-BFGS.

Source: Rasmussen and Williams (2006), Eq. (5.8)-(5.9); the shared ratio is the lambda of a conditional mean
embedding, Du et al. (2026), Eq. (5).

Relevant directions: along which inputs do the outcomes change at all?

The average outer product of gradients of the regressions f_j(h) = E[y_j | h],

    M = sum_j (1/n) sum_i grad f_j(h_i) grad f_j(h_i)',

has its large eigenvalues along the directions that matter. A desirability that is rarely high says little
about them; the outcomes themselves, seen in every row, say much more. The regressions are kernel ridge fits
with a metric of their own.

Source: Xia, Tong, Li and Zhu (2002) (outer products of gradients); Radhakrishnan et al. (2024) (with kernel
machines).

Ridge regression under a learnt metric: conditional means of many outputs with one factorisation.

With centred outputs and the kernel k(v, v') = exp(-|W (v - v')|^2 / 2),

    m(v) = mean + k(v)' A^-1 (Y - mean),    A = K + rho I,    left(v) = 1 - k(v)' A^-1 k(v),

where left is the posterior variance per unit of amplitude: 1 far from all rows. Fitted to features of
covariates this is their conditional mean embedding, the second stage of the nested estimator; the metric is
the one under which those very features are best explained, not the covariates themselves.

Source: Du et al. (2026), Eq. (5) and (8) (gamma(x)); centring and the choice of metric are ours.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from rehearsal_torch.data.part import Sizes, Solved

FLOOR = 1e-4
NARROWEST = math.log(1e3)
RATIO = math.log(0.3)
ENTRY_SPREAD, WIDTH_MEAN, WIDTH_SPREAD = 3.0, math.log(0.5), 1.5


@dataclass(frozen=True)
class Metric:
    """A fitted metric.

    Attributes:
        directions: W, (r, p).
        ratio: rho, noise variance over signal variance.
        evidence: Log evidence without constants, priors left out.
    """

    directions: Tensor
    ratio: float
    evidence: float


def gram(left: Tensor, right: Tensor) -> Tensor:
    """exp(-|l - r|^2 / 2) of rows (..., n, r) and (m, r), (..., n, m)."""
    squares = left.square().sum(-1, keepdim=True) + right.square().sum(-1) - 2 * left @ right.mT
    return squares.clamp_min(0).mul_(-0.5).exp_()


def evidence(
    inputs: Tensor, outputs: Tensor, directions: Tensor, log_ratio: float
) -> tuple[float, Tensor, float]:
    """E, dE/dW (r, p) and dE/d log sqrt(rho) for inputs (n, p) and outputs (n, q)."""
    count, width = outputs.shape
    shown = inputs @ directions.mT
    kernel = gram(shown, shown)
    ratio = math.exp(2 * log_ratio)
    factor = torch.linalg.cholesky(
        kernel + (ratio + FLOOR) * torch.eye(count, dtype=kernel.dtype, device=kernel.device)
    )
    solved = torch.cholesky_solve(outputs, factor)
    signal = (outputs * solved).sum(0) / count
    value = 0.5 * count * signal.log().sum() + width * factor.diagonal().log().sum()
    kernel_gradient = 0.5 * (width * torch.cholesky_inverse(factor) - (solved / signal) @ solved.mT)
    trace = float(kernel_gradient.diagonal().sum())
    kernel_gradient *= kernel
    moved = -2 * (kernel_gradient.sum(1, keepdim=True) * shown - kernel_gradient @ shown)
    return float(value), moved.mT @ inputs, trace * 2 * ratio


def free_metric(inputs: Tensor, outputs: Tensor, iterations: int, start: Tensor | None = None) -> Metric:
    """The metric with every entry of W free; from axes of equal width, or from `start`.

    Args:
        inputs: (n, p), standardised.
        outputs: (n, q), centred.
        iterations: Of L-BFGS, at most.
        start: W to start from, (r, p).
    """
    width = inputs.shape[1]
    first = (
        torch.eye(width, dtype=inputs.dtype, device=inputs.device) / math.sqrt(width)
        if start is None
        else start
    )
    shape = first.shape

    def directions(free: Tensor) -> Tensor:
        return free.reshape(shape)

    def back(kernel_gradient: Tensor, free: Tensor) -> Tensor:
        return kernel_gradient.reshape(-1) + free / ENTRY_SPREAD**2

    def prior(free: Tensor) -> float:
        return float(free.square().sum()) / (2 * ENTRY_SPREAD**2)

    return _descend(inputs, outputs, first.reshape(-1), directions, back, prior, iterations)


def scaled_metric(inputs: Tensor, outputs: Tensor, basis: Tensor, scales: Tensor, iterations: int) -> Metric:
    """The metric W = diag(s) V' with given directions and free inverse widths.

    Args:
        inputs: (n, p), standardised.
        outputs: (n, q).
        basis: V, (p, r).
        scales: s to start from, (r,).
        iterations: Of L-BFGS, at most.
    """

    def directions(free: Tensor) -> Tensor:
        # A line search may ask for absurd widths; beyond NARROWEST the prior alone turns it back.
        return free.clamp_max(NARROWEST).exp().unsqueeze(-1) * basis.mT

    def back(kernel_gradient: Tensor, free: Tensor) -> Tensor:
        return (kernel_gradient * basis.mT).sum(-1) * free.exp().where(free <= NARROWEST, 0.0) + (
            free - WIDTH_MEAN
        ) / WIDTH_SPREAD**2

    def prior(free: Tensor) -> float:
        return float((free - WIDTH_MEAN).square().sum()) / (2 * WIDTH_SPREAD**2)

    return _descend(inputs, outputs, scales.clamp_min(1e-3).log(), directions, back, prior, iterations)


def _descend(
    inputs: Tensor,
    outputs: Tensor,
    start: Tensor,
    directions: Callable[[Tensor], Tensor],
    back: Callable[[Tensor, Tensor], Tensor],
    prior: Callable[[Tensor], float],
    iterations: int,
) -> Metric:
    def both(point: np.ndarray) -> tuple[float, np.ndarray]:
        free, log_ratio = torch.from_numpy(point[:-1]).to(inputs), float(point[-1])
        value, kernel_gradient, ratio_gradient = evidence(inputs, outputs, directions(free), log_ratio)
        gradient = np.append(
            back(kernel_gradient, free).cpu().numpy(), ratio_gradient + (log_ratio - RATIO) / 4
        )
        return value + prior(free) + (log_ratio - RATIO) ** 2 / 8, gradient

    begin = np.append(start.detach().cpu().numpy(), RATIO)
    # Bounds keep the factorisation safe: a ratio of 1e-4 to 1e6.
    bounds = [(None, None)] * (len(begin) - 1) + [(math.log(1e-2), math.log(1e3))]
    found = minimize(
        both,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20},
    )
    free, log_ratio = torch.from_numpy(found.x[:-1]).to(inputs), float(found.x[-1])
    best = directions(free)
    return Metric(best, math.exp(2 * log_ratio) + FLOOR, -evidence(inputs, outputs, best, log_ratio)[0])


MIN_SCALE = 0.1


def gradient_products(inputs: Tensor, outputs: Tensor, metric: Metric) -> Tensor:
    """M of inputs (n, p) and outputs (n, q), (p, p)."""
    shown = inputs @ metric.directions.mT
    kernel = gram(shown, shown)
    factor = torch.linalg.cholesky(
        kernel + metric.ratio * torch.eye(len(kernel), dtype=kernel.dtype, device=kernel.device)
    )
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
        Orthonormal directions as columns (p, p), and the roots of their eigenvalues relative to the largest,
        at least .1, (p,).
    """
    values, vectors = torch.linalg.eigh(gradient_products(inputs, outputs, metric))
    values, vectors = values.flip(0).clamp_min(0), vectors.flip(1)
    return vectors, (values / values[0].clamp_min(1e-300)).sqrt().clamp_min(MIN_SCALE)


class MetricRidge(Solved):
    """Regression of q outputs on p inputs.

    Args:
        rows: At most so many rows are kept (evenly spread ones): the factorisation grows with their cube.
        chosen_by: At most so many rows choose the metric.
        iterations: Of L-BFGS, at most.
    """

    def __init__(self, rows: int = 2000, chosen_by: int = 300, iterations: int = 25) -> None:
        super().__init__()
        self.rows, self.chosen_by, self.iterations = rows, chosen_by, iterations
        self.register_fitted("directions", "ratio", "shown", "mean", "factor", "weights", "centred")
        self.directions: Tensor
        self.ratio: Tensor
        self.shown: Tensor
        self.mean: Tensor
        self.factor: Tensor
        self.weights: Tensor
        self.centred: Tensor

    def sizes(self) -> Sizes:
        """n rows of p inputs, seen along r directions, and q outputs."""
        kept = {"shown": ("n", "r"), "factor": ("n", "n"), "weights": ("n", "q"), "centred": ("n", "q")}
        return {"directions": ("r", "p"), "ratio": (1,), "mean": ("q",), **kept}

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, p), outputs (n, q), and the outputs (n, r) by which the metric is chosen."""
        inputs, outputs, telling = (each[evenly(len(each), self.rows, each.device)] for each in examples)
        some = evenly(len(inputs), self.chosen_by, inputs.device)
        responses = telling[some] - telling[some].mean(0)
        responses = responses[:, responses.std(0) > 1e-6]
        if inputs.shape[1] and responses.shape[1]:
            metric = free_metric(inputs[some], responses / responses.std(0), self.iterations)
            self.directions, self.ratio = metric.directions, inputs.new_tensor([metric.ratio])
        else:
            self.directions, self.ratio = (
                inputs.new_zeros(0, inputs.shape[1]),
                inputs.new_tensor([float(len(inputs))]),
            )
        self.shown = inputs @ self.directions.mT
        self.mean = outputs.mean(0)
        self.centred = outputs - self.mean
        self.factor = torch.linalg.cholesky(
            gram(self.shown, self.shown)
            + self.ratio * torch.eye(len(inputs), dtype=inputs.dtype, device=inputs.device)
        )
        self.weights = torch.cholesky_solve(self.centred, self.factor)

    def similar(self, inputs: Tensor) -> Tensor:
        """k(v) of inputs (..., p), (..., n)."""
        directions, shown = self.directions.to(inputs), self.shown.to(inputs)
        # A count instead of -1: with no directions there is nothing to infer it from.
        flat = (inputs @ directions.mT).reshape(math.prod(inputs.shape[:-1]), len(directions))
        return gram(flat, shown).reshape(*inputs.shape[:-1], len(shown))

    def forward(self, inputs: Tensor) -> Tensor:
        """m(v), (..., p) -> (..., q)."""
        return self.mean + self.similar(inputs) @ self.weights

    def left(self, inputs: Tensor) -> Tensor:
        """What the rows leave unknown, (..., p) -> (...) in [0, 1]."""
        similar = self.similar(inputs)
        flat = similar.reshape(-1, similar.shape[-1])
        solved = torch.linalg.solve_triangular(self.factor, flat.mT, upper=False)
        return (1 - solved.square().sum(0)).clamp(0, 1).reshape(similar.shape[:-1])

    def amplitude(self, mixture: Tensor) -> Tensor:
        """The prior variance of a mixture (..., q) of the outputs that the evidence suggests, (...)."""
        values = mixture @ self.centred.mT
        flat = values.reshape(-1, values.shape[-1])
        solved = torch.linalg.solve_triangular(self.factor, flat.mT, upper=False)
        return (solved.square().sum(0) / len(self.centred)).reshape(values.shape[:-1])


def evenly(count: int, max_count: int, device: torch.device) -> Tensor:
    """At most `max_count` of `count` row numbers, evenly spread."""
    if count <= max_count:
        return torch.arange(count, device=device)
    return torch.linspace(0, count - 1, max_count, device=device).round().long()
