"""A problem file that asks for cases, as a problem: rows to learn from, and cases with their bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.data.codings.one_hot_actions import offered_places
from rehearsal_torch.data.problem_file.cases_builder import WrittenProblem, written_problem
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.problem_file.graph_section import equally_likely
from rehearsal_torch.data.problem_file.variable_kinds import costs, units_of
from rehearsal_torch.data.tables.decision_cases import present_in
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.cases.task_warnings import note_findings
from rehearsal_torch.problems.cases.user_table import RehearsalTable, Rows, rows_in
from rehearsal_torch.problems.problem import Facts, OfFile
from rehearsal_torch.spaces.box import levels_text, setting_text

if TYPE_CHECKING:
    from rehearsal_torch.data.decision import RehearsalCase

# The most variables of which the direct causes are listed, and the most hidden common causes.
_MOST_LISTED = 15


class OwnProblem(OfFile, RehearsalTable):
    """A problem file, as a table and a task. `RehearsalTable` describes the arguments not listed here.

    Args:
        path: The problem file, or one that was read.
        validation: Share of the rows that is held out, in [0, 1); None holds out a fifth, ten rows at least,
            or none if the file has cases.
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
        if cases is not None and problem.form.bounds:
            self.ranges = problem.ranges_for(rows_in(cases, "cases", "the cases"))
        self._own = problem.cases is None and cases is None
        if cases is None:
            cases, identity = problem.cases, problem.form.identity
        imputations = problem.gaps.imputations
        super().__init__(problem.rows, problem.task, cases, identity, validation, kept, seed, imputations)
        if self._own and problem.from_present:
            # By such bounds, the action's value in a held-out row is its present one.
            present = present_in(problem.rows.frame, problem.rows.where, problem.from_present)
            self.present = [present[place] for place in self._places]
            self._hold_present()

    def facts(self) -> Facts:
        """The facts of the table, with the file's method, costs, units and agreeing graphs."""
        facts = super().facts()
        return replace(
            facts,
            notes=(*facts.notes, *self.problem.gaps.doubts),
            method=self.problem.form.method,
            graphs=equally_likely(self.problem.graphs),
            costs=costs(self.problem.form.variables),
            wording=units_of(self.problem.form.variables),
        )

    def _note(self, found: Findings) -> None:
        found.take(self.problem.findings)
        note_findings(self, found, self.problem)

    def card(self) -> Mapping[str, Any]:
        """The card of the table, with what was done about missing cells."""
        return {**super().card(), **self.problem.gaps.card()}

    def case(self, index: int) -> RehearsalCase:
        """Case number `index`, within its own bounds."""
        case = super().case(index)
        if not self.ranges:
            return case
        place = self._places[index] if self._own else index
        if self._own and self.problem.gaps.imputations:
            # Only complete rows have bounds.
            place = int(self.problem.gaps.cells.complete[:place].sum())
        own = {name: ranges[place] for name, ranges in self.ranges.items()}
        return replace(case, feasible={**case.feasible, **own}, own=tuple(own))

    def counted(self) -> str:
        """How many rows and cases there are; one sentence."""
        table, task = self.every, self.task
        inside = int(task.region.holds(table.columns(task.outcomes)).sum())
        case = f"{'held-out row' if self.recorded else 'case'}{'' if self.count() == 1 else 's'}"
        rows = f"{len(table)} rows of {self.source}, of which {inside} lie in the desired region"
        return f"{rows}; {self.count()} {case} to decide for"

    def variable_rows(self) -> list[tuple[str, ...]]:
        """A row for each variable, the header first."""
        table, task = self.every, self.task
        rows: list[tuple[str, ...]] = [("variable", "role", "kind", "unit", "from", "to", "may be set to")]
        for name, variable in self.problem.form.variables.items():
            if name not in task.variables(table.names):
                continue
            if (coding := task.coded.get(name)) is None:
                column = table.columns((name,))
                ends = setting_text(float(column.min()), 6), setting_text(float(column.max()), 6)
            else:
                ends = ("", "") if coding.of_classes else (coding.levels[0], coding.levels[-1])
            rows.append(
                (name, variable.role, variable.kind, variable.unit or "", *ends, self._settable(name))
            )
        return rows

    def sections(self) -> list[str]:
        """The texts as numbers, the graph as it was read, and the costs of changes."""
        texts = [f"  {name}: {coding.words}" for name, coding in self.task.coded.items()]
        return [*(["", "Texts as numbers:", *texts] if texts else []), *self._influences(), *self._costs()]

    def graph_of_variables(self) -> RehearsalGraph:
        """The graph of the task."""
        return RehearsalGraph.mixed(self.task.variables(self.task.graph.names), *self._edges())

    def _edges(self) -> Iterator[dict[tuple[str, ...], None]]:
        """Arrows, and hidden common causes, between variables."""
        for edges in (self.task.graph.edges, self.task.graph.bidirected):
            yield dict.fromkeys(pair for pair in map(self.task.variables, edges) if len(pair) == 2)

    def _influences(self) -> list[str]:
        """A line for each variable with its causes, and one for hidden common causes."""
        arrows, hidden = self._edges()
        causes: dict[str, list[str]] = {}
        for cause, effect in arrows:
            causes.setdefault(effect, []).append(cause)
        if len(causes) > _MOST_LISTED:
            count = f"{len(arrows)} arrows into {len(causes)} variables"
            return ["", f"Graph: {count}{f', {len(hidden)} hidden common causes' if hidden else ''}"]
        lines = [f"  {', '.join(names)} -> {effect}" for effect, names in causes.items()]
        if hidden:
            listed = ", ".join(" <-> ".join(pair) for pair in list(hidden)[:_MOST_LISTED])
            more = f" and {len(hidden) - _MOST_LISTED} more" if len(hidden) > _MOST_LISTED else ""
            lines.append(f"  hidden common causes: {listed}{more}")
        return ["", "Graph, as it was read:", *lines] if lines else ["", "Graph: no arrows"]

    def _costs(self) -> list[str]:
        """What changing each action costs, and from which value changes count."""
        task = self.task
        if not task.costs:
            return []
        worth = "" if task.worth is None else f", of which a desired outcome is worth {task.worth:g}"
        lines = ["", f"Costs of changes{worth}:"]
        for name, cost in task.costs.items():
            usual = "unknown"
            if cost.usual is not None:
                coding = task.coded.get(name)
                usual = setting_text(cost.usual) if coding is None else coding.levels[int(cost.usual)]
            words = cost.words(self.problem.form.variables[name].unit or "")
            origin = f"from the present value, or from the usual one, {usual}, where a case states none"
            lines.append(f"  {name}: {words}; {origin}")
        return lines

    def _settable(self, name: str) -> str:
        """What a variable may be set to; empty where it may not."""
        box, coding = self.task.box, self.task.coded.get(name)
        if coding is not None and not set(coding.columns) <= set(box.names):
            return ""
        if coding is not None:
            codes = offered_places(coding, box.levels) if coding.reference is not None else box.levels[name]
            return ", ".join(coding.levels[int(code)] for code in codes)
        if name not in box.names:
            return ""
        lower, upper = box.bounds()[name]
        if name in box.levels:
            return levels_text(box.levels[name])
        return f"{setting_text(lower, 6)} to {setting_text(upper, 6)}"
