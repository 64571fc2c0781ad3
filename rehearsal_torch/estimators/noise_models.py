"""Noise models of Gaussian-process regressions: Gaussian mixtures, and heteroskedastic scales.

**Under a mixture.**

    x_i = f(w_i) + s(w_i) u_i,        f ~ GP,        u_i ~ sum_c p_c N(m_c, v_c),        s known.

With well-separated components the component of each noise value is identified, and f is as certain as under
noise of the components' widths alone. With q(f) = N(mu, tau^2) at the rows and r_ic the probability that row
i belongs to component c, expectation maximisation alternates

    r_ic   ~  p_c N(e_i; m_c, v_c) exp(-t_i^2 / 2 v_c),        e_i = (x_i - mu_i) / s_i,    t_i = tau_i / s_i,
    p, m, v   the moments of e under r, t^2 added to the squares,
    q(f)      a regression with targets x_i - s_i sum_c r_ic m_c / v_c / g_i and noise variances s_i^2 / g_i,
    g_i = sum_c r_ic / v_c,

each of which increases one lower bound of the evidence; between rounds the length-scales are optimised as
well. The mixture is adopted for a node only if it has at least 40 rows and more than hardly any noise, if the
leave-one-out density of its rows is more than 3 nats higher than under normal noise with a mixture fitted
afterwards, and if that noise does not appear to depend on the inputs: a scale that s does not capture would
be mistaken for components. Used by `surrogates.network`.

**A scale that depends on the inputs**, where the data support it. Given leave-one-out residuals r_i and
variances v_i of regressions with noise variance v, a second process learns

    h(w) = E[log r^2 | w] + 1.2704        (a log chi-square of one degree of freedom has the mean -1.2704),

and, with its own leave-one-out predictions h_i, the noise variance at row i is modelled as k v exp(rho h_i),
so that the row's predictive variance is

    q_i = max(v_i - v, 0) + k v exp(rho h_i),        k such that mean_i r_i^2 / q_i = 1.

rho is the one of 0, 1/4, 1/2, 3/4, 1 that maximises sum_i log N(r_i; 0, q_i), and 0 unless the gain is more
than 2 nats: a node with homoskedastic noise keeps it. So does a node with hardly any noise, v at most 1e-3 of
its variance: its residuals are mostly the epistemic error of the mean, and where the mean has a large
gradient, the error from too few rows looks like noise.

**Mixtures** in one dimension, N in one batch, by expectation maximisation:

    p(u) = sum_c w_c N(u; m_c, v_c),

    r_jc ~ w_c N(u_j; m_c, v_c),    w_c = mean_j r_jc,    m_c = sum_j r_jc u_j / sum_j r_jc,
    v_c = max(sum_j r_jc (u_j - m_c)^2 / sum_j r_jc, floor),

starting from the last fit and from two partitions of the sorted values, with the best result kept. The number
of components is given, or minimises BIC = (3 k - 1) log n - 2 log likelihood; never more than one per five
values. Values are standardised noise, so that the floor is in their unit. Samples are quantiles at evenly
spread points, restricted to the range of the observed values plus a margin.

Source: Kuss (2006), Sec. 5 (Gaussian processes with mixtures as noise); Goldberg et al. (1998) and Kersting
et al. (2007) (a second process on log residuals); Rasmussen and Williams (2006), Eq. 5.10-5.12
(leave-one-out); Ren et al. (2025), Sec. 4.1, Thm. 4.1 (sigma_phi must match f_b), Eq. 6 and Fig. 14; Dempster
et al. (1977); Schwarz (1978).
"""

import math
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from rehearsal_torch.data.size_limits import bounded
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.estimators.gaussian_process import GaussianProcesses, SolvedProcesses
from rehearsal_torch.estimators.gp_kernel import Learnt, Rows
from rehearsal_torch.estimators.gp_posterior import HyperParameters, maximise
from rehearsal_torch.estimators.hsic import independent_probability
from rehearsal_torch.estimators.inducing_points import learnt

LOG_CHI_SQUARE = 1.2704
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
VARYING_MARGIN = 2.0
# A tenth of a per cent of the node's variance.
MIN_NOISE = 1e-3
TINY = 1e-6
HALVINGS = 50
WIDEST = 12.0


