"""Expected reward of actions in a causal network that is not fully known.

Objectives of causal Bayesian optimisation use fixed draws u_1 ... u_S of the noise of the learnt network,
common to all candidates of a round (common random numbers), so that candidates are comparable and the
objective is smooth. The posterior mean of the reward,

    E[r | a] = 1/S sum_s r(x(a, u_s)),     x_i = m_i(w_i, u_i)  in topological order,

is the predicted reward of an action. Its maximiser is the action that every method recommends at the end of a
round; random and Sobol actions use it only for this. Which action to *try* is decided by each objective. A
candidate is an action, followed by further coordinates in [-1, 1] if an objective optimises some jointly.

Epistemic draws. A mechanism is known up to a posterior standard deviation: x_i = m_i + e_i s_i with e_i ~
N(0, 1). One draw e of all nodes, the same for every input, noise draw and candidate, is one plausible
network, and

    f_e(a) = E_u[r(x(a, u, e))]

its expected reward. Mean and standard deviation of f_e over e are the posterior mean and the epistemic
uncertainty of E[r | a]; the noise of a single experiment (the spread over u) is averaged out.

A known reward inherits uncertainty from the nodes that it reads. With x_i = m_i + e_i s_i, e_i ~ N(0, 1)
independent, a weighted sum has the standard deviation

    (sum_i w_i^2 s_i^2)^(1/2)

exactly, |w| s for a single node. For any other reward it is the standard deviation over fixed normal draws e.

Source: Ren et al. (2025), Sec. 5.1, Eq. 5 (one node; with beta = 0 the posterior mean) and Alg. 1; Balandat
et al. (2020), Sec. 3 (common random numbers, normal Sobol draws); Astudillo and Frazier (2021), Sec. 4.2 (one
fixed draw per node and sample); Frazier (2018), Sec. 4.2 (recommending the maximiser of the posterior mean).
The extension to known functions of several nodes is ours.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, final

import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.known_reward import KnownReward, WeightedSum
from rehearsal_torch.data.question import Kind
from rehearsal_torch.objectives.objective import Objective
from rehearsal_torch.objectives.trials.reward_frame import RewardFrame
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.box import Box, nearest
from rehearsal_torch.spaces.candidate_region import CandidateRegion
from rehearsal_torch.spaces.mixed_region import with_levels
from rehearsal_torch.surrogates.network.causal_model import CausalModel, CausalNetwork, Perturbation
from rehearsal_torch.surrogates.network.network_posterior import plausible_values


def standard_draws(count: int, width: int, seed: int) -> Tensor:
    """Normal draws (count, width) with mean 0 and variance 1 in every column: scrambled Sobol points, each
    followed by its antithetic counterpart.

    Raises:
        ValueError: if `count` is odd or below 2.
    """
    if count < 2 or count % 2:
        raise ValueError(
            f"expected an even number of draws, since they come in antithetic pairs; got {count}"
        )
    half = (
        draw_sobol_normal_samples(width, count // 2, seed=seed, dtype=torch.float64)
        if width
        else torch.zeros(count // 2, 0, dtype=torch.float64)
    )
    both = torch.stack([half, -half], 1).flatten(0, 1)
    return both / both.square().mean(0).sqrt().clamp_min(1e-12)


def mean_reward(
    network: CausalNetwork, actions: Tensor, noise: Tensor, perturbation: Perturbation | None = None
) -> Tensor:
    """E[r] over draws of the noise, (..., k), (S, N) -> (...), in the reward's unit.

    Args:
        network: The fitted network.
        actions: (..., k), in their units.
        noise: (S, N), draws of the noise.
        perturbation: Perturbation of each node from its posterior mean, in posterior standard deviations;
            None for the posterior mean itself.
    """
    values, _ = network.propagate(actions, noise, perturbation)
    return network.reward(values).mean(-1)


def plausible_rewards(network: CausalNetwork, actions: Tensor, noise: Tensor, epistemic: Tensor) -> Tensor:
    """f_e(a) for every draw e, (..., k), (S, N), (E, N) -> (..., E)."""

    def read(values: Tensor) -> Tensor:
        return network.reward(values).unsqueeze(-1)

    return plausible_values(network, actions.unsqueeze(-2), noise, epistemic, read)[..., 0, 0].movedim(0, -1)


def reward_spread(reward: KnownReward, means: Tensor, stds: Tensor, epistemic: Tensor) -> Tensor:
    """The standard deviation of the reward.

    Args:
        reward: A function of m nodes.
        means: (..., m), their posterior means.
        stds: (..., m), their posterior standard deviations.
        epistemic: (E, m), normal draws with mean 0 and variance 1, for rewards without a closed form.

    Returns:
        (...), in the reward's unit.
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


