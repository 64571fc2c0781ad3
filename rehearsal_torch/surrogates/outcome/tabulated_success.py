"""Shares of desired outcomes along a single action, from drawn outcomes at Chebyshev nodes.

For a context and one action a in an interval, the outcome t_di(a) of function d with residual i is a sum of
waves in a and of a polynomial of degree two (`estimators.feature_regression`), as long as no covariate lies
between alterations. It is known to rounding from its values at n nodes (`surrogates.chebyshev`), n a few
dozen: the drawn functions are evaluated there once, and every further action costs n products a point.

The widest interval of a batch of contexts decides on n, so that the last bits of a share depend on the batch.
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.surrogates.chebyshev import ChebyshevNodes, nodes_for
from rehearsal_torch.surrogates.outcome.posterior_success import CHUNK, PosteriorSuccess, SuccessOfMany

MOST_NODES = 96


class TabulatedSuccess(SuccessOfMany):
    """p_d(a; x) for many values of one action in the same B contexts (B, |X|), by nodes of the intervals of
    the action, as many as each of the E fits needs; standardised.
    """

    def __init__(self, success: PosteriorSuccess, contexts: Tensor, nodes: Sequence[ChebyshevNodes]) -> None:
        super().__init__(success)
        self.nodes = max(nodes, key=lambda each: each.count)
        size = max(1, CHUNK // (self.nodes.count * success.draws * max(success.points, success.width)))
        values = []
        for rows in torch.arange(len(contexts)).split(size):
            means = success.known_means(contexts[rows])
            parts = [
                (self.nodes.lift(each), success.values_of(fit, means, each.places[:, rows].unsqueeze(-1)))
                for fit, each in enumerate(nodes)
            ]
            self._shape = (success.draws, *parts[0][1].shape[-2:])
            lifted = [lift @ part.flatten(2).transpose(0, 1) for lift, part in parts]
            values.append(torch.cat(lifted, -1))
        self.values = torch.cat(values)

    @classmethod
    def over(cls, success: PosteriorSuccess, contexts: Tensor, lower: Tensor, upper: Tensor) -> Self | None:
        """For actions between bounds (B, k); None if there are several, covariates between alterations, or
        too many nodes would be needed.
        """
        if lower.shape[-1] != 1 or success.between is not None:
            return None
        members, half = success.models.outcomes, float((upper - lower).max()) / 2
        fastest = [float(member.frequencies_of([member.inputs - 1]).abs().max()) for member in members]
        counts = [nodes_for(frequency * half, MOST_NODES) for frequency in fastest]
        ends = lower.squeeze(-1), upper.squeeze(-1)
        nodes = [ChebyshevNodes(*ends, count) for count in counts if count is not None]
        return cls(success, contexts, nodes) if len(nodes) == len(counts) else None

    def _values(self, actions: Tensor) -> Tensor:
        weights = self.nodes.weights(actions.squeeze(-1)).transpose(0, 1)
        values: Tensor = (weights @ self.values).transpose(0, 1).unflatten(-1, self._shape)
        return values
