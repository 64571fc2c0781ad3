"""How an upper confidence bound propagates epistemic uncertainty through a causal network.

With x_i = m_i + e_i s_i, m_i and s_i the posterior mean and standard deviation of node i's mechanism, and
E[r] the mean reward over fixed draws of the noise, the bound is

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

Source: Ren et al. (2025), Eq. 5 (`mean`); Sussex et al. (2023), Eq. 7, with constant eta as in their
noise-free case (`optimistic`); Astudillo and Frazier (2021) (`sample`); `linear`, `reached` and `separate`
are ours.
"""

import math
from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor

from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.objectives.trials.expected_reward import (
    SCREEN,
    mean_reward,
    plausible_rewards,
    reward_spread,
    safe_root,
)
from rehearsal_torch.surrogates.network.causal_model import CausalNetwork


class Propagation(ABC):
    """An upper confidence bound of the expected reward, by one way of propagating uncertainty.

    Args:
        network: The fitted network.
        beta: Multiplier of the standard deviation, >= 0.
        epistemic: Fixed draws of e, (E, N), normal with mean 0 and variance 1.
    """

    def __init__(self, network: CausalNetwork, beta: float, epistemic: Tensor) -> None:
        self.network, self.beta, self.epistemic = network, beta, epistemic

    @property
    def further(self) -> int:
        """Number of perturbations in [-1, 1] that follow the action in a candidate; 0 by default."""
        return 0

    @abstractmethod
    def bound(self, points: Tensor, noise: Tensor) -> Tensor:
        """The bound under draws (S, N) of the noise, (..., k + further) -> (...)."""

    def perturbed(self, actions: Tensor, noise: Tensor, perturbations: Tensor) -> Tensor:
        """E[r] with every node perturbed by e standard deviations from its posterior mean, (..., k), (S, N),
        (..., N) -> (...).
        """
        return mean_reward(self.network, actions, noise, lambda place, _: perturbations[..., place, None])

    @staticmethod
    def few(noise: Tensor) -> Tensor:
        """A quarter of the noise draws: over them epistemic uncertainty varies less than the mean does, and
        costs more to compute.
        """
        return noise[: max(1, len(noise) // SCREEN)]


@final
class Mean(Propagation):
    """The standard deviation of the reward nodes, at posterior means of all others."""

    def bound(self, points: Tensor, noise: Tensor) -> Tensor:
        """(..., k), (S, N) -> (...)."""
        reward, nodes = self.network.task.reward, self.network.task.nodes
        read = [nodes.index(name) for name in reward.names]
        values, spreads = self.network.propagate(points, noise, spread=reward.names)
        means = values[..., read]
        stds = torch.stack([spreads[name].expand(means.shape[:-1]) for name in reward.names], -1)
        return reward(means).mean(-1) + self.beta * reward_spread(
            reward, means, stds, self.epistemic[:, read]
        ).mean(-1)


class Linear(Propagation):
    """The standard deviation of the expected reward, to first order in every node."""

    def bound(self, points: Tensor, noise: Tensor) -> Tensor:
        """(..., k), (S, N) -> (...)."""
        gradients = self.gradient(points, noise)
        return mean_reward(self.network, points, noise) + self.beta * safe_root(gradients.square().sum(-1))

    def gradient(self, actions: Tensor, noise: Tensor) -> Tensor:
        """d E[r] / d e at e = 0, (..., k), (S, N) -> (..., N)."""
        differentiable = torch.is_grad_enabled()
        few = self.few(noise)
        with torch.enable_grad():
            perturbations = actions.new_zeros(
                *actions.shape[:-1], len(self.network.mechanisms), requires_grad=True
            )
            (gradients,) = torch.autograd.grad(
                self.perturbed(actions, few, perturbations).sum(), perturbations, create_graph=differentiable
            )
        return gradients if differentiable else gradients.detach()


@final
class Reached(Linear):
    """The expected reward at the end of a step along the gradient of `Linear`, if it is larger."""

    def bound(self, points: Tensor, noise: Tensor) -> Tensor:
        """(..., k), (S, N) -> (...)."""
        gradients = self.gradient(points, noise)
        perturbation = self.beta * gradients / safe_root(gradients.square().sum(-1, keepdim=True))
        both = torch.stack([torch.zeros_like(perturbation), perturbation])
        return self.perturbed(points.expand(2, *points.shape), noise, both).amax(0)


@final
class Sample(Propagation):
    """Mean and standard deviation of the expected reward over plausible networks."""

    def bound(self, points: Tensor, noise: Tensor) -> Tensor:
        """(..., k), (S, N) -> (...)."""
        rewards = plausible_rewards(self.network, points, self.few(noise), self.epistemic)
        middle = rewards.mean(-1)
        return middle + self.beta * safe_root((rewards - middle.unsqueeze(-1)).square().mean(-1))


class Optimistic(Propagation):
    """The expected reward under perturbations that are optimised jointly with the action.

    Args:
        network: The fitted network.
        beta: Maximum perturbation of a node, in posterior standard deviations.
        epistemic: Fixed draws of e, (E, N); not used.
    """

    def __init__(self, network: CausalNetwork, beta: float, epistemic: Tensor) -> None:
        super().__init__(network, beta, epistemic)
        self.fixed = monotone_perturbations(network)

    @property
    def further(self) -> int:
        """One perturbation for each node without an extreme one."""
        return sum(perturbation is None for perturbation in self.fixed)

    def bound(self, points: Tensor, noise: Tensor) -> Tensor:
        """(..., k + further), (S, N) -> (...)."""
        actions, perturbations = self.split(points)
        return self.perturbed(actions, noise, perturbations)

    def split(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (..., k) and e of all nodes (..., N) of candidates (..., k + further)."""
        width = len(self.network.task.actions)
        free = points[..., width:]
        columns, shape = iter(free.unbind(-1)), free.shape[:-1]
        eta = [
            next(columns) if perturbation is None else free.new_full(shape, perturbation)
            for perturbation in self.fixed
        ]
        return points[..., :width], self.beta * torch.stack(eta, -1)


@final
class Separate(Optimistic):
    """The gains in expected reward from perturbing each node by itself, combined as if independent."""

    def bound(self, points: Tensor, noise: Tensor) -> Tensor:
        """(..., k + further), (S, N) -> (...)."""
        actions, perturbations = self.split(points)
        alone = torch.cat(
            [torch.zeros_like(perturbations).unsqueeze(0), torch.diag_embed(perturbations).movedim(-2, 0)]
        )
        rewards = self.perturbed(actions.expand(len(alone), *actions.shape), self.few(noise), alone)
        # A perturbation with a loss counts as zero: otherwise the search would discard actions whose initial
        # perturbation has the wrong sign.
        gains = (rewards[1:] - rewards[0]).clamp_min(0)
        return mean_reward(self.network, actions, noise) + safe_root(gains.square().sum(0))


PROPAGATE: dict[str, type[Propagation]] = {
    "mean": Mean,
    "linear": Linear,
    "reached": Reached,
    "sample": Sample,
    "optimistic": Optimistic,
    "separate": Separate,
}
"""Propagation strategies by their name in a configuration."""


def monotone_perturbations(network: CausalNetwork) -> tuple[float | None, ...]:
    """The optimal constant perturbation of each node where it is known: the sign of its weight, if the reward
    is a weighted sum with this node and the node is the parent of no other; otherwise None.
    """
    task = network.task
    causes = {name for node in task.nodes for name in task.inputs(node)}
    weights = task.reward.weights if isinstance(task.reward, WeightedSum) else {}
    return tuple(
        math.copysign(1.0, weights[node]) if node in weights and node not in causes else None
        for node in task.nodes
    )
