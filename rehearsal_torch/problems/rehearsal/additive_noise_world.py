"""Nonlinear structural equations with additive noise, and the distributions of roots and noise.

    v_i = f_i(parents) + e_i,

e_i independent of each other, normal with standard deviation s_i for outcomes. Given all variables before
them the outcomes are independent normal, hence for an axis-aligned region

    P(Y in S | x, z) = E prod_i { Phi[(u_i - f_i) / s_i] - Phi[(l_i - f_i) / s_i] },

the expectation over the exogenous variables that are neither observed nor altered and influence an outcome.
One or two of them are integrated by product rules; more by 2^14 scrambled Sobol points, common random numbers
for all actions. Oracles are found on grids with coarser rules and evaluated with the full ones.

A distribution maps standard normal numbers to its own by quantiles, so that one set of normal numbers serves
every distribution, and has nodes for integrals: Gauss-Legendre for distributions on an interval, the
trapezoidal rule for the normal (which converges faster than any power of the spacing there).

A world may have a hidden common cause h of one action and the outcomes (`problems.rehearsal.hidden_cause`).
It adds to the f_i of the outcomes, and P is the average over h.

Papers print N(0, 0.1) without saying whether 0.1 is the variance or the standard deviation, and the
achievable probabilities depend on it. Each world documents its reading.

Source: Du et al. (2026), App. E.2 (equations of this kind) and App. E (its tables fit the variance in linear
worlds, the standard deviation in the others); the Beta(2, 2) quantile inverts 3 q^2 - 2 q^3 by a trisection
of the angle (textbook); the integration is ours.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table, positions
from rehearsal_torch.problems.causal.optimum import highest
from rehearsal_torch.problems.rehearsal.gaussian_region import between, legendre
from rehearsal_torch.problems.rehearsal.hidden_cause import HiddenCause
from rehearsal_torch.problems.rehearsal.world import RehearsalWorld
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.seeding import sobol

FARTHEST = 6.5  # Limits of the trapezoidal rule, in standard deviations.


class NoiseDistribution(ABC):
    """The distribution of one exogenous variable."""

    @abstractmethod
    def of_normal(self, normals: Tensor) -> Tensor:
        """Samples of this distribution from standard normal ones, elementwise (...) -> (...)."""

    @abstractmethod
    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Points and weights of integrals over this distribution, (count,) each; weights sum to one."""


@dataclass(frozen=True)
class Normal(NoiseDistribution):
    """N(0, std^2)."""

    std: float

    def of_normal(self, normals: Tensor) -> Tensor:
        """Scaled."""
        return self.std * normals

    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Evenly spaced."""
        points = torch.linspace(-FARTHEST, FARTHEST, count, dtype=torch.float64)
        return self.std * points, torch.softmax(-0.5 * points.square(), 0)


@dataclass(frozen=True)
class Uniform(NoiseDistribution):
    """U(lower, upper)."""

    lower: float
    upper: float

    def of_normal(self, normals: Tensor) -> Tensor:
        """By the quantile function."""
        return self.lower + (self.upper - self.lower) * torch.special.ndtr(normals)

    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Gauss-Legendre."""
        points, weights = legendre(count)
        return self.lower + (self.upper - self.lower) * points, weights


@dataclass(frozen=True)
class Exponential(NoiseDistribution):
    """Exp(1)."""

    def of_normal(self, normals: Tensor) -> Tensor:
        """By the quantile function of the upper tail."""
        return -torch.special.log_ndtr(-normals)

    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Gauss-Legendre in v = ln(1 + u) up to u = 36; the mass beyond is about 1e-16."""
        points, weights = legendre(count)
        v = math.log(37.0) * points
        u = torch.expm1(v)
        mass = weights * (v - u).exp()
        return u, mass / mass.sum()


@dataclass(frozen=True)
class SymmetricBeta(NoiseDistribution):
    """Beta(2, 2)."""

    def of_normal(self, normals: Tensor) -> Tensor:
        """By the quantile function."""
        return 0.5 - torch.sin(torch.asin((1 - 2 * torch.special.ndtr(normals)).clamp(-1.0, 1.0)) / 3)

    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Gauss-Legendre with the density 6 q (1 - q)."""
        points, weights = legendre(count)
        mass = weights * 6 * points * (1 - points)
        return points, mass / mass.sum()


