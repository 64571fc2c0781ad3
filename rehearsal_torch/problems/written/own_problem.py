"""A problem file that asks for cases, as a problem: rows to learn from, and cases with their bounds."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.problem_file.actions import units_of
from rehearsal_torch.data.problem_file.compiled import WrittenProblem, written_problem
from rehearsal_torch.data.problem_file.learnt_graph import equally_likely
from rehearsal_torch.data.tables.present_values import present_in
from rehearsal_torch.problems.problem import Facts
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable, Rows, rows_in


class OwnProblem(RehearsalTable):
    """A problem file, as a table and a task.

    Args:
        path: The problem file, or one that was read.
        validation: Share of the rows that is held out, in [0, 1); None holds out a fifth, ten rows at least,
            or none if the file has cases.
        kept: Which rows are held out: "random", or the "last" of the file.
        seed: Seed of the random choice.
        cases: Other cases than the file's own, within the bounds that the file states; None for its own.
        identity: The column that names the other cases; None for their lines.

    Raises:
        ProblemError: if the file, or its bounds for the other cases, cannot be used; all faults are listed.
        ValueError: if another argument is out of range, or there are too few rows to hold some out.
    """

    def __init__(
        self,
        path: str | Path | WrittenProblem | None,
        validation: float | None = None,
        kept: str = "random",
        seed: int = 0,
        cases: Rows | None = None,
        identity: str | None = None,
    ) -> None:
        problem = path if isinstance(path, WrittenProblem) else written_problem(path)
        self.problem, self.ranges = problem, problem.ranges
        if cases is not None and problem.bounds:
            self.ranges = problem.ranges_for(rows_in(cases, "cases", "the cases"))
        self._own = problem.cases is None and cases is None
        super().__init__(
            problem.rows,
            problem.task,
            problem.cases if cases is None else cases,
            problem.identity if cases is None else identity,
            validation,
            kept,
            seed,
            problem.gaps.imputing,
        )
        if self._own and problem.from_present:
            # Such bounds say that the value of a held-out row is a present one.
            every = present_in(problem.rows.frame, problem.rows.where, problem.from_present)
            self.present = [every[place] for place in self._places]

    def facts(self) -> Facts:
        """The file's method, costs and units of the variables; the graphs that agree with the rows, where the
        file asks for one to be learnt; and what became of missing cells.
        """
        facts = super().facts()
        return replace(
            facts,
            notes=(*facts.notes, *self.problem.gaps.doubts),
            method=self.problem.method,
            graphs=equally_likely(self.problem.graphs),
            costs=self.problem.costs,
            wording=units_of(self.problem.variables),
        )

    def card(self) -> Mapping[str, Any]:
        """The card of the table, with what became of missing cells."""
        return {**super().card(), **self.problem.gaps.card()}

    def case(self, index: int) -> RehearsalCase:
        """Case number `index`, within its own bounds."""
        case = super().case(index)
        if not self.ranges:
            return case
        place = self._bounded(self._places[index]) if self._own else index
        own = {name: ranges[place] for name, ranges in self.ranges.items()}
        return replace(case, feasible={**case.feasible, **own}, own=tuple(own))

    def _bounded(self, place: int) -> int:
        """The place of a row among those with bounds: all, or the complete ones where others are imputed."""
        gaps = self.problem.gaps
        return int(gaps.cells.complete[:place].sum()) if gaps.imputations else place
