"""Words of a command line: those of commands in messages, and those that a problem file asks for.

Every command can be run in two ways: ``python scripts/train.py ...`` in a checkout, and ``rehearsal train
...`` with an installed package. Both call the same function, and a run folder of one can be resumed by the
other. Messages name commands in the way in which the program was started.

    rehearsal decide problem.yaml         +experiment=own_problem, own_sequence or own_trials is added by the
                                          file's question, decision=METHOD by its method, and, of a
                                          sequence, objective.changes=COUNT by its changes

Words that were typed are kept. Nothing is built, and no fault of the file is told here: its reader tells all
of them at once.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import Any

from rehearsal_torch.files.package_paths import checkout, conf_folder
from rehearsal_torch.problems.drafts.draft_yaml import YAML, problem_content

PROGRAM = "rehearsal"
EXPERIMENTS = {"cases": "own_problem", "sequence": "own_sequence", "trials": "own_trials"}
"""Question of a problem file to the experiment that answers it."""
_TABLES = (".csv", ".tsv", ".txt", ".gz", ".xlsx", ".xlsm", ".parquet", ".feather", ".arrow")
# Backslashes that Hydra would take for escapes: those directly before a quote, the closing one included.
_PLAIN = re.compile(r"[A-Za-z_/][\w/-]*(\.[A-Za-z]\w*)+", re.ASCII)
_ESCAPES = re.compile(r"(\\+)(?='|\Z)")


def typed_as(script: str) -> list[str]:
    """The words that start a command, in the way in which this program was started.

    It is read from ``sys.argv[0]``, also in worker processes. Outside a checkout there are no scripts, so
    that the console command is always used.
    """
    started = Path(sys.argv[0])
    if started.name == "__main__.py" and started.parent.name == __package__.partition(".")[0]:
        return ["python", "-m", started.parent.name, script.replace("_", "-")]
    if started.stem != PROGRAM and checkout() is not None:
        return ["python", f"scripts/{script}.py"]
    return [PROGRAM, script.replace("_", "-")]


def spoken(script: str) -> str:
    """`typed_as` as one string."""
    return " ".join(typed_as(script))


def on_file(script: str, file: str, key: str = "path") -> str:
    """A command on a file, as one types it: ``rehearsal decide problem.yaml``; a script is given the key."""
    words = typed_as(script)
    by_key = words[-1].endswith(".py") or "=" in file or file.startswith(("-", "+", "~"))
    if not by_key:
        return join([*words, file])
    return f"{join(words)} {key}={quoted_file(file)}"


def quoted_file(name: str) -> str:
    """A file's name as the value of an override: as it is if it is plain, else quoted."""
    return name if _PLAIN.fullmatch(name) else quoted(name)


def quoted(value: str) -> str:
    """A value of an override in single quotes, which Hydra reads as it is, whatever characters it has.

    In quotes Hydra takes a backslash for an escape only where a quote follows, directly or after more
    backslashes; only those are doubled.
    """
    return "'" + _ESCAPES.sub(r"\1\1", value).replace("'", "\\'") + "'"


def weighed(costs: Mapping[str, float]) -> list[str]:
    """The words that choose the cheapest alteration by costs of actions; none without costs."""
    if not costs:
        return []
    weights = ",".join(
        f"{name if name.isidentifier() else quoted_file(name)}:{weight:g}" for name, weight in costs.items()
    )
    return ["decision=micns", f'"+objective.weights={{{weights}}}"']


def is_table(file: str) -> bool:
    """Whether the name of a file ends as that of a table."""
    return Path(file).suffix.lower() in _TABLES


def of_table(file: str, then: str) -> str:
    """What to do with a table: to write a problem file of it."""
    first = on_file("init", file, "data")
    return (
        "Write a problem file of this table, which says what may be set and what is desired: "
        f"{first}, then {then}"
    )


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
