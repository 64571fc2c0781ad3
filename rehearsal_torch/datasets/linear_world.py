"""Worlds with linear structural equations: exact probabilities and exact oracles.

Given context and alteration the outcomes are normal (see `linear_law`), so that P(Y in S | x, z) is a difference of normal
distribution functions or a quadrature over slices of S; uniform roots that are not seen are integrated out by Gauss-Legendre
nodes. P is log-concave in z (Prekopa): with one outcome it grows as the mean comes nearer to the middle of the interval, hence
the oracle is the corner-to-corner line of the box stopped where the mean is nearest; with two it is found on grids.

With drift, row i of N comes about at round i + 1 and every situation at round N + 1.

Source: Qin et al. (2025b), Alg. 2 (one outcome); Prekopa (1971); Du et al. (2024), Sec. 5 (drift).
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table, positions
from rehearsal_torch.datasets.grid_ascent import highest
from rehearsal_torch.datasets.linear_law import LinearLaw, Response
from rehearsal_torch.datasets.normal_region import Disc, interval, legendre, probability_in
from rehearsal_torch.datasets.rehearsal_world import RehearsalWorld

UNIFORM_NODES = 24


class LinearWorld(RehearsalWorld):
    """A world of linear equations.

    Args:
        task: Who plays which part.
        law: The equations; their variables are those of the task's graph.
        rows: N, observations in all.
        contexts: How many situations there are.
        seed: Decides observations and contexts.
        validation: Share of the N rows that is kept from `observations`.
        disc: What is wanted, where it is a disc and the task's region a polygon inside it.

    Raises:
        ValueError: if the law's variables are not the graph's, or contexts share noise with other variables.
    """

    def __init__(
        self, task: RehearsalTask, law: LinearLaw, rows: int = 1000, contexts: int = 20, seed: int = 0, validation: float = 0.0, disc: Disc | None = None
    ) -> None:
        super().__init__(task, rows, contexts, seed, validation, disc)
        if set(law.names) != set(task.graph.names):
            raise ValueError(f"expected equations for {sorted(task.graph.names)}; got {sorted(law.names)}")
        seen = positions(law.names, task.context)
        rest = [place for place in range(len(law.names)) if place not in seen]
        if bool((law.covariance[seen][:, rest] != 0).any()):
            raise ValueError("the noise of context variables must be independent of the rest: seeing it would say something of the rest's noise")
        self.law = law
        weights = {child: dict(parents) for child, parents in law.weights.items()}
        uniform = {name: list(bounds) for name, bounds in law.uniform.items()}
        variances = dict(zip(law.names, law.covariance.diagonal().tolist(), strict=True))
        pairs = [(one, other) for place, one in enumerate(law.names) for other in law.names[place + 1 :]]
        shared = {f"{one}, {other}": float(law.covariance[law.names.index(one), law.names.index(other)]) for one, other in pairs}
        equations = {"weights": weights, "intercepts": dict(law.intercepts), "uniform": uniform, "drift": [asdict(each) for each in law.drift]}
        noise = {"variances": {name: value for name, value in variances.items() if name not in law.uniform}}
        covariances = {"covariances": {pair: value for pair, value in shared.items() if value}}
        self.facts = {"source": self.source(), "equations": {**equations, **noise, **covariances}}

    @abstractmethod
    def source(self) -> str:
        """Where the equations and figures come from."""

    def draw(self, count: int, stream: np.random.Generator) -> Table:
        """The `count` rows that end at round N."""
        normals = torch.from_numpy(stream.standard_normal((count, len(self.law.names))))
        rounds = torch.arange(self.rows - count + 1, self.rows + 1, dtype=torch.float64)
        return Table.observed(self.law.names, self.law.solve(self.law.noises(normals), {}, rounds))

    def rehearse(self, context: Tensor, names: Sequence[str], values: Tensor, count: int) -> Table:
        """Rows after an alteration at round N + 1."""
        normals = torch.from_numpy(self.stream(3).standard_normal((count, len(self.law.names))))
        fixed = dict(zip((*self.task.context, *names), (*context, *values), strict=True))
        rows = self.law.solve(self.law.noises(normals), fixed, torch.full((count,), self.rows + 1.0, dtype=torch.float64))
        altered = torch.zeros_like(rows, dtype=torch.bool)
        altered[:, positions(self.law.names, names)] = True
        return Table(self.law.names, rows, altered)

    def probability(self, contexts: Tensor, names: Sequence[str], values: Tensor) -> Tensor:
        """Exact to 1e-8: contexts (B, |X|), values (..., B, k) -> (..., B)."""
        response = self.response(names)
        mean = contexts @ response.context.mT + values @ response.action.mT + response.constant
        shifts, weights = self._shifts(response)
        total = probability_in(self.wanted, mean.unsqueeze(-2) + shifts, self._normal_noise(response)) @ weights
        return total.clamp(0.0, 1.0)

    def optimal(self, contexts: Tensor, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """In closed form for one outcome, on grids for two."""
        box = self.task.box.only(names)
        if len(self.task.outcomes) > 1:
            return highest(lambda values: self.probability(contexts, names, values), box, len(contexts))
        response = self.response(names)
        shifts, weights = self._shifts(response)
        base = (contexts @ response.context.mT + response.constant + weights @ shifts)[:, 0]
        slope = response.action[0]
        start, end = torch.where(slope >= 0, box.lower, box.upper), torch.where(slope >= 0, box.upper, box.lower)
        low, high = interval(self.task.region)
        aim = (low + high) / 2 if max(-low, high) < math.inf else (math.inf if high == math.inf else -math.inf)
        reach = (slope * (end - start)).sum()
        share = ((aim - base - (slope * start).sum()) / reach.clamp_min(1e-300)).clamp(0.0, 1.0)
        values = start + share.unsqueeze(-1) * (end - start)
        return values, self.probability(contexts, names, values)

    def response(self, names: Sequence[str]) -> Response:
        """How the outcomes of a situation depend on its context and the altered variables."""
        return self.law.response(self.task.context, names, self.task.outcomes, self.rows + 1.0)

    def _normal_noise(self, response: Response) -> Tensor:
        normal = torch.tensor([name not in self.law.uniform for name in self.law.names])
        reach = response.noise * normal
        return reach @ self.law.covariance @ reach.mT

    def _shifts(self, response: Response) -> tuple[Tensor, Tensor]:
        """What uniform roots that are not seen add to the outcomes: nodes (n, |Y|) and weights (n,)."""
        shifts, shares = torch.zeros(1, len(response.noise), dtype=torch.float64), torch.ones(1, dtype=torch.float64)
        for name, (low, high) in self.law.uniform.items():
            reach = response.noise[:, self.law.names.index(name)]
            if bool((reach != 0).any()):
                nodes, weights = legendre(UNIFORM_NODES)
                added = (low + (high - low) * nodes).unsqueeze(-1) * reach
                shifts = (shifts.unsqueeze(1) + added).flatten(0, 1)
                shares = (shares.unsqueeze(1) * weights).flatten()
        return shifts, shares
