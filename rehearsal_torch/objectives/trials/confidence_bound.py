"""The upper confidence bound of a causal network.

With fixed draws u_s of the learnt noise,

    alpha(a) = 1/S sum_s mu(a, u_s) + beta 1/S sum_s sigma(a, u_s),

where mu and sigma are the posterior mean and standard deviation of the reward node's mechanism at the inputs
to which draw s leads. How the uncertainty of upstream nodes counts is chosen by `propagate`: the acquisition
functions are in `upper_bounds`.

beta multiplies the standard deviation in all objectives.

Source: Ren et al. (2025), Eq. 5.
"""

from typing import final

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.objectives.trials.network_acquisition import standard_draws
from rehearsal_torch.objectives.trials.upper_bounds import PROPAGATE, UpperBound, checked_beta
from rehearsal_torch.surrogates.network.causal_model import CausalModel


@final
class ConfidenceBound(CausalObjective):
    """The bound of Eq. 5, and its extensions to the uncertainty of upstream nodes.

    Args:
        beta: Multiplier of the standard deviation.
        propagate: ``mean``, ``linear``, ``reached``, ``sample``, ``optimistic`` or ``separate``: a key of
            `PROPAGATE`.
        draws: S, number of fixed noise draws.
        epistemic_draws: E, number of epistemic draws; for ``sample``, and for ``mean`` if the reward is not a
            weighted sum.
        evaluation_draws: Number of other draws, with which a recommendation is evaluated.
        seed: Together with the identity of the round, determines the draws.

    Raises:
        ValueError: if beta is negative, or `propagate` is unknown.
    """

    def __init__(
        self,
        surrogate: CausalModel,
        case: RehearsalCase,
        beta: float = 2.0,
        propagate: str = "sample",
        draws: int = 64,
        epistemic_draws: int = 16,
        evaluation_draws: int = 256,
        seed: int = 0,
    ) -> None:
        super().__init__(surrogate, case, draws, evaluation_draws, seed)
        require(propagate in PROPAGATE, f"propagate in {list(PROPAGATE)}", propagate=propagate)
        self.beta = checked_beta(beta)
        # The seed differs from those of the noise: epistemic draws must not be correlated with noise draws.
        epistemic = standard_draws(epistemic_draws, len(self.network.mechanisms), self.seed + 2)
        self.propagate, self.epistemic = propagate, epistemic.to(self.noise)

    @property
    def further(self) -> int:
        """The number of perturbations that the search optimises jointly with the action."""
        assert isinstance(self.acquisition, UpperBound)
        return self.acquisition.further

    def built(self, screening: bool) -> UpperBound:
        """The bound, of (..., 1, k + further): perturbations that the search optimises follow the action."""
        return PROPAGATE[self.propagate](self.drawn(screening, self.epistemic), self.beta)
