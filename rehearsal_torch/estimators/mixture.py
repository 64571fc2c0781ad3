"""One-dimensional Gaussian mixtures, N in one batch, by expectation maximisation.

    p(u) = sum_c w_c N(u; m_c, v_c),

    r_jc ~ w_c N(u_j; m_c, v_c),    w_c = mean_j r_jc,    m_c = sum_j r_jc u_j / sum_j r_jc,
    v_c = max(sum_j r_jc (u_j - m_c)^2 / sum_j r_jc, floor),

starting from the last fit and from two partitions of the sorted values, with the best result kept. The number
of components is given, or minimises BIC = (3 k - 1) log n - 2 log likelihood; never more than one per five
values. Values are standardised noise, so that the floor is in their unit.

Samples are quantiles at evenly spread points, restricted to the range of the observed values plus a margin.

Source: Ren et al. (2025), Sec. 4.1 (Eq. 4 and after) and Fig. 14; Dempster et al. (1977); Schwarz (1978).
"""

import math
from typing import Literal

import torch
from torch import Tensor

from rehearsal_torch.data.part import Sizes, Solved
from rehearsal_torch.data.sizes import bounded

FLOOR = 1e-2
ROWS_PER_COMPONENT = 5
MAX_COMPONENTS = 4
BEYOND = 1.0
STEPS, SMALL = 200, 1e-5
HALVINGS = 48

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
        self.register_fitted("weights", "means", "variances", "lower", "upper")
        self.weights: Tensor
        self.means: Tensor
        self.variances: Tensor

    def sizes(self) -> Sizes:
        """N mixtures of at most k components."""
        return dict.fromkeys(
            ("weights", "means", "variances"), (self.count, self.max_components)
        ) | dict.fromkeys(("lower", "upper"), (self.count,))

    def faults(self) -> list[str]:
        """Sizes, weights below 0 and variances that are not positive."""
        faults = super().faults()
        if not faults and bool((self.weights < 0).any() or (self.variances <= 0).any()):
            faults.append("weights and variances: expected weights of at least 0 and variances above 0")
        return faults

    def solve(self, *examples: Tensor) -> None:
        """Fits to values (n, N) and the mask of those that count, (n, N) bool."""
        values, kept = examples[0].detach().double(), examples[1].bool()
        last = (self.weights, self.means, self.variances) if self.weights.numel() else None
        rows = kept.sum(0)
        allowed = (rows // ROWS_PER_COMPONENT).clamp(1, self.max_components)
        tried = (
            range(1, self.max_components + 1) if self.components == "bic" else sorted(set(allowed.tolist()))
        )
        best = values.new_full((self.count,), -math.inf)
        shape = (self.count, self.max_components)
        chosen = [values.new_zeros(shape), values.new_zeros(shape), values.new_ones(shape)]
        for size in tried:
            likelihood, *parameters = _best_of(values, kept, size, last)
            score = 2 * likelihood - (3 * size - 1) * rows.double().log()
            better = (score > best) & (size <= allowed) if self.components == "bic" else allowed == size
            best = torch.where(better, score, best)
            for held, new in zip(chosen, parameters, strict=True):
                held[better, :size], held[better, size:] = new[better], 0.0 if held is not chosen[2] else 1.0
        self.weights, self.means, self.variances = chosen
        self.lower = torch.where(kept, values, math.inf).amin(0) - BEYOND
        self.upper = torch.where(kept, values, -math.inf).amax(0) + BEYOND

    def log_density(self, values: Tensor) -> Tensor:
        """log p(u), (..., N) -> (..., N)."""
        return log_densities(values, self.weights, self.means, self.variances).logsumexp(-1)

    def cdf(self, values: Tensor) -> Tensor:
        """P(U <= u), (..., N) -> (..., N)."""
        return (
            self.weights * torch.special.ndtr((values.unsqueeze(-1) - self.means) / self.variances.sqrt())
        ).sum(-1)

    def quantile(self, levels: Tensor) -> Tensor:
        """The inverse of `cdf`, (..., N) -> (..., N), within one unit of the observed range; by bisection."""
        low, high = self.lower.expand(levels.shape).clone(), self.upper.expand(levels.shape).clone()
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = self.cdf(middle) < levels
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return (low + high) / 2


class StandardNormals(GaussianMixtures):
    """Noise distributions that are not fitted: N(0, 1) each."""

    def __init__(self, count: int) -> None:
        super().__init__(count, 1)

    def solve(self, *examples: Tensor) -> None:
        """Notes the device alone."""
        ones = torch.ones(self.count, 1, dtype=torch.float64, device=examples[0].device)
        self.weights, self.means, self.variances = ones, 0 * ones, ones.clone()
        self.lower, self.upper = -6.0 * ones[:, 0], 6.0 * ones[:, 0]


def _best_of(
    values: Tensor, kept: Tensor, size: int, last: tuple[Tensor, Tensor, Tensor] | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The best result over the starts: log likelihood (N,), weights, means and variances (N, size)."""
    begin = [_by_quantiles(values, kept, size), _by_distance(values, kept, size)]
    if last is not None and last[0].shape[1] >= size:
        weights, means, variances = (each[:, :size] for each in last)
        weights = weights.clamp_min(1e-3)
        begin.append((weights / weights.sum(-1, keepdim=True), means, variances))
    starts = [torch.stack(each) for each in zip(*begin, strict=True)]
    likelihood, *fits = _climb(values, kept, *starts)
    which = likelihood.argmax(0)
    index = torch.arange(len(which), device=which.device)
    return likelihood[which, index], *(each[which, index] for each in fits)  # type: ignore[return-value]


def _climb(
    values: Tensor, kept: Tensor, weights: Tensor, means: Tensor, variances: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Expectation maximisation from M starts (M, N, K): log likelihoods (M, N) and parameters."""
    values, rows = values[:, None, :], kept.sum(0)
    counted = kept[:, None, :]
    before = torch.full_like(weights[..., 0], -math.inf)
    for step in range(STEPS):
        densities = log_densities(values, weights, means, variances)
        whole = densities.logsumexp(-1)
        likelihood = torch.where(counted, whole, 0.0).sum(0)
        # Testing for convergence costs as much as a step: every fifth is enough.
        if step % 5 == 4:
            if bool((likelihood - before <= SMALL * rows).all()):
                break
            before = likelihood
        share = (densities - whole.unsqueeze(-1)).exp() * counted.unsqueeze(-1)
        total = share.sum(0).clamp_min(1e-12)
        weights = (total / rows.unsqueeze(-1)).clamp_min(1e-12)
        means = (share * values.unsqueeze(-1)).sum(0) / total
        variances = ((share * (values.unsqueeze(-1) - means).square()).sum(0) / total).clamp_min(FLOOR)
    return likelihood, weights, means, variances


def _by_quantiles(values: Tensor, kept: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Components over equal shares of the sorted values, (N, K) each."""
    return _of_groups(values, kept, (_ranks(values, kept) * size).floor().clamp_max(size - 1), size)


def _by_distance(values: Tensor, kept: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """One wide component and narrow ones inside: heavy tails, and peaks within a broad distribution."""
    weights, means, variances = _of_groups(values, kept, torch.zeros_like(values), 1)
    narrow = values.new_tensor([4.0 ** -(index + 0.5) if index else 1.5 for index in range(size)])
    spread = (variances * narrow).clamp_min(FLOOR)
    return weights.expand(-1, size) / size, means.expand(-1, size).clone(), spread


def _ranks(values: Tensor, kept: Tensor) -> Tensor:
    """Ranks among the values that count, in [0, 1), (n, N)."""
    ranks = torch.where(kept, values, math.inf).argsort(0).argsort(0).to(values)
    return ranks / kept.sum(0)


def _of_groups(values: Tensor, kept: Tensor, group: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    share = ((group.unsqueeze(-1) == torch.arange(size, device=values.device)) & kept.unsqueeze(-1)).to(
        values
    )
    total = share.sum(0).clamp_min(1e-12)
    means = (share * values.unsqueeze(-1)).sum(0) / total
    variances = (share * (values.unsqueeze(-1) - means).square()).sum(0) / total
    return total / kept.sum(0).unsqueeze(-1), means, variances.clamp_min(FLOOR)
