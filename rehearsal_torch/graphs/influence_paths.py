"""Paths of influence: which variables can change an outcome at all, and what the table says of those that
cannot.

Setting A changes an outcome only where a directed path leads from A to it in the graph in which A is set.
Where there is none, the graph says that Y and A are independent once the common causes Z are known. That is a
test of the graph which costs nothing: with residuals of regressions on Z, each row left out of its own,

    R_i = (a_i - E[a | z_i]) (y_i - E[y | z_i]),        T = sqrt(n) mean(R) / sd(R),

T is normal if they are independent (the generalised covariance measure). The regressions are kernel ridge,
with widths and ridges chosen by the errors of the rows that are left out; a^2 is tested beside a. Rows that
follow each other in time are no independent rows: sd(R) counts their correlation up to n^(1/3) steps apart,
and long drifts are beyond it.

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
    """Whether setting variables can change an outcome by at least one of the graphs.

    Args:
        graphs: The graphs that may be true.
        altered: The variables that are set.
        outcomes: The variables that should change.
    """
    return any(bool(graph.altered(altered).descendants(altered) & set(outcomes)) for graph in graphs)


def dependence(action: Tensor, outcomes: Tensor, given: Tensor) -> float:
    """The p-value of "no outcome depends on the action once the covariates are known".

    Args:
        action: (n,), in any unit; of more than 300 rows some are taken, evenly spread.
        outcomes: (n, |Y|), in any unit.
        given: (n, q), the covariates; q may be 0.

    Returns:
        The smallest p-value of a and a^2 with each outcome, times the number of tests, at most 1; 1 where
        there are too few rows to test.
    """
    if len(action) < 20:
        return 1.0
    some = (
        torch.linspace(0, len(action) - 1, min(MAX_POINTS, len(action)), dtype=torch.float64)
        .round()
        .long()
        .to(action.device)
    )
    shown = _standardised(action[some].double().unsqueeze(-1))
    whole = _standardised(torch.cat([shown, shown.square(), outcomes[some].double()], -1))
    left = _left_out(_standardised(given[some].double()), whole)
    smallest = 1.0
    for moved in left[:, :2].T:
        for outcome in left[:, 2:].T:
            smallest = min(smallest, _p_value(moved * outcome))
    return min(1.0, smallest * 2 * outcomes.shape[-1])


def _left_out(inputs: Tensor, targets: Tensor) -> Tensor:
    """Residuals (n, m) of kernel ridge regressions of targets (n, m) on inputs (n, q), each row left out of
    its own.
    """
    count = len(targets)
    if not inputs.shape[-1]:
        return (targets - targets.mean(0)) * count / (count - 1)
    distance = torch.cdist(inputs, inputs).square() / inputs.shape[-1]
    best, error = targets - targets.mean(0), targets.square().mean(0)
    for width in WIDTHS:
        # The constant stands for the mean, so that nothing is shrunk to zero.
        values, vectors = torch.linalg.eigh(torch.exp(-distance / (2 * width**2)) + 10.0)
        turned = vectors.mT @ targets
        for ridge in RIDGES:
            inverse = 1 / (values.clamp_min(0) + ridge)
            found = (vectors @ (inverse.unsqueeze(-1) * turned)) / (vectors.square() @ inverse).unsqueeze(-1)
            own = found.square().mean(0)
            best, error = torch.where(own < error, found, best), torch.minimum(own, error)
    return best


def _p_value(products: Tensor) -> float:
    """Of "the mean is zero", two-sided, for rows whose correlation ends after n^(1/3) steps."""
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
