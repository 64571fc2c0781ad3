"""J and its posterior deviation along a single action, from their parts at Chebyshev nodes.

For a context x and one action a in an interval, everything that the joint-metric estimator (`spectral_ridge`)
says of J is made of waves cos(w_m a) and sin(w_m a): the value is a linear function of them, and the variance
a sum of squares of linear functions. A linear function of the waves is known to rounding from its values at n
nodes (`surrogates.chebyshev`), n a few dozen. With those of member e

    J_e(a) = sum_j l_j(a) J_e(a_j),    var_e(a) = sum_jk l_j(a) l_k(a) C_e(a_j, a_k),

C_e the posterior covariance of J_e between nodes; each member has as many nodes as its own waves need, and
its values are then lifted to the nodes of the fastest. However many actions a search compares, the features
are computed, and the factor is solved, for n of them only.

Source: ours.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.surrogates.chebyshev import ChebyshevNodes


class TabulatedValue:
    """The mean of E estimators and its deviation (`spectral_ensemble`) for one action in B contexts.

    Args:
        members: Nodes of B intervals, as many as each estimator needs, the values at them (m, B) and their
            covariances (B, m, m).
    """

    def __init__(self, members: Sequence[tuple[ChebyshevNodes, Tensor, Tensor]]) -> None:
        self.nodes = max((nodes for nodes, _, _ in members), key=lambda nodes: nodes.count)
        lifts = [self.nodes.lift(nodes) for nodes, _, _ in members]
        pairs = list(zip(lifts, members, strict=True))
        self.values = torch.stack([(lift @ values).mT for lift, (_, values, _) in pairs], -1)
        self.covariance = sum(lift @ spread @ lift.mT for lift, (_, _, spread) in pairs) / len(members)

    def value_and_std(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """See `AlterationValue.value_and_std`: standardised actions in the intervals, (..., B, 1)."""
        weights = self.nodes.weights(actions.squeeze(-1)).unsqueeze(-2)
        values = (weights @ self.values).squeeze(-2)
        variance = ((weights @ self.covariance) * weights).sum((-2, -1)).clamp_min(0)
        count = values.shape[-1]
        between = (1 + 1 / count) * values.var(-1) if count > 1 else torch.zeros_like(variance)
        return values.mean(-1), (variance + between).sqrt()