class InputDependentNoise(Solved):
    """Variances of N noises, s(w)^2 = level * exp(rho h(w)): they vary with w if that gains enough."""

    def __init__(self, widths: list[int], margin: float = VARYING_MARGIN) -> None:
        super().__init__()
        self.margin = margin
        self.processes = SolvedProcesses(widths)
        count = len(widths)
        self.register_fitted(rho=(count,), level=(count,), gain=(count,))

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, N, p), leave-one-out residuals and variances, noises and kept rows, (n, N)."""
        inputs, residuals, variances, noises, kept = examples
        rows = kept.sum(0)
        squares = residuals.square()
        mean_square = (squares * kept).sum(0) / rows
        log_squares = (squares + TINY * mean_square).log() + LOG_CHI_SQUARE
        centre = torch.where(kept, log_squares, 0.0).sum(0) / rows
        spread = (torch.where(kept, log_squares - centre, 0.0).square().sum(0) / (rows - 1)).sqrt()
        standardised = (log_squares - centre) / spread
        noisy = noises[0] > MIN_NOISE
        self.processes.solve(inputs, standardised, kept, noisy.expand(kept.shape))
        residual, _ = self.processes.factors().left_out()
        predicted = (standardised - residual.mT) * spread  # h_i, up to a constant
        latent = (variances - noises).clamp_min(0)
        scores = []
        for share in SHARES:
            shape = noises * _shape(share * predicted, kept)
            q = latent + _calibrated(squares, latent, shape, kept) * shape
            scores.append(
                torch.where(kept, -0.5 * (squares / q + q.log() + math.log(2 * math.pi)), 0.0).sum(0)
            )
        score = torch.stack(scores)
        best = score.argmax(0)
        self.gain = score.amax(0) - score[0]
        best = torch.where((self.gain > self.margin) & noisy, best, 0)
        shares = torch.tensor(SHARES, dtype=score.dtype, device=score.device)[best]
        self.rho = shares * spread
        self.level = noises[0]
        # The level is calibrated with the in-sample shape, which is the one used in predictions.
        level = self.level * _calibrated(squares, latent, self.at(inputs), kept)
        self.level = torch.where(best > 0, level, self.level)

    @property
    def varies(self) -> Tensor:
        """The mask of noises that depend on the inputs, (N,) bool."""
        return self.rho > 0

    def at(self, inputs: Tensor) -> Tensor:
        """s(w)^2 of inputs (n, N, p), (n, N)."""
        log_shapes = [
            posterior.posterior_mean(inputs[:, index, : posterior.scales.numel()])
            for index, posterior in enumerate(self.processes.posteriors())
        ]
        return self.level * (self.rho * torch.stack(log_shapes, -1)).exp()


def _shape(exponents: Tensor, kept: Tensor) -> Tensor:
    """exp of exponents (n, N), normalised to mean one over the kept rows."""
    mean = torch.where(kept, exponents, 0.0).sum(0) / kept.sum(0)
    unnormalised = (exponents - mean).clamp(-WIDEST, WIDEST).exp()
    return unnormalised / (torch.where(kept, unnormalised, 0.0).sum(0) / kept.sum(0))


def _calibrated(squares: Tensor, latent: Tensor, noises: Tensor, kept: Tensor) -> Tensor:
    """k with mean r^2 / (latent + k noise) = 1, (N,); the mean is decreasing in k: bisection of log k."""
    low, high = torch.full_like(squares[0], math.log(1e-3)), torch.full_like(squares[0], math.log(1e3))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        ratio = torch.where(kept, squares / (latent + middle.exp() * noises), 0.0).sum(0) / kept.sum(0)
        low, high = torch.where(ratio > 1, middle, low), torch.where(ratio > 1, high, middle)
    return ((low + high) / 2).exp()


FLOOR = 1e-2
ROWS_PER_COMPONENT = 5
MAX_COMPONENTS = 4
BEYOND = 1.0
STEPS, SMALL = 200, 1e-5
QUANTILE_HALVINGS = 48

Components = int | Literal["bic"]


def log_densities(values: Tensor, weights: Tensor, means: Tensor, variances: Tensor) -> Tensor:
    """log (w_c N(u; m_c, v_c)) of values (..., N), (..., N, K); -inf for a component of weight 0."""
    squares = (values.unsqueeze(-1) - means).square() / variances
    return weights.log() - 0.5 * (squares + variances.log() + math.log(2 * math.pi))


class GaussianMixtures(Solved):
    """The distributions of N noises, with k components each, or as many as "bic" selects."""

    def __init__(self, count: int, components: Components = 2) -> None:
        super().__init__()
        if components != "bic" and (
            isinstance(components, bool) or not isinstance(components, int) or components < 1
        ):
            raise ValueError(f"expected components of at least 1, or bic; got {components!r}")
        if components != "bic":
            bounded("components", components, 1000)
        self.count, self.components = count, components
        self.max_components = MAX_COMPONENTS if components == "bic" else int(components)
        size = count, self.max_components
        self.register_fitted(weights=size, means=size, variances=size, lower=(count,), upper=(count,))
        self.weights: Tensor
        self.means: Tensor
        self.variances: Tensor

    def faults(self) -> list[str]:
        """Inconsistent sizes, weights below 0 and variances that are not positive."""
        faults = super().faults()
        if not faults and bool((self.weights < 0).any() or (self.variances <= 0).any()):
            faults.append("weights and variances: expected weights of at least 0 and variances above 0")
        return faults

    def solve(self, *examples: Tensor) -> None:
        """Fits to values (n, N) and the mask of kept ones, (n, N) bool."""
        values, kept = examples[0].detach().double(), examples[1].bool()
        last = (self.weights, self.means, self.variances) if self.weights.numel() else None
        rows = kept.sum(0)
        allowed = (rows // ROWS_PER_COMPONENT).clamp(1, self.max_components)
        sizes = (
            range(1, self.max_components + 1) if self.components == "bic" else sorted(set(allowed.tolist()))
        )
        best_score = values.new_full((self.count,), -math.inf)
        shape = (self.count, self.max_components)
        parameters = [values.new_zeros(shape), values.new_zeros(shape), values.new_ones(shape)]
        for size in sizes:
            likelihood, *candidates = _best_start(values, kept, size, last)
            score = 2 * likelihood - (3 * size - 1) * rows.double().log()
            better = (score > best_score) & (size <= allowed) if self.components == "bic" else allowed == size
            best_score = torch.where(better, score, best_score)
            for old, new in zip(parameters, candidates, strict=True):
                old[better, :size], old[better, size:] = new[better], 0.0 if old is not parameters[2] else 1.0
        self.weights, self.means, self.variances = parameters
        self.lower = torch.where(kept, values, math.inf).amin(0) - BEYOND
        self.upper = torch.where(kept, values, -math.inf).amax(0) + BEYOND

    def cdf(self, values: Tensor) -> Tensor:
        """P(U <= u), (..., N) -> (..., N)."""
        return (
            self.weights * torch.special.ndtr((values.unsqueeze(-1) - self.means) / self.variances.sqrt())
        ).sum(-1)

    def quantile(self, levels: Tensor) -> Tensor:
        """The inverse of `cdf`, (..., N) -> (..., N), within one unit of the observed range; by bisection."""
        low, high = self.lower.expand(levels.shape).clone(), self.upper.expand(levels.shape).clone()
        for _ in range(QUANTILE_HALVINGS):
            middle = (low + high) / 2
            below = self.cdf(middle) < levels
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return (low + high) / 2


class StandardNormals(GaussianMixtures):
    """Noise distributions that are not fitted: N(0, 1) each."""

    def __init__(self, count: int) -> None:
        super().__init__(count, 1)

    def solve(self, *examples: Tensor) -> None:
        """Moves to the device of the values."""
        ones = torch.ones(self.count, 1, dtype=torch.float64, device=examples[0].device)
        self.weights, self.means, self.variances = ones, 0 * ones, ones.clone()
        self.lower, self.upper = -6.0 * ones[:, 0], 6.0 * ones[:, 0]


def _best_start(
    values: Tensor, kept: Tensor, size: int, last: tuple[Tensor, Tensor, Tensor] | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The best result over the starts: log likelihood (N,), weights, means and variances (N, size)."""
    candidates = [_by_quantiles(values, kept, size), _by_distance(values, kept, size)]
    if last is not None and last[0].shape[1] >= size:
        weights, means, variances = (parameter[:, :size] for parameter in last)
        weights = weights.clamp_min(1e-3)
        candidates.append((weights / weights.sum(-1, keepdim=True), means, variances))
    starts = [torch.stack(parameter) for parameter in zip(*candidates, strict=True)]
    likelihood, *fits = _expectation_maximisation(values, kept, *starts)
    best = likelihood.argmax(0)
    columns = torch.arange(len(best), device=best.device)
    return likelihood[best, columns], *(fit[best, columns] for fit in fits)  # type: ignore[return-value]


