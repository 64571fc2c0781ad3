"""Linear mechanisms with a conditional flow for the residuals.

The c values depend on their p parents through a least-squares fit and a flow of the whitened residuals,

    v = b + W' pa + L f(u | pa),      L L' = Sigma,      u ~ N(0, I),

with the inverse u = f^-1(L^-1 (v - b - W' pa) | pa). Without a flow, f is the identity and the mechanism is
linear Gaussian. Whitening keeps the flow near the identity, at which its training starts.

Source: Qin et al. (2025), Sec. 4.1-4.2 (without the linear part); the combination is ours.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.mechanisms.linear_gaussian import LinearGaussian
from rehearsal_torch.mechanisms.mechanism import GenerativeMechanism


@dataclass(frozen=True)
class LinearFlow(GenerativeMechanism):
    """c standardised values given p standardised parents, in the precision of the noise or the values.

    Attributes:
        linear: The least-squares fit.
        flow: The distribution of the whitened residuals given the parents; None if they are assumed to be
            normal and independent of the parents.
    """

    linear: LinearGaussian
    flow: ConditionalFlow | None

    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        residual = noise if self.flow is None else self.flow(parents, noise).to(noise.dtype)
        root = torch.linalg.cholesky(self.linear.covariance).to(noise)
        return self.linear.intercept.to(noise) + parents @ self.linear.weights.to(noise) + residual @ root.mT

    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        residual = self.whitened(parents, values)
        return residual if self.flow is None else self.flow.abduct(parents, residual).to(residual.dtype)

    def whitened(self, parents: Tensor, values: Tensor) -> Tensor:
        """L^-1 (v - b - W' pa), (..., p), (..., c) -> (..., c): the residuals to which the flow is fitted."""
        residual = self.linear.abduct(parents, values)
        rows = residual.reshape(-1, residual.shape[-1])
        root = torch.linalg.cholesky(self.linear.covariance)
        return torch.linalg.solve_triangular(root, rows.mT, upper=False).mT.reshape(residual.shape)

    def noise(self, shape: tuple[int, ...]) -> Tensor:
        """Standard normal samples, (*shape, c)."""
        like = self.linear.covariance
        # Drawn on the CPU, so that a seed means the same on every device.
        return torch.randn(*shape, self.linear.outputs, dtype=like.dtype).to(like.device)
