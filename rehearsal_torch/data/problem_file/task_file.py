"""Task dictionaries of rehearsal, and the graph, box, region and costs that a problem stands for.

    context: [age]                                   age: {role: context}
    box: {dose: [0, 10],                             dose: {role: action, range: [0, 10]}
          ward: {values: [A, B]}}                    ward: {role: action, kind: categorical,
    codings:                                                levels: [A, B, C], offered: [A, B], reference: A}
      ward: {classes: [A, B, C], reference: A}
    region: well >= 0.5                              well: {role: outcome}

A task, a YAML file or a mapping, says on the left what a problem says on the right of its variables
(`data.problem_file.cases_schema`). It is read as that problem, and its faults have the task's keys; all are
listed at once. A single name stands for a list of one; lists of lists (edges, bidirected, candidates) need
their outer brackets. A task needs no rows, and what `to_plain` returns is one: there, graph and context name
the indicators of classes, as variables of their own. No file says so, since no table has their columns. Tasks
of trials are read by `data.problem_file.trials_schema`.

Source: Du et al. (2026), Sec. 2.1 and Eq. (2).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import pandas as pd
from pydantic import BeforeValidator, Field

from rehearsal_torch.data.codings.coding import Coding, listed, no_coding, text_of
from rehearsal_torch.data.codings.task_codings import coded_names, expanded, faces_of_text
from rehearsal_torch.data.costs import COSTS, WrittenCost, WrittenCosts, costs_of
from rehearsal_torch.data.problem_file.cases_schema import (
    REGION,
    SETTABLE,
    CasesProblem,
    GraphForm,
    LevelNumbers,
    NamedFaces,
    Region,
    VariableForm,
    of_role,
)
from rehearsal_torch.data.problem_file.diagnostics import Findings, TaskError, key
from rehearsal_torch.data.problem_file.variable_kinds import collected, settable, stated_coding
from rehearsal_torch.files.bounded_yaml import NoFileError, PlainFileError, read_yaml
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import Fault, Name, Names, Schema, list_of, mapping, meant, only, read
from rehearsal_torch.graphs.graph_notation import EXPECTED, WrittenGraph
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.inequalities import TOKEN, InequalityError
from rehearsal_torch.spaces.polytope import Polytope

CODINGS = "{variable: [texts in the order of their codes], or {classes: [...], reference: ...}}"
# Keys of a task to those of a problem that mean the same.
_PARTS = {name: name for name in ("graph", "candidates", "unit", "worth")} | {"region": "desired"}


class Levels(Schema):
    """The numbers that a variable may be set to."""

    values: LevelNumbers = Field(description="a list of the values that it may be set to")


class TaskKeys(Schema):
    """The keys of a task; what stands behind most of them is validated as that of a problem."""

    graph: WrittenGraph = Field(description=EXPECTED)
    context: Names = Field(description="a list of the variables observed before deciding, [] for none")
    box: Annotated[dict[Name, Any], mapping(SETTABLE)] = Field(description=SETTABLE)
    region: Any = Field(description=REGION)
    candidates: Any = None
    unit: Any = None
    codings: Annotated[Any, BeforeValidator(only(lambda plain: isinstance(plain, dict | None), CODINGS))] = (
        None
    )
    costs: WrittenCosts = Field(default_factory=dict, description=COSTS)
    worth: Any = None
    holding: Annotated[list[Names], list_of("a list of sets of variables, [[...], ...]")] = Field(
        default_factory=list, description="candidates that only hold present values"
    )


# Nobody writes `holding`, which `to_plain` records.
REHEARSAL_PARTS = tuple(name for name in TaskKeys.model_fields if name != "holding")


def task_content(
    task: str | Path | Mapping[str, Any] | None, parts: Sequence[str]
) -> tuple[str, Mapping[str, Any]]:
    """The name of a task in messages, and its content: that of a YAML file, or the given mapping."""
    listing = ", ".join(parts)
    if task is None:
        raise TaskError(f"no task is given: set dataset.task=task.yaml, a file with {listing} (see docs)")
    if isinstance(task, Mapping):
        return "the task", task
    if not isinstance(task, str | Path):
        expected = f"expected a YAML file, or a mapping with {listing}"
        raise TaskError(f"the task: {expected}; got {type(task).__name__}")
    file = Path(task)
    try:
        content = read_yaml(file)
    except NoFileError as error:
        remedy = "check dataset.task=, which is relative to the current folder"
        raise TaskError(f"there is no task file {file}: {remedy}") from error
    except PlainFileError as error:
        raise TaskError(str(error)) from error
    if not isinstance(content, dict):
        raise TaskError(f"{file}: expected the parts {listing}; got {type(content).__name__}")
    return str(file), content


def problem_of_task(plain: Any, found: Findings) -> tuple[CasesProblem, list[str], list[str]]:
    """The problem of a task; its context, in which an action is a fault; and the variables whose coding has
    none. Faults are collected with the keys of the task, also those of the problem that are added later.
    """
    parts, faults = read(TaskKeys, plain)
    found.add_faults(faults)
    context, box, costs = parts.get("context", []), parts.get("box", {}), parts.get("costs", {})
    codings = {str(name): content for name, content in (parts.get("codings") or {}).items()}
    if box and (free := [name for name in costs if name not in box]):
        found.add_faults(Fault("costs", f"{name!r} is no action; {meant(name, box)}") for name in free)
    outcomes, nodes = set(_names_in(parts.get("region"))), parts["graph"].named() if "graph" in parts else []
    roles = dict.fromkeys(context, "context") | dict.fromkeys(box, "action")
    for name in [*nodes, *codings]:
        roles.setdefault(name, "outcome" if name in outcomes else "other")
    variables, coded = dict[str, VariableForm](), {*codings}
    for name, role in roles.items():
        settings, faults, path = dict[str, Any](role=role), list[Fault](), key("variables", name)
        found.called |= _keys_of_task(path, name, role, codings)
        if name in codings:
            settings |= _coded_settings(name, codings[name], faults)
        if role == "action":
            settings |= {**_box_settings(name, box[name], settings, faults), "cost": costs.get(name)}
        valid, wrong = read(VariableForm, settings)
        variables[name] = VariableForm.model_construct(**valid)
        if {"codings", "levels", "reference", "desired"} & {fault.part for fault in faults + wrong}:
            coded.discard(name)
        found.add_faults([*faults, *(Fault(f"{path}.{fault.path}", fault.words) for fault in wrong)])
    found.called["desired"] = "region"
    problem = {name: parts[part] for part, name in _PARTS.items() if part in parts}
    problem |= {"variables": variables} if variables else {}
    valid, faults = read(CasesProblem, problem)
    # Missing parts are among the faults of the task's keys.
    found.add_faults(fault for fault in faults if fault.kind != "missing")
    return CasesProblem.of_parts(valid), context, [name for name in codings if name in coded]


def _keys_of_task(path: str, name: str, role: str, codings: Mapping[str, Any]) -> dict[str, str]:
    """The paths of a variable and of its settings to those of a task."""
    box, coding = key("box", name), key("codings", name)
    parts = {"context": "context", "action": box, "outcome": "region", "other": "graph"}
    keys = {path: parts[role], f"{path}.range": box, f"{path}.cost": key("costs", name)}
    keys |= {f"{path}.{setting}": f"{box}.values" for setting in ("levels", "offered")}
    if name in codings:
        keys |= {path: coding} | {f"{path}.{part}": coding for part in ("kind", "reference", "desired")}
        keys[f"{path}.levels"] = f"{coding}.classes" if isinstance(codings[name], dict) else coding
    return keys


def _coded_settings(name: str, content: Any, faults: list[Fault]) -> dict[str, Any]:
    """The settings of a variable that its coding stands for."""
    if content in ("binary", "categorical"):
        return {"kind": content, "levels": None}
    settings = content if isinstance(content, dict) else {"classes": content}
    levels = settings.get("classes")
    if not isinstance(levels, list) or not {*settings} <= {"classes", "reference", "desired"}:
        faults.append(Fault(key("codings", name), no_coding(content)))
        return {"levels": None}
    texts = [level if isinstance(level, bool) else text_of(level) or level for level in levels]
    kind = "categorical" if content is settings else "ordinal"
    return {"kind": kind, "levels": texts, **{part: settings[part] for part in settings if part != "classes"}}


def _box_settings(name: str, content: Any, coded: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
    """The settings of an action that its part of the box stands for, beside those of its coding."""
    path, levels = key("box", name), isinstance(content, dict)
    if "levels" in coded:
        values = content["values"] if levels and set(content) == {"values"} else None
        if isinstance(values, list) and values:
            return {"offered": values}
        example = beginning(listed(coded["levels"] or ["..."]), 60)
        words = f"a variable of texts is set to one of these: write {{values: [{example}]}}"
        faults.append(Fault(path, words))
        return {}
    if not levels:
        return {"range": [] if content is None else content}
    valid, wrong = read(Levels, content)
    remedies = {"texts": "; or name its texts under codings: {variable: [first, second, ...]}"}
    faults += [Fault(f"{path}.{fault.path}", fault.words + remedies.get(fault.kind, "")) for fault in wrong]
    return {"levels": valid.get("values")}


def rehearsal_parts(
    plain: Mapping[str, Any],
    source: str = "the task",
    columns: Sequence[str] | None = None,
    rows: pd.DataFrame | None = None,
    known: Mapping[str, Coding] = MappingProxyType({}),
) -> dict[str, Any]:
    """The parts of a rehearsal task, each built; a TaskError lists all faults. Every variable must be one of
    `columns`. What codings leave to a table is that of `rows`, else of `known`, which are fitted.
    """
    found, faults, region = Findings(source), list[Fault](), None
    form, context, coded = problem_of_task(plain, found)

    def coding_of(name: str) -> Coding:
        column = None if rows is None or name not in rows.columns else rows[name]
        return stated_coding(name, form.variables[name], column, known.get(name), task=True)

    codings, faulty = collected(coded, coding_of, found)
    written = plain.get("region") if isinstance(plain, Mapping) else None
    outcomes = _names_in(written) if isinstance(written, Mapping) else []
    if form.desired is not None:
        region, codings = region_in(form.desired, codings, faults)
        outcomes = [] if region is None else list(region.names)
    graph = form.graph if isinstance(form.graph, GraphForm) else None
    parts = built_parts(form, graph, region, codings, faults, found, None, faulty)
    parts["context"] = tuple(coded_names(context, codings))
    nodes = list(dict.fromkeys(coded_names([] if graph is None else graph.named(), codings)))
    names = {
        "context": parts["context"],
        "box": coded_names(of_role(form.variables, "action"), codings),
        "region": outcomes,
        "candidates": coded_names([name for names in form.candidates for name in names], codings),
        "codings": [name for name, coding in codings.items() if not {*coding.columns} <= {*nodes}],
    }
    faults += name_faults(names, nodes, codings.values())
    variables = list(dict.fromkeys([*nodes, *(name for part in names.values() for name in part)]))
    if columns is not None:
        absent = [name for name in nodes or variables if name not in set(columns)]
        faults += [Fault("", f"no column {name!r}; {meant(name, columns)}") for name in absent]
    if found.faults or faults:
        raise TaskError(source, [*found.faults, *faults], variables)
    holding = (coded_names(names, codings) for names in plain.get("holding") or ())
    return {**parts, "holding": tuple(map(tuple, holding))}


def region_in(
    written: str | list[str] | Region, codings: Mapping[str, Coding], faults: list[Fault]
) -> tuple[Polytope | None, dict[str, Coding]]:
    """A desired region, None with a fault; and the codings, in which outcomes of classes have those that are
    desired.
    """
    codings = dict(codings)
    if isinstance(written, str | list):
        try:
            plain, desired = faces_of_text(written, codings)
        except InequalityError as error:
            faults.append(Fault("region", str(error)))
            return None, codings
        for name, classes in desired.items():
            codings[name] = replace(codings[name], reference=None, desired=classes)
        fields, wrong = read(NamedFaces, plain)
        faults += [Fault(f"region.{each.path}", each.words) for each in wrong]
        if wrong:
            return None, codings
        written = NamedFaces.model_construct(**fields)
    for name in written.names if isinstance(written, NamedFaces) else written:
        if name in codings and codings[name].reference is not None:
            example = f"{name} in {{{', '.join(codings[name].levels[:-1])}}}"
            words = f"{name} has classes, which have no order: name those that are desired, as the text"
            faults.append(Fault("region", f"{words} {example}"))
            return None, codings
    build = written.polytope if isinstance(written, NamedFaces) else partial(Polytope.of, written)
    return built_part("region", faults, build), codings


def built_parts(
    form: CasesProblem,
    graph: GraphForm | RehearsalGraph | None,
    region: Polytope | None,
    codings: Mapping[str, Coding],
    faults: list[Fault],
    found: Findings,
    frame: pd.DataFrame | None = None,
    broken: Collection[str] = (),
) -> dict[str, Any]:
    """The parts of a task as objects, by their keys; None for one that is missing, or that cannot be built.
    Region and codings are those of `region_in`; `broken` variables have a fault. Where there is a `frame`,
    actions are set to values that it has. Faults of parts, with the keys of a task, go to `faults`.
    """
    if graph is not None and not isinstance(graph, RehearsalGraph):
        graph = built_part("graph", faults, graph.graph)
    if graph is not None:
        faults += unit_faults(form.unit, graph.names)
        graph = built_part("graph", faults, partial(expanded, graph, codings))
    plain, costs, complete = dict[str, Any](), dict[str, WrittenCost](), True
    for name in of_role(form.variables, "action"):
        variable, columns = form.variables[name], None
        if name not in broken and (frame is None or name in frame.columns):
            column = None if frame is None else frame[name]
            columns = settable(name, variable, column, found, codings.get(name))
        plain |= columns or {}
        complete &= columns is not None
        if columns and (cost := _cost(variable.cost, form.costs.get(name))):
            costs[name] = cost
    box = built_part("box", faults, partial(Box.of, plain)) if plain else None
    names = () if box is None else box.names
    sets = [tuple(coded_names(candidate, codings)) for candidate in form.candidates]
    return {
        "graph": graph,
        "context": tuple(coded_names(of_role(form.variables, "context"), codings)),
        "box": box if complete else None,
        "region": region,
        "candidates": tuple(candidate for candidate in sets if {*candidate} <= {*names}),
        "unit": form.unit,
        "codings": tuple(each for each in codings.values() if not graph or {*each.columns} <= {*graph.names}),
        "costs": {} if box is None else costs_of(costs, names, faults, codings, box.levels),
        "worth": form.worth,
    }


def _cost(stated: WrittenCost | None, column: str | None) -> WrittenCost | None:
    """The cost of an action, per unit by a column of the cases if it is named."""
    cost = stated or WrittenCost()
    if column is None or cost.per_change:
        return stated
    return WrittenCost(fixed=cost.fixed, column=column, usual=cost.usual)


def name_faults(
    names: Mapping[str, Sequence[str]], nodes: Sequence[str], codings: Iterable[Coding]
) -> Iterator[Fault]:
    """Faults of names of parts that are not in the graph, or, of candidate sets, not in the box; none if the
    graph has no nodes, as one that could not be read.
    """
    variable_of = {column: coding.name for coding in codings for column in coding.columns}
    for part, part_names in names.items() if nodes else ():
        in_box = part == "candidates" and bool(names["box"])
        choices, where = (names["box"], "the box") if in_box else (nodes, "the graph")
        variables = list(dict.fromkeys(variable_of.get(name, name) for name in choices))
        for name in dict.fromkeys(part_names):
            if name not in set(choices):
                yield Fault(part, f"{name!r} is not in {where}; {meant(name, variables)}")


def unit_faults(unit: str | None, nodes: Collection[str]) -> list[Fault]:
    """A fault if the column that says which rows belong together is a variable."""
    expected = "expected a column that only says which rows belong together: take it out of one of the two"
    return [Fault("unit", f"{unit!r} is a variable of the graph; {expected}")] if unit in nodes else []


Built = TypeVar("Built")


def built(source: str, build: Callable[[], Built]) -> Built:
    """What `build` returns; its ValueError is raised as a TaskError of the source, with all faults."""
    try:
        return build()
    except ValueError as error:
        raise TaskError(source, getattr(error, "faults", [str(error)])) from error


def built_part(part: str, faults: list[Fault], build: Callable[[], Built]) -> Built | None:
    """What `build` returns; None, and a new fault of the part, if it raises a ValueError."""
    try:
        return build()
    except ValueError as error:
        faults.append(Fault(part, str(error)))
    return None


def _names_in(region: Any) -> list[str]:
    """The outcomes of a region that may have a fault; of a text, also what else is a name or a level."""
    texts = [region] if isinstance(region, str) else region if isinstance(region, list) else []
    if words := [match for text in texts if isinstance(text, str) for match in TOKEN.finditer(text)]:
        return [name for match in words if (name := match["tick"] or match["quoted"] or match["word"])]
    names = region.get("names", region) if isinstance(region, Mapping) else ()
    return [name for name in names if isinstance(name, str)] if isinstance(names, Mapping | list) else []
