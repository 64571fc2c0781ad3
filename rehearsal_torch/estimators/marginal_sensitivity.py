"""Marginal sensitivity model: bounds under a hidden common cause, in closed form, and benchmark strengths.

w is the indicator of a desired outcome, x the context, u the other covariates that are adjusted for, and

    p = P(w = 1 | x, u, a)

the estimand of an adjustment for x and u. It is the effect of setting a only if no further variable
influences both a and w. Let h be such a variable, x, u and h together sufficient, and f the observational
density (or probability) of the action. With

    lambda = f(a | x, u) / f(a | x, u, h),        1 / Gamma <= lambda <= Gamma,

Bayes' rule gives f(h | x, u) = lambda f(h | x, u, a), hence

    P(w = 1 | do(a), x, u) = int P(w = 1 | x, u, h, a) f(h | x, u) dh = E[lambda w | x, u, a],
    E[lambda | x, u, a] = int f(h | x, u) dh = 1.

Let m_1, m_0 be the means of lambda where w is 1 and 0. Then p m_1 + (1 - p) m_0 = 1, both are in [1 / Gamma,
Gamma], and the probability is p m_1 = 1 - (1 - p) m_0. Therefore

    max(p / Gamma, 1 - Gamma (1 - p))  <=  P(w = 1 | do(a), x, u)  <=  min(Gamma p, 1 - (1 - p) / Gamma).

Both ends are attained: any pair m_1, m_0 with these properties belongs to an h that takes two values at a,
one where w = 1 and one where w = 0. Gamma = 1 means that nothing is hidden.

Averages. The lower bound is a maximum of affine functions of p, hence convex, and the upper one concave.
Applied to the average of p over u given x, they still hold (Jensen), but are no longer sharp. They increase
in p: applied to an interval of p, the lower end follows from the lower end and the upper end from the upper.

Several actions that are set together are one action a = (a_1, ..., a_k) with one ratio of joint densities,
within the product of the bounds of each given those before it. Covariates v between a first and a later
action do not change that: with lambda_1 the ratio of a_1 given x, u, and lambda_2 that of a_2 given x, u,
a_1, v,

    P(w = 1 | do(a_1, a_2), x, u) = E_{v | x, u, a_1} E[lambda_1 lambda_2 w | x, u, a_1, v, a_2],

and the mean of lambda_1 lambda_2 under the same law is 1. So the bounds hold for p of the sequential formula
and Gamma = Gamma_1 Gamma_2; they need not be sharp.

Tipping strength. P(w = 1 | x) with nothing altered is observed: confounding of the action does not affect it.
The lower bound falls with Gamma; from a lower end l it meets the baseline b < l at

    Gamma* = max(l / b, (1 - b) / (1 - l)),

infinite if b = 0 or l = 1. If l <= b already, Gamma* = 1. Reported by `surrogates.tipping_strength`.

The model compares densities at the action that is set, and nothing of other actions. For a binary action
Tan (2006) bounds the ratio of odds instead; with e = f(a | x, u) that means e + (1 - e) / Gamma <= lambda <=
e + (1 - e) Gamma, a narrower set, which approaches the one above as e tends to 0. Jesson et al. (2022) bound
the ratio of densities of continuous actions, for outcomes of any kind, and find the ends numerically; for an
indicator they are those above. Marmarelis et al. (2023) bound how fast the ratio changes along the dose.

**The yardstick.** The observed covariates change the density of the action as well, and with them the factor
can be estimated: the strength of covariate c is the smallest s such that

    1 / s <= f(a | u) / f(a | u without c) <= s        for 95 % of the rows.

The density is that of a linear regression with normal errors, a = B u + e, e ~ N(0, Sigma), a (k,) and u (p,)
with a constant. Leaving out c adds to the residuals the part of a that only c explains (Frisch and Waugh):

    e_without = e + r_c b_c,        r_c = residual of c on the other covariates,

so that one factorisation of the Gram matrix serves all covariates. Where c has no influence, b_c is noise of
order 1 / sqrt(n), and the largest of many such covariates would look strong: b_c is multiplied by max(0, 1 -
1 / F), with F its Wald statistic over k (positive-part shrinkage of James and Stein).

Actions that are set one after the other, with covariates in between, are several blocks. The log ratios of
the blocks in which c is a covariate are added, since the joint density is the product of theirs.

The density is linear and normal, whatever the true one is: a covariate that acts on the spread of the action,
or not monotonically, is stronger than stated here. For actions with few values the density is a crude one.

Source: Tan (2006), marginal sensitivity model; Jesson et al. (2022), arXiv 2204.10022, and Baitairian et al.
(2024), arXiv 2411.02231, continuous actions; Marmarelis et al. (2023), arXiv 2204.11206; Frisch and Waugh
(1933); James and Stein (1961); Cinelli and Hazlett (2020), who compare partial R^2 of hidden and observed
covariates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor


def interval_bounds(lower: Tensor, upper: Tensor, strength: Tensor | float) -> tuple[Tensor, Tensor]:
    """The smallest and the largest P(w = 1 | do(a)) that a hidden cause of strength Gamma allows, (...) each,
    for an interval of p (...). ValueError if a probability is outside [0, 1], an interval is empty, or a
    strength is below 1.
    """
    gamma = torch.as_tensor(strength, dtype=lower.dtype, device=lower.device)
    if not bool(((lower >= 0) & (lower <= upper) & (upper <= 1)).all()):
        expected = "expected probabilities in [0, 1] with lower <= upper"
        raise ValueError(f"{expected}; got {lower.flatten()[:4].tolist()} and {upper.flatten()[:4].tolist()}")
    if not bool((gamma >= 1).all()):
        raise ValueError(f"expected strengths of at least 1, 1 being no hidden cause; got {strength}")
    return (
        torch.maximum(lower / gamma, 1 - gamma * (1 - lower)),
        torch.minimum(gamma * upper, 1 - (1 - upper) / gamma),
    )


def tipping_between(lower: Tensor, other: Tensor, less: Tensor | float = 0.0) -> Tensor:
    """The smallest strength, (...), at least 1, at which an action may be no better than another action, both
    biased by a hidden cause: where the lower bound of p (or of the lower end of its interval) meets the upper
    bound of q, `other`; infinite if none suffices.

    Each of the two lines of the one meets each of the two of the other at

        sqrt(p / q),  1 + p - q,  1 / (1 - p + q),  sqrt((1 - q) / (1 - p)),

    of which the largest is the strength. The bounds hold for each action by itself, so that one hidden cause
    may need to be stronger. Where p has to exceed q by s >= 0, `less` (...), they meet at

        2 p / (s + sqrt(s^2 + 4 p q)),  (1 + p - q) / (1 + s),  (1 - s) / (1 - p + q),
        2 (1 - q) / (s + sqrt(s^2 + 4 (1 - p) (1 - q))).
    """
    p, q = _probabilities(lower, other)
    s = torch.as_tensor(less, dtype=p.dtype, device=p.device)
    first = 2 * p / (s + (s**2 + 4 * p * q).sqrt())
    last = 2 * (1 - q) / (s + (s**2 + 4 * (1 - p) * (1 - q)).sqrt())
    meetings = torch.broadcast_tensors(first, (1 + p - q) / (1 + s), (1 - s) / (1 - p + q), last)
    largest = torch.stack(meetings).nan_to_num(nan=1.0, posinf=torch.inf).amax(0)
    return torch.where(p - s <= q, torch.ones_like(p), largest)


def tipping_strength(lower: Tensor, baseline: Tensor) -> Tensor:
    """Gamma* of p (or its lower end) and the baseline P(w = 1 | x), (...), at least 1."""
    p, b = _probabilities(lower, baseline)
    strength = torch.maximum(p / b, (1 - b) / (1 - p))
    return torch.where(p <= b, torch.ones_like(strength), strength)


def _probabilities(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Both probabilities, broadcast to one shape; ValueError where one is not in [0, 1]."""
    for values in (first, second):
        if not bool(((values >= 0) & (values <= 1)).all()):
            beginnings = " and ".join(str(pair.flatten()[:4].tolist()) for pair in (first, second))
            raise ValueError(f"expected probabilities in [0, 1]; got {beginnings}")
    first, second = torch.broadcast_tensors(first, second)
    return first, second


