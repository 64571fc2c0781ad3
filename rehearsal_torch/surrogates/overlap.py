"""Overlap: whether a decision lies where observations lie.

A model answers everywhere; the observations speak of some places only. With every context variable and action
in units of its standard deviation over the n rows,

    d_5(x, a) = distance from (x, a) to its 5th nearest row,

a decision is an extrapolation where d_5 exceeds the 99th percentile of the rows' own d_5 (each row without
itself). The distance is Euclidean in all coordinates alike: under a metric that was fitted to the outcome, a
coordinate that the fit dropped would never count as far.

Beside it stand the observed range of each variable, and, for actions that by the graph cannot change any
outcome, whether the observations contradict the graph.

Source: Loftsgaarden and Quesenberry (1965) (nearest-neighbour densities); Ramaswamy et al. (2000) (distance
to the k-th neighbour as a score of outliers).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.graph_check import SIGNIFICANT, contradiction, dependence_given
from rehearsal_torch.data.part import Sizes, Solved
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.influence_paths import reaches
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import setting_text

NEIGHBOURS, SHARE = 5, 0.99


class Overlap(Solved):
    """Ranges and distances of the rows that a rehearsal surrogate was fitted to.

    Args:
        task: Who plays which part.
        graphs: The graphs that may be true.
        max_points: At most so many rows are kept, evenly spread.
    """

    # A model that was written down instead of fitted has seen no rows: it answers, and nothing is said of how
    # far they lie.
    needed = False

    def __init__(self, task: RehearsalTask, graphs: Sequence[RehearsalGraph], max_points: int = 2000) -> None:
        super().__init__()
        self.task, self.graphs, self.max_points = task, tuple(graphs), max_points
        self.names = (*task.context, *task.box.names)
        self.unlinked = tuple(
            name for name in task.box.names if not reaches(self.graphs, (name,), task.outcomes)
        )
        self.register_fitted("location", "scale", "lowest", "highest", "rows", "p_values")
        # Infinite where there were too few rows.
        self.register_fitted("limits", finite=False)
        self.location: Tensor
        self.scale: Tensor
        self.lowest: Tensor
        self.highest: Tensor
        self.rows: Tensor
        self.limits: Tensor
        self.p_values: Tensor

    @property
    def known(self) -> bool:
        """Whether rows were seen."""
        return len(self.rows) > NEIGHBOURS

    def examples(self, table: Table) -> tuple[Tensor]:
        """What `solve` takes of a table: every variable's column, in the graph's order."""
        return (table.columns(self.task.graph.names),)

    def solve(self, *examples: Tensor) -> None:
        """Learns from every variable (n, d), in the graph's order and in units."""
        table = Table.observed(self.task.graph.names, examples[0].detach().to(torch.float64))
        values = table.columns(self.names)
        self.p_values = values.new_tensor(
            [dependence_given(table, self.task, name) for name in self.unlinked]
        )
        spread = values.std(0, correction=0)
        self.location, self.scale = values.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread))
        self.lowest, self.highest = values.amin(0), values.amax(0)
        every = torch.linspace(
            0, len(values) - 1, min(self.max_points, len(values)), dtype=torch.float64, device=values.device
        )
        self.rows = ((values - self.location) / self.scale)[every.round().long()]
        self._limit()

    def sizes(self) -> Sizes:
        """n rows of d context variables and actions; a limit for each candidate set."""
        ends = dict.fromkeys(("location", "scale", "lowest", "highest"), (len(self.names),))
        return {
            **ends,
            "rows": ("n", len(self.names)),
            "limits": (len(self.task.candidates),),
            "p_values": (len(self.unlinked),),
        }

    def faults(self) -> list[str]:
        """Sizes, and limits that are no distances; infinite ones stand for too few rows alone."""
        found = super().faults()
        wrong = self.limits.isnan() | (self.limits < 0) | (self.limits.isinf() & self.known)
        return found or (
            [f"limits: expected distances; got {self.limits.tolist()}"] if bool(wrong.any()) else []
        )

    def take(self, task: RehearsalTask) -> None:
        """Takes a task with other candidate sets, bounds or region, over the same variables."""
        self.task = task
        if self.fitted:
            self._limit()

    def _limit(self) -> None:
        """The 99th percentile of the rows' own distances, for each candidate set."""
        if not self.known:
            self.limits = self.rows.new_full((len(self.task.candidates),), torch.inf)
            return
        own = [
            self._fifth(self.rows[:, self._places(names)], names, NEIGHBOURS + 1)
            for names in self.task.candidates
        ]
        self.limits = torch.stack([torch.quantile(each, SHARE) for each in own])

    def distance(self, names: Sequence[str], contexts: Tensor, actions: Tensor) -> Tensor:
        """d_5, in standard deviations: contexts (B, |X|) and actions (B, k) of `names`, in units -> (B,)."""
        places = self._places(names)
        whole = torch.cat([contexts, actions], -1).to(self.rows)
        return self._fifth((whole - self.location[places]) / self.scale[places], names, NEIGHBOURS)

    def limit(self, names: Sequence[str]) -> float:
        """The 99th percentile of the rows' own d_5 for a candidate set."""
        return float(self.limits[self.task.candidates.index(tuple(names))])

    def outside(self, names: Sequence[str], values: Sequence[float]) -> list[str]:
        """A sentence for each value that lies beyond all rows, by name."""
        found = []
        for name, value in zip(names, values, strict=True):
            place = self.names.index(name)
            low, high = float(self.lowest[place]), float(self.highest[place])
            slack = 1e-9 * max(abs(low), abs(high), high - low)
            if not low - slack <= value <= high + slack:
                what = "is set to" if name in self.task.box.names else "is"
                found.append(
                    f"range: {name} {what} {setting_text(value, 6)}; the observations lie between "
                    f"{setting_text(low, 6)} and {setting_text(high, 6)}"
                )
        return found

    def contradictions(self) -> list[str]:
        """A sentence for each action without a path to an outcome on which the outcomes depend all the
        same.
        """
        p_values = self.p_values.tolist() or [1.0] * len(self.unlinked)
        return [
            contradiction(self.task, name, p)
            for name, p in zip(self.unlinked, p_values, strict=True)
            if p < SIGNIFICANT / len(self.unlinked)
        ]

    def _places(self, names: Sequence[str]) -> list[int]:
        return [self.names.index(name) for name in (*self.task.context, *names)]

    def _fifth(self, points: Tensor, names: Sequence[str], which: int) -> Tensor:
        rows = self.rows[:, self._places(names)]
        parts = [torch.cdist(part, rows).kthvalue(which, dim=-1).values for part in points.split(1000)]
        return torch.cat(parts) if parts else points.new_zeros(0)
