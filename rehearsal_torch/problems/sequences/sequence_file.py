"""Problem files that ask for a sequence, with their tables, and as a problem whose units are split.

    file = sequence_problem("problem.yaml")     all faults of the file at once, each with its line
    file.rows, file.roles                       the table, and the roles of its columns

Faults of cells, steps and gaps are found where episodes are made of the rows (`rows_to_episodes`).
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic_core import PydanticCustomError

from rehearsal_torch.data.problem_file.cases_schema import of_role
from rehearsal_torch.data.problem_file.diagnostics import (
    Findings,
    ProblemError,
    column_faults,
    expect,
    key,
    opened,
)
from rehearsal_torch.data.tables.identifiers import identifier
from rehearsal_torch.data.tables.reader import ReadTable, number_faults
from rehearsal_torch.files.schema import Fault
from rehearsal_torch.problems.problem import Facts, OfFile
from rehearsal_torch.problems.sequences.column_roles import Action, EpisodeRoles
from rehearsal_torch.problems.sequences.rows_to_episodes import unit_rows
from rehearsal_torch.problems.sequences.sequence_schema import SequenceProblem, SequenceVariable
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable, level_counts

MOST_VALUES = 50


@dataclass(frozen=True)
class SequenceFile:
    """A problem file that asks for a sequence, with its table.

    Attributes:
        found: Lines of the file, and findings so far.
        notes: What was decided by the table, a sentence each.
    """

    problem: SequenceProblem
    rows: ReadTable
    roles: EpisodeRoles
    found: Findings
    notes: tuple[str, ...]


def sequence_problem(path: str | Path | None) -> SequenceFile:
    """Reads a problem file that asks for a sequence; ProblemError with all its faults."""
    file = opened(path, tuple(SequenceProblem.model_fields))
    expect(file, "sequence")
    found = file.found
    parts = file.parts(SequenceProblem)
    data, variables = parts.get("data"), parts.get("variables", {})
    rows = None if data is None else file.table(data, "data")
    if rows is None:
        raise ProblemError(found.source, found.faults)
    columns = [(part, parts[part]) for part in ("unit", "time") if part in parts]
    column_faults([*columns, *((key("variables", name), name) for name in variables)], rows, found)
    notes = list(rows.notes)
    for name in of_role(variables, "static"):
        if name in rows.frame:
            values = _static_values(name, variables[name], rows.frame[name], found, notes)
            variables[name] = variables[name].model_copy(update={"levels": values})
    if len(parts) < len(SequenceProblem.model_fields):
        raise ProblemError(found.source, found.faults)
    problem = SequenceProblem.model_construct(**parts)
    if found.faults:
        # No episodes will be made, by which faults of cells would be found.
        faults: list[str] = []
        with suppress(PydanticCustomError):
            unit_rows(rows.frame, problem.roles(), faults)
        for fault in map(Fault.of, faults):
            if fault.kind != "unknown":
                found.fault("data", f"{rows.where}: {fault}")
    found.settle()
    return SequenceFile(problem, rows, problem.roles(), found, tuple(notes))


def _static_values(
    name: str, variable: SequenceVariable, column: pd.Series, found: Findings, notes: list[str]
) -> list[str] | None:
    """The values of a static column of texts, by default those of the table; None for numbers."""
    texts = variable.kind in ("categorical", "ordinal")
    if variable.kind == "binary":
        texts = bool(number_faults(column.dropna().to_frame(), [name]))
    if variable.levels is not None or not texts:
        return variable.levels
    cells = column.dropna().unique()
    values = sorted({cell.strip() if isinstance(cell, str) else f"{cell:.12g}" for cell in cells} - {""})
    if not 2 <= len(values) <= MOST_VALUES:
        expected = f"expected 2 to {MOST_VALUES} values in the column; got {len(values)}"
        remedy = "correct it, name its levels, or write the role other"
        found.fault(key("variables", name), f"{expected}: {remedy}")
        return None
    notes.append(f"{name}: its values are {', '.join(values)}, of which {values[0]} is the reference")
    return values


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
        path: str | Path | SequenceFile | None,
        seed: int = 0,
        min_length: int = 2,
        max_length: int | None = None,
        horizon: int | None = None,
        split: str = "test",
        keep_last: int = 1,
        masked: bool = False,
    ) -> None:
        file = path if isinstance(path, SequenceFile) else sequence_problem(path)
        self.file, self.read_notes = file, file.notes
        lengths = min_length, max_length, horizon
        super().__init__(file.rows, file.problem, seed, *lengths, split, keep_last, masked)

    def facts(self) -> Facts:
        """The facts of the table, with the file's method and notes."""
        return replace(super().facts(), method=self.sequence.method, notes=self.file.notes)

    def _note(self, found: Findings) -> None:
        found.take(self.file.found)
        super()._note(found)
        unit = self.roles.unit
        names = identifier(unit, self.file.rows.frame[unit])
        if names is not None and names.personal:
            words = f"{unit} looks like names of persons ({names.reason})"
            consequence = "they stand in the files of a run and in its report"
            remedy = "number them instead, if these may not be shared"
            found.warn("unit", "identifier", f"{words}; {consequence}: {remedy}")

    def counted(self) -> str:
        """How many units there are, how long they are, and what they are for; one sentence."""
        words, lengths = self.roles.words, sorted({episode.horizon for episode in self.all})
        steps = " to ".join(str(length) for length in dict.fromkeys((lengths[0], lengths[-1])))
        counts = {name: len(places) for name, places in self.splits.items()}
        changes, limit = self.sequence.changes, ""
        if changes is not None:
            limit = f"; at most {changes} action{'s' if changes > 1 else ''} of a {words.unit} changed"
        units = f"{len(self.all)} {words.units} of {self.source}, of {steps} steps of {self.step}"
        learnt = f"{counts['train']} to learn from, {counts['validation']} to validate"
        return f"{units}; {learnt}, {counts['test']} to decide for{limit}"

    def variable_rows(self) -> list[tuple[str, ...]]:
        """A row for each variable, the header first."""
        rows: list[tuple[str, ...]] = [("variable", "role", "unit", "from", "to", "what was done, by steps")]
        values = np.concatenate([episode.rows for episode in self.all])
        columns = dict(zip(self.roles.names, values.T, strict=True))
        actions = {action.name: action for action in self.roles.actions}
        for name, variable in self.sequence.variables.items():
            cells = name, variable.role, variable.unit or ""
            if name in actions:
                rows.append((*cells, "", "", _done(actions[name], columns[name])))
            elif name in columns:
                rows.append((*cells, f"{columns[name].min():.6g}", f"{columns[name].max():.6g}", ""))
            elif variable.role == "static":
                texts = next(column.values for column in self.roles.static if column.name == name)
                rows.append((*cells, "", "", f"one of {', '.join(texts)}"))
        return rows


def _done(action: Action, column: np.ndarray) -> str:
    """What was done, with shares of steps."""
    if action.levels:
        counts = level_counts(action, column).items()
        return ", ".join(f"{name} {count / len(column):.0%}" for name, count in counts)
    amounts = column[column != 0]
    low, high = (amounts.min(), amounts.max()) if len(amounts) else (0.0, 0.0)
    return f"none {1 - len(amounts) / len(column):.0%}, else {low:.6g} to {high:.6g}"
