"""Interpolation in Chebyshev nodes: functions of one variable whose frequencies are bounded.

A function on [-1, 1] that is a sum of waves cos(s t) and sin(s t), |s| <= z, and of polynomials below degree
n is the polynomial through its values at the n nodes t_j = cos(pi (j + 1/2) / n),

    f(t) = sum_j l_j(t) f(t_j),    l_j(t) = (1 / n) (1 + 2 sum_{0 < k < n} T_k(t) T_k(t_j)),

up to an error per unit of amplitude of at most

    4 sum_{m >= n} |J_m(z)| <= 4 sum_{m >= n} (z / 2)^m / m! <= 8 (z / 2)^n / n!    for n >= z,

since the waves' Chebyshev coefficients are 2 J_m(s), J_m the Bessel functions. `nodes_for` takes the n that
bounds this error by 1e-14: to rounding, such a function is known from a few dozen values.

Source: Trefethen (2013), Ch. 3 and 4 (coefficients and aliasing of interpolants); Watson (1944), Sec. 3.31
(the bound of J_m).
"""

import math

import torch
from torch import Tensor

EXACT = 1e-14
FEWEST = 4


def nodes_for(frequency: float, most: int) -> int | None:
    """n for frequencies of at most z on [-1, 1]; None if more than `most` nodes would be needed, or z is not
    finite. As n >= z, that is known without counting.
    """
    if not frequency <= most:
        return None
    count = max(FEWEST, math.ceil(frequency))
    if frequency > 0:
        while math.log(8) + count * math.log(frequency / 2) - math.lgamma(count + 1) > math.log(EXACT):
            count += 1
    return count if count <= most else None


class ChebyshevNodes:
    """The nodes of B intervals.

    Args:
        lower: (B,).
        upper: (B,); may equal the lower ends.
        count: n.

    Attributes:
        places: The nodes, (n, B).
    """

    def __init__(self, lower: Tensor, upper: Tensor, count: int) -> None:
        self.middle, self.half, self.count = (lower + upper) / 2, (upper - lower) / 2, count
        angles = (torch.arange(count).to(lower) + 0.5) * (math.pi / count)
        self.places = self.middle + self.half * angles.cos().unsqueeze(-1)
        degrees = torch.arange(count).to(lower)
        self._basis = (degrees.unsqueeze(-1) * angles).cos() * (2 / count)
        self._basis[0] = 1 / count
        self._degrees, self._angles = degrees, angles

    def lift(self, fewer: "ChebyshevNodes") -> Tensor:
        """The values at these nodes of the polynomials that are 1 at one of fewer nodes of the same
        intervals, (n, m).
        """
        degrees = fewer._degrees.unsqueeze(-1)
        return ((degrees * self._angles).cos().mT @ fewer._basis).to(self.places)

    def weights(self, points: Tensor) -> Tensor:
        """l_j at points of the intervals, (..., B) -> (..., B, n); beyond them, those of the nearer end."""
        shown = (points - self.middle) / torch.where(self.half > 0, self.half, torch.ones_like(self.half))
        angles = shown.clamp(-1, 1).acos()
        return (angles.unsqueeze(-1) * self._degrees).cos() @ self._basis
