"""Linear Gaussian models: the effect of an alteration in closed form.

Variables in topological order, W[p, c] the coefficient from p to c, b intercepts, eps ~ N(0, Sigma). Setting
variables to z zeroes their columns of W, their intercepts and their noise, and

    v = T (b + eps + E z),        T = (I - W')^-1.

The context x is *observed*, not set: noise consistent with it is eps + K (x - T_x (b + eps)) with
K = Sigma T_x' (T_x Sigma T_x')^-1. Hence, for outcomes Y,

    Y = A x + B z + c0 + C eps,   A = T_y K,  B = T_y E,  c0 = T_y b - A T_x b,  C = T_y (I - K T_x).

If the context contains all its own ancestors, C's columns for it are zero and this is the formula with the
context's columns of W removed; otherwise, removing them would discard the information in x about its causes.

Source: Qin et al. (2023), Eq. 5-6; Qin et al. (2025b), Sec. 3 (both without c0 and with the context's columns
removed).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.records import positions


@dataclass(frozen=True)
class AffineResponse:
    """Y = A x + B z + c0 + C eps; leading dimensions of the fields run over sets of parameters."""

    context: Tensor  # A, (..., |Y|, |X|)
    action: Tensor  # B, (..., |Y|, k)
    constant: Tensor  # c0, (..., |Y|)
    noise: Tensor  # C, (..., |Y|, d)
    covariance: Tensor  # C Sigma C', (..., |Y|, |Y|), in products of the outcomes' units

    def base(self, context: Tensor) -> Tensor:
        """A x + c0: contexts (B, |X|) -> (..., B, |Y|)."""
        return context @ self.context.mT + self.constant.unsqueeze(-2)


@dataclass(frozen=True)
class LinearModel:
    """A linear Gaussian model under an intervention; leading dimensions run over sets of parameters."""

    names: tuple[str, ...]  # The d variables, parents before children
    altered: tuple[str, ...]  # The k variables that are set
    weights: Tensor  # W, (..., d, d); the columns of altered variables are zero
    intercept: Tensor  # b, (..., d); zero for altered variables
    covariance: Tensor  # Sigma, (..., d, d); zero for altered variables

    def total(self) -> Tensor:
        """T = (I - W')^-1, (..., d, d): the total effect of one unit of noise in a column on each row."""
        eye = torch.eye(len(self.names), dtype=self.weights.dtype, device=self.weights.device)
        return torch.linalg.solve_triangular(
            eye - self.weights.mT, eye.expand_as(self.weights), upper=False, unitriangular=True
        )

    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean (..., d) and covariance (..., d, d) with altered variables at zero."""
        total = self.total()
        return (total @ self.intercept.unsqueeze(-1)).squeeze(-1), total @ self.covariance @ total.mT

    def response(self, context: Sequence[str], outcomes: Sequence[str]) -> AffineResponse:
        """The outcomes as a function of the context, the altered variables and noise."""
        total, gain, observed = self._context_gain(context)
        of_outcomes = total[..., positions(self.names, outcomes), :]
        by_context = of_outcomes @ gain
        b = self.intercept.unsqueeze(-1)
        start = (of_outcomes @ b).squeeze(-1) - (by_context @ (observed @ b)).squeeze(-1)
        altered = positions(self.names, self.altered)
        noise = of_outcomes - by_context @ observed
        noise[..., altered] = 0.0  # altered variables have no noise
        covariance = noise @ self.covariance @ noise.mT
        return AffineResponse(by_context, of_outcomes[..., altered], start, noise, covariance)

    def _context_gain(self, context: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        """T, K (..., d, |X|) and T_x (..., |X|, d)."""
        total = self.total()
        observed = total[..., positions(self.names, context), :]
        if not len(context):
            return total, observed.mT, observed
        cross = self.covariance @ observed.mT
        variance = observed @ cross
        # Scaled to a unit diagonal first: contexts may be in any units.
        scale = variance.diagonal(dim1=-2, dim2=-1).clamp_min(1e-300).sqrt()
        scaled = variance / scale.unsqueeze(-1) / scale.unsqueeze(-2)
        gain = torch.linalg.solve(scaled, (cross / scale.unsqueeze(-2)).mT).mT / scale.unsqueeze(-2)
        return total, gain, observed
