"""A problem file as it is written: its content, its lines and its question, and what was found in it.

question: cases        which alteration in each case (the default)      `data.problem_file.cases_builder`
question: sequence     which actions, step by step, in each episode     `problems.sequences.sequence_file`
question: trials       which experiment next                            `problems.trials.trials_file`

Faults and findings name the line and the key that they are about.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from unicodedata import normalize

from rehearsal_torch.data.finding import Finding, FindingKind
from rehearsal_torch.data.problem_file.cases_schema import DataForm, perhaps
from rehearsal_torch.data.problem_file.task_file import TaskError
from rehearsal_torch.data.tables.reader import ReadTable, TableError, read_table
from rehearsal_torch.files.bounded_yaml import PlainFileError, text_of, yaml_of
from rehearsal_torch.files.schema import (
    Fault,
    Schema,
    line_at,
    lines_of,
    meant,
    path_of,
    read,
    shown,
    suggested,
)
from rehearsal_torch.files.similar_names import as_named, near_files
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph


@dataclass
class Findings:
    """What was found in a problem file.

    Attributes:
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
        """A finding at a key, once; `text` is its sentence where line and key are not shown."""
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
        """Ends with a ProblemError of all faults, if there are any."""
        if self.faults:
            raise ProblemError(self.source, self.faults)


def rows_of(form: DataForm, folder: Path, part: str, found: Findings) -> ReadTable | None:
    """Reads rows; None with a fault."""
    faults: list[str] = []
    file = as_named(folder / form.file)
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
    if near := near_files(file):
        return f"there is no file {file}: did you mean {near[0]!r}?"
    return f"there is no file {file}: the name is relative to the folder of the problem file"


class Variable(Protocol):
    """What a problem file says of a variable, whatever its question."""

    @property
    def role(self) -> str:
        """The role."""


def missing_roles(variables: Mapping[str, Variable], roles: Sequence[str]) -> Iterator[Fault]:
    """Faults of roles that no variable has."""
    for role in roles:
        if variables and not any(each.role == role for each in variables.values()):
            yield Fault("variables", f"expected at least one of the role {role}; there is none", "missing")


HIDDEN = "of a hidden variable, write <-> between those it moves, or mark it as latent"


def name_faults(
    variables: Mapping[str, Variable], named: Collection[str], hidden: str = HIDDEN
) -> Iterator[Fault]:
    """Faults of names that only the graph or only the variables have; one of the role other may be unused."""
    unnamed = [each for each in named if each not in variables]
    for name in unnamed:
        remedy = meant(name, variables) + (f"; {hidden}" if suggested(name, variables) is None else "")
        if whole := next((each for each in variables if name in each.split()), None):
            remedy = f'put the name in double quotes, "{whole}"'
        yield Fault("graph", f"{name!r} is not under variables; {remedy}", "unknown")
    for name, about in variables.items():
        if name not in named and about.role != "other":
            words = f"is in no edge of the graph; {meant(name, unnamed or named)}"
            yield Fault(key("variables", name), words, "unknown")


def graph_faults(variables: Mapping[str, Variable], graph: RehearsalGraph, found: Findings) -> None:
    """Collects `name_faults`; a variable that is unused is a warning."""
    found.of_reader(name_faults(variables, graph.names))
    for name, about in variables.items():
        if name not in graph.names and about.role == "other":
            found.of_variable(name, "unused", "is in no edge of the graph, and so is not used")


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


QUESTION = "question"
QUESTIONS = ("cases", "sequence", "trials")
# Keys that only files with another question have.
_TELLING = {"time": "sequence", "words": "sequence", "reward": "trials", "limits": "trials"}
_CALLS = {"cases": "rt.rehearse", "sequence": "rt.learn_episodes", "trials": "rt.CausalOptimiser"}
_BRACES = re.compile(r"->\s*\{|\}\s*<?->")
_TABS = re.compile(r"^ *\t", re.MULTILINE)
# The lines from where YAML began to read a part to where it met a fault.
NEAR = 3
# What YAML says, and what helps.
_REMEDIES = {
    "expected '-' indicator": "each line of a list begins with '-' at the same depth, and a line such as "
    "name: value does not belong among them",
    "expected key": 'indent the keys of one part equally, and put texts with : # { [ or " in quotes',
    "mapping values are not allowed": "put a text with a colon in quotes, and indent the keys of one part "
    "equally",
    "expected ',' or": "close every bracket and brace, and put texts that contain commas or braces in quotes",
    "cannot start any token": "put texts that begin with a sign in quotes",
    "constructor for the tag": "leave the tag, which begins with !, out",
}


