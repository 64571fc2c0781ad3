"""The verb check: reads a problem file, lists all faults and warnings, and says how to decide by it.

Nothing is fitted. Exit codes: 0 if the file can be decided by, 2 if it has faults.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.cli.errors import UserError, as_user_error, exit_code
from rehearsal_torch.cli.spelling import quoted_file, spoken
from rehearsal_torch.cli.subcommand import Option, Verb

if TYPE_CHECKING:
    from rehearsal_torch.problems.written.own_problem import OwnProblem

_HELP = ("-h", "--help", "help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: The arguments after the script's name; None for those of the process.

    Returns:
        The exit code.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    if typed and typed[0] in _HELP:
        print(VERB.help())
        return 0
    if typed and "=" not in typed[0] and typed[0].lower().endswith((".yaml", ".yml")):
        typed[0] = f"problem={typed[0]}"
    return exit_code(lambda: check(VERB.read(typed)), "Interrupted.")


def check(options: Mapping[str, str]) -> int:
    """Checks a problem file, or writes the schema for editors.

    Args:
        options: The verb's options.

    Returns:
        0 without faults, else 2.

    Raises:
        UserError: if neither a file nor a schema is asked for, or the schema cannot be written.
    """
    if "schema" in options:
        _write_schema(Path(options["schema"]), options["force"] == "true")
        if "problem" not in options:
            return 0
    if "problem" not in options:
        raise UserError(
            "no problem file is given", "", f"For example: {spoken('check')} problem=problem.yaml"
        )
    from rehearsal_torch.cli.choice.settled import wished
    from rehearsal_torch.problems.written.own_problem import OwnProblem
    from rehearsal_torch.problems.written.sample_warnings import warned

    path = options["problem"]
    try:
        problem = OwnProblem(path)
        wished(problem)
        warnings = warned(problem)
    except UserError as error:
        raise UserError(error.what, f"{path}, method", error.remedy) from error
    except (ValueError, OSError) as error:
        print(
            str(error).replace("nothing was fitted", "nothing can be decided yet"),
            file=sys.stderr,
            flush=True,
        )
        return 2
    print("\n".join([*_summary(path, problem), *_listed(warnings), "", *_following(path, problem)]))
    return 0


def _summary(path: str, problem: "OwnProblem") -> list[str]:
    """What was read, and a line for each variable."""
    table, task, about = problem.every, problem.task, problem.problem.variables
    inside = int(task.region.contains(table.columns(task.outcomes)).sum())
    source = "held-out rows" if problem.recorded else "cases"
    lines = [
        f"{path}: no faults. {len(table)} rows of {problem.source}, of which {inside} lie in the desired "
        f"region; {problem.count()} {source} to decide for",
        *(f"Note: {note}" for note in problem.read_notes),
        "",
    ]
    rows: list[tuple[str, ...]] = [("variable", "role", "kind", "unit", "from", "to", "may be set to")]
    for name in (each for each in about if each in table.names):
        column = table.columns((name,))
        ends = [f"{float(each):.6g}" for each in (column.min(), column.max())]
        each = about[name]
        rows.append((name, each.role, each.kind, each.unit or "", *ends, _settable(task.box, name)))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return lines + [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _settable(box: Any, name: str) -> str:
    from rehearsal_torch.spaces.box import levels_text

    if name not in box.names:
        return ""
    lower, upper = box.bounds()[name]
    return levels_text(box.levels[name]) if name in box.levels else f"{lower:g} to {upper:g}"


def _listed(warnings: Sequence[str]) -> list[str]:
    count = f"{len(warnings)} warning{'s' if len(warnings) > 1 else ''}"
    return ["", count, *(f"- {each}" for each in warnings)] if warnings else []


def _following(path: str, problem: "OwnProblem") -> list[str]:
    """The command that decides."""
    words = [spoken("decide"), "+experiment=own_problem", f"path={quoted_file(path)}"]
    costs = problem.problem.costs
    if costs:
        weights = ",".join(f"{_key(name)}:{weight:g}" for name, weight in costs.items())
        words += ["decision=micns", f'"objective.weights={{{weights}}}"']
    return [f"To decide: {' '.join(words)}"]


def _key(name: str) -> str:
    return name if name.isidentifier() else quoted_file(name)


def _write_schema(file: Path, force: bool) -> None:
    from rehearsal_torch.data.problem_file.form import problem_schema
    from rehearsal_torch.files.writing import write_text

    if file.exists() and not force:
        raise UserError("exists already", f"schema={file}", "Name another file, or add force=true")
    with as_user_error("schema"):
        write_text(file, json.dumps(problem_schema(), indent=2, ensure_ascii=False) + "\n")
    print(
        f"Written to {file}. Editors with the YAML language server use it if the problem file begins with\n"
        f"# yaml-language-server: $schema={file}"
    )


VERB = Verb(
    "check",
    "Checks a problem file: data, variables, graph and desired region, with all faults and warnings at once.",
    (
        Option("problem", "the problem file; it may be typed first, without problem="),
        Option("schema", "writes the JSON schema of problem files to this file, for editors"),
        Option("force", "overwrites the file of schema=", "false", ("true", "false")),
    ),
    check,
    "check",
)
