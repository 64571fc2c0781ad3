"""Surrogates of multiply imputed tables: one model for each of the m completed tables.

Every model is fitted to a completed table (`data.imputation`) with the same seeds, so that they differ by the
uncertainty of the missing cells alone. Objectives pool their answers (`objectives.imputation_success`).

Source: Rubin (1987), Ch. 3 (the analysis of each completed data set).
"""

from collections.abc import Callable, Mapping
from typing import Any

from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.imputation import ImputedTable
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.size_limits import IMPUTATIONS, bounded
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import Question
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Fits, Modules, SeparateMembers


class ImputedSurrogate(RehearsalSurrogate, SeparateMembers):
    """m surrogates of one method, 2 to 200."""

    def __init__(
        self,
        task: Mapping[str, Any] | RehearsalTask,  # The roles of the variables; plain data or a RehearsalTask
        member: Callable[..., RehearsalSurrogate],  # Factory of one of them, given the task
        count: int = 20,  # m
    ) -> None:
        super().__init__(task)
        bounded("count", count, IMPUTATIONS, 2)
        self.models = Modules[RehearsalSurrogate](member(task=self.task) for _ in range(count))
        self.by_adjustment = self.each[0].by_adjustment

    @property
    def each(self) -> tuple[RehearsalSurrogate, ...]:
        """The m surrogates."""
        return tuple(self.models)

    def separate(self) -> tuple[RehearsalSurrogate, ...]:
        """The m surrogates."""
        return self.each

    def common_parts(self, table: Table) -> Fits:
        """The overlap of the first table; ValueError if there are not m tables."""
        first = self._completed(table, 0)
        self.task.check(first)
        yield self.overlap, self.overlap.examples(first)

    def member_parts(self, place: int, table: Table) -> Fits:
        """The parts of a surrogate on its own table; all share a table without missing cells."""
        yield from self.each[place].parts(self._completed(table, place))

    def _completed(self, table: Table, index: int) -> Table:
        if not isinstance(table, ImputedTable):
            return table
        if len(table.completed) != len(self.models):
            expected = f"expected a table that was imputed {len(self.models)} times"
            raise ValueError(f"{expected}; got one of {len(table.completed)}")
        return table.completed[index]

    def misfit(self) -> Finding | None:
        """The first surrogate's with one."""
        return next((finding for model in self.each if (finding := model.misfit())), None)

    def used(self) -> tuple[str, ...]:
        """The fields that the surrogates use."""
        return self.each[0].used()

    def faults(self) -> list[str]:
        """The faults of all of them."""
        faults = super().faults()
        return faults or [
            f"models.{index}.{fault}" for index, model in enumerate(self.each) for fault in model.faults()
        ]

    def _take(self, question: Question) -> None:
        super()._take(question)
        for model in self.each:
            model._take(question)
