"""Gaussian mixtures: the exogenous noise of the synthetic causal worlds, with quadrature and Sobol draws.

    p(u) = sum_c w_c N(u; mu_c, v_c),      v_c = c_c sigma^2.

The synthetic worlds use one, two or three modes, equally likely unless weights are given. The paper gives
ranges of mu and c, but values for Dropwave alone. Where it gives ranges, means are symmetric here, so that
with equal weights the noise has mean zero and an additive model has the same best action with and without it.

Sobol draws of independent noises are u_i = F_i^{-1}(v_i), v a scrambled Sobol sequence in the unit cube.
Means over them have an error of about 1/n for smooth functions, where independent draws have 1/sqrt(n); being
the same for every action, they make the mean a smooth function of the action.

Gauss quadrature gives points u_j and weights w_j, j = 1 ... q, with

    sum_j w_j f(u_j) = E f(U)      for every polynomial f of degree at most 2 q - 1:

the eigenvalues of the Jacobi matrix of the polynomials that are orthogonal under the distribution, and the
squared first components of its eigenvectors. A few points for the whole mixture replace a rule for each of
its components. Rules of several independent noises multiply.

Source: Ren et al. (2025), Eq. 6 (two modes), Eq. 15 (three), Sec. 11.2 and 11.3, the values of mu and c being
ours; Owen (1998) (scrambling); Golub and Welsch (1969) and the Lanczos process on a fine discrete
distribution (Gautschi, 2004, Sec. 2.2.3) (quadrature).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr
from torch import Tensor

from rehearsal_torch.data.size_limits import bounded
from rehearsal_torch.problems.world_size import is_number
from rehearsal_torch.seeding import sobol

NoiseReading = Literal["variance", "std"]


@dataclass(frozen=True)
class MixtureNoise:
    """A Gaussian mixture: weights, positive with sum one, means, and standard deviations >= 0, (m,) each."""

    weights: tuple[float, ...]
    means: tuple[float, ...]
    stds: tuple[float, ...]

    @property
    def mean(self) -> float:
        """E[U]."""
        return float(np.dot(self.weights, self.means))

    @property
    def variance(self) -> float:
        """Var[U]."""
        return float(np.dot(self.weights, np.square(self.stds) + np.square(self.means)) - self.mean**2)

    def draw(self, count: int, stream: np.random.Generator) -> NDArray[np.float64]:
        """Independent draws, (count,)."""
        mode = stream.choice(len(self.weights), size=count, p=self.weights)
        return np.asarray(self.means)[mode] + np.asarray(self.stds)[mode] * stream.standard_normal(count)

    def nodes(self, order: int = 64) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gauss-Hermite points and weights, (m * order,) each: sum_j w_j f(u_j) = E f(U) for smooth f."""
        points, weights = np.polynomial.hermite_e.hermegauss(order)
        locations = np.asarray(self.means)[:, None] + np.asarray(self.stds)[:, None] * points
        masses = np.asarray(self.weights)[:, None] * weights / weights.sum()
        return locations.ravel(), masses.ravel()

    def cdf(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(U <= u), any shape."""
        scale = np.maximum(np.asarray(self.stds), 1e-12)
        below = ndtr((values[..., None] - np.asarray(self.means)) / scale)
        return np.asarray(below @ np.asarray(self.weights))


STANDARD = MixtureNoise((1.0,), (0.0,), (1.0,))

# Number of modes to (means, factors).
RANGES = {1: ((0.0,), (1.0,)), 2: ((-0.5, 0.5), (1.0, 0.5)), 3: ((-0.6, 0.0, 0.6), (1.0, 0.5, 1.0))}
Modes = dict[int, tuple[tuple[float, ...], tuple[float, ...]]]


@dataclass(frozen=True)
class ModalNoise:
    """Noise with several modes, which a world turns into its nodes' distributions; ValueError if a parameter
    is out of range, or the numbers of means, factors and weights differ from that of modes.

    Attributes:
        sigma: The noise level.
        modes: Number of modes: 1 (normal), 2 or 3.
        reading: Whether c sigma^2 is a "variance", or c sigma a standard deviation ("std").
        means: mu of each mode; None for the world's own, in most worlds (0), (-.5, .5) or (-.6, 0, .6).
        factors: c of each mode; None for the world's own, in most worlds (1), (1, .5) or (1, .5, 1).
        weights: w of each mode, positive and with sum 1; None for equally likely modes.
    """

    sigma: float
    modes: int = 2
    reading: NoiseReading = "variance"
    means: Sequence[float] | None = None
    factors: Sequence[float] | None = None
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not is_number(self.sigma) or not 0 <= self.sigma < math.inf:
            raise ValueError(f"noise.sigma: expected a number of at least 0; got {self.sigma!r}")
        bounded("noise.modes", self.modes)
        if self.reading not in get_args(NoiseReading):
            raise ValueError(f"noise.reading: expected variance or std; got {self.reading!r}")
        for name in ("means", "factors", "weights"):
            values = getattr(self, name)
            if values is None:
                continue
            numbers = tuple(values) if isinstance(values, Sequence) else ()
            valid = all(is_number(number) and math.isfinite(number) for number in numbers)
            fault = ""
            if len(numbers) != self.modes or not valid:
                remedy = "give as many, or change noise.modes"
                fault = f"expected {self.modes} numbers, one for each mode; got {values}: {remedy}"
            elif name == "factors" and min(numbers) < 0:
                fault = f"expected numbers of at least 0; got {values}"
            elif name == "weights" and (min(numbers) <= 0 or abs(sum(numbers) - 1) > 1e-9):
                total = f"with the sum {math.fsum(numbers):.10g}"
                fault = f"expected positive numbers with the sum 1; got {values}, {total}"
            if fault:
                raise ValueError(f"noise.{name}: {fault}")
            object.__setattr__(self, name, tuple(map(float, numbers)))

    def mixture(self, choices: Modes = RANGES) -> MixtureNoise:
        """A node's noise: mode c is N(mu_c, c_c sigma^2), or with `reading` "std" has deviation c_c sigma."""
        if self.modes not in choices:
            raise ValueError(f"noise.modes: expected one of {sorted(choices)}; got {self.modes}")
        means, factors = choices[self.modes]
        factors = factors if self.factors is None else tuple(self.factors)
        return MixtureNoise(
            (1 / self.modes,) * self.modes if self.weights is None else tuple(self.weights),
            means if self.means is None else tuple(self.means),
            tuple((c if self.reading == "std" else c**0.5) * self.sigma for c in factors),
        )


FINE = 20_001


def quantiles(distribution: MixtureNoise, levels: Tensor) -> Tensor:
    """F^{-1}, (...) in (0, 1) -> (...): linear between 20,001 points within nine standard deviations."""
    means, stds = np.asarray(distribution.means), np.asarray(distribution.stds)
    if stds.max() == 0:
        order = np.argsort(means)
        index = np.searchsorted(np.cumsum(np.asarray(distribution.weights)[order])[:-1], levels.numpy())
        return torch.from_numpy(means[order][index])
    points = np.linspace((means - 9 * stds).min(), (means + 9 * stds).max(), FINE)
    return torch.from_numpy(np.interp(levels.numpy(), distribution.cdf(points), points))


def sobol_draws(distributions: Sequence[MixtureNoise], power: int) -> Tensor:
    """2^power Sobol draws of independent noises, (2^power, m)."""
    levels = sobol(len(distributions)).draw_base2(power, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
    columns = zip(distributions, levels.T, strict=True)
    return torch.stack([quantiles(distribution, column) for distribution, column in columns], -1)


def gauss_rule(distribution: MixtureNoise, order: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights, (q,) each; q = `order`, or fewer if the distribution has fewer values."""
    points, weights = distribution.nodes(max(order + 1, 16))
    if max(distribution.stds) == 0:
        points, weights = np.asarray(distribution.means), np.asarray(distribution.weights)
    centre, spread = distribution.mean, max(distribution.variance, 1e-300) ** 0.5
    scaled = (points - centre) / spread
    basis, diagonal, off_diagonal = [np.sqrt(weights)], [], []
    for degree in range(order):
        candidate = scaled * basis[-1]
        diagonal.append(float(basis[-1] @ candidate))
        for _ in range(2):  # the second pass keeps the vectors orthogonal in floating point
            for vector in basis:
                candidate = candidate - (vector @ candidate) * vector
        size = float(np.linalg.norm(candidate))
        if size < 1e-10 or degree + 1 == order:
            break
        off_diagonal.append(size)
        basis.append(candidate / size)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1))
    return centre + spread * values, vectors[0] ** 2


def product_rule(distributions: Sequence[MixtureNoise], orders: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Points (Q, m) and weights (Q,) for m independent noises, Q the product of the orders."""
    rules = [gauss_rule(*pair) for pair in zip(distributions, orders, strict=True)]
    points, weights = (
        torch.cartesian_prod(*map(torch.from_numpy, parts)).reshape(-1, len(rules))
        for parts in zip(*rules, strict=True)
    )
    return points, weights.prod(-1)
