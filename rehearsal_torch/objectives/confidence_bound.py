"""The upper confidence bound of a causal system.

With fixed draws u_s of the learnt noise,

    alpha(a) = 1/S sum_s mu(a, u_s) + beta 1/S sum_s sigma(a, u_s),

mu and sigma being mean and standard deviation of the reward node's law at the inputs that draw s brings
about. How the nodes before it are carried is `propagate`:

    mean        x_i = m_i: best guesses. What is not known of the nodes before the reward is ignored.
    linear      to first order, sigma(a)^2 = sum_i (d E[r] / d e_i)^2 with x_i = m_i + e_i s_i at e = 0: every
                node counts as far as it moves the expected reward. The bound is the largest E[r] over |e| <=
                beta, linearised.
    reached     the same direction of e, at its true value: the larger of E[r] at e = 0 and at e = beta g /
                |g|, g the slopes of `linear`. Unlike the linearised bound it is the expected reward of a
                plausible system, and never above what rewards can be.
    sample      e ~ N(0, I), fixed draws; mean and standard deviation of E_u[r] over e.
    optimistic  the largest E[r] over e in [-beta, beta]^N: pushes eta_i = e_i / beta in [-1, 1] are further
                coordinates of the candidate, the same for every draw of the noise. A node that the reward is
                a weighted sum of, and that causes nothing else, is pushed as far as it goes.
    separate    mu + (sum_i g_i^2)^(1/2), g_i being what E[r] gains where node i alone is pushed, e_i in
                [-beta, beta], a coordinate as above. Where all is straight this is `linear`; elsewhere gains
                are true values, which slopes are not at a crest or in a valley. Products of what is not known
                of several nodes do not count, as they do in `optimistic`, by more the longer a chain is.

beta multiplies the standard deviation, in every objective alike. With `growing`, beta_t = beta (0.2 k log
2n)^(1/2) after n experiments with k actions.

Source: Ren et al. (2025), Eq. 5 (`mean`); Sussex et al. (2023), Eq. 7, with constant eta as in their
noise-free case (`optimistic`); Astudillo and Frazier (2021) (`sample`); Kandasamy et al. (2015), Sec. 4
(growth); `linear`, `reached` and `separate` are ours.
"""

import math
from typing import final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Foresight
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.objectives.expected_reward import (
    SCREEN,
    CausalObjective,
    plausible_rewards,
    reward_spread,
    safe_root,
    standard_draws,
)
from rehearsal_torch.surrogates.network.causal_model import CausalModel, CausalNetwork

PROPAGATE = ("mean", "linear", "reached", "sample", "optimistic", "separate")
PUSHED = ("optimistic", "separate")