def _expectation_maximisation(
    values: Tensor, kept: Tensor, weights: Tensor, means: Tensor, variances: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Expectation maximisation from M starts (M, N, K): log likelihoods (M, N) and parameters."""
    values, rows = values[:, None, :], kept.sum(0)
    mask = kept[:, None, :]
    previous = torch.full_like(weights[..., 0], -math.inf)
    for step in range(STEPS):
        densities = log_densities(values, weights, means, variances)
        log_density = densities.logsumexp(-1)
        likelihood = torch.where(mask, log_density, 0.0).sum(0)
        # Testing for convergence costs as much as a step: every fifth is enough.
        if step % 5 == 4:
            if bool((likelihood - previous <= SMALL * rows).all()):
                break
            previous = likelihood
        r = (densities - log_density.unsqueeze(-1)).exp() * mask.unsqueeze(-1)
        total, means, variances = _weighted_moments(values, r)
        weights = (total / rows.unsqueeze(-1)).clamp_min(1e-12)
    return likelihood, weights, means, variances


def _weighted_moments(values: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of responsibilities r (n, ..., K), and means and variances of values (n, ...) under them."""
    total = r.sum(0).clamp_min(1e-12)
    means = (r * values.unsqueeze(-1)).sum(0) / total
    variances = ((r * (values.unsqueeze(-1) - means).square()).sum(0) / total).clamp_min(FLOOR)
    return total, means, variances


def _by_quantiles(values: Tensor, kept: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Components over equal parts of the sorted values, (N, K) each."""
    ranks = torch.where(kept, values, math.inf).argsort(0).argsort(0).to(values) / kept.sum(0)
    return _group_moments(values, kept, (ranks * size).floor().clamp_max(size - 1), size)


def _by_distance(values: Tensor, kept: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """One wide component and narrow ones inside: heavy tails, and peaks within a broad distribution."""
    weights, means, variances = _group_moments(values, kept, torch.zeros_like(values), 1)
    narrow = values.new_tensor([4.0 ** -(index + 0.5) if index else 1.5 for index in range(size)])
    spread = (variances * narrow).clamp_min(FLOOR)
    return weights.expand(-1, size) / size, means.expand(-1, size).clone(), spread


def _group_moments(values: Tensor, kept: Tensor, group: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    member = (group.unsqueeze(-1) == torch.arange(size, device=values.device)) & kept.unsqueeze(-1)
    total, means, variances = _weighted_moments(values, member.to(values))
    return total / kept.sum(0).unsqueeze(-1), means, variances


MIN_ROWS, MARGIN, INDEPENDENT = 40, 3.0, 0.3
TURNS, TURN_STEPS = 3, 15


class MixtureRegression(GaussianProcesses, Solved):
    """Regressions with the targets and noise variances of the last round; nodes without gain keep normal
    noise.

    State: `values`, the observed values; `scales`, s at the rows; the mixtures; and `noise_mean` and
    `noise_std`, the moments of u, so that (x - f - s noise_mean) / (s noise_std) is standardised.
    """

    def __init__(self, widths: list[int]) -> None:
        super().__init__(widths)
        rows, mixture, node = ((len(widths), *rest) for rest in (("n",), ("k",), ()))
        self.register_fitted(
            values=rows, scales=rows, weights=mixture, means=mixture, variances=mixture, noise_mean=node,
            noise_std=node, gain=node,
        )  # fmt: skip

    def solve(self, *examples: Tensor) -> None:
        """Fits to the arguments of `hold`, lengths (n, N, p), mixtures (n, N, 3, K), and noise (n, N)."""
        inputs, values, kept, variances, lengths, mixtures, noise = examples
        self.adopt(HyperParameters(lengths[0], torch.zeros_like(self.log_noises)))
        rows = self.hold(inputs, values, kept, variances)
        self.values, self.scales = rows.targets.clone(), rows.ratios.sqrt()
        self.weights, self.means, self.variances = (parameter.clone() for parameter in mixtures[0].unbind(-2))
        count = len(self.widths)
        self.noise_mean, self.noise_std, self.gain = (
            torch.full((count,), value, dtype=torch.float64, device=values.device)
            for value in (0.0, 1.0, 0.0)
        )
        several = (self.weights > 0).sum(-1) > 1
        noisy = (rows.ratios * rows.kept).sum(-1) / rows.counts > MIN_NOISE
        indices = (several & noisy & (rows.counts >= MIN_ROWS) & rows.used.any(-1)).nonzero()[:, 0]
        indices = indices[
            independent_probability(noise.mT[indices], rows.inputs[indices], rows.kept[indices]) > INDEPENDENT
        ]
        if not len(indices):
            return
        rows = rows.only(indices)
        few = rows.few()
        normal = self._density(few, indices)
        pseudo, components, log_lengths = _em_rounds(few, *self._mixture(indices))
        factored = learnt(pseudo, log_lengths, torch.zeros_like(normal))
        mixed = _left_out_density(pseudo, factored, few.targets, few.ratios.sqrt(), components)
        self.gain[indices] = mixed - normal
        if few is not rows:
            pseudo = _em_rounds(rows, components, log_lengths, learn=False)[0]
        self._adopt_mixture(indices, mixed - normal > MARGIN, pseudo, components, log_lengths)

    @property
    def adopted(self) -> Tensor:
        """The mask of regressions that adopted a mixture, (N,) bool."""
        return self.gain > MARGIN

    def again(self) -> None:
        """Recomputes targets and noise variances of the rows stored by `hold`; mixtures stay."""
        self.values, self.scales = self.targets.clone(), self.ratios.sqrt()
        indices = self.adopted.nonzero()[:, 0]
        if len(indices):
            refitted = _em_rounds(self.rows.only(indices), *self._mixture(indices), learn=False)
            self._adopt_mixture(indices, torch.ones_like(indices, dtype=torch.bool), *refitted)

    def _mixture(self, indices: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
        """The mixture (M, K) each, and log l (M, p)."""
        mixture = self.weights[indices], self.means[indices], self.variances[indices]
        return mixture, self.log_lengths[indices]

    def left_out_residuals(self) -> tuple[Tensor, Tensor]:
        """Leave-one-out residuals, of the observed values under a mixture, and their deviations."""
        residual, std = super().left_out_residuals()
        epistemic = (std.square() - self.ratios).clamp_min(0)
        std_of_observed = (epistemic + (self.scales * self.noise_std.unsqueeze(-1)).square()).sqrt()
        adopted = self.adopted.unsqueeze(-1)
        observed = self._observed_residuals(residual)
        return torch.where(adopted, observed, residual), torch.where(adopted, std_of_observed, std)

    def in_sample_residuals(self) -> tuple[Tensor, Tensor, Tensor]:
        """`GaussianProcesses.in_sample_residuals`, for the observed values."""
        residual, _, epistemic = super().in_sample_residuals()
        return self._observed_residuals(residual), self.scales * self.noise_std.unsqueeze(-1), epistemic

    def _observed_residuals(self, residual: Tensor) -> Tensor:
        # The mean is the target less its residual.
        means = self.targets - residual
        return (self.values - means - self.scales * self.noise_mean.unsqueeze(-1)) * self.rows.kept

    def _density(self, rows: Rows, indices: Tensor) -> Tensor:
        """Leave-one-out log densities under normal noise with the mixture fitted afterwards, (M,)."""
        residual, variance = learnt(rows, self.log_lengths[indices], self.log_noises[indices]).left_out()
        components = [parameter.unsqueeze(1) for parameter in self._mixture(indices)[0]]
        density = log_densities(residual / variance.sqrt(), *components).logsumexp(-1) - 0.5 * variance.log()
        return (density * rows.kept).sum(-1)

    def _adopt_mixture(
        self,
        indices: Tensor,
        mask: Tensor,
        pseudo_rows: Rows,
        components: tuple[Tensor, Tensor, Tensor],
        log_lengths: Tensor,
    ) -> None:
        adopted = indices[mask]
        mean = (components[0] * components[1]).sum(-1)
        spread = ((components[0] * (components[2] + components[1].square())).sum(-1) - mean.square()).sqrt()
        for target, values in (
            (self.targets, pseudo_rows.targets),
            (self.ratios, pseudo_rows.ratios),
            (self.log_lengths, log_lengths),
            (self.weights, components[0]),
            (self.means, components[1]),
            (self.variances, components[2]),
            (self.noise_mean, mean),
            (self.noise_std, spread),
        ):
            target[adopted] = values[mask]


def _em_rounds(
    rows: Rows, components: tuple[Tensor, Tensor, Tensor], log_lengths: Tensor, learn: bool = True
) -> tuple[Rows, tuple[Tensor, Tensor, Tensor], Tensor]:
    """Expectation maximisation from a mixture and log l, of rows with the observed values as targets and
    noise variances s^2: the last pseudo-regression, the mixture (M, K) each, and log l.
    """
    values, scales = rows.targets, rows.ratios.sqrt()
    squares, log_noises = scales.square(), torch.zeros_like(log_lengths[:, 0])
    factored = learnt(rows, log_lengths, log_noises)
    rounds = TURNS if learn else 1
    for number in range(rounds):
        for _ in range(TURN_STEPS):
            residual, variance = factored.in_sample()
            noise, variance = (values - (rows.targets - residual)) / scales, variance / squares
            r = _responsibilities(noise, variance, components) * rows.kept.unsqueeze(-1)
            components = _moments(noise, variance, r) if learn else components
            total_precision = (r / components[2].unsqueeze(1)).sum(-1).clamp_min(1e-12)
            offset = (r * (components[1] / components[2]).unsqueeze(1)).sum(-1) / total_precision
            rows = replace(
                rows,
                targets=(values - scales * offset) * rows.kept,
                ratios=torch.where(rows.kept, squares / total_precision, rows.ratios),
            )
            factored = learnt(rows, log_lengths, log_noises)
        if learn and number < rounds - 1:
            log_lengths = maximise(
                rows, [HyperParameters(log_lengths, log_noises)], free_noise=False
            ).log_lengths
            factored = learnt(rows, log_lengths, log_noises)
    return rows, components, log_lengths


def _responsibilities(noise: Tensor, variance: Tensor, components: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """r, (M, n, K)."""
    weights, means, variances = (parameter.unsqueeze(1) for parameter in components)
    return (
        log_densities(noise, weights, means, variances) - 0.5 * variance.unsqueeze(-1) / variances
    ).softmax(-1)


def _moments(noise: Tensor, variance: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """p, m and v, (M, K) each."""
    total = r.sum(1).clamp_min(1e-12)
    means = (r * noise.unsqueeze(-1)).sum(1) / total
    squares = (noise.unsqueeze(-1) - means.unsqueeze(1)).square() + variance.unsqueeze(-1)
    return total / total.sum(-1, keepdim=True), means, ((r * squares).sum(1) / total).clamp_min(FLOOR)


def _left_out_density(
    rows: Rows, factored: Learnt, values: Tensor, scales: Tensor, components: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Leave-one-out log densities of the observed values under the mixture, (M,)."""
    residual, variance = factored.left_out()
    weights, means, spreads = (parameter.unsqueeze(1) for parameter in components)
    variances = (variance - rows.ratios).clamp_min(0).unsqueeze(-1) + scales.square().unsqueeze(-1) * spreads
    deviation = (values - (rows.targets - residual)).unsqueeze(-1) - scales.unsqueeze(-1) * means
    terms = weights.log() - 0.5 * (deviation.square() / variances + variances.log() + math.log(2 * math.pi))
    return (terms.logsumexp(-1) * rows.kept).sum(-1)
