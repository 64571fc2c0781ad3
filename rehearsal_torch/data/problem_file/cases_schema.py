"""The schema of a problem file that asks for cases.

    data: visits.csv                  # or {file, sheet, separator, decimal}
    variables:                        # every variable of the graph, with its role
      age: context
      bmi: {role: action, unit: kg/m2, range: [20, 35]}
      progression: outcome
    graph: ["age -> bmi", "{age bmi} -> progression"]
    desired: progression <= 140
    cases: cases.csv                  # optional; or where age > 60
    missing: complete                 # or refuse, or {impute: 20}
    bounds: {bmi: [current - 3, current]}
    costs: {bmi: cost_of_bmi}         # optional, as is the cost of an action under variables
    worth: 1000

A graph may also stand in a file, be learnt from the rows, or have edges without a direction
(`problem_file.graph_section`). Tasks say the same with other keys (`data.problem_file.task_file`).
Messages never show what `data` holds where it is no file: the address of a data base may have a password.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, TypeAdapter, WithJsonSchema

from rehearsal_torch.data.costs import COST, WORTH, Worth, Written
from rehearsal_torch.data.size_limits import IMPUTATIONS as MOST_IMPUTATIONS
from rehearsal_torch.data.tables.header_checks import NO_DATA_BASE
from rehearsal_torch.files.bounded_yaml import repeated
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import (
    Bounds,
    Fault,
    Name,
    Names,
    Number,
    Schema,
    Sides,
    did_you_mean,
    fault,
    form,
    is_number,
    list_of,
    mapping,
    meant,
    only,
    optional,
    path_of,
    refusal,
    shown,
)
from rehearsal_torch.graphs.dagitty import has_arrow
from rehearsal_torch.graphs.graph_files import ENDINGS
from rehearsal_torch.graphs.graph_notation import CliquesForm, Edge, OrderForm, ParentsForm, WrittenGraph
from rehearsal_torch.spaces.inequalities import FACES
from rehearsal_torch.spaces.polytope import Polytope

ROLES = ("context", "action", "outcome", "other")
KINDS = ("continuous", "integer", "binary", "ordinal", "categorical")
DATA = "a file, or {file: ..., sheet: ..., separator: ..., decimal: ...}"
MISSING = ("complete", "refuse")
MISSING_AS = f"complete, refuse, or {{impute: m}} with 2 to {MOST_IMPUTATIONS} imputations"
MOST_CASES = 100_000
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
# Tags of the forms of a region.
_TEXT, _BOUNDS, _FACES = form("text"), form("<outcome>"), form("names", "normals", "offsets")
_NUMBER: TypeAdapter[float] = TypeAdapter(Number)


class Variable(Protocol):
    """What the schemas of all questions say of a variable."""

    @property
    def role(self) -> str:
        """The role."""


def of_role(variables: Mapping[str, Variable], role: str) -> list[str]:
    """The variables of a role, in the file's order."""
    return [name for name, variable in variables.items() if variable.role == role]


def missing_roles(variables: Mapping[str, Variable], roles: Sequence[str]) -> Iterator[Fault]:
    """Faults of roles that no variable has."""
    for role in roles:
        if variables and not of_role(variables, role):
            yield Fault("variables", f"expected at least one of the role {role}; there is none", "missing")


def one_of(choices: tuple[str, ...]) -> Callable[[Any], Any]:
    """A validator that accepts only some words."""

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise fault(f"one of {', '.join(choices)}", value, did_you_mean(value, choices))
        return value

    return check


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _level(value: Any) -> Any:
    """A text, a truth value, as YAML reads yes and no, or a number."""
    if isinstance(value, bool):
        return value
    if _is_text(value):
        return value.strip()
    if not isinstance(value, int | float):
        raise fault("a text or a number", value, "put a date in quotes" if isinstance(value, date) else "")
    return _NUMBER.validate_python(value)


def _is_data_base(plain: Any) -> bool:
    """Whether a source is an address or a query, or a mapping with one."""
    texts = (*plain, *plain.values()) if isinstance(plain, dict) else (plain,)
    query = isinstance(plain, dict) and not {"sql", "query"}.isdisjoint(plain)
    return query or any(isinstance(text, str) and "://" in text for text in texts)


def _source(plain: Any) -> Any:
    if isinstance(plain, DataForm):
        return plain
    if _is_data_base(plain):
        raise refusal(NO_DATA_BASE)
    if _is_text(plain):
        return {"file": plain}
    if not isinstance(plain, dict):
        raise refusal(f"expected {DATA}")
    _check_keys(plain, DataForm.model_fields)
    return plain


def _check_keys(plain: dict[Any, Any], known: Collection[str]) -> None:
    """Refuses unknown keys, without their values."""
    if unknown := [str(key) for key in plain if key not in known]:
        raise refusal("; ".join(f"unknown key {key!r}, {meant(key, known)}" for key in unknown))


