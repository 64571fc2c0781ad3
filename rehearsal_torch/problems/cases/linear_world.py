"""Linear structural equations with normal noise: exact probabilities and exact oracles.

Each variable is

    v_i = b_i + sum_j w_ij v_j + e_i,     e ~ N(0, Sigma),

with uniform roots where a world has them. Given a context x and an alteration z, whose variables lose their
equations,

    Y = A x + B z + c_0 + C e,

e the noise of the variables that are neither context nor altered. The context precedes all other variables
and its noise is independent of the rest, so that conditioning on it does not change the other noises.
Coefficients may drift from round to round: row i of N belongs to round i + 1 and every case to round N + 1.
A hidden common cause h of one variable and the outcomes (`problems.cases.hidden_cause`) adds to the noise
of the outcomes. It is integrated out together with the noise of that variable.

Given context and alteration the outcomes are normal, so that P(Y in S | x, z) is a difference of normal
distribution functions or a quadrature over slices of S; unobserved uniform roots are integrated out by
Gauss-Legendre nodes. P is log-concave in z (Prekopa): with one outcome it increases as the mean approaches
the middle of the interval, hence the oracle is the point on the diagonal of the box, from the corner of the
smallest mean to that of the largest, whose mean is nearest to that middle; with two outcomes it is found on
grids.

Source: Qin et al. (2023), Eq. 5-6 (without c_0); Qin et al. (2025b), Alg. 2 (one outcome); Prekopa (1971); Du
et al. (2024), Sec. 2 and 5 (drift).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.records import positions
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.problems.cases.gaussian_region_probability import (
    Disc,
    interval,
    legendre,
    probability_in,
)
from rehearsal_torch.problems.cases.hidden_cause import HiddenCause
from rehearsal_torch.problems.cases.rehearsal_world import StructuralWorld
from rehearsal_torch.problems.trials.global_maximum import highest
from rehearsal_torch.problems.world_size import SampleSize


@dataclass(frozen=True)
class Drift:
    """Adds height * sin(2 pi (t + phase) / period) to a coefficient at round t."""

    parent: str
    child: str
    height: float
    period: float
    phase: float = 0.0

    def at(self, rounds: Tensor) -> Tensor:
        """The added term at rounds t, (...) -> (...)."""
        return self.height * torch.sin(2 * math.pi * (rounds + self.phase) / self.period)


@dataclass(frozen=True)
class Response:
    """Outcomes linear in context, A (|Y|, |X|), alteration, B (|Y|, k), constant, c_0 (|Y|,), and noise, C
    (|Y|, d), zero for contexts and altered variables.
    """

    context: Tensor
    action: Tensor
    constant: Tensor
    noise: Tensor


@dataclass(frozen=True)
class LinearEquations:
    """The structural equations of d variables in a causal order, with drifts of coefficients; ValueError if a
    coefficient contradicts the order, Sigma is not positive definite, or a uniform root has parents.

    Attributes:
        weights: Child to parent to coefficient.
        covariance: Sigma, (d, d); the row and column of a uniform root are not used.
        intercepts: b, variable to number; 0 for variables that are not named.
        uniform: Uniform root to (lower, upper).
    """

    names: tuple[str, ...]
    weights: Mapping[str, Mapping[str, float]]
    covariance: Tensor
    intercepts: Mapping[str, float] = field(default_factory=dict)
    uniform: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    drift: tuple[Drift, ...] = ()

    def __post_init__(self) -> None:
        order = {name: index for index, name in enumerate(self.names)}
        for child, parents in self.weights.items():
            if late := [parent for parent in parents if order[parent] >= order[child]]:
                raise ValueError(f"{child}: its causes {late} must come before it in {list(self.names)}")
        if rooted := [name for name in self.uniform if self.weights.get(name)]:
            raise ValueError(f"{rooted} are uniform and may have no causes")
        square = self.covariance.shape == (len(self.names),) * 2
        if not square or int(torch.linalg.cholesky_ex(self.covariance).info):
            raise ValueError(f"expected a positive definite covariance of {len(self.names)} variables")
        object.__setattr__(self, "weights", {child: dict(parents) for child, parents in self.weights.items()})

    @classmethod
    def of(
        cls,
        weights: Mapping[str, Mapping[str, float]],
        variances: Mapping[str, float],
        shared: Mapping[tuple[str, str], float] | None = None,
        names: Sequence[str] = (),
        **more: Any,
    ) -> "LinearEquations":
        """Equations from plain data: variances, covariances of pairs, and the causal order of variables."""
        order = tuple(names) or tuple(weights)
        covariance = torch.diag(torch.tensor([variances[name] for name in order], dtype=torch.float64))
        for (first, second), value in (shared or {}).items():
            row, column = order.index(first), order.index(second)
            covariance[row, column] = covariance[column, row] = value
        return cls(order, weights, covariance, **more)

    def to_plain(self) -> dict[str, Any]:
        """The equations and the noise as plain data."""
        covariances = {
            f"{first}, {second}": value
            for (row, first), (column, second) in combinations(enumerate(self.names), 2)
            if (value := float(self.covariance[row, column]))
        }
        variances = dict(zip(self.names, self.covariance.diagonal().tolist(), strict=True))
        return {
            "weights": {child: dict(parents) for child, parents in self.weights.items()},
            "intercepts": dict(self.intercepts),
            "uniform": {name: list(bounds) for name, bounds in self.uniform.items()},
            "drift": [asdict(drift) for drift in self.drift],
            "variances": {name: value for name, value in variances.items() if name not in self.uniform},
            "covariances": covariances,
        }

    def coefficients(self, round_: float) -> Tensor:
        """W at a round, (d, d): row child, column parent."""
        order = {name: index for index, name in enumerate(self.names)}
        matrix = torch.zeros(len(self.names), len(self.names), dtype=torch.float64)
        for child, parents in self.weights.items():
            for parent, weight in parents.items():
                matrix[order[child], order[parent]] = weight
        for drift in self.drift:
            added = drift.at(torch.tensor(float(round_), dtype=torch.float64))
            matrix[order[drift.child], order[drift.parent]] += float(added)
        return matrix

    def noises(self, normals: Tensor) -> Tensor:
        """Noise from standard normal numbers, (n, d) -> (n, d); uniform roots by their quantile function."""
        noise = normals @ torch.linalg.cholesky(self.covariance).mT
        for name, (low, high) in self.uniform.items():
            column = self.names.index(name)
            noise[:, column] = low + (high - low) * torch.special.ndtr(normals[:, column])
        return noise

    def solve(self, noise: Tensor, fixed: Mapping[str, Tensor], rounds: Tensor) -> Tensor:
        """The variables, in causal order: noise (n, d), fixed name to (), rounds (n,) -> (n, d)."""
        columns: dict[str, Tensor] = {}
        moving = {(drift.child, drift.parent): drift.at(rounds) for drift in self.drift}
        for name, shock in zip(self.names, noise.T, strict=True):
            if name in fixed:
                columns[name] = fixed[name].to(noise).expand(len(noise))
                continue
            value = shock + self.intercepts.get(name, 0.0)
            for parent, weight in self.weights.get(name, {}).items():
                value = value + (weight + moving.get((name, parent), 0.0)) * columns[parent]
            columns[name] = value
        return torch.stack([columns[name] for name in self.names], -1)

    def response(
        self, context: Sequence[str], altered: Sequence[str], outcomes: Sequence[str], round_: float = 0.0
    ) -> Response:
        """Y = A x + B z + c_0 + C e at a round."""
        order = {name: index for index, name in enumerate(self.names)}
        observed, fixed, rows = ([order[name] for name in names] for names in (context, altered, outcomes))
        weights = self.coefficients(round_)
        weights[[*observed, *fixed]] = 0.0
        reach = torch.linalg.inv(torch.eye(len(self.names), dtype=torch.float64) - weights)[rows]
        noise = reach.clone()
        noise[:, [*observed, *fixed]] = 0.0
        constants = [self.intercepts.get(name, 0.0) for name in self.names]
        intercepts = torch.tensor(constants, dtype=torch.float64)
        return Response(reach[:, observed], reach[:, fixed], noise @ intercepts, noise)


UNIFORM_NODES, HIDDEN_NODES = 24, 64


class LinearWorld(StructuralWorld):
    """A world with linear structural equations; `disc` is the desired region if it is one, the task's region
    being a polygon inside it. ValueError if the equations' variables are not the graph's, contexts share
    noise with other variables, or the action of the hidden cause does.
    """

    def __init__(
        self,
        task: RehearsalTask,
        system: LinearEquations,
        source: str,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
        disc: Disc | None = None,
        hidden: HiddenCause | None = None,
    ) -> None:
        super().__init__(task, system.names, size, seed, validation, disc)
        if set(system.names) != set(task.graph.names):
            raise ValueError(f"expected equations for {sorted(task.graph.names)}; got {sorted(system.names)}")
        observed = positions(system.names, task.context)
        rest = [index for index in range(len(system.names)) if index not in observed]
        if bool((system.covariance[observed][:, rest] != 0).any()):
            others = "the noise of the other variables"
            raise ValueError(f"the noise of context variables must be independent of {others}")
        if hidden is not None:
            (action,) = positions(system.names, [hidden.action])
            if int((system.covariance[action] != 0).sum()) > 1 or hidden.action in system.uniform:
                raise ValueError(f"expected normal noise of {hidden.action} that it shares with no other")
        self.system, self.hidden = system, hidden
        self.details = {"source": source, "equations": system.to_plain()}
        if hidden is not None:
            self.details["hidden_cause"] = hidden.facts()

    def solved(self, normals: Tensor, fixed: Mapping[str, Tensor], stream: np.random.Generator) -> Tensor:
        """Observations are those of the last rounds up to N; what follows an alteration is at round N + 1."""
        last, count = self.size.rows, len(normals)
        rounds = torch.full((count,), last + 1.0, dtype=torch.float64)
        if not fixed:
            rounds = torch.arange(last - count + 1, last + 1, dtype=torch.float64)
        noise = self.system.noises(normals)
        if self.hidden is not None:
            action = self.system.names.index(self.hidden.action)
            noise += self.hidden.drawn(noise[:, action], stream).unsqueeze(-1) * self._lifts()
        return self.system.solve(noise, fixed, rounds)

    def probability(self, contexts: Tensor, names: Sequence[str], values: Tensor) -> Tensor:
        """Exact to 1e-8: contexts (B, |X|), values (..., B, k) -> (..., B)."""
        response = self.response(names)
        mean = contexts @ response.context.mT + values @ response.action.mT + response.constant
        shifts, weights = self._shifts(response)
        chances = probability_in(self.wanted, mean.unsqueeze(-2) + shifts, self._normal_noise(response))
        return (chances @ weights).clamp(0.0, 1.0)

    def optimal(self, contexts: Tensor, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """In closed form for one outcome without a hidden cause, on grids otherwise."""
        box = self.task.box.only(names)
        if len(self.task.outcomes) > 1 or self.hidden is not None:
            return highest(lambda values: self.probability(contexts, names, values), box, len(contexts))
        response = self.response(names)
        shifts, weights = self._shifts(response)
        base = (contexts @ response.context.mT + response.constant + weights @ shifts)[:, 0]
        effect = response.action[0]
        start = torch.where(effect >= 0, box.lower, box.upper)
        end = torch.where(effect >= 0, box.upper, box.lower)
        low, high = interval(self.task.region)
        one_sided = math.inf if high == math.inf else -math.inf
        aim = (low + high) / 2 if max(-low, high) < math.inf else one_sided
        reach = (effect * (end - start)).sum()
        share = ((aim - base - (effect * start).sum()) / reach.clamp_min(1e-300)).clamp(0.0, 1.0)
        values = start + share.unsqueeze(-1) * (end - start)
        return values, self.probability(contexts, names, values)

    def response(self, names: Sequence[str]) -> Response:
        """How the outcomes of a case depend on its context and the altered variables."""
        return self.system.response(self.task.context, names, self.task.outcomes, self.size.rows + 1.0)

    def _lifts(self) -> Tensor:
        """The shift of the noise of each variable by h = 1, (d,)."""
        assert self.hidden is not None
        shifts = self.hidden.shifts
        return torch.tensor([shifts.get(name, 0.0) for name in self.system.names], dtype=torch.float64)

    def _normal_noise(self, response: Response) -> Tensor:
        excluded = {*self.system.uniform, *(() if self.hidden is None else (self.hidden.action,))}
        reach = response.noise * torch.tensor([name not in excluded for name in self.system.names])
        return reach @ self.system.covariance @ reach.mT

    def _shifts(self, response: Response) -> tuple[Tensor, Tensor]:
        """Shifts of outcomes by unobserved uniform roots and a hidden cause: (n, |Y|), and weights (n,)."""
        shifts = torch.zeros(1, len(response.noise), dtype=torch.float64)
        shares = torch.ones(1, dtype=torch.float64)
        for name, (low, high) in self.system.uniform.items():
            reach = response.noise[:, self.system.names.index(name)]
            if bool((reach != 0).any()):
                nodes, weights = legendre(UNIFORM_NODES)
                added = (low + (high - low) * nodes).unsqueeze(-1) * reach
                shifts = (shifts.unsqueeze(1) + added).flatten(0, 1)
                shares = (shares.unsqueeze(1) * weights).flatten()
        return (shifts, shares) if self.hidden is None else self._hidden_shifts(response, shifts, shares)

    def _hidden_shifts(self, response: Response, shifts: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """The nodes with those of the hidden cause and of its action's noise."""
        assert self.hidden is not None
        action = self.system.names.index(self.hidden.action)
        reach, noise = response.noise[:, action], None
        weights = torch.ones(1, dtype=torch.float64)
        added = torch.zeros(1, len(reach), dtype=torch.float64)
        if bool((reach != 0).any()):
            std = float(self.system.covariance[action, action].sqrt())
            noise, weights = self.hidden.nodes(std, HIDDEN_NODES)
            added = noise.unsqueeze(-1) * reach
        cause, weights = self.hidden.joint(noise, weights)
        added = added.repeat(2, 1) + cause.unsqueeze(-1) * (response.noise @ self._lifts())
        return (shifts.unsqueeze(1) + added).flatten(0, 1), (shares.unsqueeze(1) * weights).flatten()
