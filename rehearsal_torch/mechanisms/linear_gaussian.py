"""Linear Gaussian mechanisms, fitted by least squares.

The c members of a clique depend on their p parents through

    v = b + W' pa + eps,        eps ~ N(0, Sigma),

with W estimated from centred columns, and Sigma from the residuals with n - rank - 1 degrees of freedom.
Under a flat prior the posterior of the parameters is

    Sigma ~ inverse Wishart,    W | Sigma ~ N(W_hat, (X'X)^-1 x Sigma),
    mean of v | Sigma ~ N(v_mean, Sigma / n),

from which `posterior` samples. Used by `surrogates.structural`.

Source: Qin et al. (2023), Eq. 5; Qin et al. (2025b), Sec. 4.2 (least squares, covariance from residuals); the
posterior: Gelman et al., Bayesian Data Analysis (2013), Sec. 14.2.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.estimators.bayesian_regression import inverse_wishart_root
from rehearsal_torch.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class AffineMechanism:
    """Parameters of c values given p parents; leading dimensions run over members or posterior samples."""

    weights: Tensor  # W, (..., p, c)
    intercept: Tensor  # b, (..., c)
    covariance: Tensor  # Sigma, (..., c, c), positive definite


RANK = 1e-9
FLOOR = 1e-12


class LinearGaussian(Solved, Mechanism):
    """c values as a linear function of p parents with jointly normal noise; p may be 0."""

    def __init__(self, parents: int, outputs: int) -> None:
        super().__init__()
        self.parents, self.outputs = parents, outputs
        p, c = parents, outputs
        self.register_fitted(weights=(p, c), intercept=(c,), covariance=(c, c))
        self.register_fitted(centre=(p,), spread=(p, p), counts=(3,))

    def solve(self, *examples: Tensor) -> None:
        """Minimum-norm least squares on parents (n, p) and values (n, c); ValueError below 3 rows."""
        parents, values = (example.detach().to(torch.float64) for example in examples)
        count = len(values)
        if count < 3:
            expected = f"expected at least 3 rows for a least-squares fit; got {count}"
            raise ValueError(f"{expected}: collect more rows in which the variables were not altered")
        centre, mean = parents.mean(0), values.mean(0)
        centred, response = parents - centre, values - mean
        scales = centred.square().mean(0).sqrt()
        scales = torch.where(scales > 0, scales, torch.ones_like(scales))
        # Singular values rather than normal equations: parents may be nearly collinear (ocean chemistry).
        left, sizes, right = torch.linalg.svd(centred / scales, full_matrices=False)
        significant = sizes > RANK * max(count, self.parents) * (sizes.max() if len(sizes) else 1.0)
        inverse = torch.where(significant, 1 / sizes.clamp_min(1e-300), torch.zeros_like(sizes))
        to_weights = right.mT * inverse / scales.unsqueeze(-1)
        self.weights = to_weights @ (left.mT @ response)
        self.intercept = mean - centre @ self.weights
        residual = response - centred @ self.weights
        rank = int(significant.sum())
        freedom = max(count - rank - 1, 1)
        # The floor, relative to the column's variance, or of a constant column to its square, keeps the
        # covariance of a noiseless relation positive definite.
        variances = torch.maximum(response.square().mean(0), FLOOR * values.square().mean(0))
        floor = FLOOR * torch.where(variances > 0, variances, torch.ones_like(variances))
        self.covariance = residual.mT @ residual / freedom + torch.diag(floor)
        self.centre, self.spread = centre, to_weights @ to_weights.mT
        self.counts = torch.tensor(
            [float(count), float(rank), float(freedom)], dtype=torch.float64, device=values.device
        )

    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        return self.intercept + parents @ self.weights + noise

    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        return values - self.intercept - parents @ self.weights

    def estimate(self) -> AffineMechanism:
        """The estimate as a record of parameters."""
        return AffineMechanism(self.weights, self.intercept, self.covariance)

    def posterior(self, count: int, stream: torch.Generator) -> AffineMechanism:
        """Samples from the posterior of the parameters, (count,) sets of them, by a generator on the CPU."""
        device = self.covariance.device

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, dtype=torch.float64, generator=stream)

        rows, freedom = float(self.counts[0]), max(float(self.counts[2]), float(self.outputs))
        root = torch.linalg.cholesky(self.covariance)
        normals = normal(count, self.outputs, self.outputs)
        factor = root @ inverse_wishart_root(normals, freedom, stream).to(device) * freedom**0.5
        half = _root(self.spread)
        weights = self.weights + half @ normal(count, self.parents, self.outputs).to(device) @ factor.mT
        deviation = (factor @ normal(count, self.outputs, 1).to(device)).squeeze(-1) / rows**0.5
        means = self.intercept + self.centre @ self.weights + deviation
        return AffineMechanism(weights, means - (self.centre @ weights), factor @ factor.mT)


def _root(spread: Tensor) -> Tensor:
    """F with (X'X)^-1 = F F', (p, p), symmetric in scaled parents, so that units do not change the draws."""
    scales = spread.diagonal().clamp_min(0).sqrt()
    scales = torch.where(scales > 0, scales, torch.ones_like(scales))
    values, vectors = torch.linalg.eigh((spread / (scales.unsqueeze(-1) * scales)).cpu())
    half = (vectors * values.clamp_min(0).sqrt()) @ vectors.mT
    return scales.unsqueeze(-1) * half.to(spread.device)
