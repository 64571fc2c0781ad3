"""Bayesian linear regressions of c values on p parents, with prequential (sequential predictive) scores.

    v = b + W' pa + eps,        eps ~ N(0, Sigma),        (W, b, Sigma) ~ p( . | rows).

Some rows form the *basis*: they are given beforehand, possibly with a weight below one each. The others are
*predicted*: row t contributes its log predictive density given the rows before it,

    score = sum_t forgetting^(T - t) log p(v_t | pa_t, rows before t),

so that no row is evidence for a model that has already been fitted to it. The scores weigh graphs against
each other; with forgetting below 1, parameters and scores follow a world that changes.

**Conjugate.** With z = (1, pa) and B = (b, W'), columns standardised by the first rows,

    Sigma ~ IW(nu, Psi),    B | Sigma ~ MN(M, L^-1, Sigma),

and rows with weights w_i update it in closed form:

    L_n = L_0 + sum w z z',             M_n = L_n^-1 sum w z v',
    nu_n = nu_0 + sum w,                Psi_n = Psi_0 + sum w v v' - M_n' L_n M_n          (M_0 = 0).

The predictive distribution of the next value is a multivariate t, whose log densities add up to the evidence
log p(rows). The shrinkage of the coefficients (L_0 = diag(small, kappa, ..., kappa)) and the prior noise
(Psi_0) are uncertain as well: they lie on a grid, and the posterior is the mixture over the grid, weighted by
the evidence. Nothing is optimised, so that each row is predicted from previous rows alone. With forgetting, a
row of age a has weight forgetting^a; the prior is not discounted.

**By evidence.** Ridge regressions of the values, one by one,

    v = b + beta' pa + eps,     eps ~ N(0, 1 / alpha),     beta ~ N(0, 1 / lambda),

alpha and lambda maximise the evidence by MacKay's fixed point (under nearly flat Gamma priors), and then

    beta ~ N(m, V),   V = (alpha P'P + lambda)^-1,   m = alpha V P' v,     P and v centred.

alpha, lambda and the mean of v are treated as known, as in the paper; with few rows this is overconfident.
The noises of a clique's members have the correlation of the residuals. Each row needs a fit, to the rows
before it. Used by `surrogates.structural.graph_posterior`.

Source: Qin et al. (2023), Sec. 4.1 (per clique) and released code (scikit-learn's BayesianRidge); Dawid
(1984) (prequential scores); Raftery et al. (2010) (forgetting); Gelman et al., Bayesian Data Analysis (2013),
Sec. 14.2 and 3.6; Dawid and Lauritzen (1993), Sec. 7 (matrix t); Ibrahim and Chen (2000) (rows with weights
below one); MacKay (1992); Tipping (2001), App. A (ridge by evidence).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.estimators.gp_kernel import inverse_root


class BayesianRegression(Solved, ABC):
    """A posterior of the parameters of c values given p parents, p may be 0; `forgetting` is in (0, 1]. The
    score, (), is in nats per product of the values' units, and 0 before any row was predicted.
    """

    def __init__(self, parents: int, outputs: int, forgetting: float = 1.0) -> None:
        super().__init__()
        if not 0 < forgetting <= 1:
            expected = "expected forgetting in (0, 1]"
            raise ValueError(f"{expected}; got {forgetting}: 1 forgets nothing, 0.95 remembers about 20 rows")
        self.parents, self.outputs, self.forgetting = parents, outputs, forgetting
        columns = (parents + outputs,)
        self.register_fitted(score=(), location=columns, scale=columns)
        self.score: Tensor

    @abstractmethod
    def solve(self, *examples: Tensor) -> None:
        """Fits to rows in chronological order: parents (n, p); values (n, c); the weight of each row in the
        basis (n,); the mask of rows that are predicted and then fitted to, (n,) bool. Other rows are time
        steps alone. ValueError if the basis has fewer than 3 rows.
        """

    @abstractmethod
    def draw(self, count: int, stream: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Samples of weights (count, p, c), intercepts (count, c) and covariances (count, c, c)."""

    @abstractmethod
    def log_predictive(self, parents: Tensor, values: Tensor) -> Tensor:
        """log p(v | pa, all rows), (..., p), (..., c) -> (...), in nats per product of the values' units."""

    def _standardised_examples(self, examples: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The examples, validated, with columns standardised by the basis."""
        parents, values, basis, to_predict = (example.detach() for example in examples)
        if int((basis > 0).sum()) < 3:
            expected = "expected at least 3 rows in the basis"
            raise ValueError(f"{expected}; got {int((basis > 0).sum())}: begin with observations")
        columns = torch.cat([parents, values], -1).to(torch.float64)
        basis_columns = columns[basis > 0]
        self.location, scale = basis_columns.mean(0), basis_columns.std(0)
        self.scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        scaled = (columns - self.location) / self.scale
        inputs, targets = scaled[:, : self.parents], scaled[:, self.parents :]
        return inputs, targets, basis.to(torch.float64), to_predict.bool()

    def _in_units(self, weights: Tensor, start: Tensor, root: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (K, p, c), intercepts (K, c) and covariances (K, c, c) in units, from scaled ones."""
        parent_scale, value_scale = self.scale[: self.parents], self.scale[self.parents :]
        coefficients = weights * value_scale / parent_scale.unsqueeze(-1)
        intercept = (
            self.location[self.parents :] + start * value_scale - self.location[: self.parents] @ coefficients
        )
        root = root * value_scale.unsqueeze(-1)
        return coefficients, intercept, root @ root.mT


LOOSE = 1e-3  # Precision of the intercept, in rows.
STEPS = 512  # Rows that are predicted in one batch.
FAINT = 1e-4  # Mixture components with a weight below this are not sampled.


class ConjugateRegression(BayesianRegression):
    """A mixture, over G priors, of matrix-normal inverse-Wishart posteriors."""

    def __init__(
        self,
        parents: int,  # p, may be 0
        outputs: int,  # c
        forgetting: float = 1.0,  # As `BayesianRegression`
        precisions: Sequence[float] = (1e-3, 1e-2, 0.1, 1.0, 10.0),  # kappas, in rows
        noises: Sequence[float] = (1e-4, 1e-2, 1.0),  # prior noises, relative to the first rows
    ) -> None:
        super().__init__(parents, outputs, forgetting)
        if not precisions or not noises or min(*precisions, *noises) <= 0:
            raise ValueError(
                f"expected positive precisions and noises; got {list(precisions)} and {list(noises)}"
            )
        pairs = [(kappa, noise) for kappa in precisions for noise in noises]
        kappa, noise = (torch.tensor(values, dtype=torch.float64) for values in zip(*pairs, strict=True))
        self.freedom = outputs + 1.0
        loose = torch.full((len(pairs), 1), LOOSE, dtype=torch.float64)
        precision = torch.cat([loose, kappa.unsqueeze(-1).expand(-1, parents)], -1)
        scatter = self.freedom * noise.reshape(-1, 1, 1) * torch.eye(outputs, dtype=torch.float64)
        self.register_buffer("prior_precision", precision, persistent=False)
        self.register_buffer("prior_scatter", scatter, persistent=False)
        count, p, c = len(pairs), parents, outputs
        self.register_fitted(
            posterior_mean=(count, p + 1, c), root=(count, p + 1, p + 1), scatter=(count, c, c), count=(),
            mixture_weights=(count,),
        )  # fmt: skip

    def faults(self) -> list[str]:
        """Sizes, weights that are not probabilities, and scatter matrices that are not positive."""
        faults = super().faults()
        if not faults and bool((self.mixture_weights < 0).any() or self.mixture_weights.sum() <= 0):
            faults.append("mixture_weights: expected numbers of at least 0, some of them above it")
        if not faults and bool(
            (self.scatter.diagonal(dim1=-2, dim2=-1) <= 0).any() or self.count <= -self.freedom
        ):
            faults.append("scatter and count: expected a diagonal above 0, and a count of rows")
        return faults

    def solve(self, *examples: Tensor) -> None:
        """Fits in closed form."""
        parents, values, basis, to_predict = self._standardised_examples(examples)
        rows = torch.cat([torch.ones_like(values[:, :1]), parents, values], -1)
        # z z', z v' and v v' of every row, so that any weighting of rows is one matrix product.
        products = (rows.unsqueeze(-1) * rows.unsqueeze(-2)).flatten(1)
        basis_sums = basis @ products, basis.sum()
        basis_evidence = self._evidence(*basis_sums)
        weight = basis + to_predict
        if self.forgetting == 1:
            sums = weight @ products, weight.sum()
            evidence = self._evidence(*sums)
            # By the chain rule the log predictive densities add up to the increase of the log evidence.
            units = to_predict.sum() * self.scale[self.parents :].log().sum()
            self.score = torch.logsumexp(evidence, 0) - torch.logsumexp(basis_evidence, 0) - units
        else:
            self.score, evidence = self._sequential_scores(
                rows, products, weight, to_predict.nonzero().squeeze(-1), basis_evidence
            )
            weight = weight * self.forgetting ** torch.arange(
                len(rows) - 1, -1, -1, dtype=torch.float64, device=rows.device
            )
            sums = weight @ products, weight.sum()
        self.mixture_weights = torch.softmax(evidence, 0)
        self.posterior_mean, self.root, self.scatter, self.count = self._posterior(*sums)

    def draw(self, count: int, stream: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Samples from the mixture."""
        device, width, inner = self.posterior_mean.device, self.outputs, self.parents + 1
        weights = self.mixture_weights * (self.mixture_weights >= FAINT)
        member = torch.multinomial(weights.cpu(), count, replacement=True, generator=stream)
        lengths = torch.bincount(member, minlength=len(self.mixture_weights)).tolist()
        # Sorted by component while sampling; the original order keeps samples of equations independent.
        original_order = member.argsort(stable=True).argsort().to(device)
        normal = torch.randn(inner + width, count, width, dtype=torch.float64, generator=stream).to(device)
        wishart_root = inverse_wishart_root(
            normal[inner:].transpose(0, 1), self.freedom + float(self.count), stream
        )
        samples, factors = [], []
        for index, (end, length) in enumerate(zip(accumulate(lengths), lengths, strict=True)):
            if length:
                rows = slice(end - length, end)
                factors.append(torch.linalg.cholesky(self.scatter[index]) @ wishart_root[rows])
                inverse = inverse_root(self.root[index]).mT
                deviations = (inverse @ normal[:inner, rows].flatten(1)).reshape(inner, length, width)
                scaled = (
                    deviations * factors[-1][:, :, 0]
                    if width == 1
                    else torch.einsum("ind,ncd->inc", deviations, factors[-1])
                )
                samples.append(self.posterior_mean[index].unsqueeze(1) + scaled)
        coefficients = torch.cat(samples, 1)[:, original_order].transpose(0, 1)
        return self._in_units(coefficients[:, 1:], coefficients[:, 0], torch.cat(factors)[original_order])

    def log_predictive(self, parents: Tensor, values: Tensor) -> Tensor:
        """The mixture's multivariate t."""
        standardised = (torch.cat([parents, values], -1).to(self.scale) - self.location) / self.scale
        rows = torch.cat([torch.ones_like(standardised[..., :1]), standardised], -1)
        densities = self._predictive(
            rows.unsqueeze(-2), self.posterior_mean, self.root, self.scatter, self.count
        )
        return torch.logsumexp(densities + self.mixture_weights.log(), -1)

    def _posterior(self, products: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """M, chol L, Psi and n for each prior, (..., G, ...), from sums (..., q * q) and counts (...)."""
        inner = self.parents + 1
        square = products.reshape(*products.shape[:-1], 1, inner + self.outputs, inner + self.outputs)
        root = torch.linalg.cholesky(square[..., :inner, :inner] + torch.diag_embed(self.prior_precision))
        half = torch.linalg.solve_triangular(
            root, square[..., :inner, inner:].expand(*root.shape[:-1], self.outputs), upper=False
        )
        mean = torch.linalg.solve_triangular(root.mT, half, upper=True)
        return mean, root, self.prior_scatter + square[..., inner:, inner:] - half.mT @ half, count

    def _evidence(self, products: Tensor, count: Tensor) -> Tensor:
        """log p(rows) under each prior, without the columns' units: (G,)."""
        _, root, scatter, _ = self._posterior(products, count)
        half, width = (self.freedom + count) / 2, self.outputs
        fit = width * (
            0.5 * self.prior_precision.log().sum(-1) - root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        )
        noise = self.freedom / 2 * torch.logdet(self.prior_scatter) - half * torch.logdet(scatter)
        gammas = (_multigamma(half, width), _multigamma(half.new_tensor(self.freedom / 2), width))
        return fit + noise + gammas[0] - gammas[1] - count * width / 2 * math.log(math.pi)

    def _predictive(self, rows: Tensor, mean: Tensor, root: Tensor, scatter: Tensor, count: Tensor) -> Tensor:
        """Log density of rows (..., 1, q) under each prior's posterior, in the values' units, (..., G)."""
        inner = self.parents + 1
        inputs, values = rows[..., :inner], rows[..., inner:]
        batch = torch.broadcast_shapes(inputs.shape[:-1], root.shape[:-2])
        if root.ndim == 3:
            # One posterior for all rows: one triangular solve per mixture component, with all rows as
            # right-hand sides.
            flat = inputs.reshape(-1, inner).mT
            whitened = torch.linalg.solve_triangular(root, flat.expand(len(root), *flat.shape), upper=False)
            leverage = whitened.square().sum(-2).mT.reshape(batch)
        else:
            whitened_inputs = torch.linalg.solve_triangular(
                root.expand(*batch, *root.shape[-2:]), inputs.expand(*batch, inner).unsqueeze(-1), upper=False
            )
            leverage = whitened_inputs.square().sum((-2, -1))
        error = (values - torch.einsum("...i,...ic->...c", inputs, mean)).unsqueeze(-1)
        freedom = (self.freedom + count - self.outputs + 1).unsqueeze(-1)
        scale = torch.linalg.cholesky(scatter) * ((1 + leverage) / freedom).sqrt()[..., None, None]
        error = error.expand(*scale.shape[:-1], 1)
        whitened_error = (
            error / scale if self.outputs == 1 else torch.linalg.solve_triangular(scale, error, upper=False)
        )
        distance = whitened_error.square().sum((-2, -1))
        total, width = freedom + self.outputs, self.outputs
        constant = torch.lgamma(total / 2) - torch.lgamma(freedom / 2) - width / 2 * (freedom * math.pi).log()
        log_det = scale.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        units = self.scale[self.parents :].log().sum()
        return constant - log_det - total / 2 * (distance / freedom).log1p() - units

    def _sequential_scores(
        self, rows: Tensor, products: Tensor, weight: Tensor, to_predict: Tensor, basis_evidence: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Predicts one row after the other, with forgetting: the score, and the priors' log weights (G,)."""
        score, log_weights = basis_evidence.new_zeros(()), torch.log_softmax(basis_evidence, 0)
        ages = torch.arange(len(rows), dtype=torch.float64, device=rows.device)
        for batch in to_predict.split(STEPS):
            age = batch.unsqueeze(-1) - 1 - ages
            discounted = (
                torch.where(age >= 0, self.forgetting ** age.clamp_min(0), torch.zeros_like(age)) * weight
            )
            logs = self._predictive(
                rows[batch].unsqueeze(-2), *self._posterior(discounted @ products, discounted.sum(-1))
            )
            # Before row t the priors' log weights are the discounted previous ones plus the discounted log
            # densities of the rows in between.
            steps = ages[: len(batch) + 1]
            lag = steps.unsqueeze(-1) - 1 - steps[:-1]
            discounts = torch.where(lag >= 0, self.forgetting ** lag.clamp_min(0), torch.zeros_like(lag))
            updated = torch.log_softmax(
                self.forgetting ** steps.unsqueeze(-1) * log_weights + discounts @ logs, -1
            )
            score = score + self.forgetting ** (len(rows) - 1 - ages[batch]) @ torch.logsumexp(
                updated[:-1] + logs, -1
            )
            log_weights = updated[-1]
        return score, log_weights


def inverse_wishart_root(normal: Tensor, freedom: float, stream: torch.Generator) -> Tensor:
    """A^-T with A the Bartlett factor of a standard Wishart sample, from standard normals (n, c, c): an
    inverse Wishart sample is F F' with F = chol(Psi) A^-T.
    """
    count, width = normal.shape[:2]
    half = (freedom - torch.arange(width, dtype=torch.float64)) / 2
    squares = 2 * torch._standard_gamma(half.expand(count, -1).contiguous(), generator=stream).to(normal)
    if width == 1:
        return (1 / squares.sqrt()).unsqueeze(-1)
    return inverse_root(torch.tril(normal, -1) + torch.diag_embed(squares.sqrt())).mT


def _multigamma(half: Tensor, width: int) -> Tensor:
    """log Gamma_c(a) without its constant."""
    return torch.stack([torch.lgamma(half - index / 2) for index in range(width)]).sum(0)


GAMMA = 1e-6
SETTLED = 1e-3
MAX_ITERATIONS = 300


class EvidenceRidge(BayesianRegression):
    """Bayesian ridge regressions of c values."""

    def __init__(self, parents: int, outputs: int, forgetting: float = 1.0) -> None:
        super().__init__(parents, outputs, forgetting)
        p, c = parents, outputs
        self.register_fitted(
            posterior_mean=(p, c), spread=(c, p, p), noise=(c,), root=(c, c), centre=(p + c,),
            processed_rows=("n", p + c + 2),
        )  # fmt: skip
        self.processed_rows: Tensor

    def solve(self, *examples: Tensor) -> None:
        """One fit for every predicted row; rows that an earlier call has processed are not repeated."""
        parents, values, basis, to_predict = self._standardised_examples(examples)
        raw = torch.cat([observed.reshape(len(values), -1).to(torch.float64) for observed in examples], -1)
        processed = len(self.processed_rows)
        if processed > len(raw) or not torch.equal(self.processed_rows, raw[:processed]):
            processed = 0
        ages, last = torch.arange(len(values), dtype=torch.float64, device=values.device), len(values) - 1
        score = self.score * self.forgetting ** (len(raw) - processed) if processed else values.new_zeros(())
        for row in to_predict.nonzero().squeeze(-1).tolist():
            if row >= processed:
                weight = (
                    (basis + to_predict) * self.forgetting ** (row - 1 - ages).clamp_min(0) * (ages < row)
                )
                self._fit(parents, values, weight)
                observed = raw[row, : self.parents + self.outputs]
                score = score + self.forgetting ** (last - row) * self.log_predictive(
                    observed[: self.parents], observed[self.parents :]
                )
        self._fit(parents, values, (basis + to_predict) * self.forgetting ** (last - ages))
        self.score, self.processed_rows = score, raw

    def draw(self, count: int, stream: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Samples with the noise treated as known."""
        normal = torch.randn(count, self.parents, self.outputs, dtype=torch.float64, generator=stream).to(
            self.posterior_mean
        )
        weights = self.posterior_mean + torch.einsum("cij,njc->nic", self.spread, normal)
        b = self.centre[self.parents :] - torch.einsum("p,npc->nc", self.centre[: self.parents], weights)
        return self._in_units(weights, b, self.root.expand(count, -1, -1))

    def log_predictive(self, parents: Tensor, values: Tensor) -> Tensor:
        """A normal density."""
        scaled = (torch.cat([parents, values], -1).to(self.scale) - self.location) / self.scale - self.centre
        inputs, targets = scaled[..., : self.parents], scaled[..., self.parents :]
        leverages = torch.einsum("cij,...i->...cj", self.spread, inputs).square().sum(-1)
        covariance = self.root @ self.root.mT + torch.diag_embed(leverages)
        root = torch.linalg.cholesky(covariance)
        residual = (targets - inputs @ self.posterior_mean).unsqueeze(-1)
        error = torch.linalg.solve_triangular(root, residual, upper=False).square().sum((-2, -1))
        log_det = root.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.scale[self.parents :].log().sum()
        return -0.5 * error - log_det - self.outputs / 2 * math.log(2 * math.pi)

    def _fit(self, parents: Tensor, values: Tensor, weight: Tensor) -> None:
        count = weight.sum()
        columns = torch.cat([parents, values], -1)
        self.centre = weight @ columns / count
        weighted = (columns - self.centre) * weight.sqrt().unsqueeze(-1)
        inputs, targets = weighted[:, : self.parents], weighted[:, self.parents :]
        sizes, axes = torch.linalg.eigh(inputs.mT @ inputs)
        sizes, projected = sizes.clamp_min(0.0), axes.mT @ inputs.mT @ targets
        squares = targets.square().sum(0)
        means, roots, noises = [], [], []
        for cross, total in zip(projected.mT, squares, strict=True):
            alpha, prior_precision = 1 / (total / count + 1e-12), total.new_ones(())
            previous = cross.new_zeros(())
            for iteration in range(MAX_ITERATIONS):
                beta = cross / (sizes + prior_precision / alpha)
                residual = (total - 2 * beta @ cross + (sizes * beta.square()).sum()).clamp_min(0.0)
                effective = (alpha * sizes / (prior_precision + alpha * sizes)).sum()
                prior_precision = (effective + 2 * GAMMA) / (beta.square().sum() + 2 * GAMMA)
                # With row weights below one, the total weight may be less than the effective number of
                # parameters; the bound keeps the noise variance positive.
                alpha = ((count - effective).clamp_min(0.1 * count) + 2 * GAMMA) / (residual + 2 * GAMMA)
                if iteration and float((axes @ (previous - beta)).abs().sum()) < SETTLED:
                    break
                previous = beta
            means.append(axes @ (cross / (sizes + prior_precision / alpha)))
            roots.append(axes / (alpha * sizes + prior_precision).sqrt())
            noises.append(1 / alpha)
        self.posterior_mean = torch.stack(means, -1)
        self.spread = torch.stack(roots)
        self.noise = torch.stack(noises)
        residual = targets - inputs @ self.posterior_mean
        shared = residual.mT @ residual
        deviations = shared.diagonal().clamp_min(1e-300).sqrt()
        # Correlations are shrunk slightly, since a correlation of one would leave no density.
        correlation = 0.999 * shared / deviations / deviations.unsqueeze(-1)
        correlation.fill_diagonal_(1.0)
        self.root = self.noise.sqrt().unsqueeze(-1) * torch.linalg.cholesky(correlation)
