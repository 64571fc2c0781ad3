"""Problem files that ask for cases, validated together with their tables: a task with rows, cases and bounds.

    problem = written_problem("problem.yaml")      all faults at once, each with its line
    problem.task                                   graph, roles, what may be set, and what is desired
    problem.rows, problem.cases, problem.ranges    the observations, the cases, and how far each case may go

The parts of the task are built as those of a task file are (`data.problem_file.task_file`); their faults have
the keys and lines of the problem file.

Source: Du et al. (2026), Sec. 2.1 and Eq. (2).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from rehearsal_torch.data.codings.coding import Coding, with_level_places
from rehearsal_torch.data.problem_file.case_bounds import (
    CURRENT,
    case_rows,
    identity_faults,
    impossible_values,
    ranges_of,
    unused_columns,
    with_needed,
    with_truths,
)
from rehearsal_torch.data.problem_file.cases_schema import LearnForm, ProblemForm, VariableForm, of_role
from rehearsal_torch.data.problem_file.diagnostics import (
    Findings,
    Opened,
    ProblemError,
    column_faults,
    expect,
    graph_faults,
    key,
    opened,
)
from rehearsal_torch.data.problem_file.graph_section import KnownGraph, known_graph, learnt_graph
from rehearsal_torch.data.problem_file.missing_cells import Gaps, context_faults, without_gaps
from rehearsal_torch.data.problem_file.task_file import REHEARSAL_PARTS, built_parts, region_in
from rehearsal_torch.data.problem_file.variable_kinds import (
    cases_in_labels,
    codings_of,
    kind_faults,
    only_texts,
)
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.tables.decision_cases import price_faults
from rehearsal_torch.data.tables.reader import ReadTable
from rehearsal_torch.files.schema import Fault, FaultsError, meant
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.polytope import Polytope


@dataclass(frozen=True)
class WrittenProblem:
    """A problem file that can be decided by.

    Attributes:
        form: The parts of the file.
        rows: The observations, without those left out for a missing cell.
        cases: The cases to decide for; None for held-out rows.
        ranges: Action with bounds of its own to (lower, upper) of each case, or, if there are no cases, of
            each row without a missing cell.
        findings: The file's lines, and its findings so far.
        gaps: What was done about missing cells.
        graphs: The graphs that agree with the rows, or with what is known, if there are several.
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
        """The actions whose bounds depend on their present value, `current`."""
        return tuple(name for name in self.ranges if any(CURRENT in text for text in self.form.bounds[name]))

    def ranges_for(self, cases: ReadTable) -> dict[str, list[tuple[float, float]]]:
        """`ranges` of other cases than the file's own; ProblemError with all their faults."""
        found = Findings(self.findings.source, self.findings.lines)
        ranges = ranges_of(self.form.bounds, self.task.box, cases, found, self.task.coded)
        found.settle()
        return ranges


def written_problem(path: str | Path | None) -> WrittenProblem:
    """Reads a problem file with its tables and graph; ProblemError with all faults."""
    file = opened(path, tuple(ProblemForm.model_fields))
    expect(file, "cases")
    if not {"box", "region"}.isdisjoint(file.plain):
        what = f"{path} is a task file ({', '.join(REHEARSAL_PARTS)}), not a problem file"
        command = f"rehearsal decide TABLE +experiment=own_table dataset.task={path}"
        remedy = f"decide with it by {command}, or write data, variables, graph and desired"
        raise ProblemError(f"{what}: {remedy}")
    form = ProblemForm.of_parts(file.parts(ProblemForm))
    # Of cases with a fault, form.cases is None, too.
    return _problem(form, file, file.plain.get("cases") is not None)


def _problem(form: ProblemForm, file: Opened, has_cases: bool) -> WrittenProblem:
    """The problem of the parts that are valid by themselves."""
    found = file.found
    rows = None if form.data is None else file.table(form.data, "data")
    known = known_graph(form.graph, file.folder, found)
    coded = None if rows is None else _coded_rows(rows, form, known, found)
    if coded is not None and isinstance(form.graph, LearnForm) and not found.faults:
        known = learnt_graph(form.graph, coded.variables, coded.labels, coded.codings, found)
    task = _task(form, known, coded, found)
    cases = case_rows(form.cases, file, rows)
    if cases is not None and rows is not None:
        cases = with_needed(with_truths(cases, rows.frame), form, found)
    decided = cases if has_cases or coded is None else coded.rows
    if form.identity is not None and decided is not None:
        identity_faults(form.identity, decided, found)
    if cases is not None:
        _case_faults(cases, form, coded, found)
    if decided is not None and coded is not None and not has_cases and coded.gaps.imputations:
        decided = replace(decided, frame=decided.frame[coded.gaps.cells.complete])
    ranges = dict[str, list[tuple[float, float]]]()
    if decided is not None:
        _cost_column_faults(form, decided, found)
    if decided is not None and task is not None:
        texts = {name for name in of_role(form.variables, "action") if name in task.coded}
        ranges = ranges_of(form.bounds, task.box, decided, found, texts)
    found.settle()
    if task is None or coded is None or known is None:
        raise ProblemError(found.source, ["its parts do not make a task: check the names and the roles"])
    rows = replace(coded.rows, notes=(*coded.rows.notes, *known.notes))
    return WrittenProblem(form, task, rows, cases, ranges, found, coded.gaps, known.members)


