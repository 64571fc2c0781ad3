"""Mixtures of normal laws: the exogenous noise of synthetic systems.

    p(u) = sum_c w_c N(u; mu_c, v_c),      v_c = c_c sigma^2.

Source: Ren et al. (2025), Eq. 6 (two modes) and Eq. 15 (three).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

NoiseReading = Literal["variance", "std"]


@dataclass(frozen=True)
class MixtureNoise:
    """A one-dimensional Gaussian mixture.

    Attributes:
        weights: (m,), positive, summing to one.
        means: (m,).
        deviations: (m,), standard deviations, not negative.

    Raises:
        ValueError: if lengths differ, weights are no distribution, or a deviation is negative.
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.weights) == len(self.means) == len(self.deviations) > 0:
            raise ValueError(f"expected as many weights as means and deviations; got {self.weights}, {self.means}, {self.deviations}")
        if min(self.weights) <= 0 or abs(sum(self.weights) - 1) > 1e-9 or min(self.deviations) < 0:
            raise ValueError(f"expected positive weights that sum to 1 and deviations of at least 0; got {self.weights}, {self.deviations}")

    @classmethod
    def of(
        cls,
        sigma: float,
        means: Sequence[float],
        factors: Sequence[float],
        weights: Sequence[float] | None = None,
        reading: NoiseReading = "variance",
    ) -> "MixtureNoise":
        """The paper's parameters: component c is N(mu_c, c_c sigma^2); where `reading` is "std", its standard deviation is c_c sigma.

        Args:
            sigma: The noise level.
            means: mu_c.
            factors: c_c.
            weights: w_c; None for equal ones.
            reading: The newest paper writes a variance, c_c sigma^2; an earlier version a standard deviation, c_c sigma.
        """
        if sigma < 0 or reading not in ("variance", "std"):
            raise ValueError(f"expected sigma >= 0 and a reading of variance or std; got {sigma} and {reading!r}")
        deviations = [factor * sigma if reading == "std" else factor**0.5 * sigma for factor in factors]
        return cls(tuple([1 / len(means)] * len(means) if weights is None else weights), tuple(means), tuple(deviations))

    @property
    def mean(self) -> float:
        """E[U]."""
        return float(np.dot(self.weights, self.means))

    @property
    def variance(self) -> float:
        """Var[U]."""
        return float(np.dot(self.weights, np.square(self.deviations) + np.square(self.means)) - self.mean**2)

    def draw(self, count: int, stream: np.random.Generator) -> NDArray[np.float64]:
        """Independent draws, (count,)."""
        which = stream.choice(len(self.weights), size=count, p=self.weights)
        return np.asarray(self.means)[which] + np.asarray(self.deviations)[which] * stream.standard_normal(count)

    def nodes(self, order: int = 64) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gauss-Hermite points and weights, (m * order,) each: sum_j w_j f(u_j) = E f(U) for smooth f."""
        points, weights = np.polynomial.hermite_e.hermegauss(order)
        where = np.asarray(self.means)[:, None] + np.asarray(self.deviations)[:, None] * points
        heavy = np.asarray(self.weights)[:, None] * weights / weights.sum()
        return where.ravel(), heavy.ravel()

    def cdf(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(U <= u), any shape."""
        scale = np.maximum(np.asarray(self.deviations), 1e-12)
        return np.asarray(norm.cdf((values[..., None] - np.asarray(self.means)) / scale) @ np.asarray(self.weights))


STANDARD = MixtureNoise((1.0,), (0.0,), (1.0,))
SILENT = MixtureNoise((1.0,), (0.0,), (0.0,))
