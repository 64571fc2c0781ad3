"""Linear Gaussian laws: what follows an alteration, in closed form.

Variables in topological order, W[p, c] the coefficient from p to c, b intercepts, eps ~ N(0, Sigma). Setting
variables to z zeroes their columns of W, their intercepts and their noise, and

    v = T (b + eps + E z),        T = (I - W')^-1.

The context x is *seen*, not set: noise consistent with it is eps + K (x - T_x (b + eps)) with
K = Sigma T_x' (T_x Sigma T_x')^-1. Hence, for outcomes Y,

    Y = A x + B z + c0 + C eps,   A = T_y K,  B = T_y E,  c0 = T_y b - A T_x b,  C = T_y (I - K T_x).

Where the context holds all its own ancestors, C's columns for it are zero and this is the formula with the
context's columns of W cut; where it does not, cutting would forget what x says of its causes.

Source: Qin et al. (2023), Eq. 5-6; Qin et al. (2025b), Sec. 3 (both without c0 and with the context cut).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.table import positions


@dataclass(frozen=True)
class AffineResponse:
    """Y = A x + B z + c0 + C eps; every field may have leading dimensions, one for each set of parameters.

    Attributes:
        context: A, (..., |Y|, |X|).
        action: B, (..., |Y|, k).
        constant: c0, (..., |Y|).
        noise: C, (..., |Y|, d).
        covariance: C Sigma C', (..., |Y|, |Y|), in products of the outcomes' units.
    """

    context: Tensor
    action: Tensor
    constant: Tensor
    noise: Tensor
    covariance: Tensor

    def base(self, context: Tensor) -> Tensor:
        """A x + c0: contexts (B, |X|) -> (..., B, |Y|)."""
        return context @ self.context.mT + self.constant.unsqueeze(-2)


@dataclass(frozen=True)
class LinearModel:
    """A linear Gaussian law in which some variables are set from outside; leading dimensions run over sets of
    parameters.

    Attributes:
        names: The d variables, parents before children.
        altered: The k variables that are set.
        weights: W, (..., d, d); the columns of what is set are zero.
        intercept: b, (..., d); zero for what is set.
        covariance: Sigma, (..., d, d); zero for what is set.
    """

    names: tuple[str, ...]
    altered: tuple[str, ...]
    weights: Tensor
    intercept: Tensor
    covariance: Tensor

    def total(self) -> Tensor:
        """T = (I - W')^-1, (..., d, d): what one unit of noise in a column does to each row."""
        eye = torch.eye(len(self.names), dtype=self.weights.dtype, device=self.weights.device)
        return torch.linalg.solve_triangular(
            eye - self.weights.mT, eye.expand_as(self.weights), upper=False, unitriangular=True
        )

    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean (..., d) and covariance (..., d, d) with what is set at zero."""
        total = self.total()
        return (total @ self.intercept.unsqueeze(-1)).squeeze(-1), total @ self.covariance @ total.mT

    def response(self, context: Sequence[str], outcomes: Sequence[str]) -> AffineResponse:
        """How outcomes depend on the context, on what is set and on noise."""
        total, gain, seen = self._seen(context)
        of_outcomes = total[..., positions(self.names, outcomes), :]
        by_context = of_outcomes @ gain
        start = (of_outcomes @ self.intercept.unsqueeze(-1)).squeeze(-1) - (
            by_context @ (seen @ self.intercept.unsqueeze(-1))
        ).squeeze(-1)
        noise = self._left(of_outcomes - by_context @ seen)
        return AffineResponse(
            by_context,
            of_outcomes[..., positions(self.names, self.altered)],
            start,
            noise,
            noise @ self.covariance @ noise.mT,
        )

    def rehearse(self, noise: Tensor, values: Tensor, context: Sequence[str], given: Tensor) -> Tensor:
        """Every variable after the alteration.

        Args:
            noise: Draws of N(0, Sigma), (..., d).
            values: What is set, (..., k).
            context: Names of what is seen.
            given: Their values, (..., |X|).

        Returns:
            (..., d), in the order of `names`; the context comes back as given.
        """
        total, gain, seen = self._seen(context)
        free = self.intercept + self._left(noise)
        drive = free + (given - free @ seen.mT) @ gain.mT
        place = torch.zeros(len(self.altered), len(self.names), dtype=noise.dtype, device=noise.device)
        place[range(len(self.altered)), positions(self.names, self.altered)] = 1.0
        return (drive + values @ place) @ total.mT

    def _left(self, columns: Tensor) -> Tensor:
        """(..., d) with zeros for what is set: no noise reaches it."""
        keep = torch.ones(len(self.names), dtype=columns.dtype, device=columns.device)
        keep[positions(self.names, self.altered)] = 0.0
        return columns * keep

    def _seen(self, context: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        """T, K (..., d, |X|) and T_x (..., |X|, d)."""
        total = self.total()
        seen = total[..., positions(self.names, context), :]
        if not len(context):
            return total, seen.mT, seen
        shared = self.covariance @ seen.mT
        square = seen @ shared
        # Scaled to a unit diagonal first: contexts may come in any unit.
        scale = square.diagonal(dim1=-2, dim2=-1).clamp_min(1e-300).sqrt()
        shown = square / scale.unsqueeze(-1) / scale.unsqueeze(-2)
        gain = torch.linalg.solve(shown, (shared / scale.unsqueeze(-2)).mT).mT / scale.unsqueeze(-2)
        return total, gain, seen