def _variable(plain: Any) -> Any:
    if isinstance(plain, dict):
        _check_keys(plain, VariableForm.model_fields)
    if plain is None:
        raise refusal(f"nothing is written there yet; expected its role, one of {', '.join(ROLES)}")
    if not isinstance(plain, str | dict | VariableForm):
        raise fault(f"its role, one of {', '.join(ROLES)}, or {{role: ..., kind: ...}}", plain)
    return {"role": plain} if isinstance(plain, str) else plain


def _limits(pair: Any) -> Any:
    if not isinstance(pair, list) or len(pair) != 2 or {type(limit) for limit in pair} - {str, int, float}:
        raise fault("[lower, upper], each a number or a sum such as current - 3", pair)
    return [str(limit) for limit in pair]


def _is_case(plain: Any) -> bool:
    return isinstance(plain, dict) and all(isinstance(cell, str | int | float) for cell in plain.values())


_CASE_AS = "a case, {variable: number} or {variable: text}"


def _missing(plain: Any) -> Any:
    if isinstance(plain, dict) and "impute" in plain:
        _check_keys(plain, ["impute"])
        if type(plain["impute"]) is int and 2 <= plain["impute"] <= MOST_IMPUTATIONS:
            return plain["impute"]
    elif isinstance(plain, str) and plain in MISSING:
        return plain
    raise fault(MISSING_AS, plain, did_you_mean(plain, MISSING))


class WhereForm(Schema):
    """Which rows of the data are cases (`problem_file.case_bounds`)."""

    where: str = Field(description="a condition, such as age > 60 and smoker = yes")


_WHERE = re.compile(r"where\s+(\S.*)", re.DOTALL)


def _cases(plain: Any) -> Any:
    if isinstance(plain, str) and (written := _WHERE.match(plain.strip())):
        return {"where": written[1]}
    if isinstance(plain, dict) and set(plain) == {"where"}:
        return plain
    if isinstance(plain, list):
        if not plain or len(plain) > MOST_CASES:
            raise fault(f"1 to {MOST_CASES} cases", f"{len(plain)} cases")
        return plain
    single = isinstance(plain, dict) and plain and not set(plain) & set(DataForm.model_fields)
    if single and not _is_data_base(plain):
        # Only numbers are shown: below a mistyped key may stand what is private.
        shown = {name: cell if isinstance(cell, int | float) else "..." for name, cell in plain.items()}
        case = beginning(", ".join(f"{name}: {cell}" for name, cell in shown.items()), 100)
        raise refusal(f"expected a list of cases, or a file: write a list, - {{{case}}}")
    return None if plain is None else _source(plain)


# Tags of the forms of `cases`.
_TABLE, _LIST, _NONE = form("file", "sheet", "separator", "decimal"), form(), form("none")
_ROWS = form("where")


def _cases_tag(plain: Any) -> str:
    if plain is None or isinstance(plain, list):
        return _NONE if plain is None else _LIST
    return _ROWS if isinstance(plain, WhereForm) or "where" in plain else _TABLE


def has_texts(levels: Sequence[Any] | None) -> bool:
    """Whether levels are texts: one of them is no number."""
    return any(isinstance(level, str | bool) for level in levels or ())


Level = Annotated[float | bool | str, BeforeValidator(_level, json_schema_input_type=str | float | bool)]


class DataForm(Schema):
    """Where rows come from."""

    file: Annotated[str, BeforeValidator(only(_is_text, "the name of a table"))] = Field(
        description="a table, relative to the folder of this file"
    )
    sheet: str | None = optional("the sheet of a workbook; the first by default")
    separator: str | None = optional("of a text file; detected by default")
    decimal: str | None = optional("the decimal sign of a text file; detected by default")


PositiveNumber = Annotated[Number, AfterValidator(only(lambda value: value > 0, "a number above 0"))]
Kind = Annotated[str, BeforeValidator(one_of(KINDS)), WithJsonSchema({"enum": list(KINDS)})]


