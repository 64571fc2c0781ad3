"""Task files of rehearsal: the schema of the YAML, and the graph, box, region and costs that it stands for.

    graph                     the influence graph
    context                   the variables that are observed before deciding
    box, candidates           what may be set, and the sets of variables that may be set jointly
    region                    where the outcomes are desired to lie
    unit, codings             columns that say which rows belong together, and what texts are as numbers
    costs, worth              of a change, and of a desired outcome (`data.costs`)

A problem file says the same in the words of its table, by roles, kinds and texts
(`data.problem_file.cases_schema`). A task is what comes of that, as configurations and saved models keep it,
with indicators in the place of classes and faces in that of inequalities, and needs no rows; its keys are
therefore its own, with the same types, and both are built by `built_parts`.

A task is a YAML file or a mapping. All faults of all parts are listed at once, each with the dotted path of
the key, what was expected and what was found. A single name stands for a list of one; lists of lists (edges,
bidirected, candidates) need their outer brackets. Sizes are limited before anything is built. The output of
a task's `to_plain` can be read back.

The desired region is written as inequalities, bounds, or faces,

    sales - 2*cost >= 10 and cost <= 4              text, or a list of texts that must all hold
    {repaid: [0.6, null]}                           bounds; null leaves a side open
    {names: [...], normals: [[...]], offsets: [...]}    faces, M y <= d

and the box has the bounds or the levels of each variable that may be set:

    dose: [0, 10]               any value from 0 to 10
    drug: {values: [0, 1]}      no or yes
    ward: {values: [1, 2, 4]}   one of these numbers

Levels are numbers, unless the variable has texts that `codings` numbers (`data.codings`). Tasks of trials are
read by `data.problem_file.trials_schema`.

Source: Du et al. (2026), Sec. 2.1 and Eq. (2).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import pandas as pd
from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Field, Tag

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.task_codings import (
    CODINGS,
    box_in_codes,
    coded_names,
    codings_in,
    expanded,
    faces_of_text,
)
from rehearsal_torch.data.costs import COSTS, WORTH, Worth, WrittenCosts, costs_of
from rehearsal_torch.files.bounded_yaml import NoFileError, PlainFileError, read_yaml, repeated
from rehearsal_torch.files.redaction import without_password
from rehearsal_torch.files.schema import (
    Bounds,
    Fault,
    FaultsError,
    Name,
    Names,
    Number,
    Schema,
    Sides,
    fault,
    form,
    is_number,
    list_of,
    listed,
    mapping,
    meant,
    optional,
    plain_of,
    read,
    shown,
)
from rehearsal_torch.graphs.graph_notation import EXPECTED, WrittenGraph
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.inequalities import FACES, InequalityError
from rehearsal_torch.spaces.polytope import Polytope

MOST_LEVELS = 1000
# Of the normals of a region, and of the names in candidate sets.
MOST_ENTRIES = 20_000
# The strings of which a message says how they may be coded.
_EXAMPLES = 4
SETTABLE = "{variable: [lower, upper]}, or {variable: {values: [...]}} for one of some values"
REGION = (
    "inequalities such as 0.6 <= repaid, {outcome: [lower, upper]}, null for an open side, or {names: [...], "
    "normals: [[...]], offsets: [...]}"
)
# Tags of the forms of a range and of a region.
_INTERVAL, _VALUES = form("<interval>"), form("values")
_TEXT, _BOUNDS, _FACES = form("text"), form("<outcome>"), form("names", "normals", "offsets")


def _check_levels(values: Any) -> Any:
    if not isinstance(values, list) or not values:
        raise fault("a list of the values that it may be set to", values)
    if len(values) > MOST_LEVELS:
        raise fault(f"at most {MOST_LEVELS} values", f"{len(values)} values")
    # YAML reads yes, no, on and off as Booleans; of mixed lists, the first that is no number is told.
    if all(isinstance(value, bool) or (isinstance(value, str) and not is_number(value)) for value in values):
        raise fault("numbers", values, _coding_remedy(values), "texts")
    return values


def _coding_remedy(values: Sequence[str | bool]) -> str:
    """How levels that are strings or Booleans may be coded: false before true, strings as they are given."""
    ordered = sorted(values) if all(isinstance(value, bool) for value in values) else values
    pairs = [f"{shown(value)} as {code}" for code, value in enumerate(dict.fromkeys(ordered))]
    order = ", in an order that means something to the outcome" if len(pairs) > 2 else ""
    examples = ", ".join(pairs[:_EXAMPLES] + ["..."] * (len(pairs) > _EXAMPLES))
    return f"levels are numbers: code them in the table and in the task, for instance {examples}{order}"


def _check_distinct(values: list[float]) -> list[float]:
    if twice := repeated(values):
        raise fault("each value once", values, f"{twice[0]:g} occurs twice, keep one")
    return values


LevelNumbers = Annotated[list[Number], BeforeValidator(_check_levels), AfterValidator(_check_distinct)]


class Levels(Schema):
    """The values that a variable may be set to."""

    values: LevelNumbers


Range = Annotated[
    Annotated[Bounds, Tag(_INTERVAL)] | Annotated[Levels, Tag(_VALUES)],
    Discriminator(lambda plain: _VALUES if isinstance(plain, dict | Levels) else _INTERVAL),
]


def _rectangle(rows: Any) -> Any:
    lists = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
    if not lists or len({len(row) for row in rows}) != 1:
        raise fault("rows of equal length, [[...], ...]", rows)
    if len(rows) * len(rows[0]) > MOST_ENTRIES or len(rows) > FACES:
        raise fault(f"at most {FACES} faces with {MOST_ENTRIES} numbers", rows)
    return rows


class NamedFaces(Schema):
    """Faces, with the names of the outcomes."""

    normals: Annotated[list[list[Number]], BeforeValidator(_rectangle)] = Field(
        description="the weights of each inequality, in the order of names"
    )
    offsets: list[Number] = Field(description="what each weighted sum is at most")
    names: Names = Field(description="the variables that the weights belong to")

    def polytope(self) -> Polytope:
        """The polytope {y : M y <= d} with normals M and offsets d."""
        return Polytope(tuple(self.names), self.normals, self.offsets)


def faces(region: Polytope) -> dict[str, Any]:
    """The normals and offsets of a region, as `NamedFaces` has them."""
    return {"normals": region.rows.tolist(), "offsets": region.limits.tolist()}


def _region_tag(plain: Any) -> str:
    if isinstance(plain, str | list):
        return _TEXT
    with_normals = isinstance(plain, NamedFaces) or (isinstance(plain, dict) and "normals" in plain)
    return _FACES if with_normals else _BOUNDS


def _check_region(plain: Any) -> Any:
    if not isinstance(plain, str | list | dict | BaseModel) or not plain:
        raise fault(REGION, plain)
    for number, text in enumerate(plain if isinstance(plain, list) else (), 1):
        if not isinstance(text, str):
            raise fault(f"inequality {number}, a text such as 0.6 <= repaid", text)
    return plain


Region = dict[str, list[float | None]] | NamedFaces
# Texts are parsed with the codings of their variables (`region_in`).
WrittenRegion = Annotated[
    Annotated[str | list[str], Tag(_TEXT)]
    | Annotated[dict[Name, Sides], mapping(REGION), Tag(_BOUNDS)]
    | Annotated[NamedFaces, Tag(_FACES)],
    Discriminator(_region_tag),
    BeforeValidator(_check_region, json_schema_input_type=str | list[str] | Region),
]


class TaskError(FaultsError):
    """A task that cannot be used.

    Attributes:
        source: The file or what else it was read from; without faults, the message.
        named: The variables of the task, as far as it could be read.
    """

    def __init__(self, source: str, faults: Iterable[str] = (), named: Iterable[str] = ()) -> None:
        super().__init__(faults)
        self.source, self.named = source, tuple(named)
        self.args = (listed(source, self.faults) if self.faults else source,)

    def of_check(self) -> str:
        """The message of a check, after which nothing would have been fitted."""
        message = listed(self.source, self.faults, "nothing can be decided yet") if self.faults else str(self)
        return without_password(message)


def _check_candidates(sets: list[list[str]]) -> list[list[str]]:
    if [] in sets:
        raise fault("sets of variables", sets, f"set {sets.index([])} is empty")
    if sum(map(len, sets)) > MOST_ENTRIES:
        raise fault(f"at most {MOST_ENTRIES} names", f"{len(sets)} sets")
    if twice := repeated(map(frozenset, sets)):
        first = next(names for names in sets if frozenset(names) == twice[0])
        raise fault("each set once", first, "it occurs twice, keep one")
    return sets


Candidates = Annotated[
    list[Names], list_of("a list of sets of variables, [[...], ...]"), AfterValidator(_check_candidates)
]


class RehearsalTaskFile(Schema):
    """The schema of a rehearsal task."""

    graph: WrittenGraph = Field(description=EXPECTED)
    context: Names = Field(
        description="a list of the variables that are observed before deciding, [] for none"
    )
    box: Annotated[dict[Name, Range], mapping(SETTABLE)] = Field(description=SETTABLE)
    region: WrittenRegion = Field(description=REGION)
    candidates: Candidates = Field(default_factory=list)
    unit: Name | None = optional("the column that says which rows belong together")
    codings: Any = optional(CODINGS)
    costs: WrittenCosts = Field(default_factory=dict, description=COSTS)
    worth: Worth | None = optional(WORTH)


REHEARSAL_PARTS = tuple(RehearsalTaskFile.model_fields)


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


def rehearsal_parts(
    plain: Mapping[str, Any],
    source: str = "the task",
    columns: Sequence[str] | None = None,
    rows: pd.DataFrame | None = None,
    known: Mapping[str, Coding] = MappingProxyType({}),
) -> dict[str, Any]:
    """The parts of a rehearsal task, each built.

    Args:
        columns: The columns of the table, one of which every variable must be; None skips this check.
        rows: A table from which codings take the levels that the task leaves to it.
        known: Fitted codings that stand for those which the task leaves to a table (`codings_in`).

    Raises:
        TaskError: with all faults.
    """
    codings, faults = dict[str, Coding](), list[Fault]()
    if isinstance(plain, Mapping) and plain.get("codings") is not None:
        content = built(source, partial(plain_of, plain))
        codings, faults = codings_in(content.pop("codings"), rows, content.get("box"), known)
        if "box" in content:
            content["box"] = box_in_codes(content["box"], codings, faults)
        plain = content
    fields, wrong = read(RehearsalTaskFile, plain)
    # Ranges are read alike in all tasks; only those of rehearsal can have coded texts.
    coded = "; or name its texts under codings: {variable: [first, second, ...]}"
    faults += [Fault(each.path, f"{each.words}{coded}") if each.kind == "texts" else each for each in wrong]
    region, outcomes = None, _names_in(plain, "region")
    if "region" in fields:
        region, codings = region_in(fields["region"], codings, faults)
        outcomes = [] if region is None else list(region.names)
    in_graph = fields["graph"].named() if "graph" in fields else []
    nodes = list(dict.fromkeys(coded_names(in_graph, codings)))
    sets = fields.get("candidates", [])
    names = {
        "context": coded_names(fields.get("context", []), codings),
        "box": list(fields["box"]) if "box" in fields else _names_in(plain, "box"),
        "region": outcomes,
        "candidates": coded_names([name for names in sets for name in names], codings),
        "codings": [name for name, coding in codings.items() if not {*coding.columns} <= {*nodes}],
    }
    parts = built_parts({**fields, "region": region}, codings, faults)
    faults += name_faults(names, nodes, codings.values())
    variables = list(dict.fromkeys([*nodes, *(name for part in names.values() for name in part)]))
    if columns is not None:
        absent = [name for name in nodes or variables if name not in set(columns)]
        faults += [Fault("", f"no column {name!r}; {meant(name, columns)}") for name in absent]
    if faults:
        raise TaskError(source, faults, variables)
    return parts


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
    fields: Mapping[str, Any], codings: Mapping[str, Coding], faults: list[Fault]
) -> dict[str, Any]:
    """The parts of a task as objects, by their keys; None for one that is missing, or that cannot be built,
    which is a fault.

    Args:
        fields: The validated parts; the graph may be built, and the region is that of `region_in`.
    """
    graph, box = fields.get("graph"), fields.get("box")
    if graph is not None and not isinstance(graph, RehearsalGraph):
        graph = built_part("graph", faults, graph.graph)
    if graph is not None:
        faults += unit_faults(fields.get("unit"), graph.names)
        graph = built_part("graph", faults, partial(expanded, graph, codings))
    if box is not None:
        plain = {name: each.model_dump() if isinstance(each, Levels) else each for name, each in box.items()}
        box = built_part("box", faults, partial(Box.of, plain))
    # Levels in costs are parsed here, where the levels of the box and the codings are known.
    costs = {} if box is None else costs_of(fields.get("costs") or {}, box.names, faults, codings, box.levels)
    candidates = tuple(tuple(coded_names(names, codings)) for names in fields.get("candidates") or [])
    return {
        "graph": graph,
        "context": tuple(coded_names(fields.get("context") or [], codings)),
        "box": box,
        "region": fields.get("region"),
        "candidates": candidates,
        "unit": fields.get("unit"),
        "codings": tuple(codings.values()),
        "costs": costs,
        "worth": fields.get("worth"),
    }


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


def _names_in(plain: Mapping[str, Any], part: str) -> list[str]:
    """The variables of a part that has a fault elsewhere."""
    content = plain.get(part) if isinstance(plain, Mapping) else None
    names = content.get("names", content) if isinstance(content, Mapping) else ()
    return [name for name in names if isinstance(name, str)] if isinstance(names, Mapping | list) else []
