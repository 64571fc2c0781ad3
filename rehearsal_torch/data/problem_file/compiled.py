"""Problem files read, checked, and compiled to a task with its rows, cases and bounds.

    problem = written_problem("problem.yaml")      all faults at once, each with its line
    problem.task                                   what a task file holds (`data.task_file`), to be read by
                                                   the reader of tasks
    problem.rows, problem.cases, problem.ranges    the observations, the cases, and how far each case may go

Files that a problem file names are relative to its folder. Graph, desired region and candidate sets are read
and checked by the reader of tasks; its faults are told with the keys and lines of the problem file.

Source: Du et al. (2026), Sec. 2.1 and Eq. (2).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rehearsal_torch.data.codings.coding import Coding, labelled
from rehearsal_torch.data.codings.written import levels_of, unordered_of
from rehearsal_torch.data.costs import WrittenCost
from rehearsal_torch.data.problem_file.cases import (
    CURRENT,
    case_rows,
    identity_faults,
    impossible_values,
    ranges_of,
    unused_columns,
)
from rehearsal_torch.data.problem_file.findings import (
    Findings,
    ProblemError,
    column_faults,
    expect,
    graph_faults,
    key,
    opened,
    parts_of,
    role_faults,
    rows_of,
)
from rehearsal_torch.data.problem_file.form import DataForm, ProblemForm, VariableForm
from rehearsal_torch.data.problem_file.gaps import Gaps, case_faults, without_gaps
from rehearsal_torch.data.problem_file.kinds import (
    cases_in_labels,
    codings_of,
    costs,
    kind_faults,
    of_role,
    only_texts,
    settable,
    setting_faults,
)
from rehearsal_torch.data.problem_file.learnt_graph import (
    built_graph,
    graph_part,
    is_learnt,
    learnt_graph,
    partly_directed,
)
from rehearsal_torch.data.reading import ReadTable
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.tables.cases import price_faults
from rehearsal_torch.data.task_file import REHEARSAL_PARTS, TaskError
from rehearsal_torch.files.schema import Fault, meant
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.inequalities import InequalityError, worded_inequalities

_PATHS = ("graph", "context", "candidates", "unit")


@dataclass(frozen=True)
class WrittenProblem:
    """A problem file that can be decided by.

    Attributes:
        task: Graph, context, box, region, candidates and unit, as plain data.
        rows: The observations; without those that were left out for a missing cell.
        cases: The cases to decide for; None for held-out rows.
        identity: The column that names the cases, or the held-out rows; None for their lines.
        ranges: For actions with bounds of their own in each case: (lower, upper) for each case, or, if there
            are no cases, for each row without a missing cell.
        bounds: Action to its two limits, as the file has them.
        from_present: Actions whose bounds start from their present value, `current`.
        costs: The costs of actions as weights of squared changes, for `micns`; empty if one is no number.
        findings: The file's lines, and warnings so far.
        gaps: What became of missing cells.
        codings: Columns of texts, and what they are as numbers; rows and cases have the texts.
        graphs: The graphs that agree with the rows, where the graph was learnt from them.
    """

    source: str
    task: Mapping[str, Any]
    rows: ReadTable
    cases: ReadTable | None
    identity: str | None
    ranges: Mapping[str, Sequence[tuple[float, float]]]
    bounds: Mapping[str, Sequence[str]]
    from_present: tuple[str, ...]
    variables: Mapping[str, VariableForm]
    costs: Mapping[str, float]
    findings: Findings
    gaps: Gaps
    method: str | None = None
    codings: Mapping[str, Coding] = field(default_factory=dict)
    graphs: tuple[RehearsalGraph, ...] = ()

    def ranges_for(self, cases: ReadTable) -> dict[str, list[tuple[float, float]]]:
        """`ranges` of other cases than the file's own; all their faults as a ProblemError."""
        found = Findings(self.source, self.findings.lines)
        box = RehearsalTask.of(self.task, self.source).box
        made = ranges_of(self.bounds, box, cases, found, self.codings)
        found.settle()
        return made


def written_problem(path: str | Path | None) -> WrittenProblem:
    """Reads a problem file; a ProblemError has all faults of the file, its tables and its graph."""
    file = opened(path, tuple(ProblemForm.model_fields))
    expect(file, "cases")
    plain, found = file.plain, file.found
    if {"box", "region"} & set(plain):
        what = f"{path} is a task file ({', '.join(REHEARSAL_PARTS)}), not a problem file"
        command = f"rehearsal decide TABLE +experiment=own_table dataset.task={path}"
        remedy = f"decide with it by {command}, or write data, variables, graph and desired"
        raise ProblemError(f"{what}: {remedy}", ())
    return _compiled(parts_of(file, ProblemForm), found, file.folder, plain.get("cases") is not None)


