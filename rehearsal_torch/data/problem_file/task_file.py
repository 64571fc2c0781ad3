"""Task files of rehearsal, read strictly; those of trials are read by `problem_file.trials_schema`.

    graph, context, box, region, candidates,   the observed context, the actionable variables, and the desired
    unit, codings, costs and worth             region of the outcomes

A task is a YAML file or a mapping. Its schema is a pydantic model; every fault of every part is listed at
once, each with the dotted path of the key, what was expected and what was found. In place of a list of names,
a single name is accepted, in all tasks and graphs; lists of lists (edges, bidirected, candidates) need their
outer brackets. Sizes are limited before anything is built. The output of a task's `to_plain` can be read
back.

The desired region of a rehearsal task is written as inequalities, bounds, or faces,

    sales - 2*cost >= 10 and cost <= 4              text, or a list of texts that must all hold
    {repaid: [0.6, null]}                           bounds; null leaves a side open
    {names: [...], normals: [[...]], offsets: [...]}    faces, M y <= d

and its box has the bounds or the levels of each variable that may be set:

    dose: [0, 10]               any value from 0 to 10
    drug: {values: [0, 1]}      no or yes
    ward: {values: [1, 2, 4]}   one of these numbers

Levels are numbers. Strings, such as low and high, are coded as numbers in the table and in the task; a
rehearsal task may name them under `codings` (`data.codings`).

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
    plain_of,
    read,
    shown,
)
from rehearsal_torch.graphs.graph_notation import EXPECTED, WrittenGraph
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.inequalities import FACES, InequalityError
from rehearsal_torch.spaces.polytope import Polytope

MOST = 1000
# The strings of which a message says how they may be coded.
SHOWN = 4
SETTABLE = "{variable: [lower, upper]}, or {variable: {values: [...]}} for one of some values"
INTERVAL, VALUES = form("<interval>"), form("values")


def _levels(values: Any) -> Any:
    if not isinstance(values, list) or not values:
        raise fault("a list of the values that it may be set to", values)
    if len(values) > MOST:
        raise fault(f"at most {MOST} values", f"{len(values)} values")
    if all(isinstance(each, bool) or (isinstance(each, str) and not is_number(each)) for each in values):
        raise fault("numbers", values, _coded(values), "texts")
    return values


def _coded(values: Sequence[str | bool]) -> str:
    """What to do about levels that are strings, or what YAML reads as Booleans (yes, no, on, off)."""
    # False before true, strings as they are given.
    order = sorted(values) if all(isinstance(each, bool) for each in values) else values
    numbers = dict(enumerate(dict.fromkeys(order)))
    several = [f"{shown(name)} as {number}" for number, name in numbers.items()]
    pairs = several[:SHOWN] + (["..."] if len(several) > SHOWN else [])
    ordered = ", in an order that means something to the outcome" if len(several) > 2 else ""
    how = "levels are numbers: code them in the table and in the task, for instance"
    return f"{how} {', '.join(pairs)}{ordered}"


def _distinct(values: list[float]) -> list[float]:
    if twice := repeated(values):
        raise fault("each value once", values, f"{twice[0]:g} occurs twice, keep one")
    return values


LevelNumbers = Annotated[list[Number], BeforeValidator(_levels), AfterValidator(_distinct)]


class Levels(Schema):
    """The values that a variable may be set to."""

    values: LevelNumbers


def _form(plain: Any) -> str:
    return VALUES if isinstance(plain, dict | Levels) else INTERVAL


Range = Annotated[Annotated[Bounds, Tag(INTERVAL)] | Annotated[Levels, Tag(VALUES)], Discriminator(_form)]
Settable = Annotated[dict[Name, Range], mapping(SETTABLE)]


def _box_of(box: Mapping[str, list[float] | Levels]) -> Box:
    plain = {name: each.model_dump() if isinstance(each, Levels) else each for name, each in box.items()}
    return Box.of(plain)


SETS = 20_000
TEXTS, OPEN, FLAT = form("text"), form("<outcome>"), form("names", "normals", "offsets")
REGION = (
    "inequalities such as 0.6 <= repaid, {outcome: [lower, upper]}, null for an open side, or {names: [...], "
    "normals: [[...]], offsets: [...]}"
)


def _rectangle(rows: Any) -> Any:
    lists = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
    if not lists or len({len(row) for row in rows}) != 1:
        raise fault("rows of equal length, [[...], ...]", rows)
    if len(rows) * len(rows[0]) > SETS or len(rows) > FACES:
        raise fault(f"at most {FACES} faces with {SETS} numbers", rows)
    return rows


def _column(numbers: Any) -> Any:
    if not isinstance(numbers, list):
        raise fault("a list of numbers", numbers)
    return numbers


Normals = Annotated[list[list[Number]], BeforeValidator(_rectangle)]
Offsets = Annotated[list[Number], BeforeValidator(_column)]


class Faces(Schema):
    """Faces M a <= d: normals M and offsets d."""

    normals: Normals
    offsets: Offsets

    def polytope(self, names: Sequence[str]) -> Polytope:
        """The polytope in these variables."""
        return Polytope(tuple(names), self.normals, self.offsets)


def faces(region: Polytope) -> dict[str, Any]:
    """The faces of a region as `Faces` writes them."""
    return {"normals": region.rows.tolist(), "offsets": region.limits.tolist()}


class NamedFaces(Faces):
    """Faces, with the names of the outcomes."""

    names: Names


def _region(plain: Any) -> str:
    if isinstance(plain, str | list):
        return TEXTS
    return FLAT if isinstance(plain, NamedFaces) or (isinstance(plain, dict) and "normals" in plain) else OPEN


def _texts(lines: Any) -> Any:
    if odd := [each for each in enumerate(lines, 1) if not isinstance(each[1], str)]:
        raise fault(f"inequality {odd[0][0]}, a text such as 0.6 <= repaid", odd[0][1])
    return lines


def _written(plain: Any) -> Any:
    if not isinstance(plain, BaseModel) and (not isinstance(plain, str | list | dict) or not plain):
        raise fault(REGION, plain)
    return plain


Region = dict[str, list[float | None]] | NamedFaces
# Texts are read beside the codings of their variables (`region_in`).
WrittenRegion = Annotated[
    Annotated[str | list[str], BeforeValidator(_texts), Tag(TEXTS)]
    | Annotated[dict[Name, Sides], mapping(REGION), Tag(OPEN)]
    | Annotated[NamedFaces, Tag(FLAT)],
    Discriminator(_region),
    BeforeValidator(_written, json_schema_input_type=str | list[str] | Region),
]


def region_of(region: Region) -> Polytope:
    """The polytope of a validated region."""
    return region.polytope(region.names) if isinstance(region, NamedFaces) else Polytope.of(region)


def outcomes_of(region: Region) -> list[str]:
    """The outcomes of a validated region."""
    return region.names if isinstance(region, NamedFaces) else list(region)


Made = TypeVar("Made")


class TaskError(FaultsError):
    """A task that cannot be used; its message lists every fault of the `source`, and `named` has the
    variables of the task, as far as it could be read.
    """

    def __init__(self, source: str, faults: Iterable[str], named: Iterable[str] = ()) -> None:
        super().__init__(faults)
        self.source, self.named = source, tuple(named)
        self.args = (listed(source, self.faults) if self.faults else source,)

    def of_check(self) -> str:
        """The message as of a check, after which nothing was to be fitted."""
        message = listed(self.source, self.faults, "nothing can be decided yet") if self.faults else str(self)
        return without_password(message)


def _candidates(sets: list[list[str]]) -> list[list[str]]:
    if empty := [place for place, names in enumerate(sets) if not names]:
        raise fault("sets of variables", sets, f"set {empty[0]} is empty")
    if sum(map(len, sets)) > SETS:
        raise fault(f"at most {SETS} names", f"{len(sets)} sets")
    if twice := repeated(map(frozenset, sets)):
        first = next(names for names in sets if frozenset(names) == twice[0])
        raise fault("each set once", first, "it occurs twice, keep one")
    return sets


Candidates = Annotated[
    list[Names], list_of("a list of sets of variables, [[...], ...]"), AfterValidator(_candidates)
]
NO_VARIABLE = "expected a column that only says which rows belong together: take it out of one of the two"


class RehearsalTaskFile(Schema):
    """The schema of a rehearsal task."""

    graph: WrittenGraph = Field(description=EXPECTED)
    context: Names = Field(
        description="a list of the variables that are observed before deciding, [] for none"
    )
    box: Settable = Field(description=SETTABLE)
    region: WrittenRegion = Field(description=REGION)
    candidates: Candidates = Field(default_factory=list)
    unit: Name | None = Field(default=None, description="the column that says which rows belong together")
    codings: Any = Field(default=None, description=CODINGS)
    costs: WrittenCosts = Field(default_factory=dict, description=COSTS)
    worth: Worth | None = Field(default=None, description=WORTH)


REHEARSAL_PARTS = tuple(RehearsalTaskFile.model_fields)


def task_content(
    task: str | Path | Mapping[str, Any] | None, parts: Sequence[str]
) -> tuple[str, Mapping[str, Any]]:
    """The name of a task in messages, and its content: that of a YAML file, or the given mapping."""
    listing = ", ".join(parts)
    if task is None:
        raise TaskError(f"no task is given: set dataset.task=task.yaml, a file with {listing} (see docs)", ())
    if isinstance(task, Mapping):
        return "the task", task
    if not isinstance(task, str | Path):
        expected = f"expected a YAML file, or a mapping with {listing}"
        raise TaskError(f"the task: {expected}; got {type(task).__name__}", ())
    file = Path(task)
    try:
        content = read_yaml(file)
    except NoFileError as error:
        remedy = "check dataset.task=, which is relative to the current folder"
        raise TaskError(f"there is no task file {file}: {remedy}", ()) from error
    except PlainFileError as error:
        raise TaskError(str(error), ()) from error
    if not isinstance(content, dict):
        raise TaskError(f"{file}: expected the parts {listing}; got {type(content).__name__}", ())
    return str(file), content


def rehearsal_parts(
    plain: Mapping[str, Any],
    source: str = "the task",
    columns: Sequence[str] | None = None,
    rows: pd.DataFrame | None = None,
    known: Mapping[str, Coding] = MappingProxyType({}),
) -> dict[str, Any]:
    """The parts of a rehearsal task, each built; a TaskError lists all faults, names without a column too.
    What codings leave to rows is said by `rows`, or by `known` ones (`codings_in`).
    """
    if isinstance(plain, Mapping) and plain.get("codings") is not None:
        try:
            plain = plain_of(plain)
        except FaultsError as error:
            raise TaskError(source, error.faults) from error
    stated, box = (plain.get(part) if isinstance(plain, Mapping) else None for part in ("codings", "box"))
    codings, told = codings_in(stated, rows, box, known)
    if codings or told:
        plain = {part: each for part, each in plain.items() if part != "codings"}
        plain |= {"box": box_in_codes(box, codings, told)} if "box" in plain else {}
    found, faults = read(RehearsalTaskFile, plain)
    # What may be set is read alike in all tasks; those of rehearsal can code texts.
    coded = "; or name its texts under codings: {variable: [first, second, ...]}"
    faults = [
        *told,
        *(Fault(each.path, f"{each.words}{coded}") if each.kind == "texts" else each for each in faults),
    ]
    region, outcomes = None, _keys(plain, "region")
    if "region" in found:
        region, codings = region_in(found["region"], codings, faults)
        outcomes = [] if region is None else outcomes_of(region)
    named = list(dict.fromkeys(found["graph"].named())) if "graph" in found else []
    named = list(dict.fromkeys(coded_names(named, codings)))
    names = {
        "context": coded_names(found.get("context", []), codings),
        "box": list(found["box"]) if "box" in found else _keys(plain, "box"),
        "region": outcomes,
        "candidates": [name for each in found.get("candidates", []) for name in coded_names(each, codings)],
        "codings": [name for name, each in codings.items() if not {*each.columns} <= {*named}],
    }
    parts = built_parts({**found, "region": region}, codings, faults)
    faults += name_faults(names, named, codings.values())
    wanted = list(dict.fromkeys([*named, *(name for some in names.values() for name in some)]))
    if columns is not None:
        absent = [name for name in named or wanted if name not in set(columns)]
        faults += [Fault("", f"no column {name!r}; {meant(name, columns)}") for name in absent]
    if faults:
        raise TaskError(source, faults, wanted)
    return parts


def region_in(
    written: str | list[str] | Region, codings: Mapping[str, Coding], faults: list[Fault]
) -> tuple[Region | None, dict[str, Coding]]:
    """A desired region as bounds or faces, None with a fault, and the codings with the classes of outcomes
    that it desires.
    """
    if not isinstance(written, str | list):
        for name in outcomes_of(written):
            if name in codings and codings[name].reference is not None:
                some = f"{name} in {{{', '.join(codings[name].levels[:-1])}}}"
                words = f"{name} has classes, which have no order: name those that are desired, as the text"
                faults.append(Fault("region", f"{words} {some}"))
                return None, dict(codings)
        return written, dict(codings)
    try:
        faces, desired = faces_of_text(written, codings)
    except InequalityError as error:
        faults.append(Fault("region", str(error)))
        return None, dict(codings)
    found, wrong = read(NamedFaces, faces)
    faults += [Fault(f"region.{each.path}", each.words) for each in wrong]
    made = {name: replace(codings[name], reference=None, desired=some) for name, some in desired.items()}
    return None if wrong else NamedFaces.model_construct(**found), {**codings, **made}


def built_parts(
    found: Mapping[str, Any], codings: Mapping[str, Coding], faults: list[Fault]
) -> dict[str, Any]:
    """The parts of a task as objects, by the names of their keys; None for one that is missing, or cannot be
    built, which is a fault. The graph may be built already; the box has codes, and the region is that of
    `region_in`.
    """
    graph, box, region = (found.get(part) for part in ("graph", "box", "region"))
    if graph is not None:
        whole = graph if isinstance(graph, RehearsalGraph) else built_part("graph", faults, graph.graph)
        faults += [] if whole is None else unit_faults(found.get("unit"), whole.names)
        graph = whole and built_part("graph", faults, partial(expanded, whole, codings))
    if box is not None:
        box = built_part("box", faults, partial(_box_of, box))
    if region is not None:
        region = built_part("region", faults, partial(region_of, region))
    # What costs say of levels is read where these are known.
    costs = found.get("costs") or {}
    costs = {} if box is None else costs_of(costs, box.names, faults, codings, box.levels)
    context = tuple(coded_names(found.get("context") or [], codings))
    candidates = tuple(tuple(coded_names(each, codings)) for each in found.get("candidates") or [])
    made = {"graph": graph, "context": context, "box": box, "region": region, "candidates": candidates}
    made |= {"unit": found.get("unit"), "codings": tuple(codings.values())}
    return made | {"costs": costs, "worth": found.get("worth")}


def name_faults(
    names: Mapping[str, Sequence[str]], named: Sequence[str], codings: Iterable[Coding]
) -> Iterator[Fault]:
    """Faults of names of parts that the graph, or, for candidates, the box has not."""
    of = {column: each.name for each in codings for column in each.columns}
    for part, some in names.items() if named else ():
        in_box = part == "candidates" and bool(names["box"])
        among, where = (names["box"], "the box") if in_box else (named, "the graph")
        odd = [name for name in dict.fromkeys(some) if name not in set(among)]
        known = list(dict.fromkeys(of.get(each, each) for each in among))
        yield from (Fault(part, f"{name!r} is not in {where}; {meant(name, known)}") for name in odd)


def unit_faults(unit: str | None, named: Collection[str]) -> list[Fault]:
    """A fault if the column that says which rows belong together is a variable."""
    words = f"{unit!r} is a variable of the graph; {NO_VARIABLE}"
    return [Fault("unit", words)] if unit is not None and unit in named else []


def built(source: str, make: Callable[[], Made]) -> Made:
    """Builds a task of its parts; inconsistencies between them are reported as faults of the source."""
    try:
        return make()
    except FaultsError as error:
        raise TaskError(source, error.faults) from error
    except ValueError as error:
        raise TaskError(source, [str(error)]) from error


def built_part(part: str, faults: list[Fault], make: Callable[[], Made]) -> Made | None:
    """A part as an object; None, and a new fault, if it is invalid."""
    try:
        return make()
    except ValueError as error:
        faults.append(Fault(part, str(error)))
    return None


def _keys(plain: Mapping[str, Any], part: str) -> list[str]:
    """The variables of a part that has a fault elsewhere."""
    content = plain.get(part) if isinstance(plain, Mapping) else None
    names = content.get("names", content) if isinstance(content, Mapping) else ()
    return (
        [name for name in names if isinstance(name, str)] if isinstance(names, Mapping | list | tuple) else []
    )
