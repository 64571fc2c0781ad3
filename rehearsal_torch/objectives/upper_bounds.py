"""Upper confidence bounds of the expected reward in a causal network, as BoTorch acquisition functions.

They differ in how epistemic uncertainty is propagated. With x_i = m_i + e_i s_i, m_i and s_i the posterior
mean and standard deviation of node i's mechanism, and E[r] the mean reward over fixed draws of the noise, the
bound is

    mean        E[r] at e = 0, plus beta times the standard deviation of the reward nodes only. The
                uncertainty of the nodes upstream of the reward is ignored.
    linear      to first order, sigma(a)^2 = sum_i (d E[r] / d e_i)^2 at e = 0: every node counts as far as it
                moves the expected reward. The bound is the largest E[r] over |e| <= beta, linearised.
    reached     the same direction of e, at its true value: the larger of E[r] at e = 0 and at e = beta g /
                |g|, g the gradient of `linear`. Unlike the linearised bound it is the expected reward of a
                plausible network, and never exceeds the range of rewards.
    sample      e ~ N(0, I), fixed draws; mean and standard deviation of E[r] over e.
    optimistic  the largest E[r] over e in [-beta, beta]^N: perturbations eta_i = e_i / beta in [-1, 1] are
                further coordinates of the candidate, the same for every draw of the noise. A node that enters
                the reward as a term of a weighted sum, and is the parent of no other node, takes its extreme
                perturbation.
    separate    E[r] + (sum_i g_i^2)^(1/2), where g_i is the gain in E[r] if only node i is perturbed, e_i in
                [-beta, beta], a coordinate as above. If everything is linear this equals `linear`; elsewhere
                gains are true values, whereas gradients vanish at a crest or in a valley. Unlike in
                `optimistic`, products of the uncertainties of several nodes do not count; these grow with the
                length of a chain.

A known reward inherits uncertainty from the nodes that it reads (`mean`). With e_i ~ N(0, 1) independent, a
weighted sum has the standard deviation

    (sum_i w_i^2 s_i^2)^(1/2)

exactly, |w| s for a single node. For any other reward it is the standard deviation over fixed normal draws e.

`ConfidenceBound` chooses one of them by `propagate`. For `Optimism`, among all networks within beta standard
deviations of the posterior mean,

    x_i = m_i(w_i, u_i) + beta s_i(w_i, u_i) eta_i(w_i),     eta_i in [-1, 1],

the one that is best for the action counts,

    alpha(a) = max over eta of 1/S sum_s r(x(a, u_s)).

The perturbations eta_i are functions of the node's inputs; a search optimises them jointly with the action. A
node that enters a weighted sum and is the parent of no other node takes its extreme perturbation. As an
objective of actions only, every other node stays at its posterior mean: a lower bound on alpha.

Source: Ren et al. (2025), Eq. 5 (`mean`); Sussex et al. (2023), Eq. 7-8 and Alg. 1 (`Optimism`; with constant
eta, as in their noise-free case, `optimistic`); Astudillo and Frazier (2021) (`sample`); `linear`, `reached`,
`separate` and known functions of several nodes in `mean` are ours.
"""

import math
from typing import final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.known_reward import KnownReward, WeightedSum
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.expected_reward import (
    CausalObjective,
    DrawnNetwork,
    NetworkAcquisition,
    mean_reward,
    plausible_rewards,
    standard_draws,
)
from rehearsal_torch.surrogates.network.causal_model import CausalModel, CausalNetwork, Perturbation
from rehearsal_torch.surrogates.network.network_model import NetworkModel

# Epistemic uncertainty is averaged over one in FEWER noise draws: it varies less over them than the mean
# does, and costs more to compute.
FEWER = 4


