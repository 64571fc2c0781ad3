"""The verb check: reads a problem file, lists all faults and warnings, and says how to decide by it.

Nothing is fitted. Exit codes: 0 if the file can be decided by, 2 if it has faults.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.cli.choice.asked import asks_for
from rehearsal_torch.cli.choice.unread_file import refuse_table
from rehearsal_torch.cli.spelling import on_file, spoken, weighed
from rehearsal_torch.cli.subcommand import Option, Verb
from rehearsal_torch.problems.written.recognised import YAML
from rehearsal_torch.user_error import UserError, as_user_error

if TYPE_CHECKING:
    from rehearsal_torch.problems.problem import Problem
    from rehearsal_torch.problems.written.own_problem import OwnProblem

# Variables whose direct causes are listed; of larger graphs the arrows are counted.
MOST_EFFECTS = 15


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with the arguments after its name, or those of the process; returns the exit code."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    if typed and "=" not in typed[0] and typed[0].lower().endswith(YAML):
        typed[0] = f"problem={typed[0]}"
    return VERB.main(typed, "Interrupted.")


def check(options: Mapping[str, str]) -> int:
    """Checks a problem file, or writes the schema for editors.

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
    path = options["problem"]
    refuse_table(path)
    try:
        lines, warnings = _READ[asks_for(path)](path)
    except UserError as error:
        raise UserError(error.what, f"{path}, method", error.remedy) from error
    except (ValueError, OSError) as error:
        print(
            str(error).replace("nothing was fitted", "nothing can be decided yet"),
            file=sys.stderr,
            flush=True,
        )
        return 2
    print("\n".join(lines[:-1] + _listed(warnings) + ["", lines[-1]]))
    return 0


def _cases(path: str) -> tuple[list[str], list[str]]:
    """What a file that asks for cases holds, the command that decides last; and the warnings."""
    from rehearsal_torch.cli.choice.settled import wished
    from rehearsal_torch.methods.applicable import fits
    from rehearsal_torch.methods.presets import AUTO
    from rehearsal_torch.problems.written.own_problem import OwnProblem
    from rehearsal_torch.problems.written.sample_warnings import warned

    problem = OwnProblem(path)
    named = wished(problem)
    if named not in (None, AUTO):
        fits(problem, named)
    warnings = warned(problem)
    words = weighed(problem.costs()) if problem.task.worth is None else []
    lines = _summary(path, problem)
    # It weighs costs without worth, and cannot be fitted to imputed tables.
    if words and named in (None, "micns") and not problem.imputations():
        lines += ["", f"The cheapest alteration that suffices: {_typed(path, words)}"]
    return [*lines, _following(path)], warnings


def _sequence(path: str) -> tuple[list[str], list[str]]:
    """The same of a file that asks for a sequence."""
    from rehearsal_torch.problems.written import sequence_check
    from rehearsal_torch.problems.written.own_problem import OwnSequence

    return _told(path, OwnSequence(path), sequence_check)


def _trials(path: str) -> tuple[list[str], list[str]]:
    """The same of a file that asks for trials."""
    from rehearsal_torch.problems.written import trials_check
    from rehearsal_torch.problems.written.own_problem import OwnTrials

    return _told(path, OwnTrials(path), trials_check)


def _told(path: str, problem: "Problem", checks: Any) -> tuple[list[str], list[str]]:
    """What was read, by the functions of a module: one sentence, a line for each variable, the warnings."""
    from rehearsal_torch.cli.choice.settled import wished

    wished(problem)
    lines = [f"{path}: no faults. {checks.counted(problem)}", *(f"Note: {note}" for note in problem.notes())]
    lines += ["", *_columns(checks.variable_rows(problem)), _following(path)]
    return lines, checks.warned(problem)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _summary(path: str, problem: "OwnProblem") -> list[str]:
    """What was read, and a line for each variable."""
    table, task, about = problem.every, problem.task, problem.problem.variables
    inside = int(task.region.contains(table.columns(task.outcomes)).sum())
    one = "held-out row" if problem.recorded else "case"
    source = one if problem.count() == 1 else f"{one}s"
    lines = [
        f"{path}: no faults. {len(table)} rows of {problem.source}, of which {inside} lie in the desired "
        f"region; {problem.count()} {source} to decide for",
        *(f"Note: {note}" for note in problem.read_notes),
        "",
    ]
    rows: list[tuple[str, ...]] = [("variable", "role", "kind", "unit", "from", "to", "may be set to")]
    codings = problem.problem.codings
    for name in (each for each in about if each in task.variables(table.names)):
        each, coding = about[name], codings.get(name)
        if coding is None:
            column = table.columns((name,))
            ends = [f"{float(end):.6g}" for end in (column.min(), column.max())]
        else:
            ends = [coding.levels[0], coding.levels[-1]] if not coding.of_classes else ["", ""]
        rows.append((name, each.role, each.kind, each.unit or "", *ends, _settable(task, name)))
    lines += _columns(rows)
    told = [f"  {name}: {coding.words}" for name, coding in codings.items()]
    lines = [*lines, "", "Texts as numbers:", *told] if told else lines
    return [*lines, *_influences(problem), *_costs(problem)]


