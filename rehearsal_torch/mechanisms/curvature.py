"""Curvature: courses that bound their derivatives on a ball.

Given a state x, a radius r and a covector p, sharp searches need of each map F(., a) of a time step, on the ball
B = {y : |y - x| <= r} of the Euclidean norm,

    its derivatives at the centre        DF_a(x),  H_a(x) = D^2 (p . F_a)(x),
    slope   >= sup_B |DF_a(y)|           how far a displacement grows,
    bend    >= sup_B |D^2 F_a(y)|        of the bilinear map: |D^2 F_a(y)[v, w]| <= bend |v| |w|,
    twist   >= |H_a(y) - H_a(x)| / |y - x|   for all y in B,

with Euclidean and spectral norms throughout.

Source: ours; the derivatives' place in the search is told in `search.gain_bound`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.course import SmoothCourse


@dataclass(frozen=True)
class Curvature:
    """Derivatives of F(., a) at centres, and their bounds on balls around them; float64.

    Attributes:
        jacobian: DF_a(x), (n, A, D, D).
        hessian: D^2 (p . F_a)(x), (n, A, D, D).
        slope: (n, A).
        bend: (n, A).
        twist: (n, A).
    """

    jacobian: Tensor
    hessian: Tensor
    slope: Tensor
    bend: Tensor
    twist: Tensor


class CurvedCourse(SmoothCourse, ABC):
    """A smooth course that certifies how its maps bend."""

    @abstractmethod
    def curvature(self, states: Tensor, time: int, covectors: Tensor, radii: Tensor) -> Curvature:
        """Derivatives and their bounds.

        Args:
            states: Centres x, (n, D).
            time: t, the step.
            covectors: p, (n, D).
            radii: r, (n,); may be 0, must not be negative.

        Returns:
            Bounds that hold in exact arithmetic; whoever uses them adds a margin for rounding.
        """


def spectral_bound(matrices: Tensor) -> Tensor:
    """An upper bound on the largest singular value, (..., p, q) -> (...), at most (min(p, q))^(1/32) times it.

    With G = M'M and eigenvalues l_i >= 0, the largest is at most (sum l_i^16)^(1/16) = |G^8|_F^(1/8): three squarings
    of small matrices in one batch, where a decomposition would go matrix by matrix.
    """
    gram = matrices.mT @ matrices if matrices.shape[-1] <= matrices.shape[-2] else matrices @ matrices.mT
    size = torch.linalg.matrix_norm(gram).clamp_min(torch.finfo(gram.dtype).tiny)
    power = gram / size[..., None, None]
    for _ in range(3):
        power = power @ power
    return (size * torch.linalg.matrix_norm(power) ** 0.125).sqrt()
