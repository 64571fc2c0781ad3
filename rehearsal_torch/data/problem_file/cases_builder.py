"""Problem files read and checked: a task with its rows, cases and bounds.

    problem = written_problem("problem.yaml")      all faults at once, each with its line
    problem.task                                   graph, roles, what may be set, and what is desired
    problem.rows, problem.cases, problem.ranges    the observations, the cases, and how far each case may go

Files that a problem file names are relative to its folder. The parts of the task are built as those of a task
file are (`data.problem_file.task_file`), and their faults are told with the keys and lines of the problem
file.

Source: Du et al. (2026), Sec. 2.1 and Eq. (2).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rehearsal_torch.data.codings.coding import Coding, labelled
from rehearsal_torch.data.codings.task_codings import box_in_codes
from rehearsal_torch.data.costs import WrittenCost
from rehearsal_torch.data.problem_file.case_bounds import (
    CURRENT,
    case_rows,
    identity_faults,
    impossible_values,
    ranges_of,
    unused_columns,
    with_truths,
)
from rehearsal_torch.data.problem_file.cases_schema import LearnForm, ProblemForm, VariableForm, of_role
from rehearsal_torch.data.problem_file.diagnostics import (
    Findings,
    ProblemError,
    column_faults,
    expect,
    graph_faults,
    key,
    opened,
    parts_of,
    rows_of,
)
from rehearsal_torch.data.problem_file.graph_section import KnownGraph, known_graph, learnt_graph
from rehearsal_torch.data.problem_file.missing_cells import Gaps, case_faults, without_gaps
from rehearsal_torch.data.problem_file.task_file import (
    REHEARSAL_PARTS,
    Region,
    built_parts,
    outcomes_of,
    region_in,
)
from rehearsal_torch.data.problem_file.variable_kinds import (
    cases_in_labels,
    codings_of,
    kind_faults,
    only_texts,
    settable,
)
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.tables.decision_cases import price_faults
from rehearsal_torch.data.tables.reader import ReadTable
from rehearsal_torch.files.schema import Fault, FaultsError, meant
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph


@dataclass(frozen=True)
class WrittenProblem:
    """A problem file that can be decided by.

    Attributes:
        form: What the file says.
        rows: The observations; without those that were left out for a missing cell.
        cases: The cases to decide for; None for held-out rows.
        ranges: For actions with bounds of their own in each case: (lower, upper) for each case, or, if there
            are no cases, for each row without a missing cell.
        findings: The file's lines, and warnings so far.
        gaps: What became of missing cells.
        graphs: The graphs that agree with the rows, where the graph was learnt from them.
    """

    form: ProblemForm
    task: RehearsalTask
    rows: ReadTable
    cases: ReadTable | None
    ranges: Mapping[str, Sequence[tuple[float, float]]]
    findings: Findings
    gaps: Gaps
    graphs: tuple[RehearsalGraph, ...] = ()

    @property
    def from_present(self) -> tuple[str, ...]:
        """Actions whose bounds start from their present value, `current`."""
        return tuple(name for name in self.ranges if any(CURRENT in text for text in self.form.bounds[name]))

    def ranges_for(self, cases: ReadTable) -> dict[str, list[tuple[float, float]]]:
        """`ranges` of other cases than the file's own; all their faults as a ProblemError."""
        found = Findings(self.findings.source, self.findings.lines)
        made = ranges_of(self.form.bounds, self.task.box, cases, found, self.task.coded)
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
    form = ProblemForm.of_parts(parts_of(file, ProblemForm))
    return _problem(form, found, file.folder, plain.get("cases") is not None)