class UpperBound(NetworkAcquisition):
    """An upper confidence bound of the expected reward, in the reward's unit.

    Args:
        model: The fitted network, with noise draws for the mean and epistemic ones, which some bounds use.
        beta: Multiplier of the standard deviation, or maximum perturbation of a node in posterior standard
            deviations; >= 0.
    """

    def __init__(self, model: NetworkModel | DrawnNetwork, beta: float = 2.0) -> None:
        super().__init__(model)
        self.beta = checked_beta(beta)
        self.few = self.noise[: max(1, len(self.noise) // FEWER)]

    def perturbed(self, actions: Tensor, noise: Tensor, perturbations: Tensor) -> Tensor:
        """E[r] with node i perturbed by e_i standard deviations, (..., k), (S, N), (..., N) -> (...)."""
        return mean_reward(self.network, actions, noise, lambda place, _: perturbations[..., place, None])


@final
class MeanBound(UpperBound):
    """The standard deviation of the reward nodes, at posterior means of all others."""

    def value(self, points: Tensor) -> Tensor:
        """(..., k) -> (...)."""
        reward, nodes = self.network.task.reward, self.network.task.nodes
        read = [nodes.index(name) for name in reward.names]
        values, spreads = self.network.propagate(points, self.noise, spread=reward.names)
        means = values[..., read]
        stds = torch.stack([spreads[name].expand(means.shape[:-1]) for name in reward.names], -1)
        spread = reward_spread(reward, means, stds, self.drawn.epistemic[:, read])
        return reward(means).mean(-1) + self.beta * spread.mean(-1)


class LinearBound(UpperBound):
    """The standard deviation of the expected reward, to first order in every node."""

    def value(self, points: Tensor) -> Tensor:
        """(..., k) -> (...)."""
        spread = safe_root(self.gradient(points).square().sum(-1))
        return mean_reward(self.network, points, self.noise) + self.beta * spread

    def gradient(self, actions: Tensor) -> Tensor:
        """d E[r] / d e at e = 0, (..., k) -> (..., N)."""
        differentiable = torch.is_grad_enabled() and actions.requires_grad
        with torch.enable_grad():
            nodes = len(self.network.mechanisms)
            perturbations = actions.new_zeros(*actions.shape[:-1], nodes, requires_grad=True)
            total = self.perturbed(actions, self.few, perturbations).sum()
            (gradients,) = torch.autograd.grad(total, perturbations, create_graph=differentiable)
        return gradients if differentiable else gradients.detach()


@final
class ReachedBound(LinearBound):
    """The expected reward at the end of a step along the gradient of `LinearBound`, if it is larger."""

    def value(self, points: Tensor) -> Tensor:
        """(..., k) -> (...)."""
        gradients = self.gradient(points)
        perturbation = self.beta * gradients / safe_root(gradients.square().sum(-1, keepdim=True))
        both = torch.stack([torch.zeros_like(perturbation), perturbation])
        return self.perturbed(points.expand(2, *points.shape), self.noise, both).amax(0)


@final
class SampleBound(UpperBound):
    """Mean and standard deviation of the expected reward over plausible networks."""

    def value(self, points: Tensor) -> Tensor:
        """(..., k) -> (...)."""
        rewards = plausible_rewards(self.network, points, self.few, self.drawn.epistemic)
        middle = rewards.mean(-1)
        return middle + self.beta * safe_root((rewards - middle.unsqueeze(-1)).square().mean(-1))


class OptimisticBound(UpperBound):
    """The expected reward under perturbations that are optimised jointly with the action."""

    def __init__(self, model: NetworkModel | DrawnNetwork, beta: float = 2.0) -> None:
        super().__init__(model, beta)
        self.fixed = monotone_perturbations(self.network)

    @property
    def further(self) -> int:
        """One perturbation for each node without an extreme one."""
        return sum(perturbation is None for perturbation in self.fixed)

    def value(self, points: Tensor) -> Tensor:
        """(..., k + further) -> (...)."""
        actions, perturbations = self.split(points)
        return self.perturbed(actions, self.noise, perturbations)

    def split(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (..., k) and e of all nodes (..., N) of candidates (..., k + further)."""
        width = len(self.network.task.actions)
        free = points[..., width:]
        columns, shape = iter(free.unbind(-1)), free.shape[:-1]
        eta = [next(columns) if sign is None else free.new_full(shape, sign) for sign in self.fixed]
        return points[..., :width], self.beta * torch.stack(eta, -1)


@final
class SeparateBound(OptimisticBound):
    """The gains in expected reward from perturbing each node by itself, combined as if independent."""

    def value(self, points: Tensor) -> Tensor:
        """(..., k + further) -> (...)."""
        actions, perturbations = self.split(points)
        none = torch.zeros_like(perturbations).unsqueeze(0)
        alone = torch.cat([none, torch.diag_embed(perturbations).movedim(-2, 0)])
        rewards = self.perturbed(actions.expand(len(alone), *actions.shape), self.few, alone)
        # A perturbation with a loss counts as zero: otherwise the search would discard actions whose initial
        # perturbation has the wrong sign.
        gains = (rewards[1:] - rewards[0]).clamp_min(0)
        return mean_reward(self.network, actions, self.noise) + safe_root(gains.square().sum(0))


PROPAGATE: dict[str, type[UpperBound]] = {
    "mean": MeanBound,
    "linear": LinearBound,
    "reached": ReachedBound,
    "sample": SampleBound,
    "optimistic": OptimisticBound,
    "separate": SeparateBound,
}
"""Upper bounds by their name in a configuration."""


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
    """The standard deviation of a reward of m nodes, (...), in its unit, from their posterior means and
    standard deviations, (..., m) each; without a closed form, from normal draws (E, m).
    """
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


@final
class ConfidenceBound(CausalObjective):
    """The bound of Eq. 5, and its extensions to the uncertainty of upstream nodes.

    Args:
        beta: Multiplier of the standard deviation.
        propagate: ``mean``, ``linear``, ``reached``, ``sample``, ``optimistic`` or ``separate``: a key of
            `PROPAGATE`.
        epistemic_draws: E, number of epistemic draws; for ``sample``, and for ``mean`` if the reward is not a
            weighted sum.
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


@final
class OptimisticReward(NetworkAcquisition):
    """E[r | a] of a network within `beta` posterior standard deviations of the mean; as a function of
    actions, nodes without an extreme perturbation (`fixed`) are at their posterior means.
    """

    def __init__(self, model: NetworkModel | DrawnNetwork, beta: float = 5.0) -> None:
        super().__init__(model)
        self.beta, self.fixed = checked_beta(beta), monotone_perturbations(self.network)

    def value(self, points: Tensor) -> Tensor:
        """E[r] at posterior means, (..., k) -> (...)."""
        return self.perturbed(points, lambda _, scaled: scaled.new_zeros(()), self.noise)

    def perturbed(self, actions: Tensor, perturbation: Perturbation, noise: Tensor) -> Tensor:
        """E[r] of actions (..., k) under noise (S, N); `perturbation` is for nodes without an extreme one."""

        def perturbed(place: int, scaled: Tensor) -> Tensor:
            fixed = self.fixed[place]
            return self.beta * (perturbation(place, scaled) if fixed is None else scaled.new_full((), fixed))

        return mean_reward(self.network, actions, noise, perturbed)


@final
class Optimism(CausalObjective):
    """The value of an action under the best of the networks that a search tries.

    Args:
        beta: Maximum perturbation of a node, in posterior standard deviations.
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