# Candidates are screened with one in SCREEN draws.
SCREEN = 4
# Number of plausible networks by which recommendations are compared.
PLAUSIBLE = 32
# Maximum number of candidates times draws in one tensor.
CHUNK = 16_384


class CausalObjective(Objective, ABC):
    """The value of candidates under fixed draws of the learnt noise.

    Args:
        surrogate: A fitted causal model; its network is cached here.
        case: The round, with the bounds of each action.
        draws: S, number of fixed noise draws.
        evaluation_draws: Number of other draws, with which a recommendation is evaluated.
        seed: Together with the identity of the round, determines the draws.
        pending: Actions that are under way or have failed, (p, k), for objectives that take them; None if
            there are none.

    Raises:
        ValueError: if an action may not be set or has no level within its bounds, or there is no draw.
    """

    kind: Kind | None = "optimise"
    # Whether it is given pending and failed actions, (p, k), as `pending`; for others they are imputed.
    takes_pending: ClassVar[bool] = False

    def __init__(
        self,
        surrogate: CausalModel,
        case: RehearsalCase,
        draws: int = 64,
        evaluation_draws: int = 256,
        seed: int = 0,
        pending: Tensor | None = None,
    ) -> None:
        if min(draws, evaluation_draws) < 1:
            raise ValueError(
                f"expected at least 1 draw; got draws={draws} and evaluation_draws={evaluation_draws}"
            )
        self.task, self.case, self.network = surrogate.task, case, surrogate.network()
        fixed = [name for name in self.task.actions if name not in case.feasible]
        if fixed:
            raise ValueError(
                f"{case.identity}: {fixed} may not be set; feasible are {list(case.feasible)}: a "
                "round sets every action"
            )
        self.box = Box.of({name: case.feasible[name] for name in self.task.actions})
        # An action that the case holds at a value has this value as its only level.
        self.levels = {**self.task.box.levels, **case.levels}
        for name, (lower, upper) in self.box.bounds().items():
            if name in self.levels:
                self.levels[name] = tuple(each for each in self.levels[name] if lower <= each <= upper)
        if empty := [name for name, values in self.levels.items() if not values]:
            raise ValueError(
                f"{case.identity}: none of the levels of {empty} lies within the bounds of the round"
            )
        self.seed = round_seed(seed, case.identity)
        self.draw = surrogate.draws
        self.noise, self.other = (
            surrogate.draws(draws, self.seed),
            surrogate.draws(evaluation_draws, self.seed + 1),
        )
        self.visited = surrogate.visited()
        self.pending = pending.to(self.visited) if pending is not None and len(pending) else None

    @property
    def further(self) -> int:
        """Number of coordinates in [-1, 1] of a candidate besides its action; 0 by default."""
        return 0

    @cached_property
    def reward_frame(self) -> RewardFrame:
        """The frame in which a search compares rewards, from the posterior means at the visited actions."""
        with torch.no_grad():
            return (
                RewardFrame.of(self.expected(self.visited, self._screened_points))
                if len(self.visited)
                else RewardFrame()
            )

    @property
    def frame(self) -> RewardFrame:
        """The frame in which a search compares values of this objective; by default that of rewards."""
        return self.reward_frame

    @property
    def _screened_points(self) -> Tensor:
        """The draws with which many candidates are screened."""
        return self.noise[: max(1, len(self.noise) // SCREEN)]

    @property
    def bounds(self) -> Tensor:
        """(2, k + further), lower and upper bounds of a candidate."""
        wide = torch.ones(self.further, dtype=torch.float64)
        return torch.stack([torch.cat([self.box.lower, -wide]), torch.cat([self.box.upper, wide])]).to(
            self.noise.device
        )

    def region(self, further: bool = True) -> CandidateRegion:
        """The feasible region of candidates; without `further`, that of actions."""
        size = self.bounds.shape[-1] if further else len(self.task.actions)
        lower, upper = self.bounds[:, :size]
        plain = CandidateRegion.within(lower, upper, self.task.limits)
        return with_levels(plain, dict(self._choices(self.levels)))

    def _choices(self, levels: Mapping[str, tuple[float, ...]]) -> list[tuple[int, tuple[float, ...]]]:
        """Index and levels of the actions that have some."""
        return [(self.task.actions.index(name), values) for name, values in levels.items()]

    @abstractmethod
    def value_with(self, points: Tensor, draws: int) -> Tensor:
        """The value of candidates under the first `draws` draws, (..., k + further) -> (...)."""

    def __call__(self, points: Tensor) -> Tensor:
        """The value of trying candidates, (..., k + further) -> (...)."""
        return self.value_with(points, len(self.noise))

    def rough(self, points: Tensor) -> Tensor:
        """An approximation at a quarter of the cost, with some of the draws, (..., k + further) -> (...)."""
        return self.value_with(points, max(1, len(self.noise) // SCREEN))

    @torch.no_grad()
    def screened(self, points: Tensor) -> Tensor:
        """`rough` for many candidates, (n, k + further) -> (n,)."""
        return torch.cat(
            [self.rough(part) for part in points.split(max(1, SCREEN * CHUNK // len(self.noise)))]
        )

    def expected(self, actions: Tensor, noise: Tensor | None = None) -> Tensor:
        """The posterior mean of the reward, (..., k) -> (...), in its unit; under the draws of the round by
        default.
        """
        return mean_reward(self.network, actions, self.noise if noise is None else noise)

    @cached_property
    def networks(self) -> Tensor:
        """Epistemic draws of plausible networks, (E, N), other than those of any objective."""
        drawn = standard_draws(PLAUSIBLE, len(self.network.mechanisms), self.seed + 4)
        return drawn.to(self.noise)

    def plausible(self, actions: Tensor) -> Tensor:
        """The expected reward in each of E plausible networks, (..., k) -> (..., E), in its unit: under few
        of the draws that do not compare candidates, corrected by the posterior mean under all of them.
        """
        few = self.other[: max(1, len(self.other) // (SCREEN * SCREEN))]
        correction = self.expected(actions, self.other) - self.expected(actions, few)
        return plausible_rewards(self.network, actions, few, self.networks) + correction.unsqueeze(-1)

    def allowed(self, actions: Tensor) -> Tensor:
        """Whether actions (n, k) satisfy the bounds of the round, and the levels and limits of the task, up
        to rounding, (n,) bool.
        """
        lower, upper, slack = (
            self.box.lower.to(actions),
            self.box.upper.to(actions),
            1e-6 * self.box.width.to(actions),
        )
        inside = ((actions >= lower - slack) & (actions <= upper + slack)).all(-1)
        for place, values in self._choices(self.task.box.levels):
            inside &= (nearest(actions[:, place], values) - actions[:, place]).abs() <= slack[place]
        limits = self.task.limits
        return (
            inside
            if limits is None
            else inside & (limits.slack(actions) >= -1e-6 * (1 + limits.offsets.abs().to(actions))).all(-1)
        )

    @torch.no_grad()
    def starts(self, count: int) -> Tensor:
        """The visited actions with the largest posterior mean that may be tried again, best first, (<= count,
        k + further); further coordinates are 0.
        """
        inside = self.visited[self.box.contains(self.visited) & self.allowed(self.visited)]
        for place, values in self._choices(self.levels):
            at = nearest(inside[:, place], values)
            near = (at - inside[:, place]).abs() <= 1e-6 * self.box.width[place]
            inside = torch.cat([inside[:, :place], at.unsqueeze(-1), inside[:, place + 1 :]], -1)[near]
        if not len(inside):
            return self.noise.new_empty(0, self.bounds.shape[-1])
        order = ranked(self.expected(inside, self._screened_points)).argsort(descending=True, stable=True)[
            :count
        ]
        return torch.nn.functional.pad(inside[order], (0, self.further))


@final
class PosteriorMean(CausalObjective):
    """The posterior mean of E[r | a]."""

    def value_with(self, points: Tensor, draws: int) -> Tensor:
        """The posterior mean under the first `draws` draws, (..., k) -> (...)."""
        return self.expected(points, self.noise[:draws])
