"""Rehearsal worlds: simulators with a known probability of the desired future.

A world draws observations from its own distribution, provides contexts, and knows P(Y in S | x, alteration):
exactly or by quadrature where possible, else by simulation with common random numbers (the same noise for
every action, so that differences between actions are not noise). It therefore knows the oracle, the largest
such probability over the candidate sets, and the probability under no action.

Source: Du et al. (2026), Sec. 4.1 (protocol); the oracles are ours.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, DecisionContext, RehearsalCase
from rehearsal_torch.data.records import positions
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.cases.gaussian_region_probability import Disc
from rehearsal_torch.problems.problem import SIMULATED, RehearsalProblem, Verdict, World, ranges_of
from rehearsal_torch.problems.world_size import SampleSize, is_number, setting
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope


class RehearsalWorld(World, RehearsalProblem):
    """A simulated rehearsal problem.

    Args:
        size: Number of observations and cases.
        seed: Seed of observations and contexts; different seeds have different contexts.
        validation: Share of the N rows held out for early stopping, in [0, 1); 0 draws further rows.
        wanted: The desired region, where the task's polytope only approximates it; None for the polytope.
    """

    def __init__(
        self,
        task: RehearsalTask,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
        wanted: Disc | None = None,
    ) -> None:
        if not is_number(validation) or not 0 <= validation < 1:
            raise ValueError(f"validation: expected a share of the rows in [0, 1); got {validation!r}")
        self.task, self.size, self.seed = task, setting("size", size, SampleSize), seed
        self.validation = validation
        self.wanted: Polytope | Disc = task.region if wanted is None else wanted
        self.details: dict[str, Any] = {}
        self._known: dict[tuple[float, ...], tuple[float, float]] = {}

    def desired(self, outcomes: Tensor) -> Tensor:
        """Whether outcomes (..., |Y|) are desired, (...) bool; `probability` is that of this event."""
        return self.wanted.contains(outcomes)

    def verdict(self, answer: Table) -> Verdict:
        """Whether the outcomes of all rows are desired."""
        return Verdict(success=bool(self.desired(answer.columns(self.task.outcomes)).all()))

    @abstractmethod
    def draw(self, count: int, stream: np.random.Generator) -> Table:
        """Observations under no action; every variable of the task's graph is a column."""

    @abstractmethod
    def rehearse(self, context: Tensor, names: Sequence[str], values: Tensor, count: int) -> Table:
        """`count` rows after an alteration, or none, with common random numbers; altered cells marked."""

    @abstractmethod
    def probability(self, contexts: Tensor, names: Sequence[str], values: Tensor) -> Tensor:
        """P(Y in S | x, alteration): (B, |X|), (..., B, k) -> (..., B); `names` may be empty, k = 0."""

    @abstractmethod
    def optimal(self, contexts: Tensor, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The best values of a candidate set and their probability, (B, k), (B,), accurate to .003."""

    def reseeded(self, seed: int) -> Self:
        """The same world with another seed, hence with different observations, contexts and noise."""
        world = copy(self)
        world.seed, world._known = seed, {}
        return world

    def observations(self) -> Table:
        """N rows, without the validation rows."""
        return self._parts[0]

    def held_out(self) -> Table:
        """The validation rows, or further rows of the same distribution if there are none."""
        if not self.validation:
            return self.draw(max(self.size.rows // 4, 50), self.stream(1))
        return self._parts[1]

    @property
    def _parts(self) -> list[Table]:
        """The rows to learn from, and those held out."""
        table = self._sample()
        split = len(table) - int(self.validation * len(table))
        return [table.rows(slice(None, split)), table.rows(slice(split, None))]

    @lru_cache(maxsize=1)  # noqa: B019  one table, as long-lived as the world
    def _sample(self) -> Table:
        return self.draw(self.size.rows, self.stream(0))

    def count(self) -> int:
        """The number of cases."""
        return self.size.contexts

    def case(self, index: int) -> RehearsalCase:
        """A context from the observational distribution."""
        if not 0 <= index < self.size.contexts:
            raise IndexError(f"expected a case in 0 ... {self.size.contexts - 1}; got {index}")
        row = self.draw(1, self.stream(2, index)).columns(self.task.context)[0]
        context, box = dict(zip(self.task.context, row, strict=True)), self.task.box
        return RehearsalCase(str(index), context, box.bounds(), levels=box.levels)

    def given(self, cases: Sequence[RehearsalCase]) -> Tensor:
        """The contexts of cases, (B, |X|)."""
        return self.task.given(cases)

    def optimum(self, case: DecisionContext) -> float:
        """The largest probability over the candidate sets and no action."""
        return self._references(_rehearsal_case(case))[1]

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """``probability`` after the decision, ``no_action``, ``oracle`` (which may choose no action), and
        ``share`` of the oracle's gain, NaN where it is at most 1e-3. ValueError if a value may not be set.
        """
        rehearsal_case = _rehearsal_case(case)
        rehearsal_case.check(decision.alteration)
        reached, best = self._references(rehearsal_case)
        no_action = reached
        if (alteration := decision.alteration) is not None:
            context = self.given([rehearsal_case])
            values = alteration.values.reshape(1, -1).to(context)
            reached = float(self.probability(context, alteration.names, values))
        gain = best - no_action
        share = (reached - no_action) / gain if gain > 1e-3 else float("nan")
        return {"probability": reached, "no_action": no_action, "oracle": best, "share": share}

    def _references(self, case: RehearsalCase) -> tuple[float, float]:
        """The probabilities under no action and of the oracle, cached for each context."""
        context = self.given([case])
        key = tuple(context[0].tolist())
        if key not in self._known:
            no_action = float(self.probability(context, (), context.new_empty(1, 0)))
            best = max(float(self.optimal(context, names)[1]) for names in self.task.candidates)
            self._known[key] = no_action, max(no_action, best)
        return self._known[key]

    def respond(self, case: DecisionContext, decision: Decision) -> Table:
        """One row that follows a decision; errors as in `score`."""
        checked, alteration = _rehearsal_case(case), decision.alteration
        checked.check(alteration)
        names = () if alteration is None else alteration.names
        values = torch.empty(0, dtype=torch.float64) if alteration is None else alteration.values
        rows = self.rehearse(self.given([checked])[0], names, values, 1 + int(checked.identity) % 4096)
        return Table(rows.names, rows.values[-1:], rows.altered[-1:])

    def card(self) -> Mapping[str, Any]:
        """Sizes, roles, ranges and the fingerprint of the observations."""
        table = self.observations()
        desired = self.desired(table.columns(self.task.outcomes)).double().mean()
        return {
            "world": type(self).__name__,
            "caution": SIMULATED,
            "rows": len(table),
            "contexts": self.size.contexts,
            "desired": round(float(desired), 4),
            **self.task.to_plain(),
            "ranges": ranges_of(table.records()),
            **self.details,
            "fingerprint": table.fingerprint(),
        }


class StructuralWorld(RehearsalWorld):
    """A world whose variables follow one another in `order`, from the same normal numbers after actions."""

    def __init__(
        self,
        task: RehearsalTask,
        order: Sequence[str],
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
        wanted: Disc | None = None,
    ) -> None:
        super().__init__(task, size, seed, validation, wanted)
        self.order = tuple(order)

    @abstractmethod
    def solved(self, normals: Tensor, fixed: Mapping[str, Tensor], stream: np.random.Generator) -> Tensor:
        """The variables from standard normal numbers (n, d), unless `fixed`; `stream` draws anything else."""

    def draw(self, count: int, stream: np.random.Generator) -> Table:
        """Observations."""
        normals = torch.from_numpy(stream.standard_normal((count, len(self.order))))
        return Table.observed(self.order, self.solved(normals, {}, stream))

    def rehearse(self, context: Tensor, names: Sequence[str], values: Tensor, count: int) -> Table:
        """Rows after an alteration."""
        stream = self.stream(3)
        normals = torch.from_numpy(stream.standard_normal((count, len(self.order))))
        fixed = dict(zip((*self.task.context, *names), (*context, *values), strict=True))
        rows = self.solved(normals, fixed, stream)
        altered = torch.zeros_like(rows, dtype=torch.bool)
        altered[:, positions(self.order, names)] = True
        return Table(self.order, rows, altered)


def task_of(
    graph: RehearsalGraph | Mapping[str, Iterable[str]],
    context: Sequence[str],
    bounds: Mapping[str, Any],
    region: Polytope | Mapping[str, tuple[float | None, float | None]],
    together: Sequence[Sequence[str]] = (),
) -> RehearsalTask:
    """A task: graph, or child to parents; bounds or levels; region, or intervals; and candidate sets."""
    return RehearsalTask(
        graph if isinstance(graph, RehearsalGraph) else RehearsalGraph.of(graph),
        tuple(context),
        Box.of(bounds),
        region if isinstance(region, Polytope) else Polytope.of(region),
        tuple(tuple(names) for names in together),
    )


def _rehearsal_case(case: DecisionContext) -> RehearsalCase:
    if not isinstance(case, RehearsalCase):
        raise TypeError(f"expected a RehearsalCase; got a {type(case).__name__}")
    return case