def _problem(form: ProblemForm, found: Findings, folder: Path, own: bool) -> WrittenProblem:
    """The problem of the parts; `own` says that the file has cases, which with a fault are not among them."""
    rows = None if form.data is None else rows_of(form.data, folder, "data", found)
    known = known_graph(form.graph, folder, found)
    made = None if rows is None else _coded_rows(rows, form, known, found)
    if made is not None and isinstance(form.graph, LearnForm) and not found.faults:
        known = learnt_graph(form.graph, made.sound, made.labels, made.codings, found)
    task = _task(form, known, made, found)
    cases = case_rows(form.cases, folder, found)
    if cases is not None and rows is not None:
        cases = with_truths(cases, rows.frame)
    named = cases if own else None if made is None else made.rows
    if form.identity is not None and named is not None:
        identity_faults(form.identity, named, found)
    if cases is not None:
        _check_cases(cases, form, made, found)
    bounded = cases if own or made is None else made.rows
    if not own and made is not None and made.gaps.imputations:
        bounded = replace(made.rows, frame=made.rows.frame[made.gaps.cells.complete])
    ranges = dict[str, list[tuple[float, float]]]()
    if bounded is not None:
        cost_faults(form, bounded, found)
    if task is not None and bounded is not None:
        coded = {name for name in of_role(form.variables, "action") if name in task.coded}
        ranges = ranges_of(form.bounds, task.box, bounded, found, coded)
    found.settle()
    if task is None or made is None or known is None:
        raise ProblemError(found.source, ["its parts do not make a task: check the names and the roles"])
    rows = replace(made.rows, notes=(*made.rows.notes, *known.notes))
    return WrittenProblem(form, task, rows, cases, ranges, found, made.gaps, known.members)


@dataclass(frozen=True)
class _CodedRows:
    """Rows that are used.

    Attributes:
        rows: As they were read, with texts.
        labels: The same, with the place of its level for each text.
        sound: The variables without a fault in their columns, but for free texts that are not used.
        broken: Those whose texts have a fault.
    """

    rows: ReadTable
    labels: ReadTable
    gaps: Gaps
    codings: Mapping[str, Coding]
    sound: Mapping[str, VariableForm]
    broken: Collection[str]


def _coded_rows(rows: ReadTable, form: ProblemForm, known: KnownGraph | None, found: Findings) -> _CodedRows:
    """Codings of texts, faults of columns, and what becomes of missing cells."""
    there = form.variables if known is None else known.graph.names
    # Free texts are no fault in a column that is not used.
    sound = {
        name: each
        for name, each in form.variables.items()
        if name in there or each.role != "other" or not only_texts(rows.frame, name)
    }
    codings, broken, notes = codings_of(sound, rows, found)
    labels = replace(rows, frame=labelled(rows.frame, codings))
    numbers = [name for name in form.variables if name not in codings]
    column_faults(((key("variables", name), name) for name in numbers), labels, found)
    for name in numbers:
        if name in labels.frame.columns:
            kind_faults(name, form.variables[name], labels.frame[name], found)
    sound = {name: each for name, each in sound.items() if name not in broken}
    used = [name for name in sound if name in there and name in rows.frame.columns]
    labels, gaps = without_gaps(labels, sound, used, form.missing, found, codings)
    kept = rows.frame[rows.frame.index.isin(labels.frame.index)]
    if form.unit is not None:
        column_faults([("unit", form.unit)], rows, found)
    rows = replace(rows, frame=kept, notes=(*labels.notes, *notes))
    return _CodedRows(rows, labels, gaps, codings, sound, broken)


def _task(
    form: ProblemForm, known: KnownGraph | None, made: _CodedRows | None, found: Findings
) -> RehearsalTask | None:
    """The task of the parts; None with a fault."""
    codings, broken = ({}, ()) if made is None else (made.codings, made.broken)
    faults, region, earlier = list[Fault](), None, len(found.faults)
    # What is said of levels that have a fault is read when these are right.
    if form.desired is not None and not {*broken} & {*of_role(form.variables, "outcome")}:
        region, codings = region_in(form.desired, codings, faults)
    _name_faults(form.variables, known, region, found)
    box, actions = dict[str, Any](), of_role(form.variables, "action")
    for name in actions:
        if made is not None and name in made.labels.frame.columns and name not in broken:
            about, column = form.variables[name], made.labels.frame[name]
            box[name] = settable(name, about, column, found, codings.get(name))
    box = {name: each for name, each in box.items() if each is not None}
    priced = cost_parts(form, box)
    untold_worth(form, priced, found)
    parts = built_parts(
        {
            **{part: getattr(form, part) for part in ("unit", "worth")},
            "candidates": [names for names in form.candidates if {*names} <= {*actions}],
            "graph": None if known is None else known.graph,
            "context": of_role(form.variables, "context"),
            "box": box_in_codes(box, codings, faults) or None,
            "region": region,
            "costs": priced,
        },
        {name: each for name, each in codings.items() if known is None or name in known.graph.names},
        faults,
    )
    whole = all(parts[part] is not None for part in ("graph", "box", "region")) and len(box) == len(actions)
    task = None
    if whole and not faults and len(found.faults) == earlier:
        try:
            task = RehearsalTask(**parts)
        except FaultsError as error:
            faults += error.faults
    told = {"box": "variables", "context": "variables", "codings": "variables", "region": "desired"}
    for name, cost in priced.items():
        by_case = cost.column is not None and cost.column == form.costs.get(name)
        told[f"costs.{name}"] = key("costs", name) if by_case else key("variables", name, "cost")
    found.of_reader(each.called(told) for each in faults)
    return task


