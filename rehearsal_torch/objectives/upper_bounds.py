"""Upper confidence bounds on the reward of a causal network, of EXCBO and MCBO.

With x_i = m_i + e_i s_i, m_i and s_i the posterior mean and standard deviation of node i's mechanism, and
E[r] the mean reward over fixed draws of the noise, the upper confidence bound of EXCBO is

    alpha(a) = E[r] at e = 0, plus beta times the standard deviation of the reward nodes only:

the uncertainty of the nodes before them is ignored. A known reward inherits uncertainty from the nodes that
it reads. With e_i ~ N(0, 1) independent, a weighted sum has the standard deviation

    (sum_i w_i^2 s_i^2)^(1/2)

exactly, |w| s for a single node. For any other reward it is the standard deviation over fixed normal draws e.

For MCBO, among all networks within beta standard deviations of the posterior mean,

    x_i = m_i(w_i, u_i) + beta s_i(w_i, u_i) eta_i(w_i),     eta_i in [-1, 1],

the one that is best for the action counts,

    alpha(a) = max over eta of 1/S sum_s r(x(a, u_s)).

The perturbations eta_i are functions of the node's inputs; a search optimises them jointly with the action. A
node that enters a weighted sum and is the parent of no other node takes its extreme perturbation. As an
objective of actions only, every other node stays at its posterior mean: a lower bound on alpha.

Source: Ren et al. (2025), Eq. 5 (`ConfidenceBound`); Sussex et al. (2023), Eq. 7-8 and Alg. 1 (`Optimism`).
"""

import math
from collections.abc import Callable
from typing import final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.known_reward import KnownReward, WeightedSum
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.surrogates.network.causal_surrogate import (
    CausalModel,
    CausalNetwork,
    Perturbation,
    standard_draws,
)

EPISTEMIC = 16  # Epistemic draws of a reward that is no weighted sum


class NetworkAcquisition(AcquisitionFunction):
    """A function of single actions, (..., k) -> (...), for BoTorch; it takes no pending ones."""

    def __init__(self, value: Callable[[Tensor], Tensor]) -> None:
        # There is no model of BoTorch to register.
        super().__init__(None)  # type: ignore[arg-type]
        self.value = value
        # BoTorch's optimisers read it.
        self.X_pending = None  # type: ignore[assignment]

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Refuses pending actions, as BoTorch's analytic functions do: UnsupportedError."""
        if X_pending is not None:
            raise UnsupportedError(f"{type(self).__name__} does not account for X_pending")

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The values of candidates (..., 1, k), (...)."""
        return self.value(X.squeeze(-2))


def mean_reward(
    network: CausalNetwork, actions: Tensor, noise: Tensor, perturbation: Perturbation | None = None
) -> Tensor:
    """E[r] over draws of the noise, (..., k), (S, N) -> (...), with perturbations in standard deviations."""
    values, _ = network.propagate(actions, noise, perturbation)
    return network.reward(values).mean(-1)


def checked_beta(beta: float) -> float:
    """A multiplier of standard deviations; a negative or infinite one raises a ValueError."""
    require(0 <= beta < math.inf, "beta >= 0", beta=beta)
    return beta


def monotone_perturbations(network: CausalNetwork) -> tuple[float | None, ...]:
    """The sign of the weight of each node that enters a weighted sum and is no other's parent, else None."""
    task = network.task
    causes = {name for node in task.nodes for name in task.inputs(node)}
    weights = task.reward.weights if isinstance(task.reward, WeightedSum) else {}
    return tuple(
        math.copysign(1.0, weights[node]) if node in weights and node not in causes else None
        for node in task.nodes
    )


def reward_spread(reward: KnownReward, means: Tensor, stds: Tensor, epistemic: Tensor) -> Tensor:
    """The standard deviation of a reward, (...), from those of m nodes, (..., m), or normal draws (E, m)."""
    if isinstance(reward, WeightedSum):
        weights = torch.tensor(list(reward.weights.values()), dtype=stds.dtype, device=stds.device)
        if len(weights) == 1:
            return weights.abs() * stds[..., 0]
        return safe_root((weights.square() * stds.square()).sum(-1))
    rewards = reward(means.unsqueeze(-2) + epistemic * stds.unsqueeze(-2))
    return safe_root((rewards - rewards.mean(-1, keepdim=True)).square().mean(-1))


def safe_root(squares: Tensor) -> Tensor:
    """The square root, with a finite gradient at zero."""
    return squares.clamp_min(1e-30).sqrt()


class MeanNetworkObjective(CausalObjective):
    """An objective on the network of posterior means and standard deviations, with S fixed noise draws.

    Args:
        beta: Multiplier of standard deviations.
    """

    def __init__(
        self, surrogate: CausalModel, case: RehearsalCase, beta: float, draws: int = 64, seed: int = 0
    ) -> None:
        super().__init__(surrogate, case, seed=seed)
        require(draws >= 1, "at least 1 draw", draws=draws)
        self.beta, self.noise = checked_beta(beta), surrogate.draws(draws, self.seed)


@final
class ConfidenceBound(MeanNetworkObjective):
    """The bound of Eq. 5, in standard deviations of the posterior means at the visited actions."""

    def __init__(
        self, surrogate: CausalModel, case: RehearsalCase, beta: float = 2.0, draws: int = 64, seed: int = 0
    ) -> None:
        super().__init__(surrogate, case, beta, draws, seed)
        epistemic = standard_draws(EPISTEMIC, len(self.network.mechanisms), self.seed + 2)
        self.epistemic = epistemic.to(self.noise)

    def built(self) -> NetworkAcquisition:
        """The bound, of (..., 1, k)."""
        return NetworkAcquisition(lambda actions: self.standardised(self.bound(actions).unsqueeze(-1)))

    def bound(self, actions: Tensor) -> Tensor:
        """The bound in the reward's unit, (..., k) -> (...)."""
        reward, nodes = self.network.task.reward, self.network.task.nodes
        columns = [nodes.index(name) for name in reward.names]
        values, spreads = self.network.propagate(actions, self.noise, spread=reward.names)
        means = values[..., columns]
        stds = torch.stack([spreads[name].expand(means.shape[:-1]) for name in reward.names], -1)
        spread = reward_spread(reward, means, stds, self.epistemic[:, columns])
        return reward(means).mean(-1) + self.beta * spread.mean(-1)


@final
class Optimism(MeanNetworkObjective):
    """The value of an action under the best of the networks that a search tries, standardised; `beta` is the
    maximum perturbation of a node, in posterior standard deviations.
    """

    def __init__(
        self, surrogate: CausalModel, case: RehearsalCase, beta: float = 5.0, draws: int = 64, seed: int = 0
    ) -> None:
        super().__init__(surrogate, case, beta, draws, seed)
        self.draw, self.perturbations = surrogate.draws, monotone_perturbations(self.network)

    def optimistic(self, actions: Tensor, perturbation: Perturbation, noise: Tensor) -> Tensor:
        """E[r], standardised, of actions (..., k) under noise (S, N); other nodes take `perturbation`."""

        def perturbed(node: int, scaled: Tensor) -> Tensor:
            fixed = self.perturbations[node]
            return self.beta * (perturbation(node, scaled) if fixed is None else scaled.new_full((), fixed))

        return self.standardised(mean_reward(self.network, actions, noise, perturbed).unsqueeze(-1))

    def built(self) -> NetworkAcquisition:
        """The value with all other nodes at their posterior means, of (..., 1, k)."""
        return NetworkAcquisition(
            lambda actions: self.optimistic(actions, lambda _, scaled: scaled.new_zeros(()), self.noise)
        )