SHARE = 0.95
# Relative to the variances: keeps the factorisations defined for covariates that repeat each other, and for
# actions that the covariates determine.
SMALLEST = 1e-10


@dataclass(frozen=True)
class Assignment:
    """Actions (n, k), in any units, set at one time, and the p named covariates (n, p) adjusted for."""

    actions: Tensor
    covariates: Tensor
    names: tuple[str, ...]

    @property
    def estimable(self) -> bool:
        """Whether there are rows enough for the regression: two more than coefficients and actions."""
        return len(self.actions) >= len(self.names) + self.actions.shape[1] + 3


def strengths(blocks: Sequence[Assignment]) -> dict[str, float]:
    """Covariate to strength, at least 1, strongest first, of blocks in the order in which their actions are
    set, over the same n rows. ValueError if there are too few rows for the regression.
    """
    total: dict[str, Tensor] = {}
    for block in blocks:
        if not block.estimable:
            raise ValueError(
                f"expected at least {len(block.names) + block.actions.shape[1] + 3} rows for "
                f"{len(block.names)} covariates; got {len(block.actions)}"
            )
        for name, ratio in zip(block.names, _log_ratios(block), strict=True):
            total[name] = total[name] + ratio if name in total else ratio
    quantile = partial(torch.quantile, q=SHARE, interpolation="higher")
    strength_of = {name: float(quantile(ratio.abs()).exp()) for name, ratio in total.items()}
    return dict(sorted(strength_of.items(), key=lambda item: -item[1]))