def _name_faults(
    variables: Mapping[str, VariableForm], known: KnownGraph | None, region: Region | None, found: Findings
) -> None:
    """Faults of names that one part has and another has not."""
    if not variables:
        return
    if known is not None:
        graph_faults(variables, known.graph, found)
    outcomes = of_role(variables, "outcome") if region is None else outcomes_of(region)
    for name in outcomes:
        if name not in variables:
            found.fault("desired", f"{name!r} is not under variables; {meant(name, variables)}")
        elif variables[name].role != "outcome":
            words = f"{name} is of the role {variables[name].role}; expected outcomes"
            found.fault("desired", f"{words}: write {name}: outcome, or take it out")
    for name in of_role(variables, "outcome"):
        if name not in outcomes:
            words = "an outcome of which desired says nothing: add an inequality, or write the role other"
            found.fault(key("variables", name), words)


def _check_cases(cases: ReadTable, form: ProblemForm, made: _CodedRows | None, found: Findings) -> None:
    """Faults of what cases state."""
    codings, broken = ({}, ()) if made is None else (made.codings, made.broken)
    numbers = {name: each for name, each in form.variables.items() if name not in codings}
    listed = [name for name in numbers if name not in broken] if isinstance(form.cases, list) else []
    frame, context = cases_in_labels(cases, codings, of_role(form.variables, "context"), found, listed)
    case_faults(replace(cases, frame=frame), context, found)
    unused_columns(cases, form, found)
    if made is not None:
        impossible_values(cases, made.labels.frame, numbers, found)


def cost_parts(form: ProblemForm, box: Collection[str]) -> dict[str, WrittenCost]:
    """The costs of the actions of a box; without those that cost nothing."""
    costs = {name: form.variables[name].cost for name in box}
    for name, column in form.costs.items():
        own = costs.get(name) or WrittenCost()
        if name in costs and not own.per_change:
            costs[name] = WrittenCost(fixed=own.fixed, column=column, usual=own.usual)
    return {name: each for name, each in costs.items() if each}


def cost_faults(form: ProblemForm, cases: ReadTable, found: Findings) -> None:
    """Faults of the columns that have the costs of each case, or of each row that may be held out."""
    named = {name: (key("costs", name), column) for name, column in form.costs.items()}
    for name, about in form.variables.items():
        if about.cost is not None and about.cost.column is not None:
            named[name] = (key("variables", name, "cost"), about.cost.column)
    for name, (path, column) in named.items():
        for fault in price_faults(cases.frame, cases.where, name, column, cases.at):
            found.fault(path, fault)


def untold_worth(form: ProblemForm, costs: Collection[str], found: Findings) -> None:
    """Warns of costs that do not count, and of a worth that nothing is weighed against."""
    if costs and form.worth is None:
        path = "costs" if form.costs else key("variables", next(iter(costs)), "cost")
        words = f"the cost of {', '.join(costs)} is told with each decision, and does not count"
        remedy = "add the line worth: NUMBER, what a desired outcome is worth in the unit of the costs"
        found.warn(path, "unused", f"{words}: to weigh it, {remedy}")
    if form.worth is not None and not costs:
        words = "no action has a cost, so that nothing is weighed against it: add cost: to actions"
        found.warn("worth", "unused", words)
