"""Nested kernel ridge regression: what altering each candidate set would be worth, without a model of the mechanisms.

For each candidate set, the covariates to adjust for are read off the graph, and an estimator of J(a; x) is fitted: first
stage E[w(Y) | x, u, a], second stage E[. | x]. A regression on the context alone says what happens when nothing is altered.

Source: Du et al. (2026), Sec. 3 and Alg. 1.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rehearsal_torch.data.fitted import Solved, Trained
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.standardise import Standardise
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.adjustment import Adjustment, adjustment
from rehearsal_torch.surrogates.alteration_value import AlterationValue
from rehearsal_torch.surrogates.desirability import Desirability
from rehearsal_torch.surrogates.metric_ridge import MetricRidge
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate


class NestedRidge(RehearsalSurrogate):
    """An estimator for each candidate set.

    Args:
        task: Who plays which part; plain data or a RehearsalTask.
        estimator: Makes the estimator of a set; called with `first`.
        sharpness: eta in standardised outcomes; None chooses it.
        clearance: How sharp the chosen eta is in a narrow region, see `Desirability`.
        sequential: Uses the sequential formula where the single one does not hold; otherwise the paper's single one, with a warning.

    Attributes:
        adjustments: What each candidate set is adjusted for.
    """

    def __init__(
        self,
        task: Mapping[str, Any] | RehearsalTask,
        estimator: Callable[..., AlterationValue],
        sharpness: float | None = None,
        clearance: float = 2.0,
        sequential: bool = True,
    ) -> None:
        super().__init__(task)
        self.scaler = Standardise(self.task.graph.names)
        self.desirability = Desirability(self.task.region, sharpness, clearance)
        self.untouched = MetricRidge()
        context, outcomes = self.task.context, self.task.outcomes
        self.adjustments: tuple[Adjustment, ...] = tuple(adjustment(self.task.graph, context, names, outcomes, sequential) for names in self.task.candidates)
        self.estimators = nn.ModuleList(
            estimator(first=[names.index(name) for name in found.first]) for names, found in zip(self.task.candidates, self.adjustments, strict=True)
        )

    def parts(self, table: Table) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        """Where the rows lie, the scaler, the desirability, what happens untouched, and an estimator for each candidate set."""
        self.task.check(table)
        yield self.overlap, self.overlap.examples(table)
        yield self.scaler, (table.columns(self.task.graph.names),)
        outcomes = table.columns(self.task.outcomes)
        yield self.desirability, (outcomes,)
        targets, scores = self.desirability.targets(outcomes), self.desirability.scores(outcomes)
        context = self._shown(table, self.task.context)
        yield self.untouched, (context, targets, torch.cat((targets, scores), -1))
        for names, found, estimator in zip(self.task.candidates, self.adjustments, self.values(), strict=True):
            covariates = (self._shown(table, found.before), self._shown(table, found.between))
            yield estimator, (context, *covariates, self._shown(table, names), targets, scores)

    def used(self) -> tuple[str, ...]:
        """All of it: targets are the region's, and each candidate set has an estimator of its own."""
        return ("graph", "actions", "context", "outcomes", "region", "candidates")

    def faults(self) -> list[str]:
        """The parts' faults, and estimators of other widths than the task's."""
        found = super().faults()
        if found:
            return found
        context, sets = len(self.task.context), zip(self.task.candidates, self.adjustments, self.values(), strict=True)
        for place, (names, adjusted, each) in enumerate(sets):
            wanted = (context, len(adjusted.before) + len(adjusted.between), len(names))
            if each.widths_of_rows != wanted:
                found.append(f"estimators.{place}: expected {wanted} context variables, covariates and actions; got {each.widths_of_rows}")
        width = self.untouched.directions.shape[-1]
        return found if width == context else [*found, f"untouched.directions: expected {context} columns; got {width}"]

    def values(self) -> list[AlterationValue]:
        """The estimators, in the order of the task's candidate sets."""
        return [each for each in self.estimators if isinstance(each, AlterationValue)]

    def _shown(self, table: Table, names: tuple[str, ...]) -> Tensor:
        return self.scaler.shown(names, table.columns(names))