def std(printed: float, reading: str) -> float:
    """The standard deviation of N(0, printed).

    Args:
        reading: "std" or "variance".

    Raises:
        ValueError: for another reading.
    """
    if reading not in ("std", "variance"):
        raise ValueError(f'reading: expected "std" or "variance"; got {reading!r}')
    return printed if reading == "std" else math.sqrt(printed)


CELLS = 2**17  # Batch size in numbers that fits in a processor's cache.
FINE = {0: 1, 1: 192, 2: 64}
COARSE = {0: 1, 1: 64, 2: 20}
SOBOL = (2**14, 2**10)
FAR = torch.tensor([float("inf")], dtype=torch.float64)
# The name of h among the nodes of an integral: no variable has it.
HIDDEN = ""


class CurvedWorld(RehearsalWorld):
    """A world with nonlinear structural equations.

    Args:
        task: The roles of the variables; the region must be axis-aligned, a product of intervals.
        distributions: The distribution of the noise of every variable of the graph.
        hidden: A hidden common cause of an action and outcomes; None for none.

    Raises:
        ValueError: if a variable has no distribution, an outcome's or the confounded action's is not normal,
            an outcome influences another variable, or the region is not axis-aligned.
    """

    def __init__(
        self,
        task: RehearsalTask,
        distributions: Mapping[str, NoiseDistribution],
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
        hidden: HiddenCause | None = None,
    ) -> None:
        super().__init__(task, size, seed, validation)
        if set(distributions) != set(task.graph.names):
            raise ValueError(
                f"expected a distribution for each of {sorted(task.graph.names)}; got {sorted(distributions)}"
            )
        if not all(
            isinstance(distributions[name], Normal) and task.graph.descendants([name]) == {name}
            for name in task.outcomes
        ):
            raise ValueError("expected outcomes with normal noise that influence nothing")
        if not bool(((task.region.normals != 0).sum(-1) == 1).all()):
            raise ValueError("expected a region whose faces bound one outcome each")
        if hidden is not None and not isinstance(distributions[hidden.action], Normal):
            raise ValueError(f"expected normal noise of {hidden.action}, which has a hidden cause")
        self.distributions, self.hidden = dict(distributions), hidden
        self.details = {
            "source": self.source(),
            "distributions": {name: str(distribution) for name, distribution in distributions.items()},
        } | ({} if hidden is None else {"hidden_cause": hidden.facts()})

    @abstractmethod
    def source(self) -> str:
        """Where the equations come from."""

    @abstractmethod
    def mean(self, name: str, values: Mapping[str, Tensor]) -> Tensor | float:
        """f of a variable: its noise-free value from its parents' values, which broadcast; 0 for a root."""

    def draw(self, count: int, stream: np.random.Generator) -> Table:
        """Independent observations."""
        return Table.observed(self.task.graph.names, self._rows({}, count, stream))

    def rehearse(self, context: Tensor, names: Sequence[str], values: Tensor, count: int) -> Table:
        """Rows after an alteration."""
        fixed = dict(zip((*self.task.context, *names), (*context, *values), strict=True))
        rows = self._rows(fixed, count, self.stream(3))
        altered = torch.zeros_like(rows, dtype=torch.bool)
        altered[:, positions(self.task.graph.names, names)] = True
        return Table(self.task.graph.names, rows, altered)

    def probability(self, contexts: Tensor, names: Sequence[str], values: Tensor) -> Tensor:
        """By quadrature, or 2^14 Sobol points: contexts (B, |X|), values (..., B, k) -> (..., B)."""
        return self._integrated(contexts, tuple(names), values, fine=True)

    def optimal(self, contexts: Tensor, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """On grids."""
        box, order = self.task.box.only(names), tuple(names)
        best, _ = highest(
            lambda values: self._integrated(contexts, order, values, fine=False), box, len(contexts)
        )
        return best, self.probability(contexts, order, best)

    def _rows(self, fixed: Mapping[str, Tensor], count: int, stream: np.random.Generator) -> Tensor:
        order = self.task.graph.names
        normals = torch.from_numpy(stream.standard_normal((count, len(order))))
        cause = None
        if self.hidden is not None:
            cause = self.hidden.drawn(normals[:, order.index(self.hidden.action)], stream)
        found: dict[str, Tensor] = {}
        for name, own in zip(order, normals.T, strict=True):
            found[name] = (
                fixed[name].to(own).expand(count)
                if name in fixed
                else self.mean(name, found)
                + self.distributions[name].of_normal(own)
                + self._shift(name, cause)
            )
        return torch.stack([found[name] for name in order], -1)

    def _shift(self, name: str, cause: Tensor | None) -> Tensor | float:
        """What the hidden cause adds to a variable."""
        if self.hidden is None or cause is None or name not in self.hidden.shifts:
            return 0.0
        return self.hidden.shifts[name] * cause

    def _integrated(self, contexts: Tensor, names: tuple[str, ...], values: Tensor, *, fine: bool) -> Tensor:
        shape = values.shape[:-1]
        rows = (
            torch.cat([contexts.expand(*shape, -1), values], -1)
            .reshape(-1, contexts.shape[-1] + len(names))
            .double()
        )
        noise, weights = self._nodes(names, fine)
        size = max(1, CELLS // len(weights))
        return (
            torch.cat([self._chance(some, names, noise) @ weights for some in rows.split(size)])
            .clamp(0.0, 1.0)
            .reshape(shape)
        )

    def _chance(self, rows: Tensor, names: tuple[str, ...], noise: Mapping[str, Tensor]) -> Tensor:
        """P(Y in S) given everything before the outcomes: rows (n, |X| + k), noise (m,) each -> (n, m)."""
        found = dict(zip((*self.task.context, *names), rows.T.unsqueeze(-1), strict=True))
        for name in self.task.graph.names:
            if name in noise and name not in found:
                found[name] = self.mean(name, found) + noise[name]
        chance = torch.ones(1, 1, dtype=rows.dtype)
        for place, name in enumerate(self.task.outcomes):
            distribution, middle = (
                self.distributions[name],
                torch.as_tensor(
                    self.mean(name, found) + self._shift(name, noise.get(HIDDEN)), dtype=rows.dtype
                ),
            )
            assert isinstance(distribution, Normal)
            coefficients = self.task.region.normals[:, place]
            ends = self.task.region.offsets / coefficients
            low, high = (
                float(each)
                for each in (
                    torch.cat([ends[coefficients < 0], -FAR]).amax(),
                    torch.cat([ends[coefficients > 0], FAR]).amin(),
                )
            )
            chance = chance * between((low - middle) / distribution.std, (high - middle) / distribution.std)
        return chance.expand(len(rows), len(next(iter(noise.values()))) if noise else 1)

    @lru_cache(maxsize=64)  # noqa: B019  a few rules, as long-lived as the world
    def _nodes(self, names: tuple[str, ...], fine: bool) -> tuple[dict[str, Tensor], Tensor]:
        """The exogenous variables that influence an outcome, name to (m,), and the weights (m,); with a
        hidden cause, h is one of them.
        """
        noise, weights = self._visible_nodes(names, fine)
        if self.hidden is None:
            return noise, weights
        cause, joint = self.hidden.joint(noise.get(self.hidden.action), weights)
        return {name: each.repeat(2) for name, each in noise.items()} | {HIDDEN: cause}, joint

    def _visible_nodes(self, names: tuple[str, ...], fine: bool) -> tuple[dict[str, Tensor], Tensor]:
        task = self.task
        matter = task.graph.altered(names).ancestors(task.outcomes) - {*task.outcomes, *task.context, *names}
        free = [name for name in task.graph.names if name in matter]
        if len(free) in FINE:
            count = (FINE if fine else COARSE)[len(free)]
            rules = [self._rule(name, count) for name in free]
            points = (
                torch.cartesian_prod(*[rule[0] for rule in rules]).reshape(-1, len(free))
                if free
                else torch.empty(1, 0, dtype=torch.float64)
            )
            weights = torch.ones(1, dtype=torch.float64)
            for _, more in rules:
                weights = (weights.unsqueeze(-1) * more).flatten()
            return dict(zip(free, points.T, strict=True)), weights
        count = SOBOL[0 if fine else 1]
        unit = sobol(len(free)).draw(count, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
        normals = torch.special.ndtri(unit)
        noise = {
            name: self.distributions[name].of_normal(column)
            for name, column in zip(free, normals.T, strict=True)
        }
        return noise, torch.full((count,), 1 / count, dtype=torch.float64)

    def _rule(self, name: str, count: int) -> tuple[Tensor, Tensor]:
        distribution = self.distributions[name]
        if self.hidden is not None and name == self.hidden.action and isinstance(distribution, Normal):
            return self.hidden.nodes(distribution.std, count)
        return distribution.nodes(count)
