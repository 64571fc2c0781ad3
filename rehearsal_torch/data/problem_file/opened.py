"""A problem file as it is written, before its parts are read: its content, its lines and its question.

question: cases        which alteration in each case (the default)      `data.problem_file.compiled`
question: sequence     which actions, step by step, in each episode     `problems.written.sequence_file`
question: trials       which experiment next                            `problems.written.trials_file`
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal_torch.data.problem_file.findings import Findings, ProblemError
from rehearsal_torch.data.problem_file.form import perhaps
from rehearsal_torch.files.plain import PlainFileError, text_of, yaml_of
from rehearsal_torch.files.schema import Schema, lines_of, read, shown

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
    """The content of a problem file.

    Attributes:
        plain: Its parts, without the question.
        question: One of `QUESTIONS`.
        found: Collects its faults and warnings, with lines.
        folder: What files are relative to.
    """

    plain: Mapping[str, Any]
    question: str
    found: Findings
    folder: Path


def opened(path: str | Path | None, parts: Sequence[str]) -> Opened:
    """Reads the text of a problem file.

    Raises:
        ProblemError: if there is no such file, it is no YAML mapping, or it has a question that there is not.
    """
    if path is None:
        raise ProblemError("no problem file is given: set path=problem.yaml (see docs/own_table.md)", ())
    file, text = Path(path), ""
    try:
        text = text_of(file)
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
        found.fault(QUESTION, f"{expected}{': ' if near else ''}{near}")
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
    if _BRACES.search(
        re.sub(r"\"[^\"]*\"|'[^']*'", "", "\n".join(text.splitlines()[start - 1 : error.line]))
    ):
        return ': put arrows with braces in quotes, such as "{a b} -> c"'
    return next((f": {remedy}" for words, remedy in _REMEDIES.items() if words in str(error)), "")


def parts_of(file: Opened, form: type[Schema]) -> dict[str, Any]:
    """The parts of a file that conform to a schema; its faults are collected, and so are parts in which
    nothing is written yet.
    """
    empty = [
        part
        for part, about in form.model_fields.items()
        if part in file.plain
        and (file.plain[part] is None or (about.is_required() and file.plain[part] in ([], {}, "")))
    ]
    for part in empty:
        about = form.model_fields[part]
        if about.is_required():
            file.found.fault(part, f"nothing is written there yet; expected {about.description}")
    parts, faults = read(form, {part: each for part, each in file.plain.items() if part not in empty})
    file.found.of_reader([each for each in faults if each.path not in empty])
    return parts


def expect(file: Opened, question: str) -> None:
    """Refuses a file with another question than the one that is being answered.

    Raises:
        ProblemError: with the command for the file's own question.
    """
    if file.question != question:
        source = file.found.source
        file.found.fault(
            QUESTION if QUESTION in file.found.lines else "",
            f"the file asks for {file.question}, and is read for {question}: type rehearsal decide {source}, "
            f"without +experiment=, or call {_CALLS[file.question]} in Python",
        )
        file.found.settle()
