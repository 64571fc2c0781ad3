"""Linear Gaussian mechanisms, fitted by least squares.

The c members of a clique depend on their p parents through

    v = b + W' pa + eps,        eps ~ N(0, Sigma),

with W estimated from centred columns, and Sigma from the residuals with n - rank - 1 degrees of freedom.
Under a flat prior the posterior of the parameters is

    Sigma ~ inverse Wishart,    W | Sigma ~ N(W_hat, (X'X)^-1 x Sigma),
    mean of v | Sigma ~ N(v_mean, Sigma / n),

from which `posterior` samples.

The parameters of an `AffineMechanism` may come from any source: the fit, an ensemble, or samples of a
posterior, one set for each leading dimension.

Source: Qin et al. (2023), Eq. 5; Qin et al. (2025b), Sec. 4.2 (least squares, covariance from residuals); the
posterior is the standard one for multivariate regression, Gelman et al., Bayesian Data Analysis (2013), Sec.
14.2.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.estimators.bayesian_regression import inverse_wishart_root
from rehearsal_torch.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class AffineMechanism:
    """Parameters of c values given p parents; leading dimensions run over sets of them."""

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
        """Least squares on parents (n, p) and values (n, c). Directions of the parents without variation in
        the rows get zero weight (the minimum-norm solution). ValueError if there are fewer than 3 rows.
        """
        parents, values = (example.detach().to(torch.float64) for example in examples)
        count = len(values)
        if count < 3:
            expected = f"expected at least 3 rows for a least-squares fit; got {count}"
            raise ValueError(f"{expected}: collect more rows in which the variables were not altered")
        centre, mean = parents.mean(0), values.mean(0)
        centred, response = parents - centre, values - mean
        unit = centred.square().mean(0).sqrt()
        unit = torch.where(unit > 0, unit, torch.ones_like(unit))
        # Singular values rather than normal equations: parents may be nearly collinear (ocean chemistry).
        left, sizes, right = torch.linalg.svd(centred / unit, full_matrices=False)
        kept = sizes > RANK * max(count, self.parents) * (sizes.max() if len(sizes) else 1.0)
        inverse = torch.where(kept, 1 / sizes.clamp_min(1e-300), torch.zeros_like(sizes))
        back = right.mT * inverse / unit.unsqueeze(-1)
        self.weights = back @ (left.mT @ response)
        self.intercept = mean - centre @ self.weights
        residual = response - centred @ self.weights
        rank = int(kept.sum())
        freedom = max(count - rank - 1, 1)
        # The floor keeps the covariance of a noiseless relation positive definite; it is relative to the
        # column's variance, and of a constant column to its square.
        size = torch.maximum(response.square().mean(0), FLOOR * values.square().mean(0))
        floor = FLOOR * torch.where(size > 0, size, torch.ones_like(size))
        self.covariance = residual.mT @ residual / freedom + torch.diag(floor)
        self.centre, self.spread = centre, back @ back.mT
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
        square = normal(count, self.outputs, self.outputs)
        factor = root @ inverse_wishart_root(square, freedom, stream).to(device) * freedom**0.5
        half = _root(self.spread)
        weights = self.weights + half @ normal(count, self.parents, self.outputs).to(device) @ factor.mT
        deviation = (factor @ normal(count, self.outputs, 1).to(device)).squeeze(-1) / rows**0.5
        middle = self.intercept + self.centre @ self.weights + deviation
        return AffineMechanism(weights, middle - (self.centre @ weights), factor @ factor.mT)


def _root(spread: Tensor) -> Tensor:
    """A symmetric factor F of (X'X)^-1 = F F', (p, p), with each parent in units of its own entry: the draws
    depend neither on the parents' units nor on the signs of eigenvectors.
    """
    unit = spread.diagonal().clamp_min(0).sqrt()
    unit = torch.where(unit > 0, unit, torch.ones_like(unit))
    values, vectors = torch.linalg.eigh((spread / (unit.unsqueeze(-1) * unit)).cpu())
    half = (vectors * values.clamp_min(0).sqrt()) @ vectors.mT
    return unit.unsqueeze(-1) * half.to(spread.device)
