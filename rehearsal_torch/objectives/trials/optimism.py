"""Optimistic objective: the largest expected reward of any plausible causal network.

Among all networks within beta standard deviations of the posterior mean,

    x_i = m_i(w_i, u_i) + beta s_i(w_i, u_i) eta_i(w_i),     eta_i in [-1, 1],

the one that is best for the action counts,

    alpha(a) = max over eta of 1/S sum_s r(x(a, u_s)).

The perturbations eta_i are functions of the node's inputs; a search optimises them jointly with the action. A
node that enters a weighted sum and is the parent of no other node takes its extreme perturbation. As an
objective of actions only, every other node stays at its posterior mean: a lower bound on alpha.

Source: Sussex et al. (2023), Eq. 7-8 and Alg. 1.
"""

from typing import final

from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.objectives.trials.network_acquisition import (
    DrawnNetwork,
    NetworkAcquisition,
    mean_reward,
)
from rehearsal_torch.objectives.trials.upper_bounds import checked_beta, monotone_perturbations
from rehearsal_torch.surrogates.network.causal_model import CausalModel, Perturbation
from rehearsal_torch.surrogates.network.network_model import NetworkModel


@final
class OptimisticReward(NetworkAcquisition):
    """E[r | a] of a network within beta standard deviations of the posterior mean; as a function of actions,
    nodes without an extreme perturbation are at their posterior means.

    Args:
        beta: Maximum perturbation of a node, in posterior standard deviations.

    Attributes:
        fixed: The extreme perturbation of each node; None where it is free.

    Raises:
        ValueError: if beta is negative or infinite, or the model is not one of the reward alone.
    """

    def __init__(self, model: NetworkModel | DrawnNetwork, beta: float = 5.0) -> None:
        super().__init__(model)
        self.beta, self.fixed = checked_beta(beta), monotone_perturbations(self.network)

    def value(self, points: Tensor) -> Tensor:
        """E[r] at posterior means, (..., k) -> (...)."""
        return self.perturbed(points, lambda _, scaled: scaled.new_zeros(()), self.noise)

    def perturbed(self, actions: Tensor, perturbation: Perturbation, noise: Tensor) -> Tensor:
        """E[r] of actions (..., k) under noise (S, N); nodes without an extreme perturbation are perturbed by
        `perturbation` in [-1, 1]; (...).
        """

        def perturbed(place: int, scaled: Tensor) -> Tensor:
            fixed = self.fixed[place]
            return self.beta * (perturbation(place, scaled) if fixed is None else scaled.new_full((), fixed))

        return mean_reward(self.network, actions, noise, perturbed)


@final
class Optimism(CausalObjective):
    """The value of an action under the best of the networks that a search tries.

    Args:
        beta: Maximum perturbation of a node, in posterior standard deviations.
        draws: S, number of fixed noise draws.
        evaluation_draws: Number of other draws, with which a recommendation is evaluated.
        seed: Together with the identity of the round, determines the draws.

    Raises:
        ValueError: if beta is negative.
    """

    def __init__(
        self,
        surrogate: CausalModel,
        case: RehearsalCase,
        beta: float = 5.0,
        draws: int = 64,
        evaluation_draws: int = 256,
        seed: int = 0,
    ) -> None:
        super().__init__(surrogate, case, draws, evaluation_draws, seed)
        self._reward = OptimisticReward(self.drawn(screening=False), beta)
        self.beta, self.perturbations = beta, self._reward.fixed

    def optimistic(self, actions: Tensor, perturbation: Perturbation, noise: Tensor) -> Tensor:
        """E[r] of actions (..., k) under noise (S, N) and perturbations (`OptimisticReward.perturbed`)."""
        return self._reward.perturbed(actions, perturbation, noise)

    def built(self, screening: bool) -> OptimisticReward:
        """E[r] at posterior means, of (..., 1, k)."""
        return OptimisticReward(self.drawn(screening), self.beta)
