"""Objectives of causal Bayesian optimisation: what they share, and the posterior mean.

In every round an objective holds an acquisition function of BoTorch (`NetworkAcquisition`), with fixed draws
of the learnt noise that are common to all candidates, and a cheaper approximation of it with which many
candidates are screened. The maximiser of the posterior mean of the reward, E[r | a], is the action that every
method recommends at the end of a round; random and Sobol actions use it only for this. Which action to *try*
is decided by the acquisition function.

With fixed draws u_1 ... u_S of the noise of the learnt network, common to all candidates of a round,
candidates are comparable and the function is smooth. The posterior mean of the reward,

    E[r | a] = 1/S sum_s r(x(a, u_s)),     x_i = m_i(w_i, u_i)  in topological order,

is the predicted reward of an action (`ExpectedReward`).

Epistemic draws. A mechanism is known up to a posterior standard deviation: x_i = m_i + e_i s_i with e_i ~
N(0, 1). One draw e of all nodes, the same for every input, noise draw and candidate, is one plausible
network, and

    f_e(a) = E_u[r(x(a, u, e))]

its expected reward. Mean and standard deviation of f_e over e are the posterior mean and the epistemic
uncertainty of E[r | a]; the noise of a single experiment (the spread over u) is averaged out.

A `NetworkAcquisition` maps single candidates (..., 1, k + further) to values (...). A candidate is an action
in its units, followed by further coordinates in [-1, 1] if the function optimises some jointly. It has no
parameters and no state, and does not take pending points: as BoTorch's analytic functions, it refuses them.

Frames. Tolerances of ascents and steps of fixed length are meant for values of the order of one. A reward may
have any scale: a pressure in pascals around 1e7, a concentration of 1e-6. A search works with

    (r - centre) / unit,

where the unit is the range of typical rewards, and the centre 0, or their median where this is far from zero:
in other units of the reward a search takes the same steps.

Source: Ren et al. (2025), Alg. 1 and Sec. 5.1, Eq. 5 (with beta = 0 the posterior mean); Balandat et al.
(2020), Sec. 3 (common random numbers, normal Sobol draws); Astudillo and Frazier (2021), Sec. 4.2 (one fixed
draw per node and sample); Frazier (2018), Sec. 4.2 (recommending the maximiser of the posterior mean); Gill,
Murray and Wright (1981), Sec. 7.5 and 8.7 (well-scaled objective functions).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.sampling import draw_sobol_normal_samples
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.question import Kind
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.objective import Objective
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.box import Box, nearest
from rehearsal_torch.spaces.candidate_region import CandidateRegion, with_levels
from rehearsal_torch.surrogates.network.causal_model import CausalModel, CausalNetwork, Perturbation
from rehearsal_torch.surrogates.network.network_model import REWARD, NetworkModel
from rehearsal_torch.surrogates.network.network_posterior import plausible_values

# Distance from zero, in ranges of the rewards, beyond which the frame is centred to keep precision.
AWAY = 1e3


@dataclass(frozen=True)
class RewardFrame:
    """An affine map of rewards."""

    centre: float = 0.0  # The reward that maps to 0, in the reward's unit
    unit: float = 1.0  # The difference of rewards that maps to 1, in the reward's unit

    @classmethod
    def of(cls, rewards: Tensor) -> "RewardFrame":
        """The frame for a sample of typical rewards, (n,); values that are not finite are ignored."""
        known = rewards[rewards.isfinite()]
        if not len(known):
            return cls()
        spread, middle = float(known.amax() - known.amin()), float(known.median())
        if not 0 < spread < math.inf:
            return cls(middle if abs(middle) > AWAY else 0.0, 1.0)
        return cls(middle if abs(middle) > AWAY * spread else 0.0, spread)

    def standardised(self, rewards: Tensor) -> Tensor:
        """From the reward's unit to the frame, any shape."""
        return (rewards - self.centre) / self.unit

    def units(self, values: float) -> float:
        """From the frame to the reward's unit, for one value; the inverse of `standardised`."""
        return self.centre + self.unit * values