def _compiled(form: Mapping[str, Any], found: Findings, folder: Path, own: bool) -> WrittenProblem:
    """The problem of the parts; `own` says that the file has cases, which with a fault are not among them."""
    variables: dict[str, VariableForm] = form.get("variables", {})
    rows = None
    if isinstance(form.get("data"), DataForm):
        rows = rows_of(form["data"], folder, "data", found)
    for name, about in variables.items():
        setting_faults(name, about, found)
    asked = is_learnt(form.get("graph"))
    written = None if asked else graph_part(form.get("graph"), folder, found)
    learnt = partly_directed(written, found)
    if isinstance(written, dict) and "undirected" in written:
        written = None if learnt is None else learnt.graph.to_plain()
    graph = built_graph(written)
    gaps, codings, broken, numbers = None, dict[str, Coding](), set[str](), variables
    labels = rows
    if rows is not None:
        there = variables if graph is None else graph.names
        # Free texts are no fault in a column that is not used.
        sound = {
            name: each
            for name, each in variables.items()
            if name in there or each.role != "other" or not only_texts(rows.frame, name)
        }
        codings, broken, notes = codings_of(sound, rows, found)
        labels = replace(rows, frame=labelled(rows.frame, codings))
        numbers = {name: each for name, each in variables.items() if name not in codings}
        column_faults(((key("variables", name), name) for name in numbers), labels, found)
        for name in numbers:
            if name in labels.frame.columns:
                kind_faults(name, variables[name], labels.frame[name], found)
        sound = {name: each for name, each in sound.items() if name not in broken}
        used = [name for name in sound if name in there and name in rows.frame.columns]
        labels, gaps = without_gaps(labels, sound, used, form.get("missing", "complete"), found, codings)
        kept = rows.frame.index.isin(labels.frame.index)
        rows = replace(rows, frame=rows.frame[kept], notes=(*labels.notes, *notes))
        if asked and not found.faults:
            learnt = learnt_graph(form["graph"], sound, labels, codings, found)
    if learnt is not None and rows is not None:
        graph, written = learnt.graph, learnt.graph.to_plain()
        rows = replace(rows, notes=(*rows.notes, *learnt.notes))
    # What is said of levels that have a fault is read when these are right.
    desired = None if broken & {*of_role(variables, "outcome")} else form.get("desired")
    _consistent(variables, graph, desired, codings, found)
    box: dict[str, Any] = {}
    for name in of_role(variables, "action"):
        if labels is not None and name in labels.frame.columns and name not in broken:
            box[name] = settable(name, variables[name], labels.frame[name], found, codings.get(name))
    unit = form.get("unit")
    if unit is not None and rows is not None:
        column_faults([("unit", unit)], rows, found)
    priced, wrong = cost_parts(form, variables, box)
    untold_worth(form, priced, found)
    task = {
        "graph": written,
        "context": of_role(variables, "context"),
        "box": {name: each for name, each in box.items() if each is not None} or None,
        "region": desired,
        "candidates": form.get("candidates"),
        "unit": unit,
        "codings": {name: each.to_plain() for name, each in codings.items()} or None,
        **priced,
    }
    columns = form.get("costs", {}).keys() - wrong
    made = _task(task, found, len(box) == len(of_role(variables, "action")), columns)
    for name, words in wrong.items():
        found.fault(key("costs", name), words)
    cases = case_rows(form.get("cases"), folder, found)
    identity = form.get("identity")
    named = cases if own else rows
    if identity is not None and named is not None:
        identity_faults(identity, named, found)
    if cases is not None:
        listed = isinstance(form.get("cases"), list)
        uncoded = [name for name in variables if name not in codings and name not in broken] if listed else []
        frame, context = cases_in_labels(cases, codings, of_role(variables, "context"), found, uncoded)
        case_faults(replace(cases, frame=frame), context, found)
        unused_columns(cases, form, found)
        if labels is not None:
            impossible_values(cases, labels.frame, numbers, found)
    ranges, bounded = dict[str, list[tuple[float, float]]](), cases
    if not own and rows is not None and gaps is not None:
        complete = rows.frame[gaps.cells.complete] if gaps.imputations else rows.frame
        bounded = replace(rows, frame=complete)
    if bounded is not None:
        cost_faults(form, bounded, found)
    if made is not None and bounded is not None:
        coded = {name for name in of_role(variables, "action") if name in made.coded}
        ranges = ranges_of(form.get("bounds", {}), made.box, bounded, found, coded)
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
        form.get("bounds", {}),
        relative,
        variables,
        costs(variables),
        found,
        gaps,
        form.get("method"),
        made.coded,
        () if learnt is None else learnt.members,
    )


