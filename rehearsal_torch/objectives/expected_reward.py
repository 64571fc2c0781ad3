"""Objectives of causal Bayesian optimisation: what they share, and the posterior mean.

In every round an acquisition function of BoTorch on the fitted network, as a BoTorch model (`NetworkModel`),
decides which action to *try*. The maximiser of the posterior mean of the reward,

    E[r | a] = 1/E sum_e f_e(a),     f_e(a) = E_u[r(x(a, u, e))]  in the plausible network e,

is the action that every method recommends at the end of a round. The spread of f_e(a) over e is the epistemic
uncertainty of E[r | a]; the noise of a single experiment (the spread over u) is averaged out.

A context is held at the value of the round, E[r | a, c], as are the actions tried before in other contexts:
what is compared is what they would bring here. The k columns of an action are those of `CausalTask.settings`.

There are two models of the same fit: `model`, for the search, has few members and tables of functions of one
or two inputs; `claimed`, which compares and claims the results, has more members, other draws and no tables,
so that the answer is not favoured by chance in the draws of the search. Where nodes have constraints, that of
settings which are known to keep them (`objectives.feasibility`).

Source: Ren et al. (2025), Alg. 1 and Sec. 5.1; Balandat et al. (2020), Sec. 3 (common random numbers);
Frazier (2018), Sec. 4.2 (recommending the maximiser of the posterior mean).
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import ClassVar, Self, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.monte_carlo import qSimpleRegret
from botorch.acquisition.objective import GenericMCObjective
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.non_finite import UNDEFINED, NoFiniteValueError, ranked
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.data.task_compatibility import Kind
from rehearsal_torch.objectives import feasibility
from rehearsal_torch.objectives.feasibility import Constrained, PenalisedMean
from rehearsal_torch.objectives.objective import Objective
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.box import Box, nearest
from rehearsal_torch.spaces.candidate_region import CandidateRegion
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from rehearsal_torch.surrogates.network.botorch_posterior import MemberSampler
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel, CausalNetwork

CLAIMED_MEMBERS, CLAIMED_DRAWS = 64, 32
SPREAD = 256  # Space-filling actions among which a feasible one is looked for


class CausalObjective(Objective, ABC):
    """The value of candidates under a fitted model; a ValueError for invalid actions or numbers.

    Args:
        members: E, number of plausible networks by which candidates are searched; even.
        draws: S, number of fixed noise draws over which each is averaged.
        seed: Together with the identity of the round, determines all draws.
        pending: Actions that are under way or have failed, (p, k), for objectives that take them.
    """

    kind: Kind | None = "optimise"
    takes_pending: ClassVar[bool] = False  # Whether it takes `pending` actions; for others they are imputed
    takes_constraints: ClassVar[bool] = False  # Whether constraints on nodes, and costs, count in its values
    takes_two: ClassVar[bool] = False  # Whether it is a value for two rewards

    def __init__(
        self,
        surrogate: CausalModel,
        case: RehearsalCase,
        members: int = 16,
        draws: int = 16,
        seed: int = 0,
        pending: Tensor | None = None,
    ) -> None:
        require(draws >= 1, "at least 1 draw", draws=draws)
        require(members >= 2 and members % 2 == 0, "an even number of members", members=members)
        self.surrogate, self.task, self.case = surrogate, surrogate.task, case
        if unknown := [name for name in self.task.context if name not in case.given]:
            raise ValueError(f"{case.identity}: {unknown} are unknown: give the context to decide in")
        if (self.task.constraints or self.task.costs) and not self.takes_constraints:
            words = "takes no constraints on nodes and no costs: decide by excbo, qlognei or qlogei"
            raise ValueError(f"{type(self).__name__} {words}")
        if self.task.reward.labels and not self.takes_two:
            raise ValueError(f"{type(self).__name__} decides by a single reward: take excbo for two")
        if unsettable := [name for name in self.task.actions if name not in case.feasible]:
            raise ValueError(
                f"{case.identity}: {unsettable} may not be set; feasible are {list(case.feasible)}: a "
                "round sets every action"
            )
        given = {name: float(case.given[name]) for name in self.task.context}
        bounds = {name: case.feasible[name] for name in self.task.actions}
        self.box = Box.of(bounds | {name: (value, value) for name, value in given.items()})
        # An action that the case holds at a value has this value as its only level, and so has a context.
        self.levels = {**self.task.box.levels, **case.levels, **{name: (given[name],) for name in given}}
        for name, (lower, upper) in self.box.bounds().items():
            if name in self.levels:
                self.levels[name] = tuple(value for value in self.levels[name] if lower <= value <= upper)
        if empty := [name for name, values in self.levels.items() if not values]:
            raise ValueError(
                f"{case.identity}: none of the levels of {empty} lies within the bounds of the round"
            )
        self.members, self.draws, self.seed = members, draws, round_seed(seed, case.identity)
        self.visited = self._here(surrogate.visited())
        self.pending = self._here(pending.to(self.visited)) if pending is not None and len(pending) else None

    def _here(self, settings: Tensor) -> Tensor:
        """Actions in the context of the round, whatever theirs was, (n, k) -> (n, k)."""
        width = len(self.task.actions)
        given = self.box.lower[width:].to(settings)
        return torch.cat([settings[:, :width], given.expand(len(settings), -1)], -1)

    @cached_property
    def network(self) -> CausalNetwork:
        """The network of posterior means."""
        return self.surrogate.network()

    @cached_property
    def model(self) -> NetworkModel:
        """The model of the search."""
        members, draws = self.members, self.draws
        if self.task.constraints:
            members, draws = max(members, feasibility.MEMBERS), max(draws, feasibility.DRAWS)
        return NetworkModel(self.surrogate, members=members, draws=draws, seed=self.seed).tabulated()

    @cached_property
    def constrained(self) -> Constrained | None:
        """The model of the search with the values of constraints; None without any."""
        constraints = self.task.constraints
        return Constrained(self.model, constraints, self.visited) if constraints else None

    @cached_property
    def seeks_feasibility(self) -> bool:
        """Whether no visited or space-filling action is known to be feasible, which then comes first."""
        if self.constrained is None:
            return False
        region, visited = self.region(), self.visited[self.allowed(self.visited)]
        actions = torch.cat([visited, region.units(region.spread(SPREAD, self.seed))])
        with torch.no_grad():
            samples = self.constrained.posterior(actions.unsqueeze(-2)).values[..., 0, :]
            return not bool((self.constrained.violation(samples) <= 0).any())

    @cached_property
    def claimed(self) -> NetworkModel:
        """The model that claims the results."""
        draws = feasibility.CLAIMED_DRAWS if self.task.constraints else CLAIMED_DRAWS
        return NetworkModel(self.surrogate, members=CLAIMED_MEMBERS, draws=draws, seed=self.seed + 10)

    @cached_property
    def acquisition(self) -> AcquisitionFunction:
        """BoTorch's acquisition function, of (..., 1, k) in the actions' units."""
        return self.built()

    @abstractmethod
    def built(self) -> AcquisitionFunction:
        """A new one."""

    @cached_property
    def tried(self) -> tuple[Tensor, Tensor]:
        """The visited actions in bounds, (n, k), or all if none is, and their rewards, (E, n)."""
        inside = self.visited[self.allowed(self.visited)]
        actions = inside if len(inside) else self.visited
        with torch.no_grad():
            return actions, self.model.posterior(actions.unsqueeze(-2)).values[..., 0, 0]

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Largest posterior mean of tried actions, and spread: BoTorch's tolerances are absolute."""
        if not len(self.visited):
            return 0.0, 1.0
        means = self.tried[1].mean(0)
        finite = means[means.isfinite()]
        if not len(finite):
            raise NoFiniteValueError(
                f"{self.case.identity}: expected a finite reward of some visited action; {UNDEFINED}: look "
                "for extreme values in the table"
            )
        spread = float(finite.std()) if len(finite) > 1 else float(finite.abs().max())
        # A spread of any size counts, unless it is only rounding.
        return float(finite.max()), max(spread, 1e-14 * float(finite.abs().max()), 1e-300)

    @cached_property
    def standardised(self) -> Callable[..., Tensor]:
        """Rewards (..., 1) in units of `scale`, (...): BoTorch's functions keep no objective alive."""
        best, spread = self.scale
        return lambda samples, X=None: (samples[..., 0] - best) / spread  # noqa: ARG005

    def mean_reward(self) -> AcquisitionFunction:
        """The posterior mean, of (..., 1, k), standardised; less a penalty of what is not feasible."""
        if self.constrained is not None:
            return PenalisedMean(self.constrained, self.standardised)
        sampler = MemberSampler(torch.Size([self.model.members]))
        return qSimpleRegret(self.model, sampler, GenericMCObjective(self.standardised))

    def by_set(self) -> list[Self]:
        """The objective where each set of nodes is set, that of all sets is the best of them; one alone where
        no node is settable.
        """
        if not self.task.settable:
            return [self]
        objectives = []
        # What they share is evaluated before they part.
        _ = self.model, self.claimed, self.scale, self.acquisition, self.constrained
        for levels in self.task.sets(self.levels):
            objectives.append(copy.copy(self))
            objectives[-1].levels = levels
        return objectives

    def region(self) -> CandidateRegion:
        """The feasible region of actions."""
        lower, upper = self.box.lower.to(self.visited), self.box.upper.to(self.visited)
        region = CandidateRegion.within(lower, upper, self.task.limits, self.task.log_columns)
        classes = [name for name in self.task.actions if name in self.task.classes]
        return region.at(self._indexed(self.levels), [*map(self.task.actions.index, classes)])

    def __call__(self, actions: Tensor) -> Tensor:
        """The value of trying actions, (..., k) -> (...)."""
        values: Tensor = self.acquisition(actions.unsqueeze(-2))
        return values.reshape(actions.shape[:-1])

    def expected(self, actions: Tensor) -> Tensor:
        """The posterior mean of the reward, (..., k) -> (...), in its unit, as claimed."""
        return self.plausible(actions).mean(-1)

    def plausible(self, actions: Tensor) -> Tensor:
        """The expected reward in each of E plausible networks, (..., k) -> (..., E), in its unit."""
        with torch.no_grad():
            return self.claimed.posterior(actions.unsqueeze(-2)).values[..., 0, 0].movedim(0, -1)

    def allowed(self, actions: Tensor) -> Tensor:
        """Whether actions (n, k) satisfy bounds, levels and limits up to rounding, (n,) bool."""
        lower, upper = self.box.lower.to(actions), self.box.upper.to(actions)
        slack = 1e-6 * self.box.width.to(actions)
        inside = ((actions >= lower - slack) & (actions <= upper + slack) | actions.isnan()).all(-1)
        for index, values in self._indexed(self.task.box.levels).items():
            gap = (nearest(actions[:, index], values) - actions[:, index]).abs()
            inside &= ~(gap > slack[index])
        limits = self.task.limits
        if limits is None:
            return inside
        slack = limits.slack(actions[:, : len(self.task.actions)].nan_to_num(0.0))
        return inside & (slack >= -1e-6 * (1 + limits.offsets.abs().to(actions))).all(-1)

    def starts(self, count: int) -> Tensor:
        """The different allowed visited actions of the largest posterior mean, best first, (<= count, k)."""
        levels = self._indexed(self.levels)
        unset = {index for index, values in levels.items() if math.isnan(values[0])}
        absent = torch.tensor([index in unset for index in range(len(self.box.names))])
        absent = absent.to(self.visited.device)
        inside = self.visited[(self.visited.isnan() == absent).all(-1)]
        filled = inside.where(~absent, self.box.lower.to(inside))
        inside = inside[self.box.contains(filled) & self.allowed(inside)]
        for index, values in levels.items():
            if index in unset:
                continue
            level = nearest(inside[:, index], values)
            near = (level - inside[:, index]).abs() <= 1e-6 * self.box.width[index]
            inside = torch.cat([inside[:, :index], level.unsqueeze(-1), inside[:, index + 1 :]], -1)[near]
        if not len(inside):
            return inside
        inside = inside.unique(dim=0)
        with torch.no_grad():
            if self.constrained is None:
                means = ranked(self.model.posterior(inside.unsqueeze(-2)).mean[..., 0, 0])
            else:
                means = ranked(self.mean_reward()(inside.unsqueeze(-2)))
        return inside[means.argsort(descending=True, stable=True)[:count]]

    def _indexed(self, levels: Mapping[str, tuple[float, ...]]) -> dict[int, tuple[float, ...]]:
        return {self.task.settings.index(name): values for name, values in levels.items()}


@final
class PosteriorMean(CausalObjective):
    """The posterior mean of E[r | a], in standard deviations of those at the visited actions."""

    takes_constraints: ClassVar[bool] = True
    takes_two: ClassVar[bool] = True

    def built(self) -> AcquisitionFunction:
        """The posterior mean, of (..., 1, k)."""
        return self.mean_reward()
