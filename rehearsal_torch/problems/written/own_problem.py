"""A user-supplied problem file as a problem: its rows to learn from, and its cases with their bounds; for a
sequence its units, split by unit, and what was done in each step; for trials the experiments so far, and
which one to run next.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.problem_file.compiled import WrittenProblem, written_problem
from rehearsal_torch.data.problem_file.learnt_graph import equally_likely
from rehearsal_torch.data.tables.present_values import present_in
from rehearsal_torch.problems.causal.own_experiments import ExperimentTable
from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from rehearsal_torch.problems.problem import Facts
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable, Rows, rows_in
from rehearsal_torch.problems.written.sequence_file import SequenceProblem, sequence_problem
from rehearsal_torch.problems.written.trials_file import TrialsProblem, trials_problem


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
            wording=_units_of(self.problem.variables),
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


class OwnSequence(EpisodeTable):
    """A problem file, as a table of episodes.

    Args:
        path: The problem file, or one that was read.
        seed: Seed of the split.
        min_length: Shortest episode, in steps.
        max_length: Longest episode; later steps are left out. None for no limit.
        horizon: If given, cases are the first `horizon` steps of those episodes that are long enough.
        split: The split that the cases come from: "train", "validation" or "test".
        keep_last: How many actions at the end of each episode stay as they were.

    Raises:
        ProblemError: if the file cannot be used; all faults are listed.
        TableError: if its table cannot be used; all faults are listed.
        ValueError: if no case is left, or an argument is out of range.
    """

    def __init__(
        self,
        path: str | Path | SequenceProblem | None,
        seed: int = 0,
        min_length: int = 2,
        max_length: int | None = None,
        horizon: int | None = None,
        split: str = "test",
        keep_last: int = 1,
    ) -> None:
        self.problem = path if isinstance(path, SequenceProblem) else sequence_problem(path)
        super().__init__(
            self.problem.rows, self.problem.roles, seed, min_length, max_length, horizon, split, keep_last
        )

    def facts(self) -> Facts:
        """The file's method, and what its reader decided by itself."""
        return replace(super().facts(), method=self.problem.method, notes=self.problem.notes)


class OwnTrials(ExperimentTable):
    """A problem file, as a table of experiments.

    Args:
        path: The problem file, or one that was read.
        fixed: Actions that the next experiment holds at a value, in place of those that the file holds; None
            for these.

    Raises:
        ProblemError: if the file cannot be used; all faults are listed.
        TableError: if a column is not numeric or incomplete; all faults are listed.
        ValueError: if a fixed value may not be set, or a node is constant.
    """

    def __init__(
        self, path: str | Path | TrialsProblem | None, fixed: Mapping[str, float] | None = None
    ) -> None:
        self.problem = path if isinstance(path, TrialsProblem) else trials_problem(path)
        super().__init__(self.problem.rows, self.problem.task, self.problem.fixed if fixed is None else fixed)

    def facts(self) -> Facts:
        """The file's method, and the units of its variables."""
        wording = _units_of(self.problem.variables)
        return replace(super().facts(), method=self.problem.method, wording=wording)


def _units_of(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The units of variables as words for reports; empty if there are none."""
    units = {name: about.unit for name, about in variables.items() if about.unit}
    return {"units_of": units} if units else {}