def _log_ratios(block: Assignment) -> Tensor:
    """ln f(a | u) - ln f(a | u without c) of every row, for each covariate c, (p, n)."""
    actions, covariates = _standardised(block.actions), _standardised(block.covariates)
    count, actions_set = actions.shape
    width = covariates.shape[1]
    gram = covariates.mT @ covariates + count * SMALLEST * torch.eye(width, dtype=covariates.dtype)
    precision = torch.cholesky_inverse(torch.linalg.cholesky(gram))
    slopes = precision @ covariates.mT @ actions
    residuals = actions - covariates @ slopes
    freedom = count - width - 1
    # Residual of each covariate on the others, in the columns.
    partial_covariates = covariates @ precision / precision.diagonal()
    full_root, full = _log_density(residuals.unsqueeze(0), freedom)
    scaled = torch.linalg.solve_triangular(full_root[0], slopes.mT, upper=False)
    wald = scaled.square().sum(0) / precision.diagonal() / actions_set
    slopes = slopes * (1 - 1 / wald.clamp_min(1.0)).unsqueeze(-1)
    reduced_residuals = residuals + partial_covariates.mT.unsqueeze(-1) * slopes.unsqueeze(1)
    return full - _log_density(reduced_residuals, freedom + 1)[1] if width else full.new_empty(0, count)


def _log_density(residuals: Tensor, freedom: int) -> tuple[Tensor, Tensor]:
    """Cholesky factor of the covariance of residuals (m, n, k), (m, k, k), and log densities, (m, n)."""
    count, width = residuals.shape[1:]
    covariance = residuals.mT @ residuals / freedom + SMALLEST * torch.eye(width, dtype=residuals.dtype)
    root = torch.linalg.cholesky(covariance)
    whitened = torch.linalg.solve_triangular(root, residuals.mT, upper=False)
    log_determinant = root.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
    return root, -0.5 * whitened.square().sum(-2) - log_determinant.expand(-1, count)


def _standardised(values: Tensor) -> Tensor:
    """Columns with mean 0 and standard deviation 1; constant columns become 0."""
    centred = values.to(torch.float64) - values.to(torch.float64).mean(0)
    spread = centred.square().mean(0).sqrt()
    return centred / torch.where(spread > 0, spread, torch.ones_like(spread))
