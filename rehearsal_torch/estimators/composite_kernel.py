"""A Gaussian process with a sum of three kernels: smooth, linear, and pairwise products.

For standardised inputs h in R^p and a standardised output y = f(h) + e, e ~ N(0, nu),

    k(h, h') = s exp(-sum_d w_d^2 (h_d - h'_d)^2 / 2) + l h'h' + g q(h)'q(h'),
    q(h) = (h_i h_j for i < j, (h_i^2 - 1) / sqrt 2 for all i).

The smooth part has an inverse length-scale per input (automatic relevance determination). The linear and
the product part keep a trend beyond the observed inputs, where the smooth part returns to the mean; the
evidence decides how much of each is used. With K the kernel matrix plus nu I, a = K^-1 y and G = (K^-1 -
a a') / 2, the negative log evidence and its derivative in a parameter t are

    E = y'a / 2 + log |K| / 2,        dE/dt = tr(G dK/dt).

Log-normal priors with wide spreads keep every parameter finite: w about 1/2, s about 1, l and nu about .1
and .3, g about .1 / p. The minimum is found by L-BFGS-B, from one start.

Source: Rasmussen and Williams (2006), Eq. 4.24 (sums of kernels), 5.1 (length-scales), 5.8-5.9 (evidence).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

LOWEST, HIGHEST = -8.0, 4.0
WIDTH_MEAN, WIDTH_SPREAD, AMPLITUDE_SPREAD = math.log(0.5), 1.5, 2.0
NOISE_FLOOR = 1e-4


@dataclass(frozen=True)
class CompositeKernel:
    """The parameters of the kernel and of the noise.

    Attributes:
        widths: w, inverse length-scales, (p,).
        smooth: s, variance of the smooth part.
        linear: l, variance of each linear coefficient.
        product: g, variance of each coefficient of a product.
        noise: nu, variance of the noise.
    """

    widths: Tensor
    smooth: float
    linear: float
    product: float
    noise: float


def products(inputs: Tensor) -> Tensor:
    """q(h), (..., p) -> (..., p (p + 1) / 2), row by row of the upper triangle."""
    if inputs.shape[-1] == 0:
        return inputs
    first, second = torch.triu_indices(inputs.shape[-1], inputs.shape[-1], device=inputs.device)
    paired = inputs[..., first] * inputs[..., second]
    return torch.where(first == second, (paired - 1) / math.sqrt(2), paired)


def minimum(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    bounds: Sequence[tuple[float | None, float | None]],
    iterations: int,
) -> np.ndarray:
    """Where a function with its gradient is smallest, by L-BFGS-B."""
    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20}
    found = minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(found.x)


def most_probable(inputs: Tensor, output: Tensor, iterations: int) -> CompositeKernel:
    """The parameters with the largest evidence times prior, for standardised inputs (n, p), p may be 0, and
    output (n,), by at most so many L-BFGS-B iterations.
    """
    width = inputs.shape[1]
    evidence = _Evidence(inputs, output - output.mean())
    scale = 1 / max(1, width)
    start = np.concatenate(
        [np.full(width, math.log(0.5 * math.sqrt(scale))), np.log([1.0, 0.5 * scale, 0.1 * scale, 0.4])]
    )
    optimum = minimum(evidence.with_prior, start, [(LOWEST, HIGHEST)] * len(start), iterations)
    widths, smooth, linear, product, noise = evidence.read(optimum)
    return CompositeKernel(widths, smooth, linear, product, noise)


class _Evidence:
    """E and its gradient for one output, in the logarithms of (w, s, l, g, nu)."""

    def __init__(self, inputs: Tensor, output: Tensor) -> None:
        self.inputs, self.output = inputs, output
        self.width = inputs.shape[1]
        self.straight = inputs @ inputs.mT
        features = products(inputs)
        self.paired = features @ features.mT
        self.means = np.concatenate(
            [np.full(self.width, WIDTH_MEAN), np.log([1.0, 0.1, 0.1 / max(1, self.width), 0.3])]
        )
        self.spreads = np.concatenate([np.full(self.width, WIDTH_SPREAD), np.full(4, AMPLITUDE_SPREAD)])

    def read(self, point: np.ndarray) -> tuple[Tensor, float, float, float, float]:
        """The parameters of a point."""
        rest = np.exp(point[self.width :])
        widths = torch.from_numpy(np.exp(point[: self.width])).to(self.inputs)
        return widths, float(rest[0]), float(rest[1]), float(rest[2]), float(rest[3] + NOISE_FLOOR)

    def with_prior(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """E minus the log prior, and its gradient."""
        value, gradient = self(point)
        deviation = (point - self.means) / self.spreads
        return value + 0.5 * float(deviation @ deviation), gradient + deviation / self.spreads

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """E and its gradient."""
        widths, smooth, linear, product, noise = self.read(point)
        scaled = self.inputs * widths
        squares = scaled.square().sum(-1)
        bell = (squares.unsqueeze(-1) + squares - 2 * scaled @ scaled.mT).clamp_min_(0).mul_(-0.5).exp_()
        bell *= smooth
        kernel = bell + linear * self.straight
        kernel += product * self.paired
        kernel.diagonal().add_(noise)
        factor = torch.linalg.cholesky(kernel)
        weights = torch.cholesky_solve(self.output.unsqueeze(-1), factor).squeeze(-1)
        value = 0.5 * self.output @ weights + factor.diagonal().log().sum()
        inner = torch.cholesky_inverse(factor)
        inner.addr_(weights, weights, alpha=-1).mul_(0.5)
        amplitudes = [
            float((inner * bell).sum()),
            linear * float((inner * self.straight).sum()),
            product * float((inner * self.paired).sum()),
            (noise - NOISE_FLOOR) * float(inner.diagonal().sum()),
        ]
        bell *= inner
        slopes = (bell.sum(-1, keepdim=True) * scaled.square()).sum(0) - (scaled * (bell @ scaled)).sum(0)
        return float(value), np.concatenate([-2 * slopes.cpu().numpy(), np.array(amplitudes)])
