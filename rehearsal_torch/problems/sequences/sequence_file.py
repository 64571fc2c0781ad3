"""Problem files that ask for a sequence, read with their tables, and as a problem whose units are split, with
what was done in each step.

    file = sequence_problem("problem.yaml")     all faults of the file at once, each with its line
    file.rows, file.roles                       the table, and what its columns mean

Faults of the table (cells, steps, gaps) are told by the reader of episodes, with the line of the table.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic_core import PydanticCustomError

from rehearsal_torch.data.problem_file.diagnostics import (
    Findings,
    ProblemError,
    column_faults,
    expect,
    key,
    opened,
    parts_of,
    rows_of,
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
        roles: What the columns mean.
        found: Lines of the file, and warnings so far.
        notes: What the reader decided by itself, a sentence each.
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
    parts = parts_of(file, SequenceProblem)
    data, variables = parts.get("data"), parts.get("variables", {})
    rows = None if data is None else rows_of(data, file.folder, "data", found)
    if rows is None:
        raise ProblemError(found.source, found.faults)
    columns = [(part, parts[part]) for part in ("unit", "time") if part in parts]
    column_faults([*columns, *((key("variables", name), name) for name in variables)], rows, found)
    notes = list(rows.notes)
    variables = {
        name: each.model_copy(update={"levels": _values(name, each, rows.frame, found, notes)})
        if each.role == "static" and name in rows.frame
        else each
        for name, each in variables.items()
    }
    if len(parts) < len(SequenceProblem.model_fields):
        raise ProblemError(found.source, found.faults)
    problem = SequenceProblem.model_construct(**parts | {"variables": variables})
    if found.faults:
        # The reader of episodes will not be asked, so that faults of cells are told here.
        cells: list[str] = []
        with suppress(PydanticCustomError):
            unit_rows(rows.frame, problem.roles(), cells)
        for fault in map(Fault.of, cells):
            if fault.kind != "unknown":
                found.fault("data", f"{rows.where}: {fault}")
    found.settle()
    return SequenceFile(problem, rows, problem.roles(), found, tuple(notes))


def _values(
    name: str, about: SequenceVariable, frame: pd.DataFrame, found: Findings, notes: list[str]
) -> list[str] | None:
    """The values of a static column of texts, those of the table where the file names none."""
    texts = about.kind in ("categorical", "ordinal")
    if about.kind == "binary":
        texts = bool(number_faults(frame[[name]].dropna(), [name]))
    if about.levels is not None or not texts:
        return about.levels
    cells = frame[name].dropna().unique()
    known = {each.strip() if isinstance(each, str) else f"{each:.12g}" for each in cells}
    values = sorted(each for each in known if each)
    if not 2 <= len(values) <= MOST_VALUES:
        expected = f"expected 2 to {MOST_VALUES} values in the column; got {len(values)}"
        found.fault(
            key("variables", name), f"{expected}: correct it, name its levels, or write the role other"
        )
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
        """The file's method, and what its reader decided by itself."""
        return replace(super().facts(), method=self.sequence.method, notes=self.file.notes)

    def _note(self, found: Findings) -> None:
        found.take(self.file.found)
        super()._note(found)
        roles = self.roles
        why = identifier(roles.unit, self.file.rows.frame[roles.unit])
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
        most, limited = self.sequence.changes, ""
        if most is not None:
            limited = f"; at most {most} action{'s' if most > 1 else ''} of a {words.unit} changed"
        units = f"{len(self.all)} {words.units} of {self.source}, of {steps} steps of {self.step}"
        learnt = f"{splits['train']} to learn from, {splits['validation']} to validate"
        return f"{units}; {learnt}, {splits['test']} to decide for{limited}"

    def variable_rows(self) -> list[tuple[str, ...]]:
        """A row for each variable, the header first."""
        rows: list[tuple[str, ...]] = [("variable", "role", "unit", "from", "to", "what was done, by steps")]
        values = np.concatenate([each.rows for each in self.all])
        columns = dict(zip(self.roles.names, values.T, strict=True))
        actions = {each.name: each for each in self.roles.actions}
        for name, about in self.sequence.variables.items():
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


def _done(action: Action, column: np.ndarray) -> str:
    """What was done, with shares of steps."""
    total = len(column)
    if action.levels:
        counts = level_counts(action, column).items()
        return ", ".join(f"{name} {count / total:.0%}" for name, count in counts)
    given = column[column != 0]
    some: Sequence[float] = given.tolist() or [0.0]
    return f"none {1 - len(given) / total:.0%}, else {min(some):.6g} to {max(some):.6g}"
