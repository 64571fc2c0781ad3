"""The posterior mean of the reward: what to do when nothing is tried for the sake of learning.

    alpha(a) = 1/S sum_s r(x(a, u_s)),    x_i = m_i(w_i, u_i).

Its maximiser is the action that every method recommends at the end of a round. Random and Sobol actions use it for that alone.

Source: Ren et al. (2025), Eq. 5 with beta = 0; Frazier (2018), Sec. 4.2 (recommending the maximiser of the posterior mean).
"""

from typing import final

from torch import Tensor

from rehearsal_torch.objectives.causal_objective import CausalObjective


@final
class PosteriorMean(CausalObjective):
    """E[r | a] as believed by now."""

    def worth(self, points: Tensor, draws: int) -> Tensor:
        """(..., k) -> (...)."""
        return self.expected(points, self.noise[:draws])
