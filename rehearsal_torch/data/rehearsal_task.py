"""Rehearsal tasks: graph, context, actionable variables and desired region of the outcomes.

The variables form an influence graph. The context X is observed before deciding; some of the intermediate
variables Z may be set, each within bounds; the outcomes Y come last and should fall into a convex region S.
The aim is an alteration of one of the candidate sets of variables that maximises P(Y in S | x, alteration).

Source: Du et al. (2026), Sec. 2.1 and 3.1; Qin et al. (2023), Sec. 2-3.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import worded
from rehearsal_torch.data.codings.one_hot_actions import by_variable, combination_count
from rehearsal_torch.data.codings.task_codings import box_in_texts, outcome_faults
from rehearsal_torch.data.costs import ActionCost
from rehearsal_torch.data.problem_file.cases_schema import faces
from rehearsal_torch.data.problem_file.task_file import built, name_faults, rehearsal_parts, unit_faults
from rehearsal_torch.data.records import check_fit
from rehearsal_torch.files.schema import Fault, FaultsError, path_of
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import adjustment
from rehearsal_torch.spaces.box import Box, as_tensor
from rehearsal_torch.spaces.polytope import Polytope

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from rehearsal_torch.data.decision import RehearsalCase
    from rehearsal_torch.data.table import Table

MIN_ROWS = 10
# Combinations of the levels of a candidate set: all are evaluated, or, beside variables without levels, the
# others are searched for each.
COMBINATIONS, SEARCHES = 10_000, 256
# What the indicator of a class may be set to; to 0 alone if the class is not offered.
_CLASS_VALUES = ((0.0, 1.0), (0.0,))


@dataclass(frozen=True)
class RehearsalTask:
    """The roles of the variables in a rehearsal problem. A ValueError for unknown names, names with two
    roles, costs of other variables, a context variable that descends from an actionable one, an actionable
    one that descends from an outcome, or too many combinations of levels.

    Attributes:
        context: Variables that are observed before deciding.
        box: Actionable variables, with bounds or levels.
        candidates: Sets that may be set jointly, of which one is chosen; if empty, each variable, as a whole.
        holding: Candidates that only hold present values, beside a set on offer (`holding_present`).
        unit: The column of units (patients, stores), which folds and intervals keep together, or None.
        codings: The codes of columns of texts.
        costs: What changing an actionable variable costs; free for those that are not named.
        worth: The worth of a desired outcome, in the unit of the costs; None tells costs only.
    """

    graph: RehearsalGraph
    context: tuple[str, ...]
    box: Box
    region: Polytope
    candidates: tuple[tuple[str, ...], ...] = ()
    unit: str | None = None
    codings: tuple[Coding, ...] = ()
    costs: Mapping[str, ActionCost] = field(default_factory=dict)
    worth: float | None = None
    holding: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "context", _names(self.context))
        sets, key = tuple(map(_names, self.candidates)), "candidates" if self.candidates else "box"
        object.__setattr__(self, "candidates", sets or tuple(by_variable(self.box.names, self.codings)))
        object.__setattr__(self, "holding", tuple(map(_names, self.holding)))
        if faults := list(self._faults(key)):
            raise FaultsError(faults)

    def _faults(self, key: str) -> Iterator[Fault]:
        roles = {"context": self.context, "box": self.box.names, "region": self.outcomes}
        graph_names, settable = set(self.graph.names), set(self.box.names)
        lists = {"candidates": tuple(name for names in self.candidates for name in names)}
        lists |= {"codings": tuple(name for coding in self.codings for name in coding.columns)}
        yield from name_faults(roles | lists, self.graph.names, self.codings)
        counts = Counter(name for names in roles.values() for name in names)
        yield from unit_faults(self.unit, graph_names)
        if repeated := sorted(name for name, count in counts.items() if count > 1):
            yield Fault("box", f"{repeated} have two roles: a variable is context, actionable or outcome")
        for names in self.candidates:
            if not names:
                yield Fault("candidates", f"a set is empty; expected some of {list(self.box.names)}")
            yield from self._combination_faults(names, key)
        if not set(self.holding) < set(self.candidates):
            yield Fault("holding", f"expected some of the candidates, not all; got {list(self.holding)}")
        classes = {coding.name for coding in self.codings if settable.issuperset(coding.columns)}
        if unknown := [name for name in self.costs if name not in settable | classes]:
            yield Fault("costs", f"{unknown} are not actionable; expected some of {list(self.box.names)}")
        if self.worth is not None and not (math.isfinite(self.worth) and self.worth > 0):
            yield Fault("worth", f"expected a number above 0; got {self.worth}")
        for coding in self.codings:
            if coding.reference is not None:
                yield from self._class_faults(coding)
            if coding.name in settable and coding.name not in self.box.levels:
                words = f"it has texts ({coding.words}), and may be set to these only: offer levels"
                yield Fault(path_of(("box", coding.name)), words)
            elif not set(self.box.levels.get(coding.name, ())) <= set(range(len(coding.levels))):
                words = f"it has the codes {coding.words}; got {self.box.levels[coding.name]}"
                yield Fault(path_of(("box", coding.name)), words)
        yield from outcome_faults(self.graph, self.codings)
        after = self.graph.descendants(self.box.names)
        if late := [name for name in self.context if name in after and name not in settable]:
            yield Fault(
                "graph",
                f"context {late} is a descendant of an actionable variable and cannot be observed before "
                "deciding: take it out of the context, or reverse the edge",
            )
        beyond = self.graph.descendants(self.outcomes)
        if early := [name for name in self.box.names if name in beyond and name not in self.outcomes]:
            words = f"actionable {early} is a descendant of an outcome: setting it cannot change the outcome"
            yield Fault("graph", words)

    def _class_faults(self, coding: Coding) -> Iterator[Fault]:
        """Faults of a variable of classes: it is of the context, or all of it may be set."""
        columns = set(coding.columns)
        if columns <= set(self.context):
            return
        if not columns <= set(self.box.names):
            fault = f"{coding.name} has classes, and is neither of the context, nor set, nor desired"
            remedy = "name levels in their order, or add a column of 0 and 1 for a class"
            yield Fault("codings", f"{fault}: {remedy}")
        elif faulty := [name for name in coding.columns if self.box.levels.get(name) not in _CLASS_VALUES]:
            yield Fault(
                path_of(("box", faulty[0])),
                f"it says whether {coding.name} is of a class: expected the values 0 and 1, or 0 alone for a "
                "class that is not offered",
            )
        for names in self.candidates:
            if not columns.isdisjoint(names) and not columns <= set(names):
                expected = f"expected all of {list(coding.columns)}, or its name"
                words = f"{list(names)}: {coding.name} is set as a whole: {expected}"
                yield Fault("candidates", words)

    def _combination_faults(self, names: Sequence[str], key: str) -> Iterator[Fault]:
        levels = {name: self.box.levels[name] for name in names if name in self.box.levels}
        count = combination_count(levels, self.codings)
        discrete = all(name in self.box.levels for name in names)
        limit = COMBINATIONS if discrete else SEARCHES
        if count > limit:
            company = "" if discrete else " beside variables with bounds"
            yield Fault(
                key,
                f"{list(self.variables(names))}: {count} combinations of values{company}; "
                f"expected at most {limit}: offer fewer values, fewer variables at once, or bounds in place "
                "of values",
            )

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The |Y| outcomes, in the region's order."""
        return self.region.names

    @property
    def coded(self) -> dict[str, Coding]:
        """The codings by the name of their column."""
        return {coding.name: coding for coding in self.codings}

    def worded(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Names and values with texts in place of codes, for readers (`data.codings.decision_texts`)."""
        return worded(values, self.coded)

    def variables(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names as readers know them: a variable of classes in the place of its indicators."""
        variable_of = {column: coding.name for coding in self.codings for column in coding.columns}
        return tuple(dict.fromkeys(variable_of.get(name, name) for name in names))

    def check(self, table: Table) -> None:
        """Refuses a table with missing or constant columns, gaps, or fewer than 10 rows."""
        remedies = "no model can be fitted to so few", "drop or impute those rows"
        names = self.graph.names
        check_fit(table.records(), names, MIN_ROWS, "variables", remedies, names)

    def given(self, cases: Sequence[RehearsalCase]) -> Tensor:
        """The contexts of B cases, (B, |X|), in the task's order, in the variables' units; |X| may be 0."""
        context = set(self.context)
        for case in cases:
            if not (measured := case.given.keys()) >= context:
                missing = [name for name in self.context if name not in measured]
                expected = f"expected the context {list(self.context)}"
                raise ValueError(f"{case.identity}: {expected}; {missing} is not given: measure it first")
        values = [case.given[name].item() for case in cases for name in self.context]
        return as_tensor(np.reshape(values, (len(cases), len(self.context))))

    def left_alone(self, names: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
        """Those of `known` actions that setting `names` leaves alone, and that can then change an outcome."""
        after = self.graph.descendants(names)
        return tuple(
            name
            for name in self.box.names
            if name in known
            and name not in after
            and not self.graph.descendants((name,), names).isdisjoint(self.outcomes)
        )

    @property
    def offered(self) -> tuple[tuple[str, ...], ...]:
        """The candidate sets that a decision may change."""
        return tuple(names for names in self.candidates if names not in self.holding)

    def holding_present(self, known: Collection[str]) -> RehearsalTask:
        """The task with sets that join an offered one with what it leaves alone of `known` actions, where the
        graph identifies their effect by adjustment.
        """
        joint = dict[tuple[str, ...], None]()
        for names in self.offered:
            alone = self.left_alone(names, known)
            union = tuple(name for name in self.box.names if name in {*names, *alone})
            if not alone or {*union} in map(set, self.candidates) or any(self._combination_faults(union, "")):
                continue
            if not adjustment(self.graph, self.context, union, self.outcomes, front_door=False).reasons:
                joint[union] = None
        if not joint:
            return self
        return replace(self, candidates=(*self.candidates, *joint), holding=(*self.holding, *joint))

    def to_plain(self) -> dict[str, Any]:
        """Plain data for a configuration."""
        return {
            "graph": self.graph.to_plain(),
            "context": list(self.context),
            "box": box_in_texts(self.box.to_plain(), self.coded),
            "region": {"names": list(self.outcomes), **faces(self.region)},
            "candidates": [list(self.variables(names)) for names in self.candidates],
            **({} if self.unit is None else {"unit": self.unit}),
            **({"codings": {name: c.to_plain() for name, c in self.coded.items()}} if self.codings else {}),
            **({"costs": {name: c.to_plain() for name, c in self.costs.items()}} if self.costs else {}),
            **({} if self.worth is None else {"worth": self.worth}),
            **({"holding": [list(self.variables(names)) for names in self.holding]} if self.holding else {}),
        }

    @classmethod
    def of(
        cls,
        plain: Mapping[str, Any] | RehearsalTask,
        source: str = "the task",
        columns: Sequence[str] | None = None,
    ) -> RehearsalTask:
        """A task from plain data (`data.problem_file.task_file`) on these `columns`; a TaskError lists all
        faults.
        """
        return plain if isinstance(plain, RehearsalTask) else task_of(plain, source, columns)


def task_of(
    plain: Mapping[str, Any],
    source: str = "the task",
    columns: Sequence[str] | None = None,
    rows: pd.DataFrame | None = None,
    known: Mapping[str, Coding] = MappingProxyType({}),
) -> RehearsalTask:
    """`RehearsalTask.of`, with what codings leave to rows by some rows or by known codings."""
    parts = rehearsal_parts(plain, source, columns, rows, known)
    return built(source, lambda: RehearsalTask(**parts))


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
