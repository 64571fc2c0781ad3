"""A problem file as YAML: its content, its lines and its question, and the faults and findings in it.

question: cases        which alteration in each case (the default)      `data.problem_file.cases_builder`
question: sequence     which actions, step by step, in each episode     `problems.sequences.sequence_file`
question: trials       which experiment next                            `problems.trials.trials_file`

Faults and findings name the line and the key that they are about.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import ArrayLike

from rehearsal_torch.data.finding import Finding, FindingKind
from rehearsal_torch.data.problem_file.cases_schema import DataForm, Variable
from rehearsal_torch.data.tables.reader import ReadTable, TableError, read_table
from rehearsal_torch.files.bounded_yaml import PlainFileError, text_of, yaml_of
from rehearsal_torch.files.redaction import beginning, without_password
from rehearsal_torch.files.schema import (
    Fault,
    FaultsError,
    Schema,
    did_you_mean,
    line_at,
    lines_of,
    listed,
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
    """The faults and findings of a problem file, each once.

    Attributes:
        lines: Dotted path to line.
        called: Dotted path to the one that the author wrote, where it is another.
        faults: What makes it unusable, with line and key.
        placed_findings: What its author should look at, each by its sentence with line and key.
    """

    source: str
    lines: dict[str, int] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    placed_findings: dict[str, Finding] = field(default_factory=dict)

    def fault(self, path: str, words: str) -> None:
        """Adds a fault at a key."""
        self.add_faults([Fault(path, words)])

    def add_faults(self, faults: Iterable[Fault]) -> None:
        """Adds faults at their paths."""
        for fault in faults:
            written = fault.called(self.called)
            sentence = self.placed(written.path, written.words)
            if sentence not in self.faults:
                self.faults.append(written if sentence == written else sentence)

    def add(self, path: str, finding: Finding, words: str = "") -> None:
        """Adds a finding at a key; `words` is its sentence beside line and key, by default its text."""
        self.placed_findings.setdefault(self.placed(path, words or finding.text), finding)

    def warn(self, path: str, kind: FindingKind, words: str, **numbers: float) -> None:
        """Adds a new finding at a key."""
        self.add(path, Finding(kind, words, numbers))

    def of_variable(self, name: str, kind: FindingKind, words: str, part: str = "", **numbers: float) -> None:
        """Adds a finding of a variable, or of one of its settings."""
        path = key("variables", name, *filter(None, [part]))
        self.add(path, Finding(kind, f"{name}: {words}", numbers), words)

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

    def settle(self) -> None:
        """Raises a ProblemError with all faults, if there are any."""
        if self.faults:
            raise ProblemError(self.source, self.faults)


HIDDEN = "of a hidden variable, write <-> between those it moves, or mark it as latent"


def name_faults(
    variables: Mapping[str, Variable], nodes: Collection[str], hidden: str = HIDDEN
) -> Iterator[Fault]:
    """Faults of names that only the graph or only the variables have; one of the role other may be unused."""
    unknown = [node for node in nodes if node not in variables]
    for node in unknown:
        remedy = meant(node, variables) + (f"; {hidden}" if suggested(node, variables) is None else "")
        if with_blanks := next((name for name in variables if node in name.split()), None):
            remedy = f'put the name in double quotes, "{with_blanks}"'
        yield Fault("graph", f"{node!r} is not under variables; {remedy}", "unknown")
    for name, variable in variables.items():
        if name not in nodes and variable.role != "other":
            words = f"is in no edge of the graph; {meant(name, unknown or nodes)}"
            yield Fault(key("variables", name), words, "unknown")


def graph_faults(variables: Mapping[str, Variable], graph: RehearsalGraph, found: Findings) -> None:
    """Collects `name_faults`; a variable that is unused is a warning."""
    found.add_faults(name_faults(variables, graph.names))
    for name, variable in variables.items():
        if name not in graph.names and variable.role == "other":
            found.of_variable(name, "unused", "is in no edge of the graph, and so is not used")


def column_faults(
    names: Iterable[tuple[str, str]], rows: ReadTable, found: Findings, remedy: str = ""
) -> None:
    """Collects faults of columns that a table does not have; of each column the key that names it."""
    columns = [str(name) for name in rows.frame.columns]
    for path, name in names:
        if name not in columns:
            found.fault(path, f"no column {name!r} in {rows.where}; {meant(name, columns)}{remedy}")


class TaskError(FaultsError):
    """A task that cannot be used.

    Attributes:
        source: The file or what else it was read from; without faults, the message.
        named: The variables of the task, as far as it could be read.
    """

    def __init__(self, source: str, faults: Iterable[str] = (), named: Iterable[str] = ()) -> None:
        super().__init__(faults)
        self.source, self.named = source, tuple(named)
        self.args = (listed(source, self.faults) if self.faults else source,)

    def of_check(self) -> str:
        """The message of a check, after which nothing would have been fitted."""
        message = listed(self.source, self.faults, "nothing can be decided yet") if self.faults else str(self)
        return without_password(message)


class ProblemError(TaskError):
    """A problem file that cannot be used; its message lists every fault."""


def first_row(rows: ReadTable, marked: ArrayLike) -> str:
    """Where the first of the rows that are marked, (n,) bool, stands."""
    return rows.at(int(rows.frame.index[int(np.argmax(marked))]))


MOST_ROWS = 10


def marked_rows(rows: ReadTable, marked: ArrayLike) -> str:
    """Where the rows that are marked, (n,) bool, stand: of many the first ones, and how many more."""
    indices = rows.frame.index[np.flatnonzero(marked)].tolist()
    more = f" and {len(indices) - MOST_ROWS} more" if len(indices) > MOST_ROWS else ""
    return ", ".join(map(rows.at, indices[:MOST_ROWS])) + more


def missing_words(rows: ReadTable, name: str, noun: str) -> str:
    """In how many rows, and in which, cells of a column are missing; empty if there are none."""
    empty = rows.frame[name].isna() if name in rows.frame.columns else np.zeros(len(rows.frame), dtype=bool)
    count = f"{int(empty.sum())} of {len(empty)} {noun}s"
    return f"{name} is missing in {count} ({marked_rows(rows, empty)})" if empty.any() else ""


def key(*parts: str) -> str:
    """The dotted path of a key."""
    return path_of(parts)


QUESTION = "question"
QUESTIONS = ("cases", "sequence", "trials")
# Keys that only files with another question than cases have.
_QUESTION_OF_KEY = {"time": "sequence", "words": "sequence", "reward": "trials", "limits": "trials"}
_FUNCTIONS = {"cases": "rt.rehearse", "sequence": "rt.learn_episodes", "trials": "rt.CausalOptimiser"}
_BRACES = re.compile(r"->\s*\{|\}\s*<?->")
# A value that begins with a name in quotes, and goes on after it
_HALF_QUOTED = re.compile(
    r"""(?P<head>\s*(?:- +)?(?:[^\s"'`#:][^"'`#:]*: +)?)(?P<value>["`][^'#]*[^'#"`\s])\s*"""
)
_TABS = re.compile(r"^ *\t", re.MULTILINE)
# Where YAML began to read a part at most so many lines before a fault, the fault may be in any of them.
_NEAR = 3
# Messages of YAML to remedies.
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
    """A problem file before its parts are validated.

    Attributes:
        plain: Its parts, without the question.
        question: One of `QUESTIONS`.
        found: Collects its faults and findings.
        folder: That to which its files are relative.
    """

    plain: Mapping[str, Any]
    question: str
    found: Findings
    folder: Path

    def parts(self, form: type[Schema], faulty: Collection[str] = ()) -> dict[str, Any]:
        """The parts that conform to a schema. Faults are collected, also of required parts that are empty,
        but not of parts that are known to be `faulty`.
        """
        left_out = set(faulty)
        for part in [part for part in self.plain if part in form.model_fields and part not in faulty]:
            content, field = self.plain[part], form.model_fields[part]
            if field.is_required() and content in (None, [], {}, ""):
                self.found.fault(part, f"nothing is written there yet; expected {field.description}")
                left_out.add(part)
            elif content is None:
                left_out.add(part)
        plain = {part: content for part, content in self.plain.items() if part not in left_out}
        parts, faults = read(form, plain)
        self.found.add_faults(fault for fault in faults if fault.path not in left_out)
        return parts

    def table(self, form: DataForm, part: str) -> ReadTable | None:
        """The table that a part names; None with a fault."""
        file, faults = as_named(self.folder / form.file), list[str]()
        if not file.is_file():
            words = f"there is no file {file}: the name is relative to the folder of the problem file"
            if file.is_dir():
                words = f"there is a folder, not a file, at {file}"
            elif near := near_files(file):
                words = f"there is no file {file}: did you mean {near[0]!r}?"
            self.found.fault(part, words)
            return None
        try:
            table = read_table(
                file, part, faults, separator=form.separator, decimal=form.decimal, sheet=form.sheet
            )
        except TableError as error:
            self.found.fault(part, str(error))
            return None
        for fault in faults:
            self.found.fault(part, f"{table.where}: {fault}")
        return table


def opened(path: str | Path | None, parts: Sequence[str]) -> Opened:
    """Reads the text of a problem file; a ProblemError if it is no mapping, or has an unknown question."""
    if path is None:
        raise ProblemError("no problem file is given: set path=problem.yaml (see docs/own_table.md)")
    file, text = Path(path), ""
    try:
        # Names are compared with those of tables, whose letters are composed as well.
        text = normalize("NFC", text_of(file))
        plain = yaml_of(text, str(file))
    except PlainFileError as error:
        raise ProblemError(f"{error}{_remedy(error, text)}") from error
    if plain is None:
        raise ProblemError(f"{file} is empty: draft a problem file from a table by rehearsal init TABLE")
    if not isinstance(plain, dict):
        got = "a text without them" if isinstance(plain, str) else type(plain).__name__
        draft = ": of a table, rehearsal init TABLE writes a problem file" if isinstance(plain, str) else ""
        raise ProblemError(f"{file}: expected the parts {', '.join(parts)}; got {got}{draft}")
    found = Findings(str(file), lines_of(text))
    question = plain.get(QUESTION, QUESTIONS[0])
    part = next((part for part in _QUESTION_OF_KEY if part in plain), None)
    if question not in QUESTIONS:
        near = did_you_mean(question, QUESTIONS)
        expected = f"expected one of {', '.join(QUESTIONS)}; got {shown(question)}"
        found.fault(QUESTION, f"{expected}: {near}" if near else expected)
    elif part is not None and QUESTION not in plain:
        found.fault(part, f"is a part of another question: add the line question: {_QUESTION_OF_KEY[part]}")
    found.settle()
    return Opened({part: plain[part] for part in plain if part != QUESTION}, question, found, file.parent)


def _remedy(error: PlainFileError, text: str) -> str:
    """What to do about a text that is no YAML, by the lines near its fault; empty if they do not say that."""
    if _TABS.search(text):
        return ": indent lines with blanks, not with tabs"
    if error.line is None:
        return ""
    start = error.line if error.since is None or error.line - error.since > _NEAR else error.since
    # Braces and commas have a meaning of their own in YAML's lists in brackets.
    near = "\n".join(text.splitlines()[start - 1 : error.line])
    if _BRACES.search(re.sub(r"\"[^\"]*\"|'[^']*'", "", near)):
        return ': put arrows with braces in quotes, such as "{a b} -> c"'
    if match := _HALF_QUOTED.fullmatch(near.splitlines()[-1] if near else ""):
        quoted = f"{match['head'].lstrip()}'{match['value']}'"
        return f": put all of the value in single quotes, {beginning(quoted, 120)}"
    return next((f": {remedy}" for words, remedy in _REMEDIES.items() if words in str(error)), "")


def expect(file: Opened, question: str) -> None:
    """Refuses a file with another question than the one being answered, with the command for its own."""
    if file.question != question:
        source = file.found.source
        file.found.fault(
            QUESTION if QUESTION in file.found.lines else "",
            f"the file asks for {file.question}, and is read for {question}: type rehearsal decide {source}, "
            f"without +experiment=, or call {_FUNCTIONS[file.question]} in Python",
        )
        file.found.settle()
