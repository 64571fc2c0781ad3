"""Linear structural equations with normal noise.

Each variable is

    v_i = b_i + sum_j w_ij v_j + e_i,     e ~ N(0, Sigma),

with uniform roots where a world has them. Given a context x and an alteration z, whose variables lose their equations,

    Y = A x + B z + c_0 + C e,

e the noise of what is neither context nor altered. The context stands before everything else and its noise is independent
of the rest, so that seeing it says nothing more. Coefficients may drift from round to round.

Source: Qin et al. (2023), Eq. 5-6 (without c_0); Du et al. (2024), Sec. 2 (drift).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Drift:
    """What is added to the coefficient of `parent` in the equation of `child` at round t: height * sin(2 pi (t + phase) / period)."""

    parent: str
    child: str
    height: float
    period: float
    phase: float = 0.0

    def at(self, rounds: Tensor) -> Tensor:
        """The addition at rounds t, (...) -> (...)."""
        return self.height * torch.sin(2 * math.pi * (rounds + self.phase) / self.period)


@dataclass(frozen=True)
class Response:
    """How outcomes depend on context, alteration and noise.

    Attributes:
        context: A, (|Y|, |X|).
        action: B, (|Y|, k).
        constant: c_0, (|Y|,).
        noise: C, (|Y|, d), zero for contexts and altered variables.
    """

    context: Tensor
    action: Tensor
    constant: Tensor
    noise: Tensor


@dataclass(frozen=True)
class LinearLaw:
    """The equations of d variables in a causal order.

    Attributes:
        names: The d variables, causes first.
        weights: Child to parent to coefficient.
        covariance: Sigma, (d, d); the row and column of a uniform root are not used.
        intercepts: b, variable to number; 0 where none is named.
        uniform: Uniform root to (lower, upper).
        drift: How coefficients move.

    Raises:
        ValueError: if a coefficient runs against the order, a variance is not positive, or a uniform variable has parents.
    """

    names: tuple[str, ...]
    weights: Mapping[str, Mapping[str, float]]
    covariance: Tensor
    intercepts: Mapping[str, float] = field(default_factory=dict)
    uniform: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    drift: tuple[Drift, ...] = ()

    def __post_init__(self) -> None:
        place = {name: index for index, name in enumerate(self.names)}
        for child, parents in self.weights.items():
            late = [parent for parent in parents if place[parent] >= place[child]]
            if late:
                raise ValueError(f"{child}: its causes {late} must stand before it in {list(self.names)}")
        rooted = [name for name in self.uniform if self.weights.get(name)]
        if rooted:
            raise ValueError(f"{rooted} are uniform and may have no causes")
        if self.covariance.shape != (len(self.names),) * 2 or int(torch.linalg.cholesky_ex(self.covariance).info):
            raise ValueError(f"expected a positive definite covariance of {len(self.names)} variables")
        object.__setattr__(self, "weights", {child: dict(parents) for child, parents in self.weights.items()})

    def coefficients(self, round_: float) -> Tensor:
        """W at a round, (d, d): row child, column parent."""
        place = {name: index for index, name in enumerate(self.names)}
        found = torch.zeros(len(self.names), len(self.names), dtype=torch.float64)
        for child, parents in self.weights.items():
            for parent, weight in parents.items():
                found[place[child], place[parent]] = weight
        for each in self.drift:
            found[place[each.child], place[each.parent]] += float(each.at(torch.tensor(float(round_), dtype=torch.float64)))
        return found

    def noises(self, normals: Tensor) -> Tensor:
        """Noise from standard normal numbers, (n, d) -> (n, d); uniform roots through their quantiles."""
        noise = normals @ torch.linalg.cholesky(self.covariance).mT
        for name, (low, high) in self.uniform.items():
            column = self.names.index(name)
            noise[:, column] = low + (high - low) * torch.special.ndtr(normals[:, column])
        return noise

    def solve(self, noise: Tensor, fixed: Mapping[str, Tensor], rounds: Tensor) -> Tensor:
        """The variables, one after the other: noise (n, d), fixed name to (), rounds (n,) -> (n, d)."""
        columns: dict[str, Tensor] = {}
        moving = {(each.child, each.parent): each.at(rounds) for each in self.drift}
        for name, own in zip(self.names, noise.T, strict=True):
            if name in fixed:
                columns[name] = fixed[name].to(noise).expand(len(noise))
                continue
            value = own + self.intercepts.get(name, 0.0)
            for parent, weight in self.weights.get(name, {}).items():
                value = value + (weight + moving.get((name, parent), 0.0)) * columns[parent]
            columns[name] = value
        return torch.stack([columns[name] for name in self.names], -1)

    def response(self, context: Sequence[str], altered: Sequence[str], outcomes: Sequence[str], round_: float = 0.0) -> Response:
        """Y = A x + B z + c_0 + C e at a round."""
        place = {name: index for index, name in enumerate(self.names)}
        seen, cut, wanted = ([place[name] for name in names] for names in (context, altered, outcomes))
        weights = self.coefficients(round_)
        weights[[*seen, *cut]] = 0.0
        reach = torch.linalg.inv(torch.eye(len(self.names), dtype=torch.float64) - weights)[wanted]
        free = torch.tensor([index not in {*seen, *cut} for index in range(len(self.names))])
        intercepts = torch.tensor([self.intercepts.get(name, 0.0) for name in self.names], dtype=torch.float64)
        noise = reach * free
        return Response(reach[:, seen], reach[:, cut], noise @ intercepts, noise)
