"""A problem file that asks for cases, as a problem: rows to learn from, and cases with their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.data.codings.decision_texts import sentence_in_words
from rehearsal_torch.data.codings.one_hot_actions import offered
from rehearsal_torch.data.problem_file.cases_builder import WrittenProblem, written_problem
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.problem_file.graph_section import equally_likely
from rehearsal_torch.data.problem_file.variable_kinds import costs, units_of
from rehearsal_torch.data.tables.decision_cases import present_in
from rehearsal_torch.problems.cases.task_warnings import note_findings
from rehearsal_torch.problems.cases.user_table import RehearsalTable, Rows, rows_in
from rehearsal_torch.problems.problem import Facts, OfFile
from rehearsal_torch.spaces.box import levels_text, setting_text

if TYPE_CHECKING:
    from rehearsal_torch.data.decision import RehearsalCase

# Variables whose direct causes a check lists; of larger graphs the arrows are counted.
MOST_EFFECTS = 15


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
            # Such bounds say that the value of a held-out row is a present one.
            every = present_in(problem.rows.frame, problem.rows.where, problem.from_present)
            self.present = [every[place] for place in self._places]

    def facts(self) -> Facts:
        """The file's method, costs and units; graphs that agree with the rows; what became of gaps."""
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

    def counted(self) -> str:
        """How many rows and cases there are; one sentence."""
        table, task = self.every, self.task
        inside = int(task.region.holds(table.columns(task.outcomes)).sum())
        case = f"{'held-out row' if self.recorded else 'case'}{'' if self.count() == 1 else 's'}"
        rows = f"{len(table)} rows of {self.source}, of which {inside} lie in the desired region"
        return f"{rows}; {self.count()} {case} to decide for"

    def variable_rows(self) -> list[tuple[str, ...]]:
        """A row for each variable, the header first."""
        table, task, about = self.every, self.task, self.problem.form.variables
        rows: list[tuple[str, ...]] = [("variable", "role", "kind", "unit", "from", "to", "may be set to")]
        there = task.variables(table.names)
        for name, variable in ((name, each) for name, each in about.items() if name in there):
            coding = self.task.coded.get(name)
            if coding is None:
                column = table.columns((name,))
                ends = [f"{float(end):.6g}" for end in (column.min(), column.max())]
            else:
                ends = [coding.levels[0], coding.levels[-1]] if not coding.of_classes else ["", ""]
            known = (name, variable.role, variable.kind, variable.unit or "")
            rows.append((*known, *ends, self._settable(name)))
        return rows

    def sections(self) -> list[str]:
        """The texts as numbers, the graph as it was read, and the costs of changes."""
        texts = [f"  {name}: {coding.words}" for name, coding in self.task.coded.items()]
        return [*(["", "Texts as numbers:", *texts] if texts else []), *self._influences(), *self._costs()]

    def _influences(self) -> list[str]:
        """A line for each variable with its causes, and one for hidden causes."""
        graph, words = self.task.graph, self.task.coded
        causes: dict[str, list[str]] = {}
        for edge in graph.edges:
            cause, effect = (sentence_in_words(name, words) for name in edge)
            if cause != effect and cause not in causes.setdefault(effect, []):
                causes[effect].append(cause)
        named = (dict.fromkeys(sentence_in_words(name, words) for name in pair) for pair in graph.bidirected)
        arcs = list(dict.fromkeys(" <-> ".join(pair) for pair in named if len(pair) == 2))
        if len(causes) > MOST_EFFECTS:
            arrows = f"{sum(map(len, causes.values()))} arrows into {len(causes)} variables"
            return ["", f"Graph: {arrows}{f', {len(arcs)} hidden common causes' if arcs else ''}"]
        lines = [f"  {', '.join(some)} -> {effect}" for effect, some in causes.items()]
        if arcs:
            more = f" and {len(arcs) - MOST_EFFECTS} more" if len(arcs) > MOST_EFFECTS else ""
            lines.append(f"  hidden common causes: {', '.join(arcs[:MOST_EFFECTS])}{more}")
        return ["", "Graph, as it was read:", *lines] if lines else ["", "Graph: no arrows"]

    def _costs(self) -> list[str]:
        """What changing each action costs, and from where changes count."""
        task, about = self.task, self.problem.form.variables
        if not task.costs:
            return []
        worth = "" if task.worth is None else f", of which a desired outcome is worth {task.worth:g}"
        lines = ["", f"Costs of changes{worth}:"]
        for name, cost in task.costs.items():
            usual = f"from the usual one, {self._value(name, cost.usual)}, where a case states none"
            words = cost.words(about[name].unit or "")
            lines.append(f"  {name}: {words}; from the present value, or {usual}")
        return lines

    def _value(self, name: str, value: float | None) -> str:
        if value is None:
            return "unknown"
        coding = self.task.coded.get(name)
        return setting_text(value) if coding is None else str(coding.levels[int(value)])

    def _settable(self, name: str) -> str:
        """What a variable may be set to; empty where it may not."""
        box, coding = self.task.box, self.task.coded.get(name)
        if coding is not None and set(coding.columns) <= set(box.names) and coding.reference is not None:
            return ", ".join(coding.levels[place] for place in offered(coding, box.levels))
        if name not in box.names:
            return ""
        if coding is not None:
            return ", ".join(coding.levels[int(level)] for level in box.levels[name])
        lower, upper = box.bounds()[name]
        return levels_text(box.levels[name]) if name in box.levels else f"{lower:g} to {upper:g}"