@dataclass(frozen=True)
class Opened:
    """The content of a problem file: its parts without the question, one of `QUESTIONS`, what collects its
    faults and warnings, and the folder to which files are relative.
    """

    plain: Mapping[str, Any]
    question: str
    found: Findings
    folder: Path


def opened(path: str | Path | None, parts: Sequence[str]) -> Opened:
    """Reads the text of a problem file; a ProblemError if it is no mapping, or has an unknown question."""
    if path is None:
        raise ProblemError("no problem file is given: set path=problem.yaml (see docs/own_table.md)", ())
    file, text = Path(path), ""
    try:
        # Names are compared with those of tables, whose letters are composed as well.
        text = normalize("NFC", text_of(file))
        plain = yaml_of(text, str(file))
    except PlainFileError as error:
        raise ProblemError(f"{error}{_remedy(error, text)}", ()) from error
    if plain is None:
        raise ProblemError(f"{file} is empty: draft a problem file from a table by rehearsal init TABLE", ())
    if not isinstance(plain, dict):
        got = "a text without them" if isinstance(plain, str) else type(plain).__name__
        draft = ": of a table, rehearsal init TABLE writes a problem file" if isinstance(plain, str) else ""
        raise ProblemError(f"{file}: expected the parts {', '.join(parts)}; got {got}{draft}", ())
    found = Findings(str(file), lines_of(text))
    question = plain.get(QUESTION, QUESTIONS[0])
    telling = next((key for key in _TELLING if key in plain and QUESTION not in plain), None)
    if telling is not None:
        found.fault(telling, f"is a part of another question: add the line question: {_TELLING[telling]}")
        found.settle()
    if question not in QUESTIONS:
        near = perhaps(question, QUESTIONS)
        expected = f"expected one of {', '.join(QUESTIONS)}; got {shown(question)}"
        found.fault(QUESTION, f"{expected}: {near}" if near else expected)
        found.settle()
    return Opened({key: each for key, each in plain.items() if key != QUESTION}, question, found, file.parent)


def _remedy(error: PlainFileError, text: str) -> str:
    """What to do about a text that is no YAML, where the lines at which it was met show that."""
    if _TABS.search(text):
        return ": indent lines with blanks, not with tabs"
    if error.line is None:
        return ""
    start = error.line if error.since is None or error.line - error.since > NEAR else error.since
    # Braces and commas have a meaning of their own in YAML's lists in brackets.
    near = "\n".join(text.splitlines()[start - 1 : error.line])
    if _BRACES.search(re.sub(r"\"[^\"]*\"|'[^']*'", "", near)):
        return ': put arrows with braces in quotes, such as "{a b} -> c"'
    return next((f": {remedy}" for words, remedy in _REMEDIES.items() if words in str(error)), "")


def parts_of(file: Opened, form: type[Schema], told: Sequence[str] = ()) -> dict[str, Any]:
    """The parts of a file that conform to a schema; faults, and parts that are still empty, are collected,
    except those of parts whose fault was `told`.
    """
    fields, empty = form.model_fields, list(told)
    for part, content in file.plain.items():
        required = part in fields and fields[part].is_required()
        if part in fields and (content is None or (required and content in ([], {}, ""))):
            empty.append(part)
        if part in empty and part not in told and required:
            file.found.fault(part, f"nothing is written there yet; expected {fields[part].description}")
    parts, faults = read(form, {part: each for part, each in file.plain.items() if part not in empty})
    file.found.of_reader([each for each in faults if each.path not in empty])
    return parts


def expect(file: Opened, question: str) -> None:
    """Refuses a file with another question than the one being answered, with the command for its own."""
    if file.question != question:
        source = file.found.source
        file.found.fault(
            QUESTION if QUESTION in file.found.lines else "",
            f"the file asks for {file.question}, and is read for {question}: type rehearsal decide {source}, "
            f"without +experiment=, or call {_CALLS[file.question]} in Python",
        )
        file.found.settle()
