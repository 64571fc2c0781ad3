"""Metrics by evidence: which directions of the inputs a Gaussian process finds relevant.

The kernel is k(h, h') = exp(-|W (h - h')|^2 / 2) with a matrix W (r, p): one width a direction, and directions that need
not be axes. For outputs Y (n, q) that share kernel and noise-to-signal ratio rho, each with its own amplitude, minus the
log evidence with the amplitudes at their best is

    E(W, rho) = sum_j n/2 log(y_j' A^-1 y_j / n) + q/2 log |A|,    A = K + rho I,

and with G = dE/dA = (q A^-1 - sum_j a_j a_j' / s_j) / 2, a_j = A^-1 y_j, s_j = y_j' a_j / n, S = G o K,

    dE/dW = -2 (diag(S 1) Z - S Z)' H,    Z = H W'.

One factorisation serves all outputs. A weak prior keeps W finite. Maximised by L-BFGS.

Source: Rasmussen and Williams (2006), Eq. (5.8)-(5.9); the shared ratio is the lambda of a conditional mean embedding,
Du et al. (2026), Eq. (5).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

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


def evidence(inputs: Tensor, outputs: Tensor, directions: Tensor, log_ratio: float) -> tuple[float, Tensor, float]:
    """E, dE/dW (r, p) and dE/d log sqrt(rho) for inputs (n, p) and outputs (n, q)."""
    count, width = outputs.shape
    shown = inputs @ directions.mT
    kernel = gram(shown, shown)
    ratio = math.exp(2 * log_ratio)
    factor = torch.linalg.cholesky(kernel + (ratio + FLOOR) * torch.eye(count, dtype=kernel.dtype, device=kernel.device))
    solved = torch.cholesky_solve(outputs, factor)
    signal = (outputs * solved).sum(0) / count
    value = 0.5 * count * signal.log().sum() + width * factor.diagonal().log().sum()
    slope = 0.5 * (width * torch.cholesky_inverse(factor) - (solved / signal) @ solved.mT)
    trace = float(slope.diagonal().sum())
    slope *= kernel
    moved = -2 * (slope.sum(1, keepdim=True) * shown - slope @ shown)
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
    first = torch.eye(width, dtype=inputs.dtype, device=inputs.device) / math.sqrt(width) if start is None else start
    shape = first.shape

    def directions(free: Tensor) -> Tensor:
        return free.reshape(shape)

    def back(slope: Tensor, free: Tensor) -> Tensor:
        return slope.reshape(-1) + free / ENTRY_SPREAD**2

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

    def back(slope: Tensor, free: Tensor) -> Tensor:
        return (slope * basis.mT).sum(-1) * free.exp().where(free <= NARROWEST, 0.0) + (free - WIDTH_MEAN) / WIDTH_SPREAD**2

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
        value, slope, ratio_slope = evidence(inputs, outputs, directions(free), log_ratio)
        gradient = np.append(back(slope, free).cpu().numpy(), ratio_slope + (log_ratio - RATIO) / 4)
        return value + prior(free) + (log_ratio - RATIO) ** 2 / 8, gradient

    begin = np.append(start.detach().cpu().numpy(), RATIO)
    # Bounds keep the factorisation safe: a ratio of 1e-4 to 1e6.
    bounds = [(None, None)] * (len(begin) - 1) + [(math.log(1e-2), math.log(1e3))]
    found = minimize(both, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20})
    free, log_ratio = torch.from_numpy(found.x[:-1]).to(inputs), float(found.x[-1])
    best = directions(free)
    return Metric(best, math.exp(2 * log_ratio) + FLOOR, -evidence(inputs, outputs, best, log_ratio)[0])
