"""Interpolation in Chebyshev nodes: functions of one variable whose frequencies are bounded.

A function on [-1, 1] that is a sum of waves cos(s t) and sin(s t), |s| <= z, and of polynomials below degree
n is the polynomial through its values at the n nodes t_j = cos(pi (j + 1/2) / n),

    f(t) = sum_j l_j(t) f(t_j),    l_j(t) = (1 / n) (1 + 2 sum_{0 < k < n} T_k(t) T_k(t_j)),

up to an error per unit of amplitude of at most

    4 sum_{m >= n} |J_m(z)| <= 4 sum_{m >= n} (z / 2)^m / m! <= 8 (z / 2)^n / n!    for n >= z,

since the waves' Chebyshev coefficients are 2 J_m(s), J_m the Bessel functions. `nodes_for` takes the n that
bounds this error by 1e-14: to rounding, such a function is known from a few dozen values.

Everything that the joint-metric estimator (`spectral_ensemble`) says of J along one action in an interval is
made of waves cos(w_m a) and sin(w_m a): the value is a linear function of them, and the variance a sum of
squares of linear functions. With the values of member e at nodes, and C_e their posterior covariance,

    J_e(a) = sum_j l_j(a) J_e(a_j),    var_e(a) = sum_jk l_j(a) l_k(a) C_e(a_j, a_k);

each member has as many nodes as its own waves need, and its values are then lifted to the nodes of the
fastest.

Source: Trefethen (2013), Ch. 3 and 4 (coefficients and aliasing of interpolants); Watson (1944), Sec. 3.31
(the bound of J_m).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

EXACT = 1e-14
FEWEST = 4


def nodes_for(frequency: float, most: int) -> int | None:
    """n for frequencies of at most z on [-1, 1]; None if more than `most` were needed, or z is infinite."""
    if not frequency <= most:
        return None
    count = max(FEWEST, math.ceil(frequency))
    if frequency > 0:
        while math.log(8) + count * math.log(frequency / 2) - math.lgamma(count + 1) > math.log(EXACT):
            count += 1
    return count if count <= most else None


class ChebyshevNodes:
    """The n nodes of B intervals, `places` (n, B); the ends (B,) of an interval may be equal."""

    def __init__(self, lower: Tensor, upper: Tensor, count: int) -> None:
        self.middle, self.half, self.count = (lower + upper) / 2, (upper - lower) / 2, count
        angles = (torch.arange(count).to(lower) + 0.5) * (math.pi / count)
        self.places = self.middle + self.half * angles.cos().unsqueeze(-1)
        degrees = torch.arange(count).to(lower)
        self._basis = (degrees.unsqueeze(-1) * angles).cos() * (2 / count)
        self._basis[0] = 1 / count
        self._degrees, self._angles = degrees, angles

    def lift(self, fewer: "ChebyshevNodes") -> Tensor:
        """Values at these nodes of the polynomials that are 1 at one of fewer nodes, (n, m)."""
        degrees = fewer._degrees.unsqueeze(-1)
        return ((degrees * self._angles).cos().mT @ fewer._basis).to(self.places)

    def weights(self, points: Tensor) -> Tensor:
        """l_j at points of the intervals, (..., B) -> (..., B, n); beyond them, those of the nearer end."""
        unit = (points - self.middle) / torch.where(self.half > 0, self.half, torch.ones_like(self.half))
        angles = unit.clamp(-1, 1).acos()
        return (angles.unsqueeze(-1) * self._degrees).cos() @ self._basis


class TabulatedValue:
    """The mean of E estimators and its deviation for one action in B contexts, from each one's nodes of B
    intervals, values at them (m, B) and covariances (B, m, m).
    """

    def __init__(self, members: Sequence[tuple[ChebyshevNodes, Tensor, Tensor]]) -> None:
        self.nodes = max((nodes for nodes, _, _ in members), key=lambda nodes: nodes.count)
        lifts = [self.nodes.lift(nodes) for nodes, _, _ in members]
        pairs = list(zip(lifts, members, strict=True))
        self.values = torch.stack([(lift @ values).mT for lift, (_, values, _) in pairs], -1)
        self.covariance = sum(lift @ spread @ lift.mT for lift, (_, _, spread) in pairs) / len(members)

    def value_and_std(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """See `AlterationValue.value_and_std`: standardised actions in the intervals, (..., B, 1)."""
        weights = self.nodes.weights(actions.squeeze(-1)).unsqueeze(-2)
        values = (weights @ self.values).squeeze(-2)
        variance = ((weights @ self.covariance) * weights).sum((-2, -1)).clamp_min(0)
        count = values.shape[-1]
        between = (1 + 1 / count) * values.var(-1) if count > 1 else torch.zeros_like(variance)
        return values.mean(-1), (variance + between).sqrt()
