"""The verb check: lists all faults and warnings of a problem file, and the command that decides by it.

Nothing is fitted. Exit codes: 0 if the file is valid, 2 if it has faults.
"""

import gc
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from rehearsal_torch.cli.command_words import asks_for, is_table, of_table, on_file, spoken, weighed
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.redaction import InputError
from rehearsal_torch.graphs.dagitty import to_dagitty
from rehearsal_torch.graphs.graph_files import to_graphml
from rehearsal_torch.problems.drafts.draft_yaml import problem_content
from rehearsal_torch.user_error import UserError, as_user_error

if TYPE_CHECKING:
    from rehearsal_torch.problems.problem import OfFile


def check(options: Mapping[str, str]) -> int:
    """Checks a problem file, or writes the schema for editors."""
    if "schema" in options:
        _write_schema(Path(options["schema"]), options["force"] == "true")
        if "problem" not in options:
            return 0
    if "problem" not in options:
        example = f"{spoken('check')} problem=problem.yaml"
        raise UserError("no problem file is given", "", f"For example: {example}")
    # Most of a check is imports, which leave no garbage; looking for some takes a tenth of the time.
    gc.disable()
    try:
        return _check_file(options["problem"], options)
    finally:
        gc.enable()


def _check_file(path: str, options: Mapping[str, str]) -> int:
    if is_table(path) and Path(path).is_file() and problem_content(path) is None:
        remedy = of_table(path, on_file("check", "problem.yaml", "problem"))
        raise UserError("this is a table, and check reads a problem file", path, remedy)
    try:
        problem = _problem(asks_for(path), path)
        costs = _check_method(problem)
    except UserError as error:
        raise UserError(error.what, f"{path}, method", error.remedy) from error
    except (ValueError, OSError) as error:
        message = error.of_check() if isinstance(error, InputError) else str(error)
        print(message, file=sys.stderr, flush=True)
        return 2
    lines = [f"{path}: no faults. {problem.counted()}", *(f"Note: {note}" for note in problem.read_notes), ""]
    lines += [*_aligned(problem.variable_rows()), *problem.sections()]
    command = on_file("decide", path)
    if costs:
        lines += ["", f"The cheapest alteration that suffices: {' '.join([command, *costs])}"]
    if warnings := problem.found.warnings:
        lines += ["", f"{len(warnings)} warning{'s' if len(warnings) > 1 else ''}"]
        lines += [f"- {warning}" for warning in warnings]
    if "graph" in options:
        lines += ["", _write_graph(problem, Path(options["graph"]), options["force"] == "true")]
    further = f"To go on: {spoken('suggest')} {path}" if problem.goes_on else f"To decide: {command}"
    print("\n".join([*lines, "", further]))
    return 0


def _problem(question: str, path: str) -> "OfFile":
    """The problem of a file; only the modules of its question are imported."""
    if question == "sequence":
        from rehearsal_torch.problems.sequences.sequence_file import OwnSequence

        return OwnSequence(path)
    if question == "trials":
        from rehearsal_torch.problems.trials.trials_file import OwnTrials

        return OwnTrials(path)
    from rehearsal_torch.problems.cases.cases_file import OwnProblem

    return OwnProblem(path)


def _check_method(problem: "OfFile") -> list[str]:
    """Raises a UserError if the file's method cannot decide; returns overrides that weigh costs."""
    facts, method = problem.facts(), None
    if facts.method is not None:
        from rehearsal_torch.methods.method_choice import fits, wished
        from rehearsal_torch.methods.presets import AUTO

        method = wished(problem)
        if problem.kind == "rehearse" and method is not None and method != AUTO:
            fits(problem, method)
    # The method that weighs costs cannot be fitted to imputed tables.
    weighs = method in (None, "micns") and facts.unweighed and not facts.imputations
    return weighed(facts.costs) if weighs else []


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _write_graph(problem: "OfFile", file: Path, force: bool) -> str:
    """Writes the graph of a problem, in dagitty's code with the roles; returns a sentence."""
    graph, (_, *rows) = problem.graph_of_variables(), problem.variable_rows()
    if graph is None:
        raise UserError("the question has no graph", "graph", "Leave graph= out")
    _refuse_existing(file, "graph", force)
    roles = ([row[0] for row in rows if row[1] == role] for role in ("context", "action", "outcome"))
    writers = {
        ".dagitty": lambda: to_dagitty(graph, *roles),
        ".graphml": lambda: to_graphml(graph),
        ".yaml": lambda: yaml.safe_dump({"graph": graph.to_plain()}, sort_keys=False, allow_unicode=True),
    }
    if file.suffix not in writers:
        raise UserError(f"expected a file that ends in {', '.join(writers)}", f"graph={file}", "")
    with as_user_error("graph"):
        write_text(file, writers[file.suffix]())
    return f"The graph is written to {file}."


def _refuse_existing(file: Path, option: str, force: bool) -> None:
    if file.exists() and not force:
        raise UserError("exists already", f"{option}={file}", "Name another file, or add force=true")


def _write_schema(file: Path, force: bool) -> None:
    from rehearsal_torch.problems.json_schema import problem_schema

    _refuse_existing(file, "schema", force)
    with as_user_error("schema"):
        write_text(file, json.dumps(problem_schema(), indent=2, ensure_ascii=False) + "\n")
    print(
        f"Written to {file}. Editors with the YAML language server use it if the problem file begins with\n"
        f"# yaml-language-server: $schema={file}"
    )
