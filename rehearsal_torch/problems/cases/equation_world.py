"""Worlds of structural equations, whose probabilities of success are integrals and sums.

    v_i = f_i(parents) + e_i                  e_i of a known distribution, normal for outcomes
    v_i ~ sum_j p_j(parents) delta(l_j)       one of some levels l_j: yes/no, classes, counts

A world is a table of such equations with the roles of its variables (`EquationWorld`). Given all variables
before them the outcomes are independent, hence for an axis-aligned region, a product of intervals,

    P(Y in S | x, z) = E prod_i P(l_i <= Y_i <= u_i | v),

where a normal outcome has the factor Phi[(u_i - f_i) / s_i] - Phi[(l_i - f_i) / s_i], and one of levels the
sum of the chances of its levels in the interval. The expectation is over the variables that are neither
observed nor altered and influence an outcome. Levels are summed over. One or two of the e_i are integrated by
product rules; more by 2^14 scrambled Sobol points, common random numbers for all actions. Oracles evaluate
every combination of levels, search the other variables on grids with coarser rules, and are evaluated with
the full ones.

A distribution maps standard normal numbers to its own by quantiles, so that one set of normal numbers serves
every distribution and every action. It has nodes for integrals: Gauss-Legendre for distributions on an
interval, the trapezoidal rule for the normal (which converges faster than any power of the spacing there).
Papers print N(0, 0.1) without saying whether 0.1 is the variance or the standard deviation, and the
achievable probabilities depend on it: ``reading`` says which.

A hidden common cause h of one action and the outcomes (`problems.cases.hidden_cause`) adds to the f_i of
the outcomes; P is then the average over h.

Source: Du et al. (2026), App. E.2 (equations of this kind) and App. E (its tables fit the variance in linear
worlds, the standard deviation in the others); Robins (1986) (the g-formula, here evaluated exactly); the
Beta(2, 2) quantile inverts 3 q^2 - 2 q^3 by a trisection of the angle (textbook); the integration is ours.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from inspect import signature
from itertools import product
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.problems.cases.gaussian_region_probability import between, interval, legendre
from rehearsal_torch.problems.cases.hidden_cause import HiddenCause
from rehearsal_torch.problems.cases.rehearsal_world import StructuralWorld, task_of
from rehearsal_torch.problems.trials.global_maximum import highest
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
    """The standard deviation of N(0, printed), read as "std" or "variance"."""
    if reading not in ("std", "variance"):
        raise ValueError(f'reading: expected "std" or "variance"; got {reading!r}')
    return printed if reading == "std" else math.sqrt(printed)


@dataclass(frozen=True)
class Equation:
    """One variable: f(parents) + e, or one of some levels with the chances f(parents).

    Attributes:
        of: f; its parameters are named like the parents, and broadcast. None for a root.
        noise: The distribution of e; None for a variable with levels.
        levels: In ascending order, L of them; f then returns (..., L).
    """

    of: Callable[..., Tensor] | None = None
    noise: NoiseDistribution | None = None
    levels: tuple[float, ...] = ()

    @cached_property
    def parents(self) -> tuple[str, ...]:
        """The names of the parents, in the order of f's parameters."""
        return () if self.of is None else tuple(signature(self.of).parameters)

    def __call__(self, values: Mapping[str, Tensor]) -> Tensor:
        """f at the values of the parents, of which `values` may have more."""
        if self.of is None:
            return torch.zeros((), dtype=torch.float64)
        return self.of(**{name: values[name] for name in self.parents})


def yes(chance: Callable[..., Tensor]) -> Equation:
    """1 with a chance, a function of the parents, else 0."""

    @wraps(chance)
    def chances(**parents: Tensor) -> Tensor:
        success = chance(**parents)
        return torch.stack([1 - success, success], -1)

    return Equation(chances, levels=(0.0, 1.0))


CELLS = 2**17  # Batch size in numbers that fits in a processor's cache.
FINE = {0: 1, 1: 192, 2: 64}
COARSE = {0: 1, 1: 64, 2: 20}
SOBOL = (2**14, 2**10)
# The name of h among the nodes of an integral: no variable has it.
HIDDEN = ""


@dataclass(frozen=True)
class WorldTable:
    """A world as plain data.

    Attributes:
        equations: Every variable, causes first, to its equation.
        context: The variables that are observed before deciding.
        bounds: Actionable variable to its bounds, or ``{"values": levels}``.
        region: Outcome to the interval in which it is desired; None leaves a side open.
        source: Where the equations come from; "{reading}" in it stands for the reading of the noise.
        together: Candidate sets; empty for each actionable variable by itself.
        hidden_shifts: The action that a hidden cause raises, and its shifts of outcomes; None for no cause.
    """

    equations: Mapping[str, Equation]
    context: Sequence[str]
    bounds: Mapping[str, Any]
    region: Mapping[str, tuple[float | None, float | None]]
    source: str
    together: Sequence[Sequence[str]] = ()
    hidden_shifts: tuple[str, Mapping[str, float]] | None = None


