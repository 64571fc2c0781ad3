"""Problem files that ask for trials, compiled to a task of causal Bayesian optimisation and the experiments
so far, and as a problem: which one to run next.

    problem = trials_problem("problem.yaml")       all faults of the file at once, each with its line
    problem.task, problem.rows, problem.fixed      the task, the experiments so far, and what is held

Source: Ren et al. (2025), Sec. 2.2 (Eq. 2), for what a task consists of.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.problem_file.findings import (
    Findings,
    ProblemError,
    column_faults,
    expect,
    graph_faults,
    key,
    opened,
    parts_of,
    role_faults,
    rows_of,
)
from rehearsal_torch.data.problem_file.form import DataForm
from rehearsal_torch.data.problem_file.kinds import units_of
from rehearsal_torch.data.problem_file.learnt_graph import built_graph, graph_part
from rehearsal_torch.data.reading import ReadTable
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.data.trials.log import tolerances
from rehearsal_torch.files.schema import FaultsError, meant
from rehearsal_torch.problems.causal.own_experiments import ExperimentTable
from rehearsal_torch.problems.problem import Facts, OfFile
from rehearsal_torch.problems.written.schema import TRIAL_REWARD_AS, TrialsForm, TrialVariable
from rehearsal_torch.spaces.box import levels_text
from rehearsal_torch.spaces.inequalities import InequalityError, inequalities, linear

MOST_LEVELS = 1000
_SETTINGS = ("range", "levels", "step")
TOLERANCE = 1e-9


@dataclass(frozen=True)
class TrialsProblem:
    """A problem file that asks for trials.

    Attributes:
        rows: The experiments so far; a table without rows if there are none.
        fixed: Actions that the next experiment holds at a value.
        variables: What the file says of each variable.
        found: Its lines, and warnings so far.
        tolerance: How far settings may lie from a pending trial's, as written (`data.trials.log`).
    """

    source: str
    task: CausalTask
    rows: ReadTable
    fixed: Mapping[str, float]
    variables: Mapping[str, TrialVariable]
    found: Findings
    method: str | None = None
    tolerance: float | Mapping[str, float] | None = None


def trials_problem(path: str | Path | None) -> TrialsProblem:
    """Reads a problem file that asks for trials; ProblemError with all its faults."""
    file = opened(path, tuple(TrialsForm.model_fields))
    expect(file, "trials")
    found = file.found
    form = parts_of(file, TrialsForm)
    variables: dict[str, TrialVariable] = form.get("variables", {})
    actions = [name for name, about in variables.items() if about.role == "action"]
    written = graph_part(form.get("graph"), file.folder, found)
    graph = built_graph(written)
    role_faults(variables, ("action", "outcome"), found)
    if graph is not None and variables:
        graph_faults(variables, graph, found)
    box = {name: _settable(name, variables[name], found) for name in actions}
    for name, about in variables.items():
        given = [each for each in _SETTINGS if getattr(about, each) is not None]
        for setting in given if about.role != "action" else ():
            words = f"is for actions; {name} is of the role {about.role}: leave it out"
            found.fault(f"{key('variables', name)}.{setting}", words)
    task = {
        "graph": written,
        "actions": {name: each for name, each in box.items() if each is not None},
        "reward": _reward(form.get("reward"), variables, found),
        "limits": _limits(form.get("limits"), actions, found),
    }
    made = _task({part: each for part, each in task.items() if each not in (None, {})}, found)
    data, rows = form.get("data"), None
    if isinstance(data, DataForm):
        rows = rows_of(data, file.folder, "data", found)
        if rows is not None:
            column_faults(((key("variables", name), name) for name in variables), rows, found)
    elif made is not None:
        empty = pd.DataFrame(columns=[*made.actions, *made.nodes], dtype=float)
        name, remedy = Path(found.source).name, "write the experiments to a table, such as experiments.csv"
        note = f"{name} names no data: {remedy}, and add the line data: experiments.csv"
        rows = ReadTable(empty, f"{name} (no data yet)", (note,))
    fixed, tolerance = form.get("fixed", {}), form.get("tolerance")
    for check in (lambda task: task.held(fixed), lambda task: tolerances(tolerance, task)):
        try:
            if made is not None:
                check(made)
        except FaultsError as error:
            found.of_reader(error.faults)
    found.settle()
    if made is None or rows is None:
        raise ProblemError(found.source, ["its parts do not make a task: check the names and the roles"])
    return TrialsProblem(found.source, made, rows, fixed, variables, found, form.get("method"), tolerance)


class OwnTrials(OfFile, ExperimentTable):
    """A problem file, as a table of experiments.

    Args:
        path: The problem file, or one that was read.
        fixed: Actions that the next experiment holds at a value, in place of those that the file holds; None
            for these.

    Raises:
        ProblemError: if the file cannot be used; all faults are listed.
        TableError: if a column is not numeric or incomplete; all faults are listed.
        ValueError: if a fixed value may not be set.
    """

    def __init__(
        self, path: str | Path | TrialsProblem | None, fixed: Mapping[str, float] | None = None
    ) -> None:
        self.problem = path if isinstance(path, TrialsProblem) else trials_problem(path)
        super().__init__(self.problem.rows, self.problem.task, self.problem.fixed if fixed is None else fixed)

    def facts(self) -> Facts:
        """The file's method, and the units of its variables."""
        wording = units_of(self.problem.variables)
        return replace(super().facts(), method=self.problem.method, wording=wording)

    def _note(self, found: Findings) -> None:
        found.take(self.problem.found)
        super()._note(found)
        task = self.task
        for name, about in self.problem.variables.items():
            if name in task.graph.names and name not in (*task.actions, *task.nodes):
                words = f"no directed path leads from this {about.role} to the reward, and so it is not used"
                found.of_variable(name, "unused", words)

    def counted(self) -> str:
        """How many experiments there are, and the best so far; one sentence."""
        rows, task = len(self.past), self.task
        sentence = f"{rows} experiment{'' if rows == 1 else 's'} of {self.source}"
        if not rows:
            return sentence
        rewards = task.reward_of(self.past)
        best = self.past.columns(task.actions)[rewards.argmax()].tolist()
        at = ", ".join(f"{name} {value:.6g}" for name, value in zip(task.actions, best, strict=True))
        return f"{sentence}; the best reward so far is {float(rewards.max()):.6g}, at {at}"

    def variable_rows(self) -> list[tuple[str, ...]]:
        """A row for each variable, the header first."""
        rows: list[tuple[str, ...]] = [("variable", "role", "unit", "from", "to", "may be set to")]
        box = self.task.box
        for name, about in self.problem.variables.items():
            ends = ["", ""]
            if name in self.past.names and len(self.past):
                column = self.past.columns((name,))
                ends = [f"{float(end):.6g}" for end in (column.min(), column.max())]
            settable = ""
            if name in box.names:
                lower, upper = box.bounds()[name]
                levels = box.levels.get(name)
                settable = f"{lower:g} to {upper:g}" if levels is None else levels_text(levels)
            rows.append((name, about.role, about.unit or "", *ends, settable))
        return rows