class VariableForm(Schema):
    """A variable: a column of the data."""

    role: Annotated[str, BeforeValidator(one_of(ROLES)), WithJsonSchema({"enum": list(ROLES)})] = Field(
        description="context (observed before deciding), action (may be set), outcome, or other"
    )
    kind: Kind = Field(default="continuous", description="what its numbers, or texts, are")
    unit: str | None = optional("its unit, for the reader")
    range: Bounds | None = optional("of an action: [lower, upper]")
    levels: Annotated[list[Level], list_of("a list of values")] | None = optional(
        "of texts: all of them, in the order of their codes 0, 1, ...; of numbers of an action: "
        "the only ones that it may be set to"
    )
    offered: Annotated[list[Level], list_of("a list of texts")] | None = optional(
        "of an action with texts or classes: those that it may be set to; all by default"
    )
    reference: Level | None = optional(
        "of classes: the one without an indicator; the most frequent by default, and none of two classes"
    )
    desired: Annotated[list[Level], list_of("a list of classes")] | None = optional(
        "of an outcome of classes: the desired ones, where inequalities bound the column that is 1 for them"
    )
    step: PositiveNumber | None = optional(
        "of an action: the distance of its values, from the lower end of range"
    )
    cost: Written | None = optional(f"of an action: {COST}")

    def faults(self, name: str) -> Iterator[Fault]:
        """Faults of settings that do not go together, each at its key."""
        texts = has_texts(self.levels) or (self.kind == "categorical" and self.levels is not None)
        for setting in ("reference", "desired"):
            if getattr(self, setting) is not None and self.kind != "categorical":
                yield Fault(setting, f"is for classes; the kind is {self.kind}: leave it out")
        if self.role != "action":
            words = f"is for actions; {name} is of the role {self.role}: leave it out"
            for setting in ("range", "levels", "offered", "step", "cost"):
                if getattr(self, setting) is not None and not (texts and setting == "levels"):
                    yield Fault(setting, words)
            return
        if self.levels is not None and not texts and (self.range is not None or self.step is not None):
            yield Fault("levels", "levels are all values that may be set: leave range and step out")
        if self.levels == []:
            yield Fault("levels", "expected a list of the values that it may be set to; got none")
        if self.step is not None and self.range is None:
            yield Fault("step", "a step needs range: [lower, upper], from whose lower end it counts")


# Settings of classes that a role has not.
_NOT_FOR = {
    "reference": "an outcome has none, desired says which of its classes are wished: leave it out",
    "desired": "is for outcomes: leave it out",
}
Source = Annotated[DataForm, BeforeValidator(_source, json_schema_input_type=str | DataForm)]


_LEVEL_AS = "a significance level between 0 and 1"
Arrows = Annotated[list[str], list_of("a list of arrows, [cause -> effect, ...]")]
LEARN = "learn"


class LearnForm(Schema):
    """How a graph is learnt."""

    learn: Literal[True] = Field(description="arrows are learnt from the complete rows")
    level: Annotated[Number, AfterValidator(only(lambda level: 0 < level < 1, _LEVEL_AS))] = Field(
        0.05, description="the tests' significance level"
    )
    forbidden: Arrows = Field(default_factory=list, description="arrows that do not exist")
    required: Arrows = Field(default_factory=list, description="arrows that exist")


class PartlyForm(ParentsForm):
    """{parents, bidirected, undirected}."""

    undirected: Annotated[list[Edge], list_of("a list of pairs, [[one, other], ...]")] = Field(
        description="pairs with an arrow of unknown direction"
    )


# The end of a file's name.
_ENDING = re.compile(r"[\w-]\.[A-Za-z]\w{0,9}\Z")
# Tags of the forms of a graph.
_FILE, _LEARN = form("file"), form(*LearnForm.model_fields)
_PARTLY, _GRAPH = form(*PartlyForm.model_fields), form("graph")


def graph_file(plain: Any) -> Path | None:
    """The file that a graph names; None if it is written out, or to be learnt."""
    name = plain.strip() if isinstance(plain, str) else ""
    if not name or "\n" in name:
        return None
    if Path(name).suffix in ENDINGS:
        return Path(name)
    if has_arrow(name) or _ENDING.search(name) is None:
        return None
    remedy = "save the graph as one of these, or write its arrows here, [cause -> effect, ...]"
    endings = f"expected a file with one of the endings {', '.join(ENDINGS)}"
    raise refusal(f"{name}: {endings}: {remedy}")


def _graph(plain: Any) -> Any:
    return {LEARN: True} if plain == LEARN else graph_file(plain) or plain


def _graph_tag(plain: Any) -> str:
    keys = set(plain) if isinstance(plain, dict) else set()
    if isinstance(plain, Path):
        return _FILE
    return _LEARN if LEARN in keys else _PARTLY if {"parents", "undirected"} <= keys else _GRAPH


GraphForm = ParentsForm | CliquesForm | OrderForm
GraphPart = Annotated[
    Annotated[Path, Tag(_FILE)]
    | Annotated[LearnForm, Tag(_LEARN)]
    | Annotated[PartlyForm, Tag(_PARTLY)]
    | Annotated[WrittenGraph, Tag(_GRAPH)],
    Discriminator(_graph_tag),
    BeforeValidator(_graph, json_schema_input_type=LearnForm | PartlyForm | WrittenGraph),
]


