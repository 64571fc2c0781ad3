"""How strongly each observed covariate drives an action: the yardstick for a hidden common cause.

A hidden cause of strength Gamma changes the density of the action by a factor within [1 / Gamma, Gamma]
(`estimators.marginal_sensitivity`). The observed covariates do the same, and with them the factor can be
estimated: the strength of covariate c is the smallest s such that

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

Units: none; the strengths do not depend on the units of actions and covariates.

Source: Frisch and Waugh (1933); James and Stein (1961); the comparison of a hidden cause with observed
covariates follows Cinelli and Hazlett (2020), who compare partial R^2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

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
    """Covariate to strength, at least 1, strongest first; empty without covariates. The blocks are in the
    order in which their actions are set, over the same n rows.

    Raises:
        ValueError: if there are too few rows for the regression.
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
    strength_of = {
        name: _exp(float(torch.quantile(ratio.abs(), SHARE, interpolation="higher")))
        for name, ratio in total.items()
    }
    return dict(sorted(strength_of.items(), key=lambda item: -item[1]))


def _log_ratios(block: Assignment) -> Tensor:
    """ln f(a | u) - ln f(a | u without c) of every row, for each covariate c, (p, n)."""
    actions, covariates = _standardised(block.actions), _standardised(block.covariates)
    count, sets = actions.shape
    width = covariates.shape[1]
    gram = covariates.mT @ covariates + count * SMALLEST * torch.eye(width, dtype=covariates.dtype)
    precision = torch.cholesky_inverse(torch.linalg.cholesky(gram))
    slopes = precision @ covariates.mT @ actions
    residuals = actions - covariates @ slopes
    free = count - width - 1
    # Residual of each covariate on the others, in the columns.
    only = covariates @ precision / precision.diagonal()
    full_root, full = _log_density(residuals.unsqueeze(0), free)
    scaled = torch.linalg.solve_triangular(full_root[0], slopes.mT, upper=False)
    wald = scaled.square().sum(0) / precision.diagonal() / sets
    slopes = slopes * (1 - 1 / wald.clamp_min(1.0)).unsqueeze(-1)
    without = residuals + only.mT.unsqueeze(-1) * slopes.unsqueeze(1)
    return full - _log_density(without, free + 1)[1] if width else full.new_empty(0, count)


def _log_density(residuals: Tensor, free: int) -> tuple[Tensor, Tensor]:
    """Cholesky factor of the covariance of residuals (m, n, k), (m, k, k), and log densities, (m, n)."""
    count, sets = residuals.shape[1:]
    covariance = residuals.mT @ residuals / free + SMALLEST * torch.eye(sets, dtype=residuals.dtype)
    root = torch.linalg.cholesky(covariance)
    white = torch.linalg.solve_triangular(root, residuals.mT, upper=False)
    level = root.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
    return root, -0.5 * white.square().sum(-2) - level.expand(-1, count)


def _standardised(values: Tensor) -> Tensor:
    """Columns with mean 0 and standard deviation 1; constant columns become 0."""
    centred = values.to(torch.float64) - values.to(torch.float64).mean(0)
    spread = centred.square().mean(0).sqrt()
    return centred / torch.where(spread > 0, spread, torch.ones_like(spread))


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
