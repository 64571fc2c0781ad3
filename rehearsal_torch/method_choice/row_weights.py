"""Weights under which observed rows show what setting an action brings.

A row had action a, context x and covariates u. Where u drives both action and outcome, rows with an action
are not what setting it would bring: their u is unusual. With the stabilised weights

    w = f(a | x) / f(a | x, u),

the covariates of rows with the same x and a are distributed as they are given x alone, so that a prediction
of P(desired | x, setting a) may be compared with the outcomes of the rows. Actions that are set one after the
other, with covariates in between, have one factor each. u is what the graph says to adjust for
(`graphs.separation`); without covariates, all weights are 1.

The densities are those of linear regressions with normal errors, whatever the true ones are: a crude choice
for actions with few values. Weights are cut at `LARGEST` and divided by their mean.

Source: Robins, Hernan and Brumback (2000), Sec. 6 (stabilised weights).
"""

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.separation import adjustment

LARGEST = 10.0
# Relative to the variance of an action: keeps the density of one that its covariates determine defined.
SMALLEST = 1e-6


def row_weights(table: Table, task: RehearsalTask, names: tuple[str, ...]) -> Tensor:
    """The weight of each row for an alteration, (n,), with mean 1.

    Args:
        table: n observed rows.
        task: The roles of the variables.
        names: The altered variables.
    """
    found = adjustment(task.graph, task.context, names, task.outcomes)
    later = tuple(name for name in names if name not in found.first)
    before = (*task.context, *found.before)
    # Altered variables, what they are given in the numerator, and in the denominator.
    blocks = (
        [
            (found.first, task.context, before),
            (later, (*task.context, *found.first), (*before, *found.first, *found.between)),
        ]
        if found.first
        else [(names, task.context, before)]
    )
    total = torch.zeros(len(table), dtype=torch.float64)
    for actions, few, many in blocks:
        if set(few) != set(many):
            values = table.columns(actions)
            total += _log_density(values, table.columns(few)) - _log_density(values, table.columns(many))
    weights = total.exp().clamp_max(LARGEST)
    return weights / weights.mean()


def _log_density(values: Tensor, given: Tensor) -> Tensor:
    """Log density of each row's action (n, k) in a linear regression on what is given (n, p), (n,)."""
    count = len(values)
    scale = values.std(0)
    scaled = (values - values.mean(0)) / torch.where(scale > 0, scale, torch.ones_like(scale))
    inputs = torch.cat([torch.ones(count, 1, dtype=torch.float64), _standardised(given)], 1)
    gram = inputs.mT @ inputs + count * 1e-10 * torch.eye(inputs.shape[1], dtype=torch.float64)
    residuals = scaled - inputs @ torch.linalg.solve(gram, inputs.mT @ scaled)
    covariance = residuals.mT @ residuals / max(count - inputs.shape[1], 1)
    root = torch.linalg.cholesky(covariance + SMALLEST * torch.eye(values.shape[1], dtype=torch.float64))
    white = torch.linalg.solve_triangular(root, residuals.mT, upper=False)
    return -0.5 * white.square().sum(0) - root.diagonal().log().sum()


def _standardised(values: Tensor) -> Tensor:
    centred = values - values.mean(0)
    spread = centred.square().mean(0).sqrt()
    return centred / torch.where(spread > 0, spread, torch.ones_like(spread))