def _influences(problem: "OwnProblem") -> list[str]:
    """The graph as it was read: a line for each variable with its causes, and one for hidden causes."""
    from rehearsal_torch.data.codings.texts import sentence_in_words

    graph, words = problem.task.graph, problem.problem.codings
    causes: dict[str, list[str]] = {}
    for cause, effect in graph.edges:
        one, other = (sentence_in_words(name, words) for name in (cause, effect))
        if one != other and one not in causes.setdefault(other, []):
            causes[other].append(one)
    arcs = dict.fromkeys(
        " <-> ".join(pair)
        for one, other in graph.bidirected
        if len(pair := {sentence_in_words(one, words): 0, sentence_in_words(other, words): 0}) == 2
    )
    count = sum(map(len, causes.values()))
    if len(causes) > MOST_EFFECTS:
        told = f"{count} arrows into {len(causes)} variables"
        return ["", f"Graph: {told}{f', {len(arcs)} hidden common causes' if arcs else ''}"]
    lines = [f"  {', '.join(some)} -> {effect}" for effect, some in causes.items()]
    if arcs:
        more = f" and {len(arcs) - MOST_EFFECTS} more" if len(arcs) > MOST_EFFECTS else ""
        lines.append(f"  hidden common causes: {', '.join([*arcs][:MOST_EFFECTS])}{more}")
    return ["", "Graph, as it was read:", *lines] if lines else ["", "Graph: no arrows"]


def _costs(problem: "OwnProblem") -> list[str]:
    """What changing each action costs, and from where changes count."""
    task, about = problem.task, problem.problem.variables
    if not task.costs:
        return []
    worth = "" if task.worth is None else f", of which a desired outcome is worth {task.worth:g}"
    return [
        "",
        f"Costs of changes{worth}:",
        *(
            f"  {name}: {each.words(about[name].unit or '')}; from the present value, or from the usual one, "
            f"{_said(task, name, each.usual)}, where a case states none"
            for name, each in task.costs.items()
        ),
    ]


def _said(task: Any, name: str, value: float | None) -> str:
    """A value of an action as text."""
    from rehearsal_torch.spaces.box import setting_text

    if value is None:
        return "unknown"
    coding = task.coded.get(name)
    return setting_text(value) if coding is None else str(coding.levels[int(value)])


def _settable(task: Any, name: str) -> str:
    from rehearsal_torch.data.codings.class_actions import offered_words
    from rehearsal_torch.spaces.box import levels_text

    box, coding = task.box, task.coded.get(name)
    if coding is not None and set(coding.columns) <= set(box.names) and coding.reference is not None:
        return offered_words(coding, box.levels).removeprefix("one of ")
    if name not in box.names:
        return ""
    if name in task.coded:
        return ", ".join(task.coded[name].levels[int(each)] for each in box.levels[name])
    lower, upper = box.bounds()[name]
    return levels_text(box.levels[name]) if name in box.levels else f"{lower:g} to {upper:g}"


def _listed(warnings: Sequence[str]) -> list[str]:
    count = f"{len(warnings)} warning{'s' if len(warnings) > 1 else ''}"
    return ["", count, *(f"- {each}" for each in warnings)] if warnings else []


def _typed(path: str, words: Sequence[str] = ()) -> str:
    """A command that decides by the file."""
    return " ".join([on_file("decide", path), *words])


def _following(path: str) -> str:
    return f"To decide: {_typed(path)}"


_READ = {"cases": _cases, "sequence": _sequence, "trials": _trials}


def _write_schema(file: Path, force: bool) -> None:
    from rehearsal_torch.files.writing import write_text
    from rehearsal_torch.problems.written.schema import problem_schema

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
    "Checks a problem file: data, variables and what is asked for, with all faults and warnings at once.",
    (
        Option("problem", "the problem file; it may be typed first, without problem="),
        Option("schema", "writes the JSON schema of problem files to this file, for editors"),
        Option("force", "overwrites the file of schema=", "false", ("true", "false")),
    ),
    check,
    "check",
)
