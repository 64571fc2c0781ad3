"""Problem files that ask for a sequence, compiled to a table and a task of episodes, and as a problem whose
units are split, with what was done in each step.

    problem = sequence_problem("problem.yaml")     all faults of the file at once, each with its line
    problem.rows, problem.roles                    the table, and what its columns mean

Faults of the table (cells, steps, gaps) are told by the reader of episodes, with the line of the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.problem_file.findings import (
    Findings,
    ProblemError,
    column_faults,
    expect,
    key,
    opened,
    parts_of,
    role_faults,
    rows_of,
)
from rehearsal_torch.data.problem_file.form import DataForm
from rehearsal_torch.data.reading import ReadTable, number_faults
from rehearsal_torch.data.tables.identifiers import identifier
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.files.schema import Fault
from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable, level_counts
from rehearsal_torch.problems.episodes.roles import Action, EpisodeRoles
from rehearsal_torch.problems.episodes.steps import unit_rows
from rehearsal_torch.problems.episodes.task import PARTS, episode_task
from rehearsal_torch.problems.problem import Facts, OfFile
from rehearsal_torch.problems.written.schema import SequenceForm, SequenceVariable

# The part of a task of episodes that a role belongs to.
_PART = {"state": "varying", "static": "static", "context": "contextual", "action": "actions"}
# What may be said of a variable beside its role and kind.
_ALLOWED = {
    "state": ("unit", "range"),
    "static": ("unit", "range", "levels"),
    "context": ("unit", "range"),
    "action": ("unit", "levels", "cost", "combine"),
    "other": ("unit", "range", "levels"),
}
_NUMBERS = ("continuous", "integer", "binary")
MOST_VALUES = 50


@dataclass(frozen=True)
class SequenceProblem:
    """A problem file that asks for a sequence.

    Attributes:
        roles: What the columns mean.
        variables: What the file says of each.
        found: Lines of the file, and warnings so far.
        notes: What the reader decided by itself, a sentence each.
        changes: At most how many actions of a unit are changed; None if the file does not say.
    """

    source: str
    rows: ReadTable
    roles: EpisodeRoles
    variables: Mapping[str, SequenceVariable]
    found: Findings
    notes: tuple[str, ...]
    method: str | None = None
    changes: int | None = None


def sequence_problem(path: str | Path | None) -> SequenceProblem:
    """Reads a problem file that asks for a sequence; ProblemError with all its faults."""
    file = opened(path, tuple(SequenceForm.model_fields))
    expect(file, "sequence")
    found = file.found
    form = parts_of(file, SequenceForm)
    variables: dict[str, SequenceVariable] = form.get("variables", {})
    rows = None
    if isinstance(form.get("data"), DataForm):
        rows = rows_of(form["data"], file.folder, "data", found)
    notes: list[str] = [] if rows is None else list(rows.notes)
    task: dict[str, Any] = {part: {} for part in _PART.values()}
    for name, about in variables.items():
        _setting_faults(name, about, found)
        if about.role in _PART:
            column = None if rows is None or name not in rows.frame.columns else rows.frame[name]
            task[_PART[about.role]][name] = _written(name, about, column, found, notes)
    for name in (each for part in ("unit", "time") if (each := form.get(part)) is not None):
        if name in variables and variables[name].role in _PART:
            found.fault(key("variables", name), "it says whose row it is, or when: take it out of variables")
    if rows is not None:
        named = [(part, form[part]) for part in ("unit", "time") if part in form]
        column_faults([*named, *((key("variables", name), name) for name in variables)], rows, found)
    role_faults(variables, ("state", "action"), found)
    task |= {part: form[part] for part in PARTS if part in form and form[part] is not None}
    roles = _roles(task, found)
    if found.faults and roles is not None and rows is not None:
        # The reader of episodes will not be asked, so that faults of cells are told here.
        cells: list[str] = []
        unit_rows(rows.frame, roles, cells)
        for fault in map(Fault.of, cells):
            if fault.kind != "unknown":
                found.fault("data", f"{rows.where}: {fault}")
    found.settle()
    if roles is None or rows is None:
        raise ProblemError(found.source, ["its parts do not make a task: check the names and the roles"])
    asked = (form.get("method"), form.get("changes"))
    return SequenceProblem(found.source, rows, roles, variables, found, tuple(notes), *asked)


class OwnSequence(OfFile, EpisodeTable):
    """A problem file, as a table of episodes. `EpisodeTable` describes the arguments not listed here.

    Args:
        path: The problem file, or one that was read.

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
        masked: bool = False,
    ) -> None:
        problem = path if isinstance(path, SequenceProblem) else sequence_problem(path)
        self.problem, self.read_notes = problem, problem.notes
        lengths = min_length, max_length, horizon
        super().__init__(problem.rows, problem.roles, seed, *lengths, split, keep_last, masked)

    def facts(self) -> Facts:
        """The file's method, and what its reader decided by itself."""
        return replace(super().facts(), method=self.problem.method, notes=self.problem.notes)

    def _note(self, found: Findings) -> None:
        found.take(self.problem.found)
        super()._note(found)
        roles = self.roles
        why = identifier(roles.unit, self.problem.rows.frame[roles.unit])
        if why is not None and why.personal:
            persons = f"{roles.unit} looks like names of persons ({why.reason})"
            stand = "they stand in the files of a run and in its report"
            remedy = "number them instead, if these may not be shared"
            found.warn("unit", "identifier", f"{persons}; {stand}: {remedy}")

    def counted(self) -> str:
        """How many units there are, how long they are, and what they are for; one sentence."""
        words, lengths = self.roles.words, [each.horizon for each in self.all]
        least, longest = min(lengths), max(lengths)
        steps = f"{least}" if least == longest else f"{least} to {longest}"
        splits = {name: len(places) for name, places in self.splits.items()}
        most, limited = self.problem.changes, ""
        if most is not None:
            limited = f"; at most {most} action{'s' if most > 1 else ''} of a {words.unit} changed"
        units = f"{len(self.all)} {words.units} of {self.source}, of {steps} steps of {self.step}"
        learnt = f"{splits['train']} to learn from, {splits['validation']} to validate"
        return f"{units}; {learnt}, {splits['test']} to decide for{limited}"

    def variable_rows(self) -> list[tuple[str, ...]]:
        """A row for each variable, the header first."""
        rows: list[tuple[str, ...]] = [("variable", "role", "unit", "from", "to", "what was done, by steps")]
        values = torch.cat([each.values for each in self.all])
        columns = dict(zip(self.roles.names, values.T, strict=True))
        actions = {each.name: each for each in self.roles.actions}
        for name, about in self.problem.variables.items():
            unit = about.unit or ""
            if name in actions:
                rows.append((name, about.role, unit, "", "", _done(actions[name], columns[name])))
            elif name in columns:
                ends = [f"{float(end):.6g}" for end in (columns[name].min(), columns[name].max())]
                rows.append((name, about.role, unit, *ends, ""))
            elif about.role == "static":
                named = next((each.values for each in self.roles.static if each.name == name), ())
                rows.append((name, about.role, unit, "", "", f"one of {', '.join(named)}"))
        return rows


