"""The spelling of commands in messages, and the overrides that a problem file implies.

Every command can be run as ``python scripts/train.py ...`` in a checkout, or ``rehearsal train ...`` with an
installed package. Messages name commands in the way in which the program was started.

    rehearsal decide problem.yaml         +experiment=own_problem, own_sequence or own_trials is added by the
                                          file's question, decision=METHOD by its method, and, for a
                                          sequence, objective.changes=COUNT by its changes

Typed arguments prevail. The file's reader reports all of its faults at once, so that none is reported here.
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
"""Question of a problem file to its experiment."""
_TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".gz", ".xlsx", ".xlsm", ".parquet", ".feather", ".arrow")
_PLAIN = re.compile(r"[A-Za-z_/][\w/-]*(\.[A-Za-z]\w*)+", re.ASCII)
# Backslashes that Hydra would take for escapes: those directly before a quote, the closing one included.
_ESCAPES = re.compile(r"(\\+)(?='|\Z)")


def typed_as(script: str) -> list[str]:
    """The words that start a command, in the way in which this program was started (``sys.argv[0]``, also in
    worker processes); outside a checkout, which has no scripts, the console command.
    """
    program = Path(sys.argv[0])
    if program.name == "__main__.py" and program.parent.name == __package__.partition(".")[0]:
        return ["python", "-m", program.parent.name, script.replace("_", "-")]
    if program.stem != PROGRAM and checkout() is not None:
        return ["python", f"scripts/{script}.py"]
    return [PROGRAM, script.replace("_", "-")]


def spoken(script: str) -> str:
    """`typed_as` as one string."""
    return " ".join(typed_as(script))


def on_file(script: str, file: str, key: str = "path") -> str:
    """A command on a file, ``rehearsal decide problem.yaml``; a script is given the key."""
    command = typed_as(script)
    by_key = command[-1].endswith(".py") or "=" in file or file.startswith(("-", "+", "~"))
    if not by_key:
        return join([*command, file])
    return f"{join(command)} {key}={quoted_file(file)}"


def quoted_file(name: str) -> str:
    """A file's name as the value of an override, quoted unless it is plain."""
    return name if _PLAIN.fullmatch(name) else quoted(name)


def quoted(value: str) -> str:
    """A value of an override in single quotes, which Hydra reads unchanged. It takes a backslash there for an
    escape only where a quote follows, directly or after more backslashes; only those are doubled.
    """
    return "'" + _ESCAPES.sub(r"\1\1", value).replace("'", "\\'") + "'"


def weighed(costs: Mapping[str, float]) -> list[str]:
    """The overrides that choose the cheapest alteration by costs of actions; none without costs."""
    if not costs:
        return []
    weights = ",".join(
        f"{name if name.isidentifier() else quoted_file(name)}:{weight:g}" for name, weight in costs.items()
    )
    return ["decision=micns", f'"+objective.weights={{{weights}}}"']


def is_table(file: str) -> bool:
    """Whether a file has the suffix of a table."""
    return Path(file).suffix.lower() in _TABLE_SUFFIXES


def of_table(file: str, then: str) -> str:
    """The remedy for a table in place of a problem file."""
    init = on_file("init", file, "data")
    return (
        "Write a problem file of this table, which says what may be set and what is desired: "
        f"{init}, then {then}"
    )


def with_asked(typed: Sequence[str]) -> list[str]:
    """The arguments, and those that the problem file among them implies."""
    path = next((arg.partition("=")[2].strip("'\"") for arg in typed if arg.startswith("path=")), "")
    if Path(path).suffix.lower() not in YAML:
        return list(typed)
    experiment = next((arg.partition("=")[2] for arg in typed if arg.startswith("+experiment=")), None)
    foreign = experiment not in (None, *EXPERIMENTS.values())
    if foreign or any(arg.startswith("dataset=") for arg in typed):
        return list(typed)
    # A file that cannot be read is reported by the reader of the usual question.
    content = problem_content(path) or {}
    added = [] if experiment is not None else [f"+experiment={EXPERIMENTS[_question(content)]}"]
    if (method := _method(content)) and not any(arg.startswith("decision=") for arg in typed):
        added.append(f"decision={method}")
    changes = content.get("changes")
    is_count = isinstance(changes, int) and not isinstance(changes, bool) and changes >= 1
    typed_keys = {arg.partition("=")[0].lstrip("+~") for arg in typed}
    if is_count and _question(content) == "sequence" and "objective.changes" not in typed_keys:
        added.append(f"objective.changes={changes}")
    return [*typed, *added]


def typed_again(script: str, typed: Sequence[str]) -> str:
    """A run's command line, with a problem file first and without the arguments that it implies."""
    path = next((arg.partition("=")[2].strip("'\"") for arg in typed if arg.startswith("path=")), "")
    experiment = f"+experiment={EXPERIMENTS[asks_for(path)]}" if Path(path).suffix.lower() in YAML else ""
    if not experiment or experiment not in typed:
        return join([*typed_as(script), *typed])
    implied = with_asked([f"path={path}"])[1:]
    further = [arg for arg in typed if arg not in implied and not arg.startswith("path=")]
    return f"{on_file(script, path)} {join(further)}".rstrip()


def asks_for(path: str | Path) -> str:
    """The question of a problem file; cases if it names none that exists."""
    return _question(problem_content(path) or {})


def _question(content: Mapping[str, Any]) -> str:
    question = content.get("question")
    return question if isinstance(question, str) and question in EXPERIMENTS else "cases"


def _method(content: Mapping[str, Any]) -> str:
    """The file's method, or empty if it does not exist, which the file's reader reports."""
    method = content.get("method")
    if not isinstance(method, str) or not method.isidentifier():
        return ""
    return method if (conf_folder() / "decision" / f"{method}.yaml").is_file() else ""