def _consistent(
    variables: Mapping[str, VariableForm],
    graph: RehearsalGraph | None,
    desired: Any,
    codings: Mapping[str, Coding],
    found: Findings,
) -> None:
    """Faults of names that one part has and another has not."""
    if not variables:
        return
    role_faults(variables, ("action", "outcome"), found)
    if graph is not None:
        graph_faults(variables, graph, found)
    names = _names_in(desired, codings)
    if names is None:
        return
    for name in names:
        if name not in variables:
            found.fault("desired", f"{name!r} is not under variables; {meant(name, variables)}")
        elif variables[name].role != "outcome":
            words = f"{name} is of the role {variables[name].role}; expected outcomes"
            found.fault("desired", f"{words}: write {name}: outcome, or take it out")
    for name in of_role(variables, "outcome"):
        if name not in names:
            words = "an outcome of which desired says nothing: add an inequality, or write the role other"
            found.fault(key("variables", name), words)


def _names_in(desired: Any, codings: Mapping[str, Coding]) -> list[str] | None:
    """The variables of the desired region, as far as it can be read."""
    if isinstance(desired, dict):
        return [str(name) for name in desired.get("names", desired)]
    try:
        found = worded_inequalities(desired, levels_of(codings), unordered_of(codings)) if desired else None
        return None if found is None else list(found.names)
    except (InequalityError, TypeError, AttributeError):
        # What is no text is told by the reader of tasks.
        return None


def _task(
    plain: Mapping[str, Any], found: Findings, complete: bool, columns: Collection[str]
) -> RehearsalTask | None:
    """The task by the reader of tasks; its faults with the keys of the problem file."""
    try:
        parts = {part: each for part, each in plain.items() if each is not None}
        return RehearsalTask.of(parts, found.source)
    except TaskError as error:
        for each in error.faults:
            if placed := _in_the_file(each, found, complete, columns):
                found.fault(*placed)
        return None


def _in_the_file(
    fault: Fault, found: Findings, complete: bool, columns: Collection[str]
) -> tuple[str, str] | None:
    """A fault of the reader of tasks with the key of the problem file; None if it was told already."""
    # A variable has one role here, and what `desired` names was told; so were names that are in no edge of
    # the graph, among them those of codings, and parts that are missing.
    if fault.kind in ("unknown", "two roles", "missing") or fault.part == "codings":
        return None
    if fault.part == "box":
        return key("variables") + fault.path[len("box") :], fault.words
    if fault.part == "region":
        return "desired" + fault.path[len("region") :], fault.words
    if fault.part == "costs":
        name = fault.path[len("costs.") :]
        return key("costs", name) if name in columns else key("variables", name, "cost"), fault.words
    if fault.part in _PATHS:
        return fault.path, fault.words
    return ("graph", fault) if complete and not found.faults else ("variables", fault)


def cost_parts(
    form: Mapping[str, Any], variables: Mapping[str, VariableForm], box: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The parts ``costs`` and ``worth`` of a task, none where nothing costs anything; and why columns of some
    names cannot be costs. Actions that may be set to nothing have a fault, and no cost.
    """
    actions = of_role(variables, "action")
    costs = {name: variables[name].cost for name in actions if box.get(name) is not None}
    wrong = dict[str, str]()
    for name, column in form.get("costs", {}).items() if actions else ():
        own = costs.get(name) or WrittenCost()
        if name not in actions:
            wrong[name] = f"is no action; {meant(name, actions)}"
        elif own.up or own.down or own.column or own.levels:
            what = "cost of each level" if own.levels else "cost per unit"
            wrong[name] = f"{name} has a {what} under variables as well: leave one of the two out"
        else:
            costs[name] = WrittenCost(fixed=own.fixed, column=column, usual=own.usual)
    parts = {"costs": {name: each for name, each in costs.items() if each}, "worth": form.get("worth")}
    return {part: each for part, each in parts.items() if each}, wrong


def cost_faults(form: Mapping[str, Any], cases: ReadTable, found: Findings) -> None:
    """Faults of the columns that have the costs of each case, or of each row that may be held out."""
    named = {name: (key("costs", name), column) for name, column in form.get("costs", {}).items()}
    for name, about in form.get("variables", {}).items():
        if about.cost is not None and about.cost.column is not None:
            named[name] = (key("variables", name, "cost"), about.cost.column)
    for name, (path, column) in named.items():
        for fault in price_faults(cases.frame, cases.where, name, column, cases.at):
            found.fault(path, fault)


def untold_worth(form: Mapping[str, Any], costs: Mapping[str, Any], found: Findings) -> None:
    """Warns of costs that do not count, and of a worth that nothing is weighed against."""
    if costs.get("costs") and costs.get("worth") is None:
        named = ", ".join(costs["costs"])
        path = "costs" if form.get("costs") else key("variables", next(iter(costs["costs"])), "cost")
        words = f"the cost of {named} is told with each decision, and does not count"
        remedy = "add the line worth: NUMBER, what a desired outcome is worth in the unit of the costs"
        found.warn(path, "unused", f"{words}: to weigh it, {remedy}")
    if costs.get("worth") is not None and not costs.get("costs"):
        words = "no action has a cost, so that nothing is weighed against it: add cost: to actions"
        found.warn("worth", "unused", words)
