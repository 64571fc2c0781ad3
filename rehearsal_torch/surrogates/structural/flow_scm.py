"""Structural models with conditional normalising flows, one for every clique of a rehearsal graph.

In standardised variables each clique, given its parents, follows a least-squares fit plus a conditional flow
of the whitened residuals,

    v = b + W' pa + L f(u | pa),      L L' = Sigma,      u ~ N(0, I),

with the inverse u = f^-1(L^-1 (v - b - W' pa) | pa). Before training the flow is the identity, so that
training starts at the linear Gaussian model and departs from it where held-out rows support that; with
``flow=None`` the model stays linear. If some members of a clique are altered, the others have a separate
equation with the altered members among the parents. Members in the context are likewise parents, and the
context itself needs no distribution.

Samples are pushed forward through the altered graph: given standard normal noise u for every variable, a
context x and values z of the altered variables, each equation in topological order maps the noise of its
members to their values. What does not depend on the altered variables is computed once, when the push-forward
is constructed, and what does not precede the requested variables is never computed.

A column with few distinct values has no density: before a flow is fitted, uniform noise as wide as the
smallest gap between two of its values is added (dequantisation).

Source: Qin et al. (2025), Sec. 4.1-4.2 (without the linear part; their linear option is least squares alone;
sampling from the alteration graph with fixed noise, differentiable in z); Qin et al. (2023), Sec. 2
(alteration graphs); Uria et al. (2013), Sec. 4 (dequantisation).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rehearsal_torch.data.records import positions
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.scaling import Standardise
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.mechanisms.linear_gaussian import LinearGaussian
from rehearsal_torch.mechanisms.mechanism import Mechanism
from rehearsal_torch.seeding import spaced_generator
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.structural.linear_scm import Equation, equations, holding
from rehearsal_torch.surrogates.surrogate import Fits, Modules


@dataclass(frozen=True)
class LinearFlow(Mechanism):
    """c standardised values given p parents: least squares, and a flow of whitened residuals or None."""

    linear: LinearGaussian
    flow: ConditionalFlow | None

    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        residual = noise if self.flow is None else self.flow(parents, noise).to(noise.dtype)
        root = torch.linalg.cholesky(self.linear.covariance).to(noise)
        return self.linear.intercept.to(noise) + parents @ self.linear.weights.to(noise) + residual @ root.mT

    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        residual = self.whitened(parents, values)
        return residual if self.flow is None else self.flow.abduct(parents, residual).to(residual.dtype)

    def whitened(self, parents: Tensor, values: Tensor) -> Tensor:
        """L^-1 (v - b - W' pa), (..., p), (..., c) -> (..., c): the residuals to which the flow is fitted."""
        residual = self.linear.abduct(parents, values)
        rows = residual.reshape(-1, residual.shape[-1])
        root = torch.linalg.cholesky(self.linear.covariance)
        return torch.linalg.solve_triangular(root, rows.mT, upper=False).mT.reshape(residual.shape)


@dataclass(frozen=True)
class FittedEquation:
    """An equation with its fitted mechanism, in standardised variables."""

    equation: Equation
    mechanism: LinearFlow


@dataclass(frozen=True)
class Pushforward:
    """Maps values of altered variables to samples of requested variables; everything is standardised."""

    altered: tuple[str, ...]  # k variables
    wanted: tuple[str, ...]  # m variables
    known: dict[str, Tensor]  # The context, and samples that the altered variables do not affect
    noise: dict[str, Tensor]  # (n,) for each variable
    open: tuple[FittedEquation, ...]  # The equations that depend on the altered variables, in order

    def __call__(self, values: Tensor) -> Tensor:
        """Altered variables (..., B, k) -> n samples each, (..., B, n, m)."""
        known = dict(self.known)
        known.update((name, values[..., column].unsqueeze(-1)) for column, name in enumerate(self.altered))
        follow(known, self.noise, self.open)
        draws = [known[name] for name in self.wanted]
        count = len(next(iter(self.noise.values()))) if self.noise else 1
        lead = torch.broadcast_shapes((*values.shape[:-1], count), *(draw.shape for draw in draws))
        return torch.stack([draw.expand(lead) for draw in draws], -1)

    def first(self, count: int) -> "Pushforward":
        """The push-forward restricted to the first `count` samples."""
        known = {
            name: draws[..., :count] if draws.shape[-1] > 1 else draws for name, draws in self.known.items()
        }
        return replace(self, known=known, noise={name: draws[:count] for name, draws in self.noise.items()})

    def of(self, which: Tensor) -> "Pushforward":
        """The push-forward restricted to some of the B decision contexts."""
        known = {
            name: draws[which] if draws.ndim > 1 and draws.shape[-2] > 1 else draws
            for name, draws in self.known.items()
        }
        return replace(self, known=known)


def follow(
    known: dict[str, Tensor], noise: Mapping[str, Tensor], equations: Sequence[FittedEquation]
) -> None:
    """Evaluates equations in order and adds their members to the known values."""
    for fitted in equations:
        member_noise = torch.stack([noise[name] for name in fitted.equation.members], -1)
        parents = stacked([known[name] for name in fitted.equation.parents], member_noise)
        values = fitted.mechanism.forward(parents, member_noise)
        known.update(zip(fitted.equation.members, values.unbind(-1), strict=True))


def stacked(columns: Sequence[Tensor], like: Tensor) -> Tensor:
    """Broadcastable columns (...) to rows (..., p); without columns, (..., 0) like noise (..., c)."""
    if not columns:
        return like.new_zeros(*like.shape[:-1], 0)
    lead = torch.broadcast_shapes(like.shape[:-1], *(column.shape for column in columns))
    return torch.stack([column.to(like).expand(lead) for column in columns], -1)


LEVELS = 20


class FlowStructural(RehearsalSurrogate):
    """A conditional distribution for every equation of a task. ValueError if a cause of a context variable is
    not in the context: its distribution given the context is not available.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        flow: Factory of a flow, called with (parents, outputs); None keeps the model linear.
        seed: Seed of the simulation noise and of the dequantisation.
    """

    def __init__(
        self, task: RehearsalTask, flow: Callable[[int, int], ConditionalFlow] | None = None, seed: int = 0
    ) -> None:
        super().__init__(task)
        self.seed = seed
        graph, context = self.task.graph, set(self.task.context)
        unobserved_causes = sorted(graph.ancestors(self.task.context) - context)
        if unobserved_causes:
            reason = f"{unobserved_causes} cause context variables but are not in the context"
            raise ValueError(f"{reason}: add them to the context, or remove their effects from it")
        modelled = [equation for equation in equations(self.task) if not set(equation.members) <= context]
        self.equations = tuple(_conditioned(equation, self.task.context) for equation in modelled)
        self.scaler = Standardise(graph.names)
        self.linear = Modules[LinearGaussian](LinearGaussian(*eq.widths) for eq in self.equations)
        flows = [] if flow is None else [flow(*equation.widths) for equation in self.equations]
        self.flows = Modules[ConditionalFlow](flows)

    def parts(self, table: Table) -> Fits:
        """The overlap, the scaler; then each equation's least squares and flow."""
        self.task.check(table)
        yield self.overlap, self.overlap.examples(table)
        dequantised = self._dequantised(table) if len(self.flows) else table
        yield self.scaler, (dequantised.columns(self.scaler.names),)
        for fitted in self.fitted(self.equations):
            equation, mechanism, rows = fitted.equation, fitted.mechanism, fitted.equation.rows(dequantised)
            parents, members = (
                self.scaler.standardised(names, rows.columns(names))
                for names in (equation.parents, equation.members)
            )
            yield mechanism.linear, (parents, members)
            if mechanism.flow is not None:
                weight = next(mechanism.flow.parameters())
                yield mechanism.flow, (parents.to(weight), mechanism.whitened(parents, members).to(weight))

    def fitted(self, wanted: Sequence[Equation]) -> list[FittedEquation]:
        """Equations with their fitted mechanisms."""
        flows: list[ConditionalFlow | None] = [*self.flows]
        flows = flows or [None] * len(self.equations)
        mechanisms = dict(zip(self.equations, map(LinearFlow, self.linear, flows), strict=True))
        return [FittedEquation(equation, mechanisms[equation]) for equation in wanted]

    def under(self, altered: Sequence[str]) -> list[FittedEquation]:
        """The equations that hold when `altered` is set; ValueError if one may not be altered."""
        return self.fitted(holding(self.equations, altered, self.task.box))

    def noise(self, count: int, purpose: int) -> Tensor:
        """Standard normal noise of every variable, (count, d), the same at every call for a purpose."""
        self.require_fitted()
        stream, width = spaced_generator(self.seed, purpose), len(self.scaler.names)
        return torch.randn(count, width, dtype=torch.float64, generator=stream).to(self.scaler.scale)

    @torch.no_grad()
    def pushforward(
        self, noise: Tensor, altered: Sequence[str], given: Tensor, wanted: Sequence[str]
    ) -> Pushforward:
        """From altered to `wanted` variables, standardised: contexts (B, |X|) in units, noise (n, d)."""
        self.require_fitted()
        graph = self.task.graph.altered(altered)
        descendants, needed = graph.descendants(altered), graph.ancestors(wanted)
        # Members of a clique are evaluated jointly: all are needed, or affected, as soon as one of them is.
        under = [fitted for fitted in self.under(altered) if needed & set(fitted.equation.members)]
        names = self.scaler.names
        noise_of = {name: noise[:, names.index(name)] for name in names}
        standardised = self.scaler.standardised(self.task.context, given).to(noise)
        known = {name: standardised[:, column : column + 1] for column, name in enumerate(self.task.context)}
        determined = [fitted for fitted in under if not descendants & set(fitted.equation.members)]
        follow(known, noise_of, determined)
        affected = tuple(fitted for fitted in under if descendants & set(fitted.equation.members))
        return Pushforward(tuple(altered), tuple(wanted), known, noise_of, affected)

    def _dequantised(self, table: Table) -> Table:
        """The table with dequantised columns outside the context."""
        values, stream = table.values.clone(), spaced_generator(self.seed, -1)
        for name in self.scaler.names:
            column = values[:, positions(table.names, (name,))[0]]
            uniform = torch.rand(len(column), dtype=torch.float64, generator=stream).to(column) - 0.5
            levels = column.unique()
            if name not in self.task.context and 1 < len(levels) <= min(LEVELS, len(column) / 10):
                column += uniform * levels.diff().min()
        return Table(table.names, values, table.altered)


def _conditioned(equation: Equation, context: Sequence[str]) -> Equation:
    """The equation of the members outside the context, given those in the context."""
    observed = tuple(name for name in equation.members if name in context)
    rest = tuple(name for name in equation.members if name not in context)
    return Equation(equation.clique, equation.altered, rest, (*equation.parents, *observed))
