"""Distributions of regression residuals that keep no single residual.

Residuals e are kept as the means of Q equally large groups of neighbours, m_1 < ... < m_Q. Between the levels
(j - 1/2) / Q their quantile function is linear, beyond them flat; drawing u uniform and taking its quantile
is a smoothed residual bootstrap, and no residual of one person is kept. The distribution function is its
inverse.

Two regressions with dependent residuals share a table of how often the ranks of both fall into each cell of a
grid; inside a cell they are uniform. The joint distribution of the two ranks (a copula) is then bilinear
between the grid lines.

Source: Efron and Tibshirani (1993), Sec. 9.4 (bootstrapping residuals); Sklar (1959) (separating ranks from
margins).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ResidualDistribution:
    """A quantile function through the means of equally large groups.

    Attributes:
        means: (Q,), ascending.

    Raises:
        ValueError: if the means are not strictly ascending or not finite.
    """

    means: Array

    def __post_init__(self) -> None:
        if (
            self.means.ndim != 1
            or len(self.means) < 2
            or not np.isfinite(self.means).all()
            or (np.diff(self.means) <= 0).any()
        ):
            raise ValueError("residuals: expected finite group means that rise; the file is damaged")

    @property
    def _levels(self) -> Array:
        return (np.arange(len(self.means)) + 0.5) / len(self.means)

    def quantile(self, uniform: Array) -> Array:
        """Residuals from uniform numbers, (...) -> (...)."""
        return np.interp(uniform, self._levels, self.means)

    def below(self, residual: Array) -> Array:
        """P(e < residual), (...) -> (...): an atom at a bound counts above it."""
        return np.interp(residual, self.means, self._levels, left=0.0, right=1.0)


@dataclass(frozen=True, eq=False)
class PairedRanks:
    """The joint distribution of two ranks with uniform margins.

    Attributes:
        edges: (E,), grid lines, from 0 to 1.
        shares: (E - 1, E - 1), the probability of each cell; rows and columns sum to the cells' widths.

    Raises:
        ValueError: if the shares are not such a distribution.
    """

    edges: Array
    shares: Array

    def __post_init__(self) -> None:
        cells = (len(self.edges) - 1,) * 2
        widths = np.diff(self.edges)
        if (
            self.shares.shape != cells
            or not (self.shares >= 0).all()
            or not (widths > 0).all()
            or self.edges[0] != 0
            or self.edges[-1] != 1
        ):
            raise ValueError(
                f"ranks: expected shares of at least 0 in {cells} cells between rising edges from 0 to 1; "
                "the file is damaged"
            )
        if not all(np.allclose(self.shares.sum(axis), widths, atol=1e-6) for axis in (0, 1)):
            raise ValueError(
                "ranks: expected rows and columns that sum to the grid's widths; the file is damaged"
            )

    @classmethod
    def independent(cls) -> "PairedRanks":
        """Independent ranks."""
        return cls(np.array([0.0, 1.0]), np.array([[1.0]]))

    def second(self, first: Array, uniform: Array) -> Array:
        """The second rank given the first, from uniform numbers; (...), (...) -> (...)."""
        row = np.clip(np.searchsorted(self.edges, first, side="right") - 1, 0, len(self.edges) - 2)
        rising = np.concatenate(
            [np.zeros((len(self.shares), 1)), np.cumsum(self.shares / self.shares.sum(1, keepdims=True), 1)],
            1,
        )
        rising[:, -1] = 1.0
        column = np.clip((rising[row, 1:] <= uniform[..., None]).sum(-1), 0, len(self.edges) - 2)
        start, end = rising[row, column], rising[row, column + 1]
        inside = (uniform - start) / np.maximum(end - start, 1e-300)
        return self.edges[column] + np.clip(inside, 0, 1) * (self.edges[column + 1] - self.edges[column])

    def below(self, first: Array, second: Array) -> Array:
        """P(rank one < first, rank two < second), (...), (...) -> (...); bilinear between the grid lines."""
        joint = np.pad(self.shares.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        cells, parts = [], []
        for rank in (first, second):
            cell = np.clip(np.searchsorted(self.edges, rank, side="right") - 1, 0, len(self.edges) - 2)
            cells.append(cell)
            parts.append((rank - self.edges[cell]) / (self.edges[cell + 1] - self.edges[cell]))
        (row, column), (down, along) = cells, parts
        upper = joint[row, column] * (1 - along) + joint[row, column + 1] * along
        lower = joint[row + 1, column] * (1 - along) + joint[row + 1, column + 1] * along
        return upper * (1 - down) + lower * down
