"""Worlds of yes/no variables, counts and classes, whose probabilities of success are sums.

Every variable v_i has a law given its parents, one of

    v_i ~ sum_j p_j(parents) delta(l_j)        levels l_j: yes/no, classes, counts
    v_i ~ N(m(parents), s^2)                   a normal variable

and the outcome is one of levels. Given everything before it, P(Y in S) is the sum of the chances of the
levels in S, exactly. The variables before it that are neither observed nor set are summed over (levels) or
integrated by the trapezoidal rule with 48 points up to 7 standard deviations, which for normal variables and
smooth chances converges faster than any power of the spacing: the error is below 1e-8, from both the spacing
and the tails. Oracles evaluate every combination of levels, and search the variables without levels on grids
(accurate to .003).

Rows are drawn by quantiles of standard normal numbers, one for each variable, so that the rows after
different actions share their noise.

Source: Robins (1986) (the g-formula, here evaluated exactly); the worlds are ours.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table, positions
from rehearsal_torch.problems.causal.optimum import highest
from rehearsal_torch.problems.rehearsal.world import RehearsalWorld
from rehearsal_torch.problems.world_size import SampleSize

FINE, COARSE, FARTHEST = 48, 24, 7.0
CELLS = 2**20  # Numbers of a batch.


@dataclass(frozen=True)
class Among:
    """One of some levels.

    Attributes:
        levels: (m,), in ascending order.
        chances: Their probabilities, (..., m).
    """

    levels: Tensor
    chances: Tensor

    def drawn(self, normal: Tensor) -> Tensor:
        """By the quantile function, (...) -> (...)."""
        below = self.chances.cumsum(-1)[..., :-1] <= torch.special.ndtr(normal).unsqueeze(-1)
        return self.levels[below.sum(-1)]

    def nodes(self, count: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """The levels and their chances, (..., m) each."""
        return self.levels.expand(self.chances.shape), self.chances


@dataclass(frozen=True)
class Gaussian:
    """A normal variable.

    Attributes:
        mean: (...).
        std: s.
    """

    mean: Tensor
    std: float

    def drawn(self, normal: Tensor) -> Tensor:
        """m + s z, (...) -> (...)."""
        return self.mean + self.std * normal

    def nodes(self, count: int) -> tuple[Tensor, Tensor]:
        """Points and weights of the trapezoidal rule, (..., count) each."""
        points = torch.linspace(-FARTHEST, FARTHEST, count, dtype=torch.float64)
        values = self.mean.unsqueeze(-1) + self.std * points
        return values, torch.softmax(-0.5 * points.square(), 0).expand(values.shape)


class DiscreteWorld(RehearsalWorld):
    """A world with the laws above.

    Args:
        task: The roles of the variables; no outcome influences another variable.

    Raises:
        ValueError: if an outcome influences another variable, or there is more than one outcome.
    """

    def __init__(
        self,
        task: RehearsalTask,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
    ) -> None:
        super().__init__(task, size, seed, validation)
        if len(task.outcomes) != 1 or task.graph.descendants(task.outcomes) != set(task.outcomes):
            raise ValueError(f"expected one outcome that influences nothing; got {list(task.outcomes)}")
        self.details = {"source": self.source()}

    @abstractmethod
    def source(self) -> str:
        """Where the equations come from."""

    @abstractmethod
    def law(self, name: str, values: Mapping[str, Tensor]) -> Among | Gaussian:
        """The law of a variable given the values of its parents, which broadcast; that of the outcome has
        levels.
        """

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
        """By sums and quadrature, to 1e-8: contexts (B, |X|), values (..., B, k) -> (..., B)."""
        return self._summed(contexts, tuple(names), values, FINE)

    def optimal(self, contexts: Tensor, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Every combination of levels, with grids over the other variables."""
        box = self.task.box.only(names)
        held = [place for place, name in enumerate(names) if name in box.levels]
        free = [place for place, name in enumerate(names) if name not in box.levels]
        found = []
        for levels in product(*(box.levels[names[place]] for place in held)):
            point = torch.zeros(len(contexts), len(names), dtype=torch.float64)
            point[:, held] = torch.tensor(levels, dtype=torch.float64)
            if free:

                def value(moved: Tensor, fixed: Tensor = point) -> Tensor:
                    whole = fixed.expand(*moved.shape[:-1], -1).clone()
                    whole[..., free] = moved
                    return self._summed(contexts, tuple(names), whole, COARSE)

                rest = box.only([names[place] for place in free])
                point[:, free] = highest(value, rest, len(contexts))[0]
            found.append(point)
        points = torch.stack(found)
        reached = self.probability(contexts, names, points)
        best, which = reached.argmax(0), torch.arange(len(contexts))
        return points[best, which], reached[best, which]

    def _rows(self, fixed: Mapping[str, Tensor], count: int, stream: np.random.Generator) -> Tensor:
        order = self.task.graph.names
        normals = torch.from_numpy(stream.standard_normal((count, len(order))))
        found: dict[str, Tensor] = {}
        for name, own in zip(order, normals.T, strict=True):
            found[name] = (
                fixed[name].to(own).expand(count) if name in fixed else self.law(name, found).drawn(own)
            )
        return torch.stack([found[name] for name in order], -1)

    def _summed(self, contexts: Tensor, names: tuple[str, ...], values: Tensor, count: int) -> Tensor:
        shape = values.shape[:-1]
        rows = torch.cat([contexts.expand(*shape, -1), values], -1).double()
        rows = rows.reshape(-1, contexts.shape[-1] + len(names))
        task = self.task
        matter = task.graph.altered(names).ancestors(task.outcomes) - {*task.outcomes, *task.context, *names}
        free = [name for name in task.graph.names if name in matter]
        size = max(1, CELLS // count ** len(free))
        parts = [self._chance(part, names, free, count) for part in rows.split(size)]
        return torch.cat(parts).clamp(0.0, 1.0).reshape(shape)

    def _chance(self, rows: Tensor, names: tuple[str, ...], free: Sequence[str], count: int) -> Tensor:
        """P(Y in S) for rows of contexts and actions (n, |X| + k), (n,)."""
        found = dict(zip((*self.task.context, *names), rows.T, strict=True))
        weights = rows.new_ones(len(rows))
        for name in free:
            values, own = self.law(name, found).nodes(count)
            found = {other: each.unsqueeze(-1) for other, each in found.items()} | {name: values}
            weights = weights.unsqueeze(-1) * own
        (outcome,) = self.task.outcomes
        law = self.law(outcome, found)
        assert isinstance(law, Among)
        desired = self.task.region.contains(law.levels.unsqueeze(-1)).to(law.chances)
        return (weights * (law.chances @ desired)).flatten(1).sum(-1) if free else law.chances @ desired


def yes(chance: Tensor) -> Among:
    """1 with a probability (...), else 0."""
    return Among(torch.tensor([0.0, 1.0], dtype=torch.float64), torch.stack([1 - chance, chance], -1))
