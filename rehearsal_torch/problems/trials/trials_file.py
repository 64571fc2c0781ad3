"""Problem files that ask for trials, with the experiments so far, and as a problem: which to run next.

    file = trials_problem("problem.yaml")       all faults of the file at once, each with its line
    file.task, file.rows, file.fixed            the task, the experiments so far, and what is held
    file.context                                in the next one

The schema is `data.problem_file.trials_schema`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.problem_file.diagnostics import (
    Findings,
    column_faults,
    expect,
    graph_faults,
    key,
    opened,
)
from rehearsal_torch.data.problem_file.graph_section import graph_part
from rehearsal_torch.data.problem_file.trial_variable import TrialVariable
from rehearsal_torch.data.problem_file.trials_schema import TrialsProblem
from rehearsal_torch.data.problem_file.variable_kinds import units_of
from rehearsal_torch.data.tables.reader import ReadTable
from rehearsal_torch.data.trials.trial import Settings
from rehearsal_torch.data.trials.typed_settings import tolerances
from rehearsal_torch.files.schema import FaultsError
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.problem import Facts, OfFile, ranges_of
from rehearsal_torch.problems.trials.user_experiments import ExperimentTable
from rehearsal_torch.spaces.box import levels_text, setting_text

CAMPAIGN = ".trials.json"  # What the name of the campaign of a problem file ends in


@dataclass(frozen=True)
class TrialsFile:
    """A problem file that asks for trials.

    Attributes:
        rows: The experiments so far; a table without rows if there are none.
        fixed: Actions that the next experiment holds at a value.
        context: The context of the next experiment.
        found: Lines of the file, and findings so far.
        tolerance: How far settings may lie from a pending trial's (`CausalTask.tolerances`).
    """

    source: str
    task: CausalTask
    rows: ReadTable
    fixed: Settings
    variables: Mapping[str, TrialVariable]
    found: Findings
    method: str | None = None
    tolerance: float | Mapping[str, float] | None = None
    context: Settings = field(default_factory=dict)


def trials_problem(path: str | Path | None) -> TrialsFile:
    """Reads a problem file that asks for trials; ProblemError with all its faults."""
    file = opened(path, tuple(TrialsProblem.model_fields))
    expect(file, "trials")
    found, rows, task = file.found, None, None
    graph = graph_part(file.plain.get("graph"), file.folder, found)
    faulty = ["graph"] if graph is None and file.plain.get("graph") is not None else []
    parts = replace(file, plain={**file.plain, "graph": graph}).parts(TrialsProblem, faulty)
    variables: Mapping[str, TrialVariable] = parts.get("variables", {})
    if not found.faults:
        problem = TrialsProblem.model_construct(**parts)
        try:
            task = CausalTask.of(problem, found.source)
            task.held(problem.fixed, problem.context or None)
            tolerances(task, problem.tolerance)
        except FaultsError as error:
            found.add_faults(error.faults)
    if parts.get("data") is not None:
        rows = file.table(parts["data"], "data")
        if rows is not None:
            for name, variable in variables.items():
                stated = (
                    "; or write what it was, before: NUMBER" if variable.role in ("action", "context") else ""
                )
                if variable.before is None:
                    column_faults([(key("variables", name), name)], rows, found, stated)
    elif task is not None:
        empty = pd.DataFrame(columns=list(task.columns), dtype=float)
        name, remedy = Path(found.source).name, "write the experiments to a table, such as experiments.csv"
        note = f"{name} names no data: {remedy}, and add the line data: experiments.csv"
        rows = ReadTable(empty, f"{name} (no data yet)", (note,))
    found.settle()
    assert task is not None
    assert rows is not None
    graph_faults(variables, task.graph, found)
    settings = parts["fixed"], variables, found, parts["method"], parts["tolerance"], parts["context"]
    return TrialsFile(found.source, task, rows, *settings)


class OwnTrials(OfFile, ExperimentTable):
    """A problem file, as a table of experiments.

    Args:
        path: The problem file, or one that was read.
        fixed: Actions that the next experiment holds at a value, in place of those that the file holds; None
            for these.
        context: The context of the next experiment, in place of the file's.

    Raises:
        ProblemError: if the file cannot be used; all faults are listed.
        TableError: if a column is not numeric or incomplete; all faults are listed.
        ValueError: if a fixed value may not be set.
    """

    def __init__(
        self,
        path: str | Path | TrialsFile | None,
        fixed: Settings | None = None,
        context: Settings | None = None,
    ) -> None:
        file = self.problem = path if isinstance(path, TrialsFile) else trials_problem(path)
        fixed, context = file.fixed if fixed is None else fixed, context or file.context
        try:
            super().__init__(file.rows, file.task, fixed, context)
        except FaultsError as error:
            file.found.add_faults(error.faults)
            file.found.settle()
        campaign = Path(file.found.source).with_suffix(CAMPAIGN)
        self.goes_on = campaign.exists() or bool(self.task.reward.labels)
        if campaign.exists():
            words = "goes on from this table, and is not read here: suggest and tell go on with it"
            self.read_notes = (*self.read_notes, f"{campaign.name} {words}")

    def facts(self) -> Facts:
        """The facts of the table, with the file's method and units."""
        wording = units_of(self.problem.variables)
        return replace(super().facts(), method=self.problem.method, wording=wording)

    def _note(self, found: Findings) -> None:
        found.take(self.problem.found)
        super()._note(found)
        unused = set(self.task.graph.names).difference(self.task.settings, self.task.nodes)
        for name, variable in self.problem.variables.items():
            if name in unused:
                words = f"no directed path leads from this {variable.role} to the reward"
                found.of_variable(name, "unused", f"{words}, and so it is not used")

    def counted(self) -> str:
        """How many experiments there are, and the best so far; one sentence."""
        rows = len(self.done)
        sentence = f"{rows} experiment{'' if rows == 1 else 's'} of {self.source}"
        states = Counter("running" if trial.state == "pending" else trial.state for trial in self.others)
        sentence += "".join(f", {count} {state}" for state, count in states.items())
        if not rows or self.task.reward.labels:
            return sentence
        reward, setting = self.best_so_far()
        at = ", ".join(f"{name} {setting_text(value, 6)}" for name, value in setting.items())
        return f"{sentence}; the best reward so far is {setting_text(reward, 6)}, at {at}"

    def graph_of_variables(self) -> RehearsalGraph:
        """The graph of the task."""
        return self.task.graph

    def variable_rows(self) -> list[tuple[str, ...]]:
        """A row for each variable, the header first."""
        rows: list[tuple[str, ...]] = [("variable", "role", "unit", "from", "to", "may be set to")]
        box, observed = self.task.box, ranges_of(self.done)
        settable = {
            name: f"{setting_text(lower, 6)} to {setting_text(upper, 6)}"
            for name, (lower, upper) in box.bounds().items()
        }
        settable |= {name: levels_text(levels) for name, levels in box.levels.items()}
        settable |= {name: ", ".join(coding.levels) for name, coding in self.task.coded.items()}
        for name, variable in self.problem.variables.items():
            known = () if name in self.task.coded else observed.get(name, ())
            ends = [setting_text(end, 6) for end in known] or ["", ""]
            rows.append((name, variable.role, variable.unit or "", *ends, settable.get(name, "")))
        return rows