@dataclass(frozen=True)
class _CodedRows:
    """The rows that are used.

    Attributes:
        rows: As in the table, with texts.
        labels: The same, with the index of the level in place of each text.
        variables: Those without a fault in their texts, but for free texts that are not used.
        broken: Those with a fault in their texts.
    """

    rows: ReadTable
    labels: ReadTable
    gaps: Gaps
    codings: Mapping[str, Coding]
    variables: Mapping[str, VariableForm]
    broken: Collection[str]


def _coded_rows(rows: ReadTable, form: ProblemForm, known: KnownGraph | None, found: Findings) -> _CodedRows:
    """The rows with their codings; collects faults of columns, and of missing cells."""
    in_graph = form.variables if known is None else known.graph.names
    # Free texts are no fault in a column that is not used.
    variables = {
        name: variable
        for name, variable in form.variables.items()
        if name in in_graph or variable.role != "other" or not only_texts(rows.frame, name)
    }
    codings, broken, notes = codings_of(variables, rows, found)
    labels = replace(rows, frame=with_level_places(rows.frame, codings))
    numbers = [name for name in form.variables if name not in codings]
    column_faults(((key("variables", name), name) for name in numbers), labels, found)
    for name in numbers:
        if name in labels.frame.columns:
            kind_faults(name, form.variables[name], labels.frame[name], found)
    variables = {name: variable for name, variable in variables.items() if name not in broken}
    used = [name for name in variables if name in in_graph and name in rows.frame.columns]
    labels, gaps = without_gaps(labels, variables, used, form.missing, found, codings)
    if form.unit is not None:
        column_faults([("unit", form.unit)], rows, found)
    rows = replace(rows, frame=rows.frame.loc[labels.frame.index], notes=(*labels.notes, *notes))
    return _CodedRows(rows, labels, gaps, codings, variables, broken)


def _task(
    form: ProblemForm, known: KnownGraph | None, coded: _CodedRows | None, found: Findings
) -> RehearsalTask | None:
    """The task of the parts; None with a fault."""
    codings, broken = ({}, ()) if coded is None else (coded.codings, coded.broken)
    faults, region, earlier = list[Fault](), None, len(found.faults)
    # A region may name levels, so that it waits until the texts of outcomes have no fault.
    if form.desired is not None and {*broken}.isdisjoint(of_role(form.variables, "outcome")):
        region, codings = region_in(form.desired, codings, faults)
    _name_faults(form.variables, known, region, found)
    frame = pd.DataFrame() if coded is None else coded.labels.frame
    graph = None if known is None else known.graph
    parts = built_parts(form, graph, region, codings, faults, found, frame, broken)
    _worth_findings(form, parts["costs"], found)
    task, complete = None, all(parts[part] is not None for part in ("graph", "box", "region"))
    if complete and not faults and len(found.faults) == earlier:
        try:
            task = RehearsalTask(**parts)
        except FaultsError as error:
            faults += error.faults
    keys = {"box": "variables", "context": "variables", "codings": "variables", "region": "desired"}
    for name, variable in form.variables.items():
        by_case = name in form.costs and not (variable.cost is not None and variable.cost.per_change)
        keys[f"costs.{name}"] = key("costs", name) if by_case else key("variables", name, "cost")
    found.add_faults(fault.called(keys) for fault in faults)
    return task


def _name_faults(
    variables: Mapping[str, VariableForm], known: KnownGraph | None, region: Polytope | None, found: Findings
) -> None:
    """Collects faults of names that are in one of variables, graph and desired region, and not in another."""
    if not variables:
        return
    if known is not None:
        graph_faults(variables, known.graph, found)
    outcomes = of_role(variables, "outcome") if region is None else list(region.names)
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


def _case_faults(cases: ReadTable, form: ProblemForm, coded: _CodedRows | None, found: Findings) -> None:
    """Collects faults and findings of the cells and the columns of cases."""
    codings, broken = ({}, ()) if coded is None else (coded.codings, coded.broken)
    numbers = {name: variable for name, variable in form.variables.items() if name not in codings}
    listed = [name for name in numbers if name not in broken] if isinstance(form.cases, list) else []
    frame, context = cases_in_labels(cases, codings, of_role(form.variables, "context"), found, listed)
    context_faults(replace(cases, frame=frame), context, found)
    unused_columns(cases, form, found)
    if coded is not None:
        impossible_values(cases, coded.labels.frame, numbers, found)


def _cost_column_faults(form: ProblemForm, cases: ReadTable, found: Findings) -> None:
    """Collects faults of the columns with the costs of each case, or of each row that may be held out."""
    columns = {name: (key("costs", name), column) for name, column in form.costs.items()}
    for name, variable in form.variables.items():
        if variable.cost is not None and variable.cost.column is not None:
            columns[name] = (key("variables", name, "cost"), variable.cost.column)
    for name, (path, column) in columns.items():
        for words in price_faults(cases.frame, cases.where, name, column, cases.at):
            found.fault(path, words)


def _worth_findings(form: ProblemForm, costs: Collection[str], found: Findings) -> None:
    """Collects findings of costs that are not weighed, and of a worth without costs."""
    if costs and form.worth is None:
        path = "costs" if form.costs else key("variables", next(iter(costs)), "cost")
        words = f"the cost of {', '.join(costs)} is told with each decision, and does not count"
        remedy = "add the line worth: NUMBER, what a desired outcome is worth in the unit of the costs"
        found.warn(path, "unused", f"{words}: to weigh it, {remedy}")
    elif form.worth is not None and not costs:
        words = "no action has a cost, so that nothing is weighed against it: add cost: to actions"
        found.warn("worth", "unused", words)