@final
class ConfidenceBound(CausalObjective):
    """Eq. 5, and what lets the nodes before the reward count.

    Args:
        surrogate: A fitted causal model.
        situation: The round.
        beta: How many standard deviations are added.
        growing: Whether beta grows with the number of experiments.
        propagate: ``mean``, ``linear``, ``reached``, ``sample``, ``optimistic`` or ``separate``.
        draws: S, fixed draws of the noise.
        plausible: E, draws of what is not known; for ``sample``, and for ``mean`` where the reward is no
            weighted sum.
        judged: Other draws, by which a recommendation is judged.
        seed: With the round's identity, decides the draws.

    Raises:
        ValueError: if beta is negative, or `propagate` is none of these.
    """

    def __init__(
        self,
        surrogate: CausalModel,
        situation: Foresight,
        beta: float = 2.0,
        growing: bool = False,
        propagate: str = "optimistic",
        draws: int = 64,
        plausible: int = 16,
        judged: int = 256,
        seed: int = 0,
    ) -> None:
        super().__init__(surrogate, situation, draws, judged, seed)
        if not 0 <= beta < math.inf or propagate not in PROPAGATE:
            raise ValueError(
                f"expected beta >= 0 and propagate in {list(PROPAGATE)}; got beta={beta} and "
                f"propagate={propagate!r}"
            )
        growth = (
            math.sqrt(0.2 * len(self.task.actions) * math.log(2 * max(len(self.visited), 1)))
            if growing
            else 1.0
        )
        self.beta, self.propagate = beta * growth, propagate
        self.read = [self.network.task.nodes.index(name) for name in self.network.task.reward.names]
        # The seeds below are those of the noise, apart by a little: the draws of nodes must not follow those
        # of the noise.
        self.epistemic = standard_draws(plausible, len(self.network.mechanisms), self.seed + 2).to(self.noise)
        self.pushes = pushed_as_far_as_it_goes(self.network)

    @property
    def further(self) -> int:
        """One push for each node that is not pushed as far as it goes; none unless ``optimistic`` or
        ``separate``.
        """
        return sum(push is None for push in self.pushes) if self.propagate in PUSHED else 0

    def worth(self, points: Tensor, draws: int) -> Tensor:
        """(..., k + further) -> (...)."""
        noise, width = self.noise[:draws], len(self.task.actions)
        if self.propagate == "mean":
            return self._mean(points, noise)
        if self.propagate == "linear":
            return self._linear(points, noise)
        if self.propagate == "reached":
            return self._reached(points, noise)
        if self.propagate == "sample":
            rewards = plausible_rewards(self.network, points, self._few(noise), self.epistemic)
            middle = rewards.mean(-1)
            return middle + self.beta * safe_root((rewards - middle.unsqueeze(-1)).square().mean(-1))
        pushes = self.beta * self._eta(points[..., width:])
        return (self._separate if self.propagate == "separate" else self._pushed)(
            points[..., :width], noise, pushes
        )

    def _eta(self, free: Tensor) -> Tensor:
        """The pushes of all nodes, (..., N), of those that are free."""
        columns = iter(free.unbind(-1))
        shape = free.shape[:-1]
        return torch.stack(
            [next(columns) if push is None else free.new_full(shape, push) for push in self.pushes], -1
        )

    def _pushed(self, actions: Tensor, noise: Tensor, pushes: Tensor) -> Tensor:
        values, _ = self.network.propagate(actions, noise, lambda place, _: pushes[..., place, None])
        return self.network.reward(values).mean(-1)

    def _separate(self, actions: Tensor, noise: Tensor, pushes: Tensor) -> Tensor:
        alone = torch.cat([torch.zeros_like(pushes).unsqueeze(0), torch.diag_embed(pushes).movedim(-2, 0)])
        rewards = self._pushed(actions.expand(len(alone), *actions.shape), self._few(noise), alone)
        # A push that loses counts as none: were it held against an action, the search would pass over actions
        # whose start has the wrong sign.
        gains = (rewards[1:] - rewards[0]).clamp_min(0)
        return self.expected(actions, noise) + safe_root(gains.square().sum(0))

    def _mean(self, actions: Tensor, noise: Tensor) -> Tensor:
        reward = self.network.task.reward
        values, spreads = self.network.propagate(actions, noise, spread=reward.names)
        means = values[..., self.read]
        deviations = torch.stack([spreads[name].expand(means.shape[:-1]) for name in reward.names], -1)
        return reward(means).mean(-1) + self.beta * reward_spread(
            reward, means, deviations, self.epistemic[:, self.read]
        ).mean(-1)

    def _linear(self, actions: Tensor, noise: Tensor) -> Tensor:
        slopes = self._slopes(actions, noise)
        return self.expected(actions, noise) + self.beta * safe_root(slopes.square().sum(-1))

    def _reached(self, actions: Tensor, noise: Tensor) -> Tensor:
        slopes = self._slopes(actions, noise)
        push = self.beta * slopes / safe_root(slopes.square().sum(-1, keepdim=True))
        both = torch.stack([torch.zeros_like(push), push])
        return self._pushed(actions.expand(2, *actions.shape), noise, both).amax(0)

    @staticmethod
    def _few(noise: Tensor) -> Tensor:
        """A quarter of the draws: what is not known varies less over them than the mean does, and costs
        more.
        """
        return noise[: max(1, len(noise) // SCREEN)]

    def _slopes(self, actions: Tensor, noise: Tensor) -> Tensor:
        """How E[r] changes with each node's push, (..., N), at none."""
        wanted = torch.is_grad_enabled()
        few = self._few(noise)
        with torch.enable_grad():
            pushes = actions.new_zeros(*actions.shape[:-1], len(self.network.mechanisms), requires_grad=True)
            (slopes,) = torch.autograd.grad(
                self._pushed(actions, few, pushes).sum(), pushes, create_graph=wanted
            )
        return slopes if wanted else slopes.detach()


def pushed_as_far_as_it_goes(network: CausalNetwork) -> tuple[float | None, ...]:
    """For each node the sign of its weight, if it causes no other node and the reward is a weighted sum that
    reads it; otherwise None.
    """
    task = network.task
    causes = {name for node in task.nodes for name in task.inputs(node)}
    weights = task.reward.weights if isinstance(task.reward, WeightedSum) else {}
    return tuple(
        math.copysign(1.0, weights[node]) if node in weights and node not in causes else None
        for node in task.nodes
    )