def _settable(name: str, about: TrialVariable, found: Findings) -> Any:
    """What an action may be set to, as a task writes it; None with a fault."""
    path = key("variables", name)
    if about.levels is not None:
        extra = next((each for each in ("range", "step") if getattr(about, each) is not None), None)
        if extra is not None:
            found.fault(f"{path}.{extra}", "levels are all values that may be set: leave it out")
        return {"values": list(about.levels)}
    if about.range is None:
        if about.kind == "binary":
            return {"values": [0.0, 1.0]}
        found.fault(path, "an action needs range: [lower, upper], or levels: [...]")
        return None
    lower, upper = about.range
    if about.step is None and about.kind == "continuous":
        return [lower, upper]
    start = lower if about.step is not None else float(np.ceil(lower))
    step = about.step or 1.0
    count = int(min(np.floor((upper - start) / step + TOLERANCE) + 1, MOST_LEVELS + 1))
    if not 2 <= count <= MOST_LEVELS:
        there = "are more" if count > MOST_LEVELS else f"is {max(count, 0)}"
        values = f"values from {start:g} to {upper:g} at distances of {step:g}"
        found.fault(path, f"expected 2 to {MOST_LEVELS} {values}; there {there}: correct range or step")
        return None
    return {"values": [start + step * place for place in range(count)]}