def _done(action: Action, column: Tensor) -> str:
    """What was done, with shares of steps."""
    total = len(column)
    if action.levels:
        counts = level_counts(action, column).items()
        return ", ".join(f"{name} {count / total:.0%}" for name, count in counts)
    given = column[column != 0]
    some: Sequence[float] = given.tolist() or [0.0]
    return f"none {1 - len(given) / total:.0%}, else {min(some):.6g} to {max(some):.6g}"


def _setting_faults(name: str, about: SequenceVariable, found: Findings) -> None:
    """Faults of settings that do not go with a role or a kind."""
    path = key("variables", name)
    for setting in ("unit", "range", "levels", "cost", "combine"):
        if getattr(about, setting) is not None and setting not in _ALLOWED[about.role]:
            found.fault(f"{path}.{setting}", f"{name} is of the role {about.role}: leave it out")
    kind = about.kind
    if about.role in ("state", "context") and kind not in (None, *_NUMBERS):
        expected = f"expected numbers, one of {', '.join(_NUMBERS)}, for the role {about.role}; got {kind}"
        found.fault(f"{path}.kind", f"{expected}: write a column of 0 and 1 for each value but one")
    if about.role != "action":
        return
    if kind == "categorical":
        found.fault(
            f"{path}.kind",
            "levels of an action have an order, from least to most: write kind: ordinal and levels, or an "
            "action of its own for each class",
        )
    elif kind in ("binary", "ordinal") and about.levels is None:
        found.fault(f"{path}.kind", f"{kind} needs levels: [...], in order; leave kind out for amounts")
    elif kind == "continuous" and about.levels is not None:
        found.fault(f"{path}.levels", "kind: continuous is for amounts: leave one of the two out")