_IMPUTE = {
    "type": "object",
    "properties": {"impute": {"type": "integer", "minimum": 2, "maximum": MOST_IMPUTATIONS}},
    "required": ["impute"],
    "additionalProperties": False,
}


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
    if not isinstance(plain, str | list | dict | Schema) or not plain:
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


class CasesProblem(Schema):
    """A problem of rehearsal: the roles of variables, what may be set, and what is desired."""

    data: Source | None = optional(DATA)
    variables: Annotated[
        dict[
            Name,
            Annotated[VariableForm, BeforeValidator(_variable, json_schema_input_type=VariableForm | str)],
        ],
        mapping("{variable: {role: ...}}"),
    ] = Field(description="{variable: {role: context, action, outcome or other, ...}}")
    graph: GraphPart = Field(
        description="edges such as [cause -> effect, ...], an order, a file (.dagitty, .pdag, "
        ".txt, .dot, .gml, .graphml, .yaml), or learn"
    )
    desired: WrittenRegion = Field(
        description="inequalities of the outcomes, such as 0.6 <= repayment, joined by and, or a list of them"
    )
    costs: dict[Name, Name] = Field(
        default_factory=dict,
        description="of each case, for an action: the column of the cases with its cost per unit",
    )
    worth: Worth | None = optional(WORTH)
    candidates: Candidates = Field(
        default_factory=list, description="sets of actions that may be set jointly; each alone by default"
    )
    unit: Name | None = optional("the column that says which rows belong together")

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> Self:
        """A form of parts that are valid by themselves; the others are None or empty."""
        required = (name for name, field in cls.model_fields.items() if field.is_required())
        return cls.model_construct(**{**dict.fromkeys(required), "variables": {}, **parts})

    @classmethod
    def between(cls, parts: Mapping[str, Any]) -> Iterator[Fault]:
        """Faults of roles, and of settings that do not go together."""
        variables: Mapping[str, VariableForm] = parts.get("variables", {})
        for name, variable in variables.items():
            for each in variable.faults(name):
                yield Fault(path_of(("variables", name, each.path)), each.words)
        yield from missing_roles(variables, ("action", "outcome"))


class ProblemForm(CasesProblem):
    """A problem file: a problem with its rows, and the cases to decide for."""

    data: Source = Field(description=DATA)
    cases: Annotated[
        Annotated[DataForm, Tag(_TABLE)]
        | Annotated[WhereForm, Tag(_ROWS)]
        | Annotated[list[Annotated[dict[Name, Any], BeforeValidator(only(_is_case, _CASE_AS))]], Tag(_LIST)]
        | Annotated[None, Tag(_NONE)],
        Discriminator(_cases_tag),
        BeforeValidator(
            _cases, json_schema_input_type=str | DataForm | list[dict[str, float | str | bool]] | None
        ),
    ] = optional("the cases: a file, a list, or where CONDITION, rows of data; held-out rows by default")
    identity: Name | None = optional("the column that names the cases, or the held-out rows")
    bounds: dict[
        Name, Annotated[list[str], BeforeValidator(_limits, json_schema_input_type=list[float | str])]
    ] = Field(
        default_factory=dict,
        description="of each case, for an action: [lower, upper], with its present value as `current` and "
        "other columns of the cases by their names",
    )
    method: Name | None = optional("the method that decides: auto, or a name that decision= takes")
    missing: Annotated[
        str | int, BeforeValidator(_missing), WithJsonSchema({"anyOf": [{"enum": list(MISSING)}, _IMPUTE]})
    ] = Field(default="complete", description=f"rows with missing cells: {MISSING_AS}")

    @classmethod
    def between(cls, parts: Mapping[str, Any]) -> Iterator[Fault]:
        """The faults of a problem, and those of names of actions."""
        yield from super().between(parts)
        variables: Mapping[str, VariableForm] = parts.get("variables", {})
        for name, variable in variables.items():
            setting = "reference" if variable.role == "outcome" else "desired"
            if variable.kind == "categorical" and getattr(variable, setting) is not None:
                yield Fault(path_of(("variables", name, setting)), _NOT_FOR[setting])
        actions = of_role(variables, "action")
        for name in dict.fromkeys(name for names in parts.get("candidates", []) for name in names):
            if actions and name not in actions:
                yield Fault("candidates", f"{name!r} is no action; {meant(name, actions)}")
        for name in parts.get("costs", {}) if actions else ():
            cost = variables[name].cost if name in actions else None
            if name not in actions:
                yield Fault(path_of(("costs", name)), f"is no action; {meant(name, actions)}")
            elif cost is not None and cost.per_change:
                kind = "cost of each level" if cost.levels else "cost per unit"
                words = f"{name} has a {kind} under variables as well: leave one of the two out"
                yield Fault(path_of(("costs", name)), words)
