"""Problem files read, checked, and compiled to a task with its rows, cases and bounds.

    problem = written_problem("problem.yaml")      all faults at once, each with its line
    problem.task                                   what a task file holds (`data.task_file`), to be read by
                                                   the reader of tasks
    problem.rows, problem.cases, problem.ranges    the observations, the cases, and how far each case may go

Files that a problem file names are relative to its folder. Graph, desired region and candidate sets are read
and checked by the reader of tasks; its faults are told with the keys and lines of the problem file.

Source: Du et al. (2026), Sec. 2.1 and Eq. (2), for what a task consists of.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rehearsal_torch.data.problem_file.actions import (
    costs,
    kind_faults,
    of_role,
    settable,
    setting_faults,
)
from rehearsal_torch.data.problem_file.cases import CURRENT, case_rows, identity_faults, ranges_of
from rehearsal_torch.data.problem_file.findings import Findings, ProblemError, key
from rehearsal_torch.data.problem_file.form import ROLES, DataForm, ProblemForm, VariableForm
from rehearsal_torch.data.problem_file.gaps import Gaps, case_faults, without_gaps
from rehearsal_torch.data.problem_file.rows import rows_of
from rehearsal_torch.data.reading import ReadTable
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_file import REHEARSAL_PARTS, TaskError
from rehearsal_torch.files.plain import PlainFileError, text_of, yaml_of
from rehearsal_torch.files.schema import meant, read
from rehearsal_torch.files.yaml_lines import lines_of
from rehearsal_torch.graphs.formats import ENDINGS, read_graph
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.written_graph import graph_of
from rehearsal_torch.spaces.inequalities import InequalityError, inequalities

_NOT_THERE = re.compile(r"(context|box|region): ('.*'|\".*\") is not in the graph; (.*)\Z", re.DOTALL)
_BRACES = re.compile(r"->\s*\{|\}\s*<?->")
_TABS = re.compile(r"^ *\t", re.MULTILINE)
_PATHS = ("graph", "context", "box", "region", "candidates", "unit")


@dataclass(frozen=True)
class WrittenProblem:
    """A problem file that can be decided by.

    Attributes:
        source: The file.
        task: Graph, context, box, region, candidates and unit, as plain data.
        rows: The observations; without those that were left out for a missing cell.
        cases: The cases to decide for; None for held-out rows.
        identity: The column that names the cases, or the held-out rows; None for their lines.
        ranges: For actions with bounds of their own in each case: (lower, upper) for each case, or, if there
            are no cases, for each row without a missing cell.
        from_present: Actions whose bounds start from their present value, `current`.
        variables: What the file says of each variable.
        costs: The weights of changes, for actions that have one.
        findings: The file's lines, and warnings so far.
        gaps: What became of missing cells.
        method: The method that the file names; None if it names none.
    """

    source: str
    task: Mapping[str, Any]
    rows: ReadTable
    cases: ReadTable | None
    identity: str | None
    ranges: Mapping[str, Sequence[tuple[float, float]]]
    from_present: tuple[str, ...]
    variables: Mapping[str, VariableForm]
    costs: Mapping[str, float]
    findings: Findings
    gaps: Gaps
    method: str | None = None


def written_problem(path: str | Path | None) -> WrittenProblem:
    """Reads a problem file.

    Args:
        path: The file.

    Raises:
        ProblemError: with all faults of the file, its tables and its graph.
    """
    if path is None:
        raise ProblemError("no problem file is given: set path=problem.yaml (see docs/own_table.md)", ())
    file, text = Path(path), ""
    try:
        text = text_of(file)
        plain = yaml_of(text, str(file))
    except PlainFileError as error:
        # Braces and commas have a meaning of their own in YAML's lists in brackets.
        hint = ': put arrows with braces in quotes, such as "{a b} -> c"' if _BRACES.search(text) else ""
        hint = ": indent lines with blanks, not with tabs" if _TABS.search(text) else hint
        raise ProblemError(f"{error}{hint}", ()) from error
    if plain is None:
        raise ProblemError(f"{file} is empty: draft a problem file from a table by rehearsal init TABLE", ())
    if not isinstance(plain, dict):
        got = type(plain).__name__
        raise ProblemError(f"{file}: expected the parts {', '.join(ProblemForm.model_fields)}; got {got}", ())
    found = Findings(str(file), lines_of(text))
    if {"box", "region"} & set(plain):
        raise ProblemError(
            f"{file} is a task file ({', '.join(REHEARSAL_PARTS)}), not a problem file: decide with it by "
            f"rehearsal decide TABLE +experiment=own_table dataset.task={file}, or write data, variables, "
            "graph and desired",
            (),
        )
    form, faults = read(ProblemForm, plain)
    found.of_reader(faults)
    return _compiled(form, found, file.parent)


def _compiled(form: Mapping[str, Any], found: Findings, folder: Path) -> WrittenProblem:
    variables: dict[str, VariableForm] = form.get("variables", {})
    rows = None
    if isinstance(form.get("data"), DataForm):
        rows = rows_of(form["data"], folder, "data", found)
    for name, about in variables.items():
        setting_faults(name, about, found)
    written = _graph(form.get("graph"), folder, found)
    graph = _built(written)
    gaps = None
    if rows is not None:
        _column_faults(variables, rows, found)
        there = variables if graph is None else graph.names
        used = [name for name in variables if name in there and name in rows.frame.columns]
        rows, gaps = without_gaps(rows, variables, used, form.get("missing", "complete"), found)
    for part in ("graph", "desired"):
        if part in form and form[part] in (None, [], {}, ""):
            expected = ProblemForm.model_fields[part].description
            found.fault(part, f"nothing is written there yet; expected {expected}")
    _consistent(variables, graph, form.get("desired"), found)
    box: dict[str, Any] = {}
    for name in of_role(variables, "action"):
        if rows is not None and name in rows.frame.columns:
            box[name] = settable(name, variables[name], rows.frame[name], found)
    task = {
        "graph": written,
        "context": of_role(variables, "context"),
        "box": {name: each for name, each in box.items() if each is not None},
        "region": form.get("desired"),
        **({} if form.get("candidates") is None else {"candidates": form["candidates"]}),
        **({} if form.get("unit") is None else {"unit": form["unit"]}),
    }
    unit = form.get("unit")
    if unit is not None and rows is not None and unit not in rows.frame.columns:
        found.fault("unit", f"no column {unit!r}; {meant(unit, map(str, rows.frame.columns))}")
    made = _task(task, found, complete=len(box) == len(of_role(variables, "action")))
    cases = case_rows(form.get("cases"), folder, found)
    identity = form.get("identity")
    named = rows if form.get("cases") is None else cases
    if identity is not None and named is not None:
        identity_faults(identity, named, found)
    if cases is not None:
        case_faults(cases, of_role(variables, "context"), found)
    ranges: dict[str, list[tuple[float, float]]] = {}
    bounded = cases
    if form.get("cases") is None and rows is not None and gaps is not None:
        complete = rows.frame[gaps.cells.complete] if gaps.imputations else rows.frame
        bounded = replace(rows, frame=complete)
    if made is not None and bounded is not None:
        ranges = ranges_of(form.get("bounds", {}), made.box, bounded, found)
    relative = tuple(name for name in ranges if any(CURRENT in text for text in form["bounds"][name]))
    found.settle()
    if made is None or rows is None or gaps is None:
        raise ProblemError(found.source, ["its parts do not make a task: check the names and the roles"])
    return WrittenProblem(
        found.source,
        made.to_plain(),
        rows,
        cases,
        identity,
        ranges,
        relative,
        variables,
        costs(variables),
        found,
        gaps,
        form.get("method"),
    )


def _column_faults(variables: Mapping[str, VariableForm], rows: ReadTable, found: Findings) -> None:
    """Faults of the columns: missing, or not of their kind."""
    columns = [str(name) for name in rows.frame.columns]
    for name in variables:
        if name not in columns:
            found.fault(key("variables", name), f"no column {name!r} in {rows.where}; {meant(name, columns)}")
        else:
            kind_faults(name, variables[name], rows.frame[name], found)


def _graph(written: Any, folder: Path, found: Findings) -> Any:
    """The graph as a task holds it; that of a file as plain data."""
    if not isinstance(written, str) or "\n" in written.strip() or Path(written.strip()).suffix not in ENDINGS:
        return written
    try:
        return read_graph(folder / written.strip()).to_plain()
    except (OSError, ValueError) as error:
        found.fault("graph", str(error))
        return None


def _built(written: Any) -> RehearsalGraph | None:
    """The graph, if it is one; its faults are told by the reader of tasks."""
    if written is None:
        return None
    try:
        return graph_of({"graph": written})
    except ValueError:
        return None


def _consistent(
    variables: Mapping[str, VariableForm], graph: RehearsalGraph | None, desired: Any, found: Findings
) -> None:
    """Faults of names that one part has and another has not."""
    if not variables:
        return
    for role in ("action", "outcome"):
        if not of_role(variables, role):
            found.fault("variables", f"expected at least one of the role {role}; there is none")
    if graph is not None:
        for name in graph.names:
            if name not in variables:
                found.fault("graph", f"{name!r} is not under variables; {meant(name, variables)}")
        for name in of_role(variables, *ROLES[:3]):
            if name not in graph.names:
                near = meant(name, [each for each in graph.names if each not in variables] or graph.names)
                found.fault(key("variables", name), f"is in no edge of the graph; {near}")
        for name in of_role(variables, "other"):
            if name not in graph.names:
                found.warn(key("variables", name), "is in no edge of the graph, and so is not used")
    names = _names_in(desired)
    if names is None:
        return
    for name in names:
        if name not in variables:
            found.fault("desired", f"{name!r} is not under variables; {meant(name, variables)}")
        elif variables[name].role != "outcome":
            found.fault(
                "desired",
                f"{name} is of the role {variables[name].role}; expected outcomes: write "
                f"{name}: outcome, or take it out",
            )
    for name in of_role(variables, "outcome"):
        if name not in names:
            found.fault(
                key("variables", name),
                "an outcome of which desired says nothing: add an inequality, or write the role other",
            )


def _names_in(desired: Any) -> list[str] | None:
    """The variables of the desired region, as far as it can be read."""
    if isinstance(desired, dict):
        return [str(name) for name in desired.get("names", desired)]
    try:
        return list(inequalities(desired).names) if desired else None
    except (InequalityError, TypeError):
        return None


def _task(plain: Mapping[str, Any], found: Findings, complete: bool) -> RehearsalTask | None:
    """The task by the reader of tasks; its faults with the keys of the problem file."""
    parts = {part: each for part, each in plain.items() if each is not None and (part != "box" or each)}
    try:
        return RehearsalTask.of(parts, found.source)
    except TaskError as error:
        for each in error.faults:
            if told := _told(each, found, complete):
                found.fault(*told)
        return None


def _told(fault: str, found: Findings, complete: bool) -> tuple[str, str] | None:
    """A fault of the reader of tasks with the key of the problem file; None if it was told already."""
    path, _, words = fault.partition(": ")
    root = re.split(r"[.\[]", path)[0]
    if _NOT_THERE.match(fault):
        return None
    if fault.endswith("have two roles: a variable is context, actionable or an outcome"):
        # A variable has one role here; that `desired` names one that is no outcome was told.
        return None
    if words.startswith("missing; expected"):
        # Parts that are missing from the problem file are told by its own schema.
        return None
    if root == "box":
        return key("variables") + path.removeprefix("box"), words
    if root == "region":
        return "desired" + path.removeprefix("region"), words
    if root in _PATHS:
        return path, words
    return ("graph", fault) if complete and not found.faults else ("variables", fault)
