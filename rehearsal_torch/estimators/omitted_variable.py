"""Omitted-variable bias of the effects of doses, in terms of partial R^2.

A regression of a next state y on doses d (p,) and controls x estimates E[y | x, d]. Let h be a hidden cause,
linear in both: y = ... + g h, and given x the regression of h on d is linear. The estimated effect of
changing the doses by c then contains the bias g E[h | x, d + c] - g E[h | x, d] = g b'c, with b = S^-1 Cov(d,
h) and S the covariance of the doses given x. By Cauchy and Schwarz,

    |bias|  <=  sqrt(R2_y R2_d / (1 - R2_d))  *  sd(y | x, d)  *  sqrt(c' S^-1 c),

where R2_d is the partial R^2 of h with the doses given x, and R2_y that of y with h given x and d. For one
dose it is the bias of Cinelli and Hazlett times the change; sd(y | x, d) sqrt(c' S^-1 c) is the product of
the standard deviations of the error and of the Riesz representer of the change (Chernozhukov et al.). With
equal shares rho of both, the first factor is rho / sqrt(1 - rho).

An observed covariate has two such shares as well, given the other covariates; `equal_strength` gives the rho
of a hidden cause with the same bias factor, by which `objectives.sequence_sensitivity` ranks covariates.

Source: Cinelli and Hazlett (2020), Sec. 3-4 (one treatment); Chernozhukov, Cinelli, Newey, Sharma and
Syrgkanis (2022), Long story short, arXiv 2112.13398 (linear functionals); the form for several doses is
derived above.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.non_finite import alike

# The residual variance of a column, relative to its variance, below which it counts as zero.
SMALLEST = 1e-8


def quadratic(features: Tensor) -> Tensor:
    """1, the features and their products, (n, f) -> (n, 1 + f + f (f + 1) / 2)."""
    first, second = torch.triu_indices(features.shape[1], features.shape[1], device=features.device)
    ones = torch.ones_like(features[:, :1])
    return torch.cat([ones, features, features[:, first] * features[:, second]], -1)


def bias_factor(strength: Tensor) -> Tensor:
    """rho / sqrt(1 - rho), (...) -> (...), of strengths in [0, 1)."""
    return strength / (1 - strength).sqrt()


def equal_strength(outcome: Tensor, treatment: Tensor) -> Tensor:
    """The rho with the bias factor of two partial R^2, (...), (...) -> (...) in [0, 1]."""
    square = outcome * treatment / (1 - treatment).clamp_min(1e-12)
    # The root of rho^2 + square rho - square = 0, without cancellation.
    return 2 * square / (square + (square.square() + 4 * square).sqrt()).clamp_min(1e-300)


@dataclass(frozen=True)
class Strength:
    """The partial R^2 of one observed covariate."""

    covariate: str  # Its name
    doses: float  # With the doses, given the other covariates
    state: str  # The outcome on which it could bias effects most
    explained: float  # The partial R^2 of that outcome with it, given the other covariates and the doses


def precision(doses: Tensor, controls: Tensor) -> Tensor:
    """S^-1 of doses (n, p) given a quadratic of controls (n, f), (p, p); zero without residual variance."""
    design = quadratic(controls)
    covariance = _residual_gram(torch.cat([doses, design], -1), doses.shape[1]) / len(doses)
    return torch.linalg.pinv(covariance, hermitian=True, rtol=SMALLEST)


def strongest(
    doses: Tensor, covariates: Tensor, outcomes: Tensor, names: Sequence[str], states: Sequence[str]
) -> Strength | None:
    """The covariate that could bias effects most if hidden, in linear regressions of outcomes (n, D) on doses
    (n, p) and covariates (n, f); None if no covariate varies given the others. Outcomes may be NaN.
    """
    ones = torch.ones_like(doses[:, :1])
    count, groups = doses.shape[1], alike(~outcomes.isnan())
    ranked: list[tuple[float, Strength]] = []
    variance = covariates.var(0, correction=0) * len(covariates)
    for index, name in enumerate(names):
        covariate = covariates[:, index : index + 1]
        others = torch.cat([ones, covariates[:, :index], covariates[:, index + 1 :]], -1)
        dose_gram = _residual_gram(torch.cat([covariate, doses, others], -1), 1 + count)
        if not float(dose_gram[0, 0]) > SMALLEST * float(variance[index]):
            continue
        cross = dose_gram[0, 1:]
        explained = cross @ torch.linalg.pinv(dose_gram[1:, 1:], hermitian=True, rtol=SMALLEST) @ cross
        treatment = (explained / dose_gram[0, 0]).clamp(0.0, 1.0)
        outcome = outcomes.new_zeros(outcomes.shape[1])
        for indices, rows in groups:
            parts = torch.cat([covariate, outcomes[:, indices], others, doses], -1)
            outcome_gram = _residual_gram(parts[rows], 1 + len(indices))
            spread = (outcome_gram[0, 0] * outcome_gram.diagonal()[1:]).clamp_min(1e-300)
            outcome[indices] = (outcome_gram[0, 1:].square() / spread).clamp(0.0, 1.0)
        state = int(outcome.argmax())
        rank = float(equal_strength(outcome[state], treatment))
        ranked.append((rank, Strength(name, float(treatment), states[state], float(outcome[state]))))
    return max(ranked, key=lambda pair: pair[0])[1] if ranked else None


def _residual_gram(columns: Tensor, count: int) -> Tensor:
    """The Gram matrix of the first columns after the projection on the others, (n, m) -> (count, count)."""
    scale = columns.square().sum(0).sqrt().clamp_min(1e-300)
    unit = columns / scale
    gram = unit.mT @ unit
    inverse = torch.linalg.pinv(gram[count:, count:], hermitian=True, rtol=1e-10)
    residual = gram[:count, :count] - gram[:count, count:] @ inverse @ gram[count:, :count]
    return residual * scale[:count] * scale[:count].unsqueeze(-1)
