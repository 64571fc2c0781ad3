"""Shares of desired outcomes along a single action, from drawn outcomes at Chebyshev nodes.

For a context and one action a in an interval, the outcome t_di(a) of function d with residual i is a sum of
waves in a and of a polynomial of degree two (`estimators.feature_regression`), as long as no covariate lies
between alterations. It is known to rounding from its values at n nodes (`estimators.chebyshev`), n a few
dozen: the drawn functions are evaluated there once, and every further action costs n products a point.

Source: ours.
"""

from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.estimators.chebyshev import ChebyshevNodes, nodes_for
from rehearsal_torch.surrogates.outcome.posterior_success import CHUNK, PosteriorSuccess, SuccessOfMany

MOST_NODES = 96


class TabulatedSuccess(SuccessOfMany):
    """p_d(a; x) for many values of one action in the same B contexts.

    Args:
        success: The functions and residuals.
        contexts: (B, |X|), standardised.
        nodes: n nodes of the intervals of the action, standardised.
    """

    def __init__(self, success: PosteriorSuccess, contexts: Tensor, nodes: ChebyshevNodes) -> None:
        super().__init__(success)
        self.nodes = nodes
        size = max(1, CHUNK // (nodes.count * success.draws * max(success.points, success.width)))
        parts = zip(contexts.split(size), nodes.places.unsqueeze(-1).split(size, 1), strict=True)
        values = torch.cat([success.values(*part) for part in parts], 1)
        self._shape = values.shape[2:]
        self.values = values.flatten(2).transpose(0, 1).contiguous()

    @classmethod
    def over(cls, success: PosteriorSuccess, contexts: Tensor, lower: Tensor, upper: Tensor) -> Self | None:
        """For actions between bounds (B, k); None if there are several, covariates between alterations, or
        too many nodes would be needed.
        """
        if lower.shape[-1] != 1 or success.between is not None:
            return None
        members = success.models.outcomes
        fastest = max(float(each.frequencies_of([each.inputs - 1]).abs().max()) for each in members)
        count = nodes_for(fastest * float((upper - lower).max()) / 2)
        if count > MOST_NODES:
            return None
        return cls(success, contexts, ChebyshevNodes(lower.squeeze(-1), upper.squeeze(-1), count))

    def _values(self, actions: Tensor) -> Tensor:
        weights = self.nodes.weights(actions.squeeze(-1)).transpose(0, 1)
        values: Tensor = (weights @ self.values).transpose(0, 1).unflatten(-1, self._shape)
        return values
