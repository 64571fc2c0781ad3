"""Problem files read, checked, and compiled to a task with its rows, cases and bounds.

    problem = written_problem("problem.yaml")      all faults at once, each with its line
    problem.task                                   what a task file holds (`data.task_file`), to be read by
                                                   the reader of tasks
    problem.rows, problem.cases, problem.ranges    the observations, the cases, and how far each case may go

Files that a problem file names are relative to its folder. Graph, desired region and candidate sets are read
and checked by the reader of tasks; its faults are told with the keys and lines of the problem file.

Source: Du et al. (2026), Sec. 2.1 and Eq. (2), for what a task consists of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.columns import labelled
from rehearsal_torch.data.codings.outcomes import levels_of, unordered_of
from rehearsal_torch.data.costs.action_cost import ActionCost
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
    graph_faults,
    key,
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
from rehearsal_torch.data.problem_file.opened import expect, opened, parts_of
from rehearsal_torch.data.reading import ReadTable
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.tables.cases import column_faults
from rehearsal_torch.data.task_file import REHEARSAL_PARTS, TaskError
from rehearsal_torch.files.schema import Fault, meant
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.inequalities import InequalityError, worded_inequalities

_PATHS = ("graph", "context", "candidates", "unit")


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
        bounds: Action to its two limits, as the file has them.
        from_present: Actions whose bounds start from their present value, `current`.
        variables: What the file says of each variable.
        costs: The costs of actions as weights of squared changes, for `micns`; empty if one is no number.
        findings: The file's lines, and warnings so far.
        gaps: What became of missing cells.
        method: The method that the file names; None if it names none.
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
        """`ranges` of other cases than the file's own.

        Raises:
            ProblemError: if a column is missing or has no numbers, or a case has no value left; all faults
                are listed.
        """
        found = Findings(self.source, self.findings.lines)
        box = RehearsalTask.of(self.task, self.source).box
        made = ranges_of(self.bounds, box, cases, found, self.codings)
        found.settle()
        return made


def written_problem(path: str | Path | None) -> WrittenProblem:
    """Reads a problem file.

    Raises:
        ProblemError: with all faults of the file, its tables and its graph.
    """
    file = opened(path, tuple(ProblemForm.model_fields))
    expect(file, "cases")
    plain, found = file.plain, file.found
    if {"box", "region"} & set(plain):
        raise ProblemError(
            f"{path} is a task file ({', '.join(REHEARSAL_PARTS)}), not a problem file: decide with it by "
            f"rehearsal decide TABLE +experiment=own_table dataset.task={path}, or write data, variables, "
            "graph and desired",
            (),
        )
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
    gaps, codings, broken = None, dict[str, Coding](), set[str]()
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
        _column_faults({name: each for name, each in variables.items() if name not in codings}, labels, found)
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
    task = {
        "graph": written,
        "context": of_role(variables, "context"),
        "box": {name: each for name, each in box.items() if each is not None},
        "region": desired,
        **({} if form.get("candidates") is None else {"candidates": form["candidates"]}),
        **({} if form.get("unit") is None else {"unit": form["unit"]}),
    }
    if codings:
        task["codings"] = {name: each.to_plain() for name, each in codings.items()}
    unit = form.get("unit")
    if unit is not None and rows is not None and unit not in rows.frame.columns:
        found.fault("unit", f"no column {unit!r}; {meant(unit, map(str, rows.frame.columns))}")
    priced = cost_parts(form, variables, found, codings, box)
    untold_worth(form, priced, found)
    task |= priced
    made = _task(task, found, complete=len(box) == len(of_role(variables, "action")))
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
            plainly = {name: each for name, each in variables.items() if name not in codings}
            impossible_values(cases, labels.frame, plainly, found)
    ranges: dict[str, list[tuple[float, float]]] = {}
    bounded = cases
    if not own and rows is not None and gaps is not None:
        complete = rows.frame[gaps.cells.complete] if gaps.imputations else rows.frame
        bounded = replace(rows, frame=complete)
    if bounded is not None:
        cost_faults(form, bounded, found)
    if made is not None and bounded is not None:
        ranges = ranges_of(form.get("bounds", {}), made.box, bounded, found, _coded(made, variables))
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


def _coded(task: RehearsalTask, variables: Mapping[str, VariableForm]) -> set[str]:
    return {name for name in of_role(variables, "action") if name in task.coded}


def _column_faults(variables: Mapping[str, VariableForm], rows: ReadTable, found: Findings) -> None:
    """Faults of the columns: missing, or not of their kind."""
    columns = [str(name) for name in rows.frame.columns]
    for name in variables:
        if name not in columns:
            found.fault(key("variables", name), f"no column {name!r} in {rows.where}; {meant(name, columns)}")
        else:
            kind_faults(name, variables[name], rows.frame[name], found)


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


def _task(plain: Mapping[str, Any], found: Findings, complete: bool) -> RehearsalTask | None:
    """The task by the reader of tasks; its faults with the keys of the problem file."""
    parts = {part: each for part, each in plain.items() if each is not None and (part != "box" or each)}
    try:
        return RehearsalTask.of(parts, found.source)
    except TaskError as error:
        for each in error.faults:
            if placed := _in_the_file(each, found, complete):
                found.fault(*placed)
        return None


def _in_the_file(fault: Fault, found: Findings, complete: bool) -> tuple[str, str] | None:
    """A fault of the reader of tasks with the key of the problem file; None if it was told already."""
    # A variable has one role here, and what `desired` names was told; so were names that are in no edge of
    # the graph, among them those of codings, and parts that are missing.
    if fault.kind in ("unknown", "two roles", "missing") or fault.part == "codings":
        return None
    if fault.part == "box":
        return key("variables") + fault.path[len("box") :], fault.words
    if fault.part == "region":
        return "desired" + fault.path[len("region") :], fault.words
    if fault.part in _PATHS:
        return fault.path, fault.words
    return ("graph", fault) if complete and not found.faults else ("variables", fault)


def cost_parts(
    form: Mapping[str, Any],
    variables: Mapping[str, VariableForm],
    found: Findings,
    codings: Mapping[str, Coding],
    box: Mapping[str, Any],
) -> dict[str, Any]:
    """The parts ``costs`` and ``worth`` of a task, as plain data; none where nothing costs anything.

    Args:
        box: What the actions may be set to, with texts, for those without a fault.
    """
    costs = dict[str, ActionCost]()
    for name, about in variables.items():
        # Faults of other roles, and of what an action may be set to, are told.
        if about.cost is None or about.role != "action" or box.get(name) is None:
            continue
        try:
            costs[name] = about.cost.built(name, codings.get(name), _levels(name, codings, box))
        except ValueError as error:
            found.fault(f"{key('variables', name)}.cost", str(error))
    actions = [name for name, about in variables.items() if about.role == "action"]
    for name, column in form.get("costs", {}).items():
        path = key("costs", name)
        if not actions:
            # Their own faults are told.
            continue
        if name not in actions:
            found.fault(path, f"is no action; {meant(name, actions)}")
            continue
        own, coding = costs.get(name, ActionCost()), codings.get(name)
        if coding is not None and coding.of_classes:
            found.fault(
                path,
                "a change from one class to another has no size that a cost per unit could count; write what "
                f"a change to each costs under variables, {name}: {{..., cost: {{{coding.levels[0]}: NUMBER, "
                "...}}",
            )
            continue
        if own.up or own.down or own.column or own.levels:
            what = "cost of each level" if own.levels else "cost per unit"
            found.fault(path, f"{name} has a {what} under variables as well: leave one of the two out")
            continue
        costs[name] = ActionCost(fixed=own.fixed, column=column, usual=own.usual)
    worth = form.get("worth")
    made = {name: each.to_plain() for name, each in costs.items() if name in actions}
    return {
        **({"costs": made} if made else {}),
        **({} if worth is None else {"worth": worth}),
    }


def _levels(
    name: str, codings: Mapping[str, Coding], box: Mapping[str, Any]
) -> Mapping[str, Sequence[float]] | None:
    """Coded column to the values that an action may be set to; None for any of a range."""
    written = box.get(name)
    if not isinstance(written, dict):
        return None
    coding, values = codings.get(name), written["values"]
    if coding is None:
        return {name: values}
    rows = coding.rows[[coding.levels.index(each) for each in values]]
    return {column: rows[:, place].tolist() for place, column in enumerate(coding.columns)}


def cost_faults(form: Mapping[str, Any], cases: ReadTable, found: Findings) -> None:
    """Faults of the columns that have the costs of each case.

    Args:
        cases: The cases, or the rows of which some are held out.
    """
    named = {name: (key("costs", name), column) for name, column in form.get("costs", {}).items()}
    for name, about in form.get("variables", {}).items():
        if about.cost is not None and about.cost.column is not None:
            named[name] = (f"{key('variables', name)}.cost", about.cost.column)
    for name, (path, column) in named.items():
        for fault in column_faults(cases.frame, cases.where, name, column, cases.at):
            found.fault(path, fault)


def untold_worth(form: Mapping[str, Any], costs: Mapping[str, Any], found: Findings) -> None:
    """Warns of costs that do not count, and of a worth that nothing is weighed against."""
    if costs.get("costs") and costs.get("worth") is None:
        named = ", ".join(costs["costs"])
        path = "costs" if form.get("costs") else f"{key('variables', next(iter(costs['costs'])))}.cost"
        found.warn(
            path,
            "unused",
            f"the cost of {named} is told with each decision, and does not count: to weigh it, add the line "
            "worth: NUMBER, what a desired outcome is worth in the unit of the costs",
        )
    if costs.get("worth") is not None and not costs.get("costs"):
        found.warn(
            "worth",
            "unused",
            "no action has a cost, so that nothing is weighed against it: add cost: to actions",
        )
