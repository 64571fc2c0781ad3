"""Paths of influence: which variables can change an outcome, and a test of the graph for those that cannot.

Setting A changes an outcome only if a directed path leads from A to it in the graph in which A is set. Where
there is none, the graph implies that Y and A are independent given the common causes Z. This is a test of the
graph that needs no further data: with leave-one-out residuals of regressions on Z,

    R_i = (a_i - E[a | z_i]) (y_i - E[y | z_i]),        T = sqrt(n) mean(R) / sd(R),

T is asymptotically standard normal under independence (the generalised covariance measure). The regressions
are kernel ridge regressions, with width and ridge chosen by the leave-one-out error; a^2 is tested beside a.
Rows that follow each other in time are not independent: sd(R) includes their autocorrelation up to n^(1/3)
steps, but not slower drifts.

Source: Qin et al. (2023), Sec. 2 (alteration graphs); Shah and Peters (2020), Eq. 3 (generalised covariance
measure); Newey and West (1987) for correlated rows.
"""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

WIDTHS, RIDGES, MAX_POINTS = (0.3, 0.6, 1.2, 2.5, 5.0), (1e-3, 1e-2, 1e-1, 1.0), 300


def reaches(graphs: Iterable[RehearsalGraph], altered: Sequence[str], outcomes: Sequence[str]) -> bool:
    """Whether setting variables can change an outcome according to at least one of the graphs."""
    return any(bool(graph.descendants(altered, altered) & set(outcomes)) for graph in graphs)


def dependence(action: Tensor, outcomes: Tensor, given: Tensor) -> float:
    """The p-value of the hypothesis that no outcome (n, |Y|) depends on the action (n,) given covariates (n,
    q), in any units; of more than 300 rows, 300 evenly spaced ones are used. It is the smallest of a and a^2
    with each outcome, times the number of tests (Bonferroni), at most 1; 1 if there are fewer than 20 rows.
    """
    if len(action) < 20:
        return 1.0
    count = len(action)
    rows = torch.linspace(0, count - 1, min(MAX_POINTS, count), dtype=torch.float64).round().long()
    rows = rows.to(action.device)
    standardised = _standardised(action[rows].double().unsqueeze(-1))
    tested = _standardised(torch.cat([standardised, standardised.square(), outcomes[rows].double()], -1))
    residuals = _left_out(_standardised(given[rows].double()), tested)
    smallest = 1.0
    for moved in residuals[:, :2].T:
        for outcome in residuals[:, 2:].T:
            smallest = min(smallest, _p_value(moved * outcome))
    return min(1.0, smallest * 2 * outcomes.shape[-1])


def _left_out(inputs: Tensor, targets: Tensor) -> Tensor:
    """Leave-one-out residuals (n, m) of kernel ridge regressions of targets (n, m) on inputs (n, q)."""
    count = len(targets)
    if not inputs.shape[-1]:
        return (targets - targets.mean(0)) * count / (count - 1)
    distance = torch.cdist(inputs, inputs).square() / inputs.shape[-1]
    best, error = targets - targets.mean(0), targets.square().mean(0)
    for width in WIDTHS:
        # The constant kernel models the mean, so that predictions are not shrunk towards zero.
        values, vectors = torch.linalg.eigh(torch.exp(-distance / (2 * width**2)) + 10.0)
        turned = vectors.mT @ targets
        for ridge in RIDGES:
            inverse = 1 / (values.clamp_min(0) + ridge)
            errors = (vectors @ (inverse.unsqueeze(-1) * turned)) / (vectors.square() @ inverse).unsqueeze(-1)
            squares = errors.square().mean(0)
            best, error = torch.where(squares < error, errors, best), torch.minimum(squares, error)
    return best


def _p_value(products: Tensor) -> float:
    """Two-sided p-value of a mean of zero, for rows uncorrelated beyond n^(1/3) steps."""
    count, mean = len(products), float(products.mean())
    centred = products - mean
    steps = max(1, round(count ** (1 / 3)))
    variance = float(centred.square().mean())
    if variance <= 1e-24:
        return 1.0
    correlated = sum(
        2 * (1 - lag / (steps + 1)) * float((centred[lag:] * centred[:-lag]).sum() / count)
        for lag in range(1, steps + 1)
    )
    statistic = math.sqrt(count) * abs(mean) / math.sqrt(max(variance + correlated, variance))
    return math.erfc(statistic / math.sqrt(2))


def _standardised(columns: Tensor) -> Tensor:
    if not columns.shape[-1]:
        return columns
    spread = columns.std(0, correction=0)
    return (columns - columns.mean(0)) / torch.where(spread > 0, spread, torch.ones_like(spread))
