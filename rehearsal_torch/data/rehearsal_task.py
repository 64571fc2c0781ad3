"""Rehearsal tasks: graph, context, actionable variables and desired region of the outcomes.

The variables form an influence graph. The context X is observed before deciding; some of the intermediate
variables Z may be set, each within bounds; the outcomes Y come last and should fall into a convex region S.
The aim is an alteration of one of the candidate sets of variables that maximises P(Y in S | x, alteration).

Source: Du et al. (2026), Sec. 2.1 and 3.1; Qin et al. (2023), Sec. 2-3.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_file import NO_VARIABLE, built, rehearsal_parts
from rehearsal_torch.files.schema import LARGEST, FaultsError
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope

MIN_ROWS = 10
# Combinations of the levels of a candidate set: all are evaluated, or, beside variables without levels, the
# others are searched for each.
COMBINATIONS, SEARCHES = 10_000, 256


@dataclass(frozen=True)
class RehearsalTask:
    """The roles of the variables in a rehearsal problem.

    Attributes:
        graph: The influence graph of all variables.
        context: Variables that are observed before deciding.
        box: Actionable variables, with bounds or levels.
        region: The desired region of the outcomes.
        candidates: Sets of variables that may be set jointly; one set is selected. If empty, each actionable
            variable is a set of its own.
        unit: The column of a table that says which rows belong together (a patient, a store), so that folds,
            held-out rows and intervals keep them together; no variable of the graph. None if every row stands
            alone.

    Raises:
        ValueError: if a name is not in the graph or has two roles, a context variable is a descendant of an
            actionable one, an actionable variable is a descendant of an outcome, or a candidate set has too
            many combinations of levels.
    """

    graph: RehearsalGraph
    context: tuple[str, ...]
    box: Box
    region: Polytope
    candidates: tuple[tuple[str, ...], ...] = ()
    unit: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "context", (self.context,) if isinstance(self.context, str) else tuple(self.context)
        )
        sets = tuple(
            (names,) if isinstance(names, str) else tuple(names) for names in self.candidates
        ) or tuple((name,) for name in self.box.names)
        object.__setattr__(self, "candidates", sets)
        if faults := list(self._faults()):
            raise FaultsError(faults)

    def _faults(self) -> Iterator[str]:
        parts = {"context": self.context, "actionable": self.box.names, "outcome": self.outcomes}
        known, settable = set(self.graph.names), set(self.box.names)
        for part, names in parts.items():
            if unknown := [name for name in names if name not in known]:
                yield f"{part} variables {unknown} are not in the graph; it has {list(self.graph.names)}"
        counts = Counter(name for names in parts.values() for name in names)
        if self.unit in known:
            yield f"unit: {self.unit!r} is a variable of the graph; {NO_VARIABLE}"
        if twice := sorted(name for name, count in counts.items() if count > 1):
            yield f"{twice} have two roles: a variable is context, actionable or an outcome"
        for names in self.candidates:
            if not names or not settable.issuperset(names):
                yield (
                    f"candidate set {list(names)}: expected some of the actionable variables "
                    f"{list(self.box.names)}"
                )
            yield from self._too_many(names)
        after = self.graph.descendants(self.box.names)
        if late := [name for name in self.context if name in after and name not in settable]:
            yield (
                f"context {late} is a descendant of an actionable variable and cannot be observed before "
                "deciding: take it out of the context, or reverse the edge"
            )
        beyond = self.graph.descendants(self.outcomes)
        if early := [name for name in self.box.names if name in beyond and name not in self.outcomes]:
            yield f"actionable {early} is a descendant of an outcome: setting it cannot change the outcome"

    def _too_many(self, names: Sequence[str]) -> Iterator[str]:
        count = math.prod(len(self.box.levels[name]) for name in names if name in self.box.levels)
        alone = all(name in self.box.levels for name in names)
        limit = COMBINATIONS if alone else SEARCHES
        if count > limit:
            beside = "" if alone else " beside variables with bounds"
            yield (
                f"candidate set {list(names)}: {count} combinations of values{beside}; expected at most "
                f"{limit}: offer fewer values, fewer variables at once, or bounds in place of values"
            )

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The |Y| outcomes, in the region's order."""
        return self.region.names

    @property
    def intermediates(self) -> tuple[str, ...]:
        """Variables that are neither context nor outcome, in the graph's order."""
        return tuple(
            name for name in self.graph.names if name not in self.context and name not in self.outcomes
        )

    def check(self, table: Table) -> None:
        """Refuses a table to which no model can be fitted.

        Raises:
            ValueError: if a variable has no column, there are fewer than 10 rows, a value is missing,
                infinite or beyond 1e150, or a column is constant.
        """
        missing = [name for name in self.graph.names if name not in table.names]
        if missing:
            raise ValueError(
                f"no column for {missing}; the table has {list(table.names)}: add the columns or take the "
                "variables out of the graph"
            )
        if len(table) < MIN_ROWS:
            raise ValueError(
                f"expected at least {MIN_ROWS} rows; got {len(table)}: no model can be fitted to so few"
            )
        values = table.columns(self.graph.names)
        faults = []
        for name, column in zip(self.graph.names, values.T, strict=True):
            bad = int((~column.isfinite()).sum())
            if large := int((column.isfinite() & (column.abs() > LARGEST)).sum()):
                faults.append(
                    f"{name}: {large} of {len(column)} values are beyond {LARGEST:g}, too large to compute "
                    "with: use another unit"
                )
            elif bad:
                faults.append(
                    f"{name}: {bad} of {len(column)} values are missing or infinite: drop or impute those "
                    "rows"
                )
            elif bool((column == column[0]).all()):
                faults.append(
                    f"{name}: all {len(column)} values are {float(column[0]):g}: a constant carries no "
                    "information, take the variable out"
                )
        if faults:
            raise ValueError("; ".join(faults))

    def given(self, cases: Sequence[RehearsalCase]) -> Tensor:
        """The contexts of B cases, (B, |X|), in the task's order and in the variables' units; |X| may be 0.

        Raises:
            ValueError: if a case lacks a context variable.
        """
        for each in cases:
            missing = [name for name in self.context if name not in each.given]
            if missing:
                raise ValueError(
                    f"{each.identity}: expected the context {list(self.context)}; {missing} is not given: "
                    "measure it first"
                )
        rows = [[float(each.given[name]) for name in self.context] for each in cases]
        return torch.tensor(rows, dtype=torch.float64).reshape(len(cases), len(self.context))

    def left_alone(self, names: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
        """The actions among `known` that setting `names` neither sets nor changes, and that can then still
        change an outcome.
        """
        after, cut = self.graph.descendants(names), self.graph.altered(names)
        return tuple(
            name
            for name in self.box.names
            if name in known and name not in after and not cut.descendants((name,)).isdisjoint(self.outcomes)
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain data for a configuration."""
        return {
            "graph": self.graph.to_plain(),
            "context": list(self.context),
            "box": self.box.to_plain(),
            "region": {
                "names": list(self.outcomes),
                "normals": self.region.normals.tolist(),
                "offsets": self.region.offsets.tolist(),
            },
            "candidates": [list(names) for names in self.candidates],
            **({} if self.unit is None else {"unit": self.unit}),
        }

    @classmethod
    def of(
        cls,
        plain: "Mapping[str, Any] | RehearsalTask",
        source: str = "the task",
        columns: Sequence[str] | None = None,
    ) -> "RehearsalTask":
        """A task from plain data, as written by `to_plain` or by hand; see `rehearsal_torch.data.task_file`.

        Args:
            plain: graph ({parents, bidirected} or {cliques, edges}), context, box, region (bounds or faces),
                and optionally candidates and unit.
            source: Its name in messages.
            columns: The columns of the table; every variable must be one of them. None skips this check.

        Raises:
            TaskError: if a part is missing or wrong; all faults are listed.
        """
        if isinstance(plain, RehearsalTask):
            return plain
        parts = rehearsal_parts(plain, source, columns)
        return built(source, lambda: cls(**parts))
