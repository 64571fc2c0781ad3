"""Laws of what comes from outside: roots and noise.

A law turns standard normal numbers into its own through quantiles, so that one set of normal numbers serves every law, and has
nodes for integrals over it: Gauss-Legendre for laws on an interval, the trapezium rule for the normal (which converges faster than
any power of the spacing there).

Source: textbook; the Beta(2, 2) quantile inverts 3 q^2 - 2 q^3 by a trisection of the angle.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.datasets.normal_region import legendre

FARTHEST = 6.5  # Standard deviations between which the trapezium rule runs.


class Law(ABC):
    """The law of one number."""

    @abstractmethod
    def of_normal(self, normals: Tensor) -> Tensor:
        """Numbers of this law from standard normal ones, elementwise (...) -> (...)."""

    @abstractmethod
    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Points and weights of integrals over this law, (count,) each; weights add up to one."""


@dataclass(frozen=True)
class Normal(Law):
    """N(0, deviation^2)."""

    deviation: float

    def of_normal(self, normals: Tensor) -> Tensor:
        """Scaled."""
        return self.deviation * normals

    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Evenly spaced."""
        points = torch.linspace(-FARTHEST, FARTHEST, count, dtype=torch.float64)
        return self.deviation * points, torch.softmax(-0.5 * points.square(), 0)


@dataclass(frozen=True)
class Uniform(Law):
    """U(lower, upper)."""

    lower: float
    upper: float

    def of_normal(self, normals: Tensor) -> Tensor:
        """By the quantile."""
        return self.lower + (self.upper - self.lower) * torch.special.ndtr(normals)

    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Gauss-Legendre."""
        points, weights = legendre(count)
        return self.lower + (self.upper - self.lower) * points, weights


@dataclass(frozen=True)
class Exponential(Law):
    """Exp(1)."""

    def of_normal(self, normals: Tensor) -> Tensor:
        """By the quantile of the upper tail."""
        return -torch.special.log_ndtr(-normals)

    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Gauss-Legendre in v = ln(1 + u) up to u = 36, beyond which a share of 1e-16 lies."""
        points, weights = legendre(count)
        v = math.log(37.0) * points
        u = torch.expm1(v)
        mass = weights * (v - u).exp()
        return u, mass / mass.sum()


@dataclass(frozen=True)
class SymmetricBeta(Law):
    """Beta(2, 2)."""

    def of_normal(self, normals: Tensor) -> Tensor:
        """By the quantile."""
        return 0.5 - torch.sin(torch.asin((1 - 2 * torch.special.ndtr(normals)).clamp(-1.0, 1.0)) / 3)

    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Gauss-Legendre with the density 6 q (1 - q)."""
        points, weights = legendre(count)
        mass = weights * 6 * points * (1 - points)
        return points, mass / mass.sum()
