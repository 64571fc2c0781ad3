"""What a problem file asks for, as words of a command line: its experiment, and the method that it names.

    rehearsal decide problem.yaml         +experiment=own_problem, own_sequence or own_trials is added by the
                                          file's question, decision=METHOD by its method, and, of a
                                          sequence, objective.changes=COUNT by its changes

Words that were typed are kept. Nothing is built, and no fault of the file is told here: its reader tells all
of them at once.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import Any

from rehearsal_torch.cli.spelling import on_file, typed_as
from rehearsal_torch.files.installation import conf_folder
from rehearsal_torch.problems.written.recognised import YAML, problem_content

EXPERIMENTS = {"cases": "own_problem", "sequence": "own_sequence", "trials": "own_trials"}
"""Question of a problem file to the experiment that answers it."""


def with_asked(typed: Sequence[str]) -> list[str]:
    """The arguments, with the experiment and the method of the problem file among them."""
    path = next((text.partition("=")[2].strip("'\"") for text in typed if text.startswith("path=")), "")
    if Path(path).suffix.lower() not in YAML:
        return list(typed)
    named = next((text.partition("=")[2] for text in typed if text.startswith("+experiment=")), None)
    other = named not in (None, *EXPERIMENTS.values()) or any(text.startswith("dataset=") for text in typed)
    if other:
        return list(typed)
    # A file that cannot be read is told by the reader of the usual question.
    content = problem_content(path) or {}
    added = [] if named is not None else [f"+experiment={EXPERIMENTS[_question(content)]}"]
    if (method := _method(content)) and not any(text.startswith("decision=") for text in typed):
        added.append(f"decision={method}")
    changes = content.get("changes")
    counted = isinstance(changes, int) and not isinstance(changes, bool) and changes >= 1
    if counted and _question(content) == "sequence" and not any(map(_of_changes, typed)):
        added.append(f"objective.changes={changes}")
    return [*typed, *added]


def typed_again(script: str, typed: Sequence[str]) -> str:
    """A command line of the words of a run, as one types it: a problem file first and without what it asks
    for itself, ``rehearsal decide problem.yaml limit=3``.
    """
    path = next((text.partition("=")[2].strip("'\"") for text in typed if text.startswith("path=")), "")
    asked = f"+experiment={EXPERIMENTS[asks_for(path)]}" if Path(path).suffix.lower() in YAML else ""
    if not asked or asked not in typed:
        return join([*typed_as(script), *typed])
    # What the file's question, method and changes have added, they add again.
    added = with_asked([f"path={path}"])[1:]
    rest = [text for text in typed if text not in added and not text.startswith("path=")]
    return f"{on_file(script, path)} {join(rest)}".rstrip()


def asks_for(path: str | Path) -> str:
    """The question of a problem file; cases if it names none, or one that there is not."""
    return _question(problem_content(path) or {})


def _of_changes(text: str) -> bool:
    return text.partition("=")[0].lstrip("+~") == "objective.changes"


def _question(content: Mapping[str, Any]) -> str:
    question = content.get("question")
    return question if isinstance(question, str) and question in EXPERIMENTS else "cases"


def _method(content: Mapping[str, Any]) -> str:
    """The file's method, if there is one of that name; else empty, for the reader of the file to tell."""
    method = content.get("method")
    if not isinstance(method, str) or not method.isidentifier():
        return ""
    return method if (conf_folder() / "decision" / f"{method}.yaml").is_file() else ""