def _written(
    name: str, about: SequenceVariable, column: pd.Series | None, found: Findings, notes: list[str]
) -> dict[str, Any]:
    """A variable as a task of episodes writes it."""
    settings = {setting: getattr(about, setting) for setting in _ALLOWED[about.role]}
    given = {setting: value for setting, value in settings.items() if value is not None}
    if about.role != "static":
        return given
    if "levels" in given:
        given["values"] = given.pop("levels")
    elif about.kind in ("categorical", "ordinal") or _two_texts(about, column):
        values = [] if column is None else _texts(column)
        if 2 <= len(values) <= MOST_VALUES:
            given["values"] = values
            notes.append(f"{name}: its values are {', '.join(values)}, of which {values[0]} is the reference")
        elif column is not None:
            expected = f"expected 2 to {MOST_VALUES} values in the column; got {len(values)}"
            remedy = "correct it, name its levels, or write the role other"
            found.fault(key("variables", name), f"{expected}: {remedy}")
    return given


def _two_texts(about: SequenceVariable, column: pd.Series | None) -> bool:
    if about.kind != "binary" or column is None:
        return False
    return bool(number_faults(column.dropna().to_frame(), [str(column.name)]))


def _texts(column: pd.Series) -> list[str]:
    """The values of a column as texts, sorted; whole numbers without a decimal point."""
    known = {each.strip() if isinstance(each, str) else f"{each:.12g}" for each in column.dropna().unique()}
    return sorted(each for each in known if each)


def _roles(task: Mapping[str, Any], found: Findings) -> EpisodeRoles | None:
    """The roles by the reader of tasks; its faults with the keys of the problem file."""
    try:
        return episode_task(task)
    except TaskError as error:
        for fault in error.faults:
            part, _, rest = fault.path.partition(".")
            if fault.kind in ("missing", "two roles") or (part in _PART.values() and not rest):
                # Told by the schema of the problem file, or as a role that no variable has.
                continue
            path = fault.path
            if part in _PART.values():
                path = f"variables.{rest.replace('.values', '.levels') if part == 'static' else rest}"
            found.fault(path, fault.words)
    return None


def problem_of(task: Mapping[str, Any], data: str) -> dict[str, Any]:
    """A task of episodes as the content of a problem file with the table `data`, relative to it."""
    variables: dict[str, Any] = {}
    for role, part in _PART.items():
        for name, about in (task.get(part) or {}).items():
            said = dict(about or {})
            if "values" in said:
                said["kind"], said["levels"] = "categorical", said.pop("values")
            variables[name] = {"role": role, **said}
    rest = {
        part: task[part]
        for part in ("step", "levels", "reward", "missing", "words", "rules", "order")
        if part in task
    }
    keys = {"question": "sequence", "data": data, "unit": task["unit"], "time": task["time"]}
    return {**keys, "variables": variables, **rest}
