"""Ridge regression by evidence: penalty and noise variance of each value maximise the evidence.

    v = b + beta' pa + eps,     eps ~ N(0, 1 / alpha),     beta ~ N(0, 1 / lambda),

alpha and lambda maximise the evidence by MacKay's fixed point (under nearly flat Gamma priors), and then

    beta ~ N(m, V),   V = (alpha P'P + lambda)^-1,   m = alpha V P' v,     P and v centred.

alpha, lambda and the mean of v are treated as known, as in the paper; with few rows this is overconfident.
The members of a clique are fitted one by one; their noises have the correlation of the residuals.

A row is predicted from the fit to the rows before it, so that every row of a growing table requires a fit.

Source: Qin et al. (2023), Sec. 4.1 and released code (scikit-learn's BayesianRidge); MacKay (1992); Tipping
(2001), App. A.
"""

import math

import torch
from torch import Tensor

from rehearsal_torch.data.part import Sizes
from rehearsal_torch.estimators.bayesian_regression import BayesianRegression

GAMMA = 1e-6
SETTLED = 1e-3
MAX_ITERATIONS = 300


class EvidenceRidge(BayesianRegression):
    """Bayesian ridge regressions of c values."""

    def __init__(self, parents: int, outputs: int, forgetting: float = 1.0) -> None:
        super().__init__(parents, outputs, forgetting)
        self.register_fitted("posterior_mean", "spread", "noise", "root", "centre", "processed_rows")
        self.processed_rows: Tensor

    def sizes(self) -> Sizes:
        """Mean and covariance factor of the coefficients of each of c values; the rows processed so far."""
        p, c = self.parents, self.outputs
        own = {
            "posterior_mean": (p, c),
            "spread": (c, p, p),
            "noise": (c,),
            "root": (c, c),
            "centre": (p + c,),
            "processed_rows": ("n", p + c + 2),
        }
        return {**super().sizes(), **own}

    def solve(self, *examples: Tensor) -> None:
        """One fit for every predicted row, as `BayesianRegression.solve`; rows that an earlier call has
        processed are not processed again, and the result is the same.
        """
        parents, values, basis, to_predict = self._begin(examples)
        raw = torch.cat([example.reshape(len(values), -1).to(torch.float64) for example in examples], -1)
        done = len(self.processed_rows)
        if done > len(raw) or not torch.equal(self.processed_rows, raw[:done]):
            done = 0
        ages, last = torch.arange(len(values), dtype=torch.float64, device=values.device), len(values) - 1
        score = self.score * self.forgetting ** (len(raw) - done) if done else values.new_zeros(())
        for row in to_predict.nonzero().squeeze(-1).tolist():
            if row >= done:
                weight = (
                    (basis + to_predict) * self.forgetting ** (row - 1 - ages).clamp_min(0) * (ages < row)
                )
                self._fit(parents, values, weight)
                seen = raw[row, : self.parents + self.outputs]
                score = score + self.forgetting ** (last - row) * self.log_predictive(
                    seen[: self.parents], seen[self.parents :]
                )
        self._fit(parents, values, (basis + to_predict) * self.forgetting ** (last - ages))
        self.score, self.processed_rows = score, raw

    def draw(self, count: int, stream: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """As `BayesianRegression.draw`; the noise is treated as known."""
        normal = torch.randn(count, self.parents, self.outputs, dtype=torch.float64, generator=stream).to(
            self.posterior_mean
        )
        weights = self.posterior_mean + torch.einsum("cij,njc->nic", self.spread, normal)
        start = self.centre[self.parents :] - torch.einsum("p,npc->nc", self.centre[: self.parents], weights)
        return self._raw(weights, start, self.root.expand(count, -1, -1))

    def log_predictive(self, parents: Tensor, values: Tensor) -> Tensor:
        """A normal density."""
        scaled = (torch.cat([parents, values], -1).to(self.scale) - self.location) / self.scale - self.centre
        before, after = scaled[..., : self.parents], scaled[..., self.parents :]
        lever = torch.einsum("cij,...i->...cj", self.spread, before).square().sum(-1)
        covariance = self.root @ self.root.mT + torch.diag_embed(lever)
        root = torch.linalg.cholesky(covariance)
        apart = (after - before @ self.posterior_mean).unsqueeze(-1)
        error = torch.linalg.solve_triangular(root, apart, upper=False).square().sum((-2, -1))
        inside = root.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.scale[self.parents :].log().sum()
        return -0.5 * error - inside - self.outputs / 2 * math.log(2 * math.pi)

    def _fit(self, parents: Tensor, values: Tensor, weight: Tensor) -> None:
        count = weight.sum()
        columns = torch.cat([parents, values], -1)
        self.centre = weight @ columns / count
        weighted = (columns - self.centre) * weight.sqrt().unsqueeze(-1)
        inputs, targets = weighted[:, : self.parents], weighted[:, self.parents :]
        sizes, axes = torch.linalg.eigh(inputs.mT @ inputs)
        sizes, along = sizes.clamp_min(0.0), axes.mT @ inputs.mT @ targets
        total = targets.square().sum(0)
        means, roots, noises = [], [], []
        for own, whole in zip(along.mT, total, strict=True):
            alpha, prior_precision = 1 / (whole / count + 1e-12), whole.new_ones(())
            old = own.new_zeros(())
            for iteration in range(MAX_ITERATIONS):
                solved = own / (sizes + prior_precision / alpha)
                residual = (whole - 2 * solved @ own + (sizes * solved.square()).sum()).clamp_min(0.0)
                effective = (alpha * sizes / (prior_precision + alpha * sizes)).sum()
                prior_precision = (effective + 2 * GAMMA) / (solved.square().sum() + 2 * GAMMA)
                # With row weights below one, the total weight may be less than the effective number of
                # parameters; the bound keeps the noise variance positive.
                alpha = ((count - effective).clamp_min(0.1 * count) + 2 * GAMMA) / (residual + 2 * GAMMA)
                if iteration and float((axes @ (old - solved)).abs().sum()) < SETTLED:
                    break
                old = solved
            means.append(axes @ (own / (sizes + prior_precision / alpha)))
            roots.append(axes / (alpha * sizes + prior_precision).sqrt())
            noises.append(1 / alpha)
        self.posterior_mean = torch.stack(means, -1)
        self.spread = torch.stack(roots)
        self.noise = torch.stack(noises)
        residual = targets - inputs @ self.posterior_mean
        shared = residual.mT @ residual
        size = shared.diagonal().clamp_min(1e-300).sqrt()
        # Correlations are shrunk slightly, since a correlation of one would leave no density.
        correlation = 0.999 * shared / size / size.unsqueeze(-1)
        correlation.fill_diagonal_(1.0)
        self.root = self.noise.sqrt().unsqueeze(-1) * torch.linalg.cholesky(correlation)
