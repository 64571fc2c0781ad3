"""Objectives of causal Bayesian optimisation: what they share, and the posterior mean.

In every round an objective holds an acquisition function of BoTorch (`network_acquisition`), with fixed draws
of the learnt noise that are common to all candidates, and a cheaper approximation of it with which many
candidates are screened. The maximiser of the posterior mean of the reward, E[r | a], is the action that every
method recommends at the end of a round; random and Sobol actions use it only for this. Which action to *try*
is decided by the acquisition function. A candidate is an action, followed by further coordinates in [-1, 1]
if the function optimises some jointly.

Source: Ren et al. (2025), Alg. 1; Balandat et al. (2020), Sec. 3 (common random numbers); Frazier (2018),
Sec. 4.2 (recommending the maximiser of the posterior mean).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.question import Kind
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.objective import Objective
from rehearsal_torch.objectives.trials.network_acquisition import (
    DrawnNetwork,
    ExpectedReward,
    candidate_bounds,
    mean_reward,
    plausible_rewards,
    standard_draws,
)
from rehearsal_torch.objectives.trials.reward_frame import RewardFrame
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.box import Box, nearest
from rehearsal_torch.spaces.candidate_region import CandidateRegion, with_levels
from rehearsal_torch.surrogates.network.causal_model import CausalModel

# Candidates are screened with one in SCREEN draws.
SCREEN = 4
# Number of plausible networks by which recommendations are compared.
PLAUSIBLE = 32
# Maximum number of candidates times draws in one tensor.
CHUNK = 16_384


class CausalObjective(Objective, ABC):
    """The value of candidates under fixed draws of the learnt noise.

    Args:
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
        require(
            min(draws, evaluation_draws) >= 1,
            "at least 1 draw",
            **{"draws": draws, "evaluation_draws": evaluation_draws},
        )
        self.task, self.case, self.network = surrogate.task, case, surrogate.network()
        # What to try is searched by the fitted functions' own uncertainty, claims have all of it.
        self.searched = self.network.as_fitted()
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
                self.levels[name] = tuple(value for value in self.levels[name] if lower <= value <= upper)
        if empty := [name for name, values in self.levels.items() if not values]:
            raise ValueError(
                f"{case.identity}: none of the levels of {empty} lies within the bounds of the round"
            )
        self.seed = round_seed(seed, case.identity)
        self.draw = surrogate.draws
        self.noise = surrogate.draws(draws, self.seed)
        self.other = surrogate.draws(evaluation_draws, self.seed + 1)
        self.visited = surrogate.visited()
        self.pending = pending.to(self.visited) if pending is not None and len(pending) else None

    @abstractmethod
    def built(self, screening: bool) -> AcquisitionFunction:
        """The acquisition function of candidates (..., 1, k + further); for `screening`, a cheaper
        approximation of it.
        """

    @cached_property
    def acquisition(self) -> AcquisitionFunction:
        """BoTorch's acquisition function, of (..., 1, k + further)."""
        return self.built(screening=False)

    @cached_property
    def screening(self) -> AcquisitionFunction:
        """The approximation of it with which many candidates are screened."""
        return self.built(screening=True)

    @property
    def further(self) -> int:
        """Number of coordinates in [-1, 1] of a candidate besides its action; 0 by default."""
        return 0

    @cached_property
    def reward_frame(self) -> RewardFrame:
        """The frame in which a search compares rewards, from the posterior means at the visited actions."""
        if not len(self.visited):
            return RewardFrame()
        with torch.no_grad():
            return RewardFrame.of(self.expected(self.visited, self._screened_points))

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
        return candidate_bounds(self.box, self.further).to(self.noise.device)

    def region(self, further: bool = True) -> CandidateRegion:
        """The feasible region of candidates; without `further`, that of actions."""
        size = self.bounds.shape[-1] if further else len(self.task.actions)
        lower, upper = self.bounds[:, :size]
        plain = CandidateRegion.within(lower, upper, self.task.limits)
        return with_levels(plain, dict(self._choices(self.levels)))

    def _choices(self, levels: Mapping[str, tuple[float, ...]]) -> list[tuple[int, tuple[float, ...]]]:
        """Index and levels of the actions that have some."""
        return [(self.task.actions.index(name), values) for name, values in levels.items()]

    def drawn(self, screening: bool, epistemic: Tensor | None = None) -> DrawnNetwork:
        """The network with the draws of the noise, or with those of the screening, and with epistemic draws
        (E, N); None for the network of posterior means.
        """
        noise = self._screened_points if screening else self.noise
        means = noise.new_zeros(1, noise.shape[-1])
        return DrawnNetwork(self.searched, noise, means if epistemic is None else epistemic)

    def __call__(self, points: Tensor) -> Tensor:
        """The value of trying candidates, (..., k + further) -> (...)."""
        return _of_points(self.acquisition, points)

    def rough(self, points: Tensor) -> Tensor:
        """An approximation at a quarter of the cost, with some of the draws, (..., k + further) -> (...)."""
        return _of_points(self.screening, points)

    @torch.no_grad()
    def screened(self, points: Tensor) -> Tensor:
        """`rough` for many candidates, (n, k + further) -> (n,)."""
        parts = points.split(max(1, SCREEN * CHUNK // len(self.noise)))
        return torch.cat([self.rough(part) for part in parts])

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
        lower, upper = self.box.lower.to(actions), self.box.upper.to(actions)
        slack = 1e-6 * self.box.width.to(actions)
        inside = ((actions >= lower - slack) & (actions <= upper + slack)).all(-1)
        for index, values in self._choices(self.task.box.levels):
            inside &= (nearest(actions[:, index], values) - actions[:, index]).abs() <= slack[index]
        limits = self.task.limits
        if limits is None:
            return inside
        return inside & (limits.slack(actions) >= -1e-6 * (1 + limits.offsets.abs().to(actions))).all(-1)

    @torch.no_grad()
    def starts(self, count: int) -> Tensor:
        """The visited actions with the largest posterior mean that may be tried again, best first, (<= count,
        k + further); further coordinates are 0.
        """
        inside = self.visited[self.box.contains(self.visited) & self.allowed(self.visited)]
        for index, values in self._choices(self.levels):
            at = nearest(inside[:, index], values)
            near = (at - inside[:, index]).abs() <= 1e-6 * self.box.width[index]
            inside = torch.cat([inside[:, :index], at.unsqueeze(-1), inside[:, index + 1 :]], -1)[near]
        if not len(inside):
            return self.noise.new_empty(0, self.bounds.shape[-1])
        means = ranked(self.expected(inside, self._screened_points))
        order = means.argsort(descending=True, stable=True)[:count]
        return torch.nn.functional.pad(inside[order], (0, self.further))


def _of_points(function: AcquisitionFunction, points: Tensor) -> Tensor:
    """The values of an acquisition function at single candidates, (..., k + further) -> (...)."""
    values: Tensor = function(points.unsqueeze(-2))
    return values.reshape(points.shape[:-1])


@final
class PosteriorMean(CausalObjective):
    """The posterior mean of E[r | a]."""

    def built(self, screening: bool) -> ExpectedReward:
        """The posterior mean, of (..., 1, k)."""
        return ExpectedReward(self.drawn(screening))
