"""Faults and findings of a problem file, each with its line.

Names that one part of a problem file has and another one, its graph or its table has not.

The rows of the file that a problem file names.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rehearsal_torch.data.finding import Finding, FindingKind
from rehearsal_torch.data.problem_file.form import DataForm
from rehearsal_torch.data.reading import ReadTable, TableError, read_table
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.files.nearby import near_files
from rehearsal_torch.files.schema import Fault, line_at, meant, path_of
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph


@dataclass
class Findings:
    """What was found in a problem file.

    Attributes:
        source: The file.
        lines: Dotted path to line.
        faults: What makes it unusable.
        placed_findings: What its author should look at, each by its sentence with line and key.
    """

    source: str
    lines: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    placed_findings: dict[str, Finding] = field(default_factory=dict)

    def fault(self, path: str, words: str) -> None:
        """A fault at a key; once."""
        told = self.placed(path, words)
        if told not in self.faults:
            self.faults.append(told)

    def warn(self, path: str, kind: FindingKind, words: str, text: str = "", **numbers: float) -> None:
        """A finding at a key; once.

        Args:
            words: The sentence beside its line and key.
            text: The sentence where these are not shown; empty if it is the same.
        """
        self.placed_findings.setdefault(self.placed(path, words), Finding(kind, text or words, numbers))

    def add(self, path: str, finding: Finding) -> None:
        """A finding that was made elsewhere, at a key; once."""
        self.placed_findings.setdefault(self.placed(path, finding.text), finding)

    def of_variable(self, name: str, kind: FindingKind, words: str, part: str = "", **numbers: float) -> None:
        """A finding of a variable, or of a part of what the file says of it."""
        self.warn(key("variables", name, *filter(None, [part])), kind, words, f"{name}: {words}", **numbers)

    def take(self, file: "Findings") -> None:
        """Goes on with the lines and the findings of a file."""
        self.source, self.lines = file.source, file.lines
        self.placed_findings |= file.placed_findings

    @property
    def warnings(self) -> list[str]:
        """The sentences with their lines and keys."""
        return list(self.placed_findings)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, in their order."""
        return tuple(self.placed_findings.values())

    def placed(self, path: str, words: str) -> str:
        """Words with the line and the key that they are about."""
        line = line_at(self.lines, path)
        where = "" if line is None else f"line {line}, "
        return f"{where}{path}: {words}" if path else words

    def of_reader(self, faults: Iterable[Fault]) -> None:
        """Faults of a reader, at their paths."""
        for fault in faults:
            self.fault(fault.path, fault.words)

    def settle(self) -> None:
        """Ends with the faults, if there are any.

        Raises:
            ProblemError: with all faults.
        """
        if self.faults:
            raise ProblemError(self.source, self.faults)


def rows_of(form: DataForm, folder: Path, part: str, found: Findings) -> ReadTable | None:
    """Reads rows; None with a fault."""
    faults: list[str] = []
    file = folder / form.file
    if not file.is_file():
        found.fault(part, _missing(file))
        return None
    try:
        table = read_table(
            file, part, faults, separator=form.separator, decimal=form.decimal, sheet=form.sheet
        )
    except TableError as error:
        found.fault(part, str(error))
        return None
    for each in faults:
        found.fault(part, f"{table.where}: {each}")
    return table


def _missing(file: Path) -> str:
    if file.is_dir():
        return f"there is a folder, not a file, at {file}"
    near = near_files(file)
    remedy = (
        f"did you mean {near[0]!r}?" if near else "the name is relative to the folder of the problem file"
    )
    return f"there is no file {file}: {remedy}"


class Variable(Protocol):
    """What a problem file says of a variable, whatever its question."""

    @property
    def role(self) -> str:
        """The role."""


def role_faults(variables: Mapping[str, Variable], roles: Sequence[str], found: Findings) -> None:
    """Faults of roles that no variable has."""
    for role in roles:
        if variables and not any(each.role == role for each in variables.values()):
            found.fault("variables", f"expected at least one of the role {role}; there is none")


def graph_faults(variables: Mapping[str, Variable], graph: RehearsalGraph, found: Findings) -> None:
    """Faults of names that only the graph or only the variables have; a variable of the role other that is in
    no edge is a warning.
    """
    for name in graph.names:
        if name not in variables:
            found.fault("graph", f"{name!r} is not under variables; {meant(name, variables)}")
    unnamed = [each for each in graph.names if each not in variables]
    for name, about in variables.items():
        if name in graph.names:
            continue
        if about.role == "other":
            found.of_variable(name, "unused", "is in no edge of the graph, and so is not used")
        else:
            found.fault(
                key("variables", name), f"is in no edge of the graph; {meant(name, unnamed or graph.names)}"
            )


def column_faults(names: Iterable[tuple[str, str]], rows: ReadTable, found: Findings) -> None:
    """Faults of columns that the table does not have."""
    columns = [str(name) for name in rows.frame.columns]
    for path, name in names:
        if name not in columns:
            found.fault(path, f"no column {name!r} in {rows.where}; {meant(name, columns)}")


class ProblemError(TaskError):
    """A problem file that cannot be used; its message lists every fault."""


def key(*parts: str) -> str:
    """The dotted path of a key, as messages write it."""
    return path_of(parts)