def standard_draws(count: int, width: int, seed: int) -> Tensor:
    """Normal draws (count, width), mean 0 and variance 1 in every column: Sobol points, each followed by its
    antithetic counterpart. An odd count raises a ValueError.
    """
    require(count >= 2 and count % 2 == 0, "an even number of draws, in antithetic pairs", count=count)
    half = torch.zeros(count // 2, 0, dtype=torch.float64)
    if width:
        half = draw_sobol_normal_samples(width, count // 2, seed=seed, dtype=torch.float64)
    both = torch.stack([half, -half], 1).flatten(0, 1)
    return both / both.square().mean(0).sqrt().clamp_min(1e-12)


def mean_reward(
    network: CausalNetwork, actions: Tensor, noise: Tensor, perturbation: Perturbation | None = None
) -> Tensor:
    """E[r] over draws of the noise, (..., k), (S, N) -> (...), with perturbations in standard deviations."""
    values, _ = network.propagate(actions, noise, perturbation)
    return network.reward(values).mean(-1)


def plausible_rewards(network: CausalNetwork, actions: Tensor, noise: Tensor, epistemic: Tensor) -> Tensor:
    """f_e(a) for every draw e, (..., k), (S, N), (E, N) -> (..., E)."""

    def read(values: Tensor) -> Tensor:
        return network.reward(values).unsqueeze(-1)

    return plausible_values(network, actions.unsqueeze(-2), noise, epistemic, read)[..., 0, 0].movedim(0, -1)


def candidate_bounds(box: Box, further: int) -> Tensor:
    """(2, k + further), lower and upper bounds of a candidate: those of its action, and [-1, 1]."""
    wide = torch.ones(further, dtype=torch.float64)
    return torch.stack([torch.cat([box.lower, -wide]), torch.cat([box.upper, wide])])


@dataclass(frozen=True)
class DrawnNetwork:
    """A fitted network with fixed draws; draws of another shape raise a ValueError."""

    network: CausalNetwork  # The network of N nodes
    noise: Tensor  # Draws of the noise, (S, N), as `CausalModel.draws` returns them
    # Draws e, (E, N), normal with mean 0 and variance 1; of zeros, the network of posterior means.
    epistemic: Tensor

    def __post_init__(self) -> None:
        nodes = len(self.network.mechanisms)
        for name, draws in (("noise", self.noise), ("epistemic", self.epistemic)):
            if draws.ndim != 2 or not len(draws) or draws.shape[-1] != nodes:
                raise ValueError(
                    f"{name}: expected at least one draw, (draws, {nodes}), a column for each of "
                    f"{list(self.network.task.nodes)}; got {tuple(draws.shape)}"
                )

    @classmethod
    def of(cls, model: "NetworkModel | DrawnNetwork") -> "DrawnNetwork":
        """The network of a BoTorch model, with its noise draws and members.

        Raises:
            ValueError: if its output is not the reward alone, or it has a batch shape or transforms.
        """
        if isinstance(model, DrawnNetwork):
            return model
        transforms = [name for name in ("input_transform", "outcome_transform") if name in model._modules]
        if model.outputs != (REWARD,) or model.batch_shape or transforms:
            raise ValueError(
                f"model: expected outputs=({REWARD!r},), no batch shape and no transforms; got "
                f"outputs={model.outputs}, batch_shape={tuple(model.batch_shape)} and {transforms}: the "
                "function is one of the expected reward and of actions in their units; for others use "
                "BoTorch's own acquisition functions"
            )
        return cls(model.network, model.noise, model.epistemic)


class NetworkAcquisition(AcquisitionFunction, ABC):
    """A function of one candidate under fixed draws, for any optimiser of BoTorch. The model is a
    `NetworkModel` whose output is the reward alone (else a ValueError), or the draws themselves.
    """

    def __init__(self, model: NetworkModel | DrawnNetwork) -> None:
        # Without a model of BoTorch there is nothing to register.
        super().__init__(model if isinstance(model, NetworkModel) else None)  # type: ignore[arg-type]
        # BoTorch's optimisers read it.
        self.X_pending = None  # type: ignore[assignment]
        self.drawn = DrawnNetwork.of(model)
        self.network, self.noise = self.drawn.network, self.drawn.noise

    @property
    def further(self) -> int:
        """Number of coordinates in [-1, 1] that follow the action in a candidate; 0 by default."""
        return 0

    @property
    def bounds(self) -> Tensor:
        """(2, k + further), lower and upper bounds of a candidate, by the bounds of the task's actions."""
        return candidate_bounds(self.network.task.box, self.further).to(self.noise)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Refuses pending points, as BoTorch's analytic acquisition functions do: an UnsupportedError."""
        if X_pending is not None:
            raise UnsupportedError(
                f"{type(self).__name__} does not account for X_pending: condition the model on imputed "
                "outcomes of pending points, or use a function of samples such as qLogNEI"
            )

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The values of candidates (..., 1, k + further), (...); another width raises a ValueError."""
        names = self.network.task.actions
        if X.shape[-1] != len(names) + self.further:
            raise ValueError(
                f"X: expected the shape (..., 1, {len(names) + self.further}), a column for each of "
                f"{list(names)} and {self.further} in [-1, 1]; got {tuple(X.shape)}"
            )
        return self.value(X.squeeze(-2))

    @abstractmethod
    def value(self, points: Tensor) -> Tensor:
        """The values of candidates (..., k + further), (...)."""


@final
class ExpectedReward(NetworkAcquisition):
    """The posterior mean E[r | a], in the reward's unit."""

    def value(self, points: Tensor) -> Tensor:
        """(..., k) -> (...)."""
        return mean_reward(self.network, points, self.noise)


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
        seed: Together with the identity of the round, determines all draws.
        pending: Actions that are under way or have failed, (p, k), for objectives that take them; None if
            there are none.

    Raises:
        ValueError: if an action may not be set or has no level within its bounds, or a number is out of
            range.
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
        """The acquisition function of candidates (..., 1, k + further), or a cheaper one for `screening`."""

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
        """The network with all draws of the noise or those of the screening, and epistemic ones, or means."""
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
        """The posterior mean of the reward, (..., k) -> (...), in its unit; by default under all draws."""
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
        """Whether actions (n, k) satisfy bounds, levels and limits up to rounding, (n,) bool."""
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
        """The allowed visited actions of the largest posterior mean, best first, (<= count, k + further)."""
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
