"""Moments along the chain of Alpine2 with decomposable noise.

    X_0 = -s_0 + c_0 W_0,       X_i = s_i X_{i-1} + .1 (c_i + X_{i-1}^2) W_i,      W_i = lambda U_i^4 independent.

X_i^k is a polynomial in X_{i-1} of degree 2 k with coefficients that are moments of W_i:

    E X_i^k = sum_j sum_l C(k, j) C(j, l) .1^j E[W^j] s_i^{k-j} c_i^{j-l} E X_{i-1}^{k-j+2l},      0 <= l <= j <= k,

so the mean of the last of m + 1 nodes asks for 2^m moments of the first. Every moment is finite and exact; where lambda and sigma are
large the mean is made by draws so rare that no simulation shows them.

Source: own derivation, for Ren et al. (2025), Eq. 7.
"""

from collections.abc import Sequence
from math import comb

import torch
from torch import Tensor

from rehearsal_torch.datasets.mixture_noise import MixtureNoise

LINKS = 5


class QuarticMoments:
    """The recursion for one noise law.

    Args:
        law: Of U.
        scale: lambda.
    """

    def __init__(self, law: MixtureNoise, scale: float) -> None:
        self.law, self.scale = law, scale
        points, weights = law.nodes(80)  # exact to degree 159; U^4 to the power 2^5 has degree 128
        self._noise = [float(weights @ (scale * points**4) ** power) for power in range(2**LINKS + 1)]
        # Of the first node, X^j with c^j; of the others, place by place from the last: what stands before s^{k-j} c^{j-l} E X^{k-j+2l}.
        first = [(k, k - j, j, 0, comb(k, j) * self._noise[j]) for k in range(2**LINKS + 1) for j in range(k + 1)]
        self._terms = [_Terms(first, 2**LINKS)]
        for top in (2**place for place in reversed(range(LINKS))):
            kept = [(k, j, low) for k in range(top + 1) for j in range(k + 1) for low in range(j + 1)]
            factors = [comb(k, j) * comb(j, low) * 0.1**j * self._noise[j] for k, j, low in kept]
            rows = [(k, k - j, j - low, k - j + 2 * low, factor) for (k, j, low), factor in zip(kept, factors, strict=True)]
            self._terms.append(_Terms(rows, top))

    def noise_moment(self, power: int) -> float:
        """E[U^{4 power}], without lambda."""
        return self._noise[power] / self.scale**power if self.scale else float(self.law.nodes(80)[1] @ self.law.nodes(80)[0] ** (4 * power))

    def last(self, slopes: Tensor, levels: Tensor) -> Tensor:
        """E of the last node: s_i and c_i, (..., 6) each -> (...)."""
        moments = torch.ones(*slopes.shape[:-1], 1, dtype=slopes.dtype)
        for place, terms in enumerate(self._terms):
            moments = terms.sum(slopes[..., place] if place else -slopes[..., 0], levels[..., place], moments)
        return moments[..., 1]


class _Terms:
    """A table of terms factor s^p c^q E X^m, added up by the power k that they belong to."""

    def __init__(self, rows: Sequence[tuple[int, int, int, int, float]], top: int) -> None:
        self.top = top
        self.kept, self.slope, self.level, self.moment = (torch.tensor([row[place] for row in rows]) for place in range(4))
        self.factor = torch.tensor([row[4] for row in rows], dtype=torch.float64)

    def sum(self, slope: Tensor, level: Tensor, moments: Tensor) -> Tensor:
        """(...), (...), (..., M) -> (..., top + 1)."""
        exponents = range(self.top + 1)
        slopes, levels = (torch.stack([each**power for power in exponents], -1) for each in (slope, level))
        terms = self.factor * slopes[..., self.slope] * levels[..., self.level] * moments[..., self.moment]
        return terms.new_zeros(*terms.shape[:-1], self.top + 1).index_add(-1, self.kept, terms)
