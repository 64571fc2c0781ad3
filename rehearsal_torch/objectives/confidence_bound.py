"""The upper confidence bound of a causal system.

With fixed draws u_s of the learnt noise,

    alpha(a) = 1/S sum_s mu(a, u_s) + beta 1/S sum_s sigma(a, u_s),

mu and sigma being posterior mean and standard deviation of the reward node's mechanism at the inputs that
draw s brings about. How the uncertainty of the nodes before it counts is a strategy of its own, chosen by
`propagate` (see `propagation`).

beta multiplies the standard deviation, in every objective alike. With `growing`, beta_t = beta (0.2 k log
2n)^(1/2) after n experiments with k actions.

Source: Ren et al. (2025), Eq. 5; Kandasamy et al. (2015), Sec. 4 (growth).
"""

import math
from typing import final

from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.expected_reward import CausalObjective, standard_draws
from rehearsal_torch.objectives.propagation import PROPAGATE
from rehearsal_torch.surrogates.network.causal_model import CausalModel


@final
class ConfidenceBound(CausalObjective):
    """Eq. 5, and what lets the nodes before the reward count.

    Args:
        surrogate: A fitted causal model.
        case: The round.
        beta: How many standard deviations are added.
        growing: Whether beta grows with the number of experiments.
        propagate: ``mean``, ``linear``, ``reached``, ``sample``, ``optimistic`` or ``separate``: a key of
            `PROPAGATE`.
        draws: S, fixed draws of the noise.
        epistemic_draws: E, draws of what is not known; for ``sample``, and for ``mean`` where the reward is
            no weighted sum.
        evaluation_draws: Other draws, by which a recommendation is judged.
        seed: With the round's identity, decides the draws.

    Raises:
        ValueError: if beta is negative, or `propagate` is none of these.
    """

    def __init__(
        self,
        surrogate: CausalModel,
        case: RehearsalCase,
        beta: float = 2.0,
        growing: bool = False,
        propagate: str = "optimistic",
        draws: int = 64,
        epistemic_draws: int = 16,
        evaluation_draws: int = 256,
        seed: int = 0,
    ) -> None:
        super().__init__(surrogate, case, draws, evaluation_draws, seed)
        if not 0 <= beta < math.inf or propagate not in list(PROPAGATE):
            raise ValueError(
                f"expected beta >= 0 and propagate in {list(PROPAGATE)}; got beta={beta} and "
                f"propagate={propagate!r}"
            )
        growth = (
            math.sqrt(0.2 * len(self.task.actions) * math.log(2 * max(len(self.visited), 1)))
            if growing
            else 1.0
        )
        self.beta = beta * growth
        # The seeds below are those of the noise, apart by a little: the draws of nodes must not follow those
        # of the noise.
        epistemic = standard_draws(epistemic_draws, len(self.network.mechanisms), self.seed + 2).to(
            self.noise
        )
        self.propagation = PROPAGATE[propagate](self.network, self.beta, epistemic)

    @property
    def further(self) -> int:
        """The pushes that the propagation leaves open."""
        return self.propagation.further

    def value_with(self, points: Tensor, draws: int) -> Tensor:
        """(..., k + further) -> (...)."""
        return self.propagation.bound(points, self.noise[:draws])
