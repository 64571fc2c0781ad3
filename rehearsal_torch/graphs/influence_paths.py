"""Paths of influence: which variables can change an outcome at all, and what the table says of those that cannot.

Setting A changes an outcome only where a directed path leads from A to it in the graph in which A is set. Where there is none,
the graph says that Y and A are independent once the common causes are known. That is a test of the graph which costs nothing:
with covariates z, the regressions

    y ~ 1 + z + z^2        and        y ~ 1 + z + z^2 + a + a^2

should fit equally well, which the F test of nested models decides.

Source: Qin et al. (2023), Sec. 2 (alteration graphs); Pearl (2009), Sec. 1.2.4 (testable implications); the test: Fisher (1922).
"""

from collections.abc import Iterable, Sequence

import torch
from scipy.stats import f as f_distribution
from torch import Tensor

from rehearsal_torch.graphs.rehearsal import RehearsalGraph


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
        action: (n,), in any unit.
        outcomes: (n, |Y|), in any unit.
        given: (n, q), the covariates; q may be 0.

    Returns:
        The smallest p-value of the outcomes times their number, at most 1; 1 where there are too few rows to test.
    """
    columns = [torch.ones(len(action), 1, dtype=torch.float64), *(_curved(column) for column in given.double().unbind(-1))]
    plain = torch.cat(columns, -1)
    whole = torch.cat([plain, _curved(action.double())], -1)
    free = len(action) - int(torch.linalg.matrix_rank(whole))
    extra = int(torch.linalg.matrix_rank(whole)) - int(torch.linalg.matrix_rank(plain))
    if free < 3 or extra < 1:
        return 1.0
    smallest = 1.0
    for column in outcomes.double().unbind(-1):
        without, with_action = _unexplained(plain, column), _unexplained(whole, column)
        if without <= 1e-12 * float((column - column.mean()).square().sum()):
            continue  # the covariates say everything
        statistic = (without - with_action) / extra / max(with_action / free, 1e-300)
        smallest = min(smallest, float(f_distribution.sf(statistic, extra, free)))
    return min(1.0, smallest * outcomes.shape[-1])


def _curved(column: Tensor) -> Tensor:
    """A standardised column and its square, (n, 2)."""
    spread = column.std(correction=0)
    shown = (column - column.mean()) / torch.where(spread > 0, spread, torch.ones_like(spread))
    return torch.stack([shown, shown.square()], -1)


def _unexplained(inputs: Tensor, outcome: Tensor) -> float:
    """The sum of squared residuals of least squares."""
    weights = torch.linalg.lstsq(inputs, outcome.unsqueeze(-1), driver="gelsd").solution
    return float((outcome - (inputs @ weights).squeeze(-1)).square().sum())