def _reward(written: Any, variables: Mapping[str, TrialVariable], found: Findings) -> Any:
    """The reward as a task writes it; None with a fault."""
    outcomes = [name for name, about in variables.items() if about.role == "outcome"]
    if written is None:
        if len(outcomes) > 1:
            why = f"since there are {len(outcomes)} outcomes"
            found.fault("reward", f"expected {TRIAL_REWARD_AS}, {why}; got none")
        return outcomes[0] if len(outcomes) == 1 else None
    if isinstance(written, str) and written not in variables:
        try:
            summed = linear(written)
        except InequalityError as error:
            found.fault("reward", f"{error}; expected {TRIAL_REWARD_AS}")
            return None
        if summed.constant:
            found.fault("reward", f"a constant, {summed.constant:g}, changes no decision: leave it out")
        written = {"weights": {name: each for name, each in summed.weights.items() if each}}
        if not written["weights"]:
            found.fault("reward", f"expected {TRIAL_REWARD_AS}; the sum has no outcome")
            return None
    read_by = _read_by(written)
    for name in read_by:
        if name in variables and variables[name].role != "outcome":
            expected = f"expected outcomes: write {name}: outcome, or take it out"
            found.fault("reward", f"{name} is of the role {variables[name].role}; {expected}")
        elif name not in variables and variables:
            found.fault("reward", f"{name!r} is not under variables; {meant(name, variables)}")
    unread = "an outcome that the reward does not read: add it there, or write the role other"
    for name in (name for name in outcomes if read_by and name not in read_by):
        found.fault(key("variables", name), unread)
    return written


def _read_by(reward: Any) -> list[str]:
    """The variables that a reward reads, as far as it can be read."""
    if isinstance(reward, str):
        return [reward]
    parts = [reward.get(part) for part in ("weights", "targets")] if isinstance(reward, Mapping) else []
    return [str(name) for part in parts if isinstance(part, Mapping) for name in part]


def _limits(written: Any, actions: list[str], found: Findings) -> Any:
    """The limits as a task writes them; None with a fault, or without limits."""
    if written is None:
        return None
    lines = [written] if isinstance(written, str) else written
    if not isinstance(lines, list) or not lines or not all(isinstance(each, str) for each in lines):
        found.fault("limits", "expected inequalities of the actions, such as 2*valve + dose <= 6")
        return None
    try:
        faces = inequalities(lines)
    except InequalityError as error:
        found.fault("limits", str(error))
        return None
    odd = [name for name in faces.names if name not in actions]
    if odd and actions:
        found.fault("limits", f"{odd[0]!r} is no action; {meant(odd[0], actions)}")
    if odd:
        return None
    weights = [dict(zip(faces.names, normal, strict=True)) for normal in faces.normals]
    normals = [[each.get(name, 0.0) for name in actions] for each in weights]
    return {"normals": normals, "offsets": list(faces.offsets)}


def _task(plain: Mapping[str, Any], found: Findings) -> CausalTask | None:
    """The task by the reader of tasks; its faults with the keys of the problem file."""
    if found.faults and not {"graph", "actions", "reward"} <= set(plain):
        return None
    try:
        return CausalTask.of(plain, found.source)
    except TaskError as error:
        earlier = bool(found.faults)
        for fault in error.faults:
            if fault.kind in ("unknown", "missing"):
                # Told as a name that is in no edge, or by the schema.
                continue
            if fault.part == "actions":
                found.fault(f"variables{fault.path[len('actions') :]}", fault.words)
            elif fault.part in ("graph", "reward", "limits"):
                found.fault(fault.path, fault.words)
            elif not earlier:
                found.fault("graph", fault)
    return None