class EquationWorld(StructuralWorld):
    """A world that is a table, which a subclass states; ValueError for an unknown reading, or a table without
    what its integrals need (normal noise of outcomes, which influence nothing, and of confounded actions).

    Args:
        reading: How the noise N(0, s) of the table is read: "std" or "variance".
        candidates: Sets of variables that may be set jointly; None for those of the table.
        confounding: Gamma, the strength of a hidden common cause of an action and an outcome; 1 is none.
    """

    table: ClassVar[WorldTable]

    def __init__(
        self,
        reading: str = "std",
        candidates: Sequence[Sequence[str]] | None = None,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
        confounding: float = 1.0,
    ) -> None:
        table = self.table
        parents = {name: equation.parents for name, equation in table.equations.items()}
        task = task_of(parents, table.context, table.bounds, table.region, candidates or table.together)
        super().__init__(task, task.graph.names, size, seed, validation)
        self.distributions: dict[str, NoiseDistribution] = {
            name: Normal(std(noise.std, reading)) if isinstance(noise, Normal) else noise
            for name, equation in table.equations.items()
            if (noise := equation.noise) is not None
        }
        if confounding != 1 and table.hidden_shifts is None:
            raise ValueError(f"confounding: {type(self).__name__} has no hidden common cause")
        self.hidden = table.hidden_shifts and HiddenCause.of_strength(*table.hidden_shifts, confounding)
        usable = all(table.equations[name].levels or self._is_normal(name) for name in task.outcomes)
        if not usable or any(task.graph.descendants([name]) != {name} for name in task.outcomes):
            raise ValueError("expected outcomes with normal noise, or levels, that influence nothing")
        if self.hidden is not None and not self._is_normal(self.hidden.action):
            raise ValueError(f"expected normal noise of {self.hidden.action}, which has a hidden cause")
        texts = {name: str(distribution) for name, distribution in self.distributions.items()}
        self.details = {"source": table.source.format(reading=reading), "distributions": texts}
        if self.hidden is not None:
            self.details["hidden_cause"] = self.hidden.facts()

    def probability(self, contexts: Tensor, names: Sequence[str], values: Tensor) -> Tensor:
        """By sums and quadrature, to 1e-8, or 2^14 Sobol points."""
        return self._integrated(contexts, tuple(names), values, fine=True)

    def optimal(self, contexts: Tensor, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Every combination of levels, with grids over the other variables."""
        box, order = self.task.box.only(names), tuple(names)
        discrete = [index for index, name in enumerate(names) if name in box.levels]
        continuous = [index for index, name in enumerate(names) if name not in box.levels]
        points = []
        for levels in product(*(box.levels[names[index]] for index in discrete)):
            point = torch.zeros(len(contexts), len(names), dtype=torch.float64)
            point[:, discrete] = torch.tensor(levels, dtype=torch.float64)
            if continuous:

                def value(part: Tensor, fixed: Tensor = point) -> Tensor:
                    full = fixed.expand(*part.shape[:-1], -1).clone()
                    full[..., continuous] = part
                    return self._integrated(contexts, order, full, fine=False)

                subbox = box.only([names[index] for index in continuous])
                point[:, continuous] = highest(value, subbox, len(contexts))[0]
            points.append(point)
        chances = self.probability(contexts, order, torch.stack(points))
        best, row = chances.argmax(0), torch.arange(len(contexts))
        return torch.stack(points)[best, row], chances[best, row]

    def solved(self, normals: Tensor, fixed: Mapping[str, Tensor], stream: np.random.Generator) -> Tensor:
        """One variable after the other."""
        cause = None
        if self.hidden is not None:
            cause = self.hidden.drawn(normals[:, self.order.index(self.hidden.action)], stream)
        values: dict[str, Tensor] = {}
        for name, normal in zip(self.order, normals.T, strict=True):
            equation = self.table.equations[name]
            if name in fixed:
                values[name] = fixed[name].to(normal).expand(len(normal))
            elif equation.levels:
                below = equation(values).cumsum(-1)[..., :-1] <= torch.special.ndtr(normal).unsqueeze(-1)
                values[name] = normal.new_tensor(equation.levels)[below.sum(-1)]
            else:
                noise = self.distributions[name].of_normal(normal)
                values[name] = equation(values) + noise + self._shift(name, cause)
        return torch.stack([values[name] for name in self.order], -1)

    def _is_normal(self, name: str) -> bool:
        return isinstance(self.distributions.get(name), Normal)

    def _shift(self, name: str, cause: Tensor | None) -> Tensor | float:
        """The contribution of the hidden cause to a variable."""
        if self.hidden is None or cause is None or name not in self.hidden.shifts:
            return 0.0
        return self.hidden.shifts[name] * cause

    def _integrated(self, contexts: Tensor, names: tuple[str, ...], values: Tensor, *, fine: bool) -> Tensor:
        shape = values.shape[:-1]
        rows = torch.cat([contexts.expand(*shape, -1), values], -1).double()
        rows = rows.reshape(-1, contexts.shape[-1] + len(names))
        levels = [len(self.table.equations[name].levels or (0,)) for name in self._between(names)]
        size = max(1, CELLS // (len(self._nodes(names, fine)[1]) * math.prod(levels)))
        chances = [self._chance(block, names, fine) for block in rows.split(size)]
        return torch.cat(chances).clamp(0.0, 1.0).reshape(shape)

    def _chance(self, rows: Tensor, names: tuple[str, ...], fine: bool) -> Tensor:
        """P(Y in S), (n, |X| + k) -> (n,), from values (n or 1, nodes, levels of each variable before)."""
        values = dict(zip((*self.task.context, *names), rows.T.unsqueeze(-1), strict=True))
        noise, weights = self._nodes(names, fine)
        for name in self._between(names):
            equation = self.table.equations[name]
            if equation.levels:
                weights = weights.unsqueeze(-1) * equation(values)
                values = {key: column.unsqueeze(-1) for key, column in values.items()}
                noise = {key: column.unsqueeze(-1) for key, column in noise.items()}
                values[name] = rows.new_tensor(equation.levels)
            else:
                values[name] = equation(values) + noise[name]
        for name in self.task.outcomes:
            weights = weights * self._desired(name, values, noise.get(HIDDEN))
        return weights.expand(len(rows), *weights.shape[1:]).flatten(1).sum(-1)

    def _desired(self, name: str, values: Mapping[str, Tensor], cause: Tensor | None) -> Tensor:
        """The probability that an outcome is in its interval, given everything before it."""
        low, high = interval(self.task.region, self.task.outcomes.index(name))
        equation = self.table.equations[name]
        if equation.levels:
            levels = torch.tensor(equation.levels, dtype=torch.float64)
            return equation(values) @ ((levels >= low) & (levels <= high)).double()
        noise = self.distributions[name]
        assert isinstance(noise, Normal)
        mean = equation(values) + self._shift(name, cause)
        return between((low - mean) / noise.std, (high - mean) / noise.std)

    @lru_cache(maxsize=64)  # noqa: B019  a few sets, as long-lived as the world
    def _between(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The variables that are neither observed nor set and influence an outcome."""
        task = self.task
        inner = task.graph.altered(names).ancestors(task.outcomes) - {*task.outcomes, *task.context, *names}
        return tuple(name for name in self.order if name in inner)

    @lru_cache(maxsize=64)  # noqa: B019  a few rules, as long-lived as the world
    def _nodes(self, names: tuple[str, ...], fine: bool) -> tuple[dict[str, Tensor], Tensor]:
        """The noises that influence an outcome, name to (m,), h among them, and the weights (m,)."""
        noise, weights = self._visible_nodes(names, fine)
        if self.hidden is None:
            return noise, weights
        cause, joint = self.hidden.joint(noise.get(self.hidden.action), weights)
        return {name: points.repeat(2) for name, points in noise.items()} | {HIDDEN: cause}, joint

    def _visible_nodes(self, names: tuple[str, ...], fine: bool) -> tuple[dict[str, Tensor], Tensor]:
        free = [name for name in self._between(names) if name in self.distributions]
        if len(free) in FINE:
            count = (FINE if fine else COARSE)[len(free)]
            points, weights = torch.empty(1, 0, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
            if free:
                rules = [self._rule(name, count) for name in free]
                points = torch.cartesian_prod(*[rule[0] for rule in rules]).reshape(-1, len(free))
                for _, factor in rules:
                    weights = (weights.unsqueeze(-1) * factor).flatten()
            return dict(zip(free, points.T, strict=True)), weights
        count = SOBOL[0 if fine else 1]
        unit = sobol(len(free)).draw(count, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
        draws = zip(free, torch.special.ndtri(unit).T, strict=True)
        noise = {name: self.distributions[name].of_normal(normals) for name, normals in draws}
        return noise, torch.full((count,), 1 / count, dtype=torch.float64)

    def _rule(self, name: str, count: int) -> tuple[Tensor, Tensor]:
        distribution = self.distributions[name]
        if self.hidden is not None and name == self.hidden.action and isinstance(distribution, Normal):
            return self.hidden.nodes(distribution.std, count)
        return distribution.nodes(count)
