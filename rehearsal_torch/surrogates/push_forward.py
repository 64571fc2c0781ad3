"""Push-forward: noise through the altered graph.

Given standard normal noise u for every variable, a context x and values z for the altered variables, each equation in
topological order turns the noise of its members into their values,

    v_members = b + W' pa + L f(u_members | pa),

with altered variables and the context held at their values. What depends on neither the altered variables nor comes before
the outcomes is computed once, when the push-forward is made, and not at every call.

Source: Qin et al. (2025), Sec. 4.2 (sampling from the alteration graph by fixed noise, differentiable in z).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.mechanisms.linear_gaussian import LinearGaussian
from rehearsal_torch.surrogates.linear_surrogate import Equation


@dataclass(frozen=True)
class FittedEquation:
    """An equation with what was learnt of it, in standardised variables.

    Attributes:
        equation: Who follows from whom.
        linear: Least squares.
        flow: The law of its whitened residuals given the parents; None where they are taken to be normal and independent of them.
    """

    equation: Equation
    linear: LinearGaussian
    flow: ConditionalFlow | None

    def members(self, known: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """Values of the members, (..., c): parents as broadcastable (...), noise (..., c)."""
        parents = stacked([known[name] for name in self.equation.parents], noise)
        residual = noise if self.flow is None else self.flow(parents, noise).to(noise.dtype)
        root = torch.linalg.cholesky(self.linear.covariance).to(noise)
        return self.linear.intercept.to(noise) + parents @ self.linear.weights.to(noise) + residual @ root.mT

    def residuals(self, parents: Tensor, members: Tensor) -> Tensor:
        """Whitened residuals of members (..., c) given parents (..., p)."""
        root = torch.linalg.cholesky(self.linear.covariance)
        return torch.linalg.solve_triangular(root, self.linear.abduct(parents, members).mT, upper=False).mT


@dataclass(frozen=True)
class PushForward:
    """Values of altered variables to draws of some others, everything standardised.

    Attributes:
        altered: The k altered variables.
        wanted: The m variables that are asked for.
        known: What is known before anything is altered: context, and draws of what the altered variables do not reach.
        noise: Noise of each variable that is still open, (n,).
        open: The equations that are still to be computed, in order.
    """

    altered: tuple[str, ...]
    wanted: tuple[str, ...]
    known: dict[str, Tensor]
    noise: dict[str, Tensor]
    open: tuple[FittedEquation, ...]

    def __call__(self, values: Tensor) -> Tensor:
        """Altered variables (..., B, k) -> n draws each, (..., B, n, m)."""
        known = dict(self.known)
        known.update((name, values[..., place].unsqueeze(-1)) for place, name in enumerate(self.altered))
        follow(known, self.noise, self.open)
        draws = [known[name] for name in self.wanted]
        count = len(next(iter(self.noise.values()))) if self.noise else 1
        lead = torch.broadcast_shapes((*values.shape[:-1], count), *(draw.shape for draw in draws))
        return torch.stack([draw.expand(lead) for draw in draws], -1)

    def first(self, count: int) -> "PushForward":
        """The same with the first `count` draws alone."""
        known = {name: each[..., :count] if each.shape[-1] > 1 else each for name, each in self.known.items()}
        return PushForward(self.altered, self.wanted, known, {name: each[:count] for name, each in self.noise.items()}, self.open)

    def of(self, which: Tensor) -> "PushForward":
        """The same for some of the B situations."""
        known = {name: each[which] if each.ndim > 1 and each.shape[-2] > 1 else each for name, each in self.known.items()}
        return PushForward(self.altered, self.wanted, known, self.noise, self.open)


def follow(known: dict[str, Tensor], noise: Mapping[str, Tensor], equations: Sequence[FittedEquation]) -> None:
    """Adds the members of equations, in order, to what is known."""
    for each in equations:
        found = each.members(known, torch.stack([noise[name] for name in each.equation.members], -1))
        known.update(zip(each.equation.members, found.unbind(-1), strict=True))


def stacked(columns: Sequence[Tensor], like: Tensor) -> Tensor:
    """Broadcastable columns (...) to rows (..., p); without columns, rows of nothing for noise (n, c)."""
    if not columns:
        return like.new_zeros(*like.shape[:-1], 0)
    lead = torch.broadcast_shapes(like.shape[:-1], *(column.shape for column in columns))
    return torch.stack([column.to(like).expand(lead) for column in columns], -1)
