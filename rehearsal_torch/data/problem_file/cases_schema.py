"""The schema of a problem file.

    data: visits.csv                  # or {file, sheet, separator, decimal}
    variables:                        # every variable of the graph, with its role
      age: context
      bmi: {role: action, unit: kg/m2, range: [20, 35]}
      progression: outcome
    graph: ["age -> bmi", "{age bmi} -> progression"]
    desired: progression <= 140
    cases: cases.csv                  # optional
    missing: complete                 # or refuse, or {impute: 20}
    bounds: {bmi: [current - 3, current]}
    costs: {bmi: cost_of_bmi}         # optional, as is the cost of an action under variables
    worth: 1000

Graph, desired region and candidate sets are of the types that a task has (`data.problem_file.task_file`); a
graph may also stand in a file, be learnt from the rows, or have edges without a direction
(`problem_file.graph_section`). Messages never show what `data` holds where it is no file: the address of a
data base may have a password.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, TypeAdapter, WithJsonSchema

from rehearsal_torch.data.costs import COST, WORTH, Worth, Written
from rehearsal_torch.data.problem_file.task_file import Candidates, WrittenRegion
from rehearsal_torch.data.size_limits import IMPUTATIONS as MOST_IMPUTATIONS
from rehearsal_torch.data.tables.header_checks import NO_DATA_BASE
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import (
    Bounds,
    Fault,
    Name,
    Number,
    Schema,
    fault,
    form,
    list_of,
    mapping,
    meant,
    path_of,
    refusal,
    suggested,
)
from rehearsal_torch.graphs.dagitty import has_arrow
from rehearsal_torch.graphs.graph_files import ENDINGS
from rehearsal_torch.graphs.graph_notation import CliquesForm, Edge, OrderForm, ParentsForm, WrittenGraph

ROLES = ("context", "action", "outcome", "other")
KINDS = ("continuous", "integer", "binary", "ordinal", "categorical")
DATA = "a file, or {file: ..., sheet: ..., separator: ..., decimal: ...}"
MISSING = ("complete", "refuse")
MISSING_AS = f"complete, refuse, or {{impute: m}} with 2 to {MOST_IMPUTATIONS} imputations"
MOST = 100_000
_NUMBER: TypeAdapter[float] = TypeAdapter(Number)
# The forms of `cases`. A fault of a form that was not meant would show what is there.
SOURCE, LISTED, NOTHING = form("file", "sheet", "separator", "decimal"), form(), form("none")


def perhaps(value: Any, choices: Iterable[str]) -> str:
    """The choice that was probably meant, as a question; empty if none is similar."""
    near = suggested(value, choices) if isinstance(value, str) else None
    return f"did you mean {near!r}?" if near else ""


def one_of(choices: tuple[str, ...]) -> Callable[[Any], Any]:
    """A validator that accepts some words alone."""

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise fault(f"one of {', '.join(choices)}", value, perhaps(value, choices))
        return value

    return check


def positive(value: float) -> float:
    """Refuses numbers that are not above 0."""
    if not value > 0:
        raise fault("a number above 0", value)
    return value


def _level(value: Any) -> Any:
    """A text, a truth value, as YAML reads yes and no, or a number."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip():
        return value.strip()
    if not isinstance(value, int | float):
        raise fault("a text or a number", value, "put a date in quotes" if isinstance(value, date) else "")
    return _NUMBER.validate_python(value)


def _text(value: Any) -> Any:
    if not isinstance(value, str) or not value.strip():
        raise fault("the name of a table", value)
    return value


def _is_address(plain: Any) -> bool:
    """Whether a source is an address, or has one as a key or beneath a key that names a source."""
    if not isinstance(plain, dict):
        return isinstance(plain, str) and "://" in plain
    named = [plain.get(each) for each in ("file", "sql", "query", "url")]
    return {"sql", "query"} <= set(plain) or any(
        isinstance(each, str) and "://" in each for each in (*plain, *named)
    )


def _source(plain: Any) -> Any:
    if isinstance(plain, DataForm):
        return plain
    if _is_address(plain) or (isinstance(plain, dict) and {"sql", "query"} & set(plain)):
        raise refusal(NO_DATA_BASE)
    if isinstance(plain, str) and plain.strip():
        return {"file": plain}
    if not isinstance(plain, dict):
        raise refusal(f"expected {DATA}")
    if words := _unknown(plain, DataForm):
        raise refusal(words)
    return plain


def _unknown(plain: dict[Any, Any], model: type[Schema]) -> str:
    """Keys that a form does not have, in words that show no values; empty if there are none."""
    odd = [str(each) for each in plain if each not in model.model_fields]
    return "; ".join(f"unknown key {each!r}, {meant(each, model.model_fields)}" for each in odd)


def _variable(plain: Any) -> Any:
    if isinstance(plain, dict) and (words := _unknown(plain, VariableForm)):
        raise refusal(words)
    if plain is None:
        raise refusal(f"nothing is written there yet; expected its role, one of {', '.join(ROLES)}")
    if not isinstance(plain, str | dict | VariableForm):
        raise fault(f"its role, one of {', '.join(ROLES)}, or {{role: ..., kind: ...}}", plain)
    return {"role": plain} if isinstance(plain, str) else plain


def _limits(pair: Any) -> Any:
    if not isinstance(pair, list) or len(pair) != 2 or {type(each) for each in pair} - {str, int, float}:
        raise fault("[lower, upper], each a number or a sum such as current - 3", pair)
    return [str(each) for each in pair]


def _case(plain: Any) -> Any:
    if not isinstance(plain, dict) or not all(isinstance(each, str | int | float) for each in plain.values()):
        raise fault("a case, {variable: number} or {variable: text}", plain)
    return plain


def _missing(plain: Any) -> Any:
    if isinstance(plain, str):
        if plain in MISSING:
            return plain
        raise fault(MISSING_AS, plain, perhaps(plain, MISSING))
    if not isinstance(plain, dict) or "impute" not in plain:
        raise fault(MISSING_AS, plain)
    if odd := [str(each) for each in plain if each != "impute"]:
        raise refusal(f"unknown key {odd[0]!r}, {meant(odd[0], ['impute'])}")
    count = plain["impute"]
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MOST_IMPUTATIONS:
        raise fault(MISSING_AS, plain)
    return count


def _cases(plain: Any) -> Any:
    if isinstance(plain, list):
        if not plain or len(plain) > MOST:
            raise fault(f"1 to {MOST} cases", f"{len(plain)} cases")
        return plain
    one = isinstance(plain, dict) and plain and not set(plain) & set(DataForm.model_fields)
    if one and not _is_address(plain):
        # Numbers alone are shown, since a mistyped key may stand before what is nobody's business.
        shown = {name: each if isinstance(each, int | float) else "..." for name, each in plain.items()}
        case = ", ".join(f"{name}: {each}" for name, each in shown.items())
        raise refusal(f"expected a list of cases, or a file: write a list, - {{{beginning(case, 100)}}}")
    return None if plain is None else _source(plain)


def _which(plain: Any) -> str:
    return NOTHING if plain is None else LISTED if isinstance(plain, list) else SOURCE


def has_texts(levels: Sequence[Any] | None) -> bool:
    """Whether levels are texts: one of them is no number."""
    return any(isinstance(each, str | bool) for each in levels or ())


Level = Annotated[float | bool | str, BeforeValidator(_level, json_schema_input_type=str | float | bool)]


class DataForm(Schema):
    """Where rows come from."""

    file: Annotated[str, BeforeValidator(_text)] = Field(
        description="a table, relative to the folder of this file"
    )
    sheet: str | None = Field(default=None, description="the sheet of a workbook; the first by default")
    separator: str | None = Field(default=None, description="of a text file; detected by default")
    decimal: str | None = Field(
        default=None, description="the decimal sign of a text file; detected by default"
    )


class VariableForm(Schema):
    """A variable: a column of the data."""

    role: Annotated[str, BeforeValidator(one_of(ROLES)), WithJsonSchema({"enum": list(ROLES)})] = Field(
        description="context (observed before deciding), action (may be set), outcome, or other"
    )
    kind: Annotated[str, BeforeValidator(one_of(KINDS)), WithJsonSchema({"enum": list(KINDS)})] = Field(
        default="continuous", description="what its numbers, or texts, are"
    )
    unit: str | None = Field(default=None, description="its unit, for the reader")
    range: Bounds | None = Field(default=None, description="of an action: [lower, upper]")
    levels: Annotated[list[Level], list_of("a list of values")] | None = Field(
        default=None,
        description="of texts: all of them, in the order of their codes 0, 1, ...; of numbers of an action: "
        "the only ones that it may be set to",
    )
    offered: Annotated[list[Level], list_of("a list of texts")] | None = Field(
        default=None,
        description="of an action with texts or classes: those that it may be set to; all by default",
    )
    reference: Level | None = Field(
        default=None, description="of classes: the one without an indicator; the most frequent by default"
    )
    step: Annotated[Number, AfterValidator(positive)] | None = Field(
        default=None, description="of an action: the distance of its values, from the lower end of range"
    )
    cost: Written | None = Field(default=None, description=f"of an action: {COST}")

    def faults(self, name: str) -> Iterator[Fault]:
        """Faults of settings that do not go together, each at its key."""
        texts = has_texts(self.levels) or (self.kind == "categorical" and self.levels is not None)
        if self.reference is not None and self.kind != "categorical":
            yield Fault("reference", f"is for classes; the kind is {self.kind}: leave it out")
        elif self.reference is not None and self.role == "outcome":
            words = "an outcome has none, desired says which of its classes are wished: leave it out"
            yield Fault("reference", words)
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


Source = Annotated[DataForm, BeforeValidator(_source, json_schema_input_type=str | DataForm)]


def _share(level: float) -> float:
    if not 0 < level < 1:
        raise fault("a significance level between 0 and 1", level)
    return level


Arrows = Annotated[list[str], list_of("a list of arrows, [cause -> effect, ...]")]
LEARN = "learn"


class LearnForm(Schema):
    """How a graph is learnt."""

    learn: Literal[True] = Field(description="true")
    level: Annotated[Number, AfterValidator(_share)] = Field(
        0.05, description="the tests' significance level"
    )
    forbidden: Arrows = Field(default_factory=list, description="arrows that do not exist")
    required: Arrows = Field(default_factory=list, description="arrows that exist")


class PartlyForm(ParentsForm):
    """{parents, bidirected, undirected}."""

    undirected: Annotated[list[Edge], list_of("a list of pairs, [[one, other], ...]")]


# The end of a file's name.
_ENDING = re.compile(r"[\w-]\.[A-Za-z]\w{0,9}\Z")
FILE, LEARNT = form("file"), form(*LearnForm.model_fields)
PARTLY, WRITTEN = form(*PartlyForm.model_fields), form("graph")


def graph_file(written: Any) -> Path | None:
    """The file that has the graph; None if it is written, or to be learnt."""
    name = written.strip() if isinstance(written, str) else ""
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


def _graph_form(plain: Any) -> str:
    keys = set(plain) if isinstance(plain, dict) else set()
    written = LEARNT if LEARN in keys else PARTLY if {"parents", "undirected"} <= keys else WRITTEN
    return FILE if isinstance(plain, Path) else written


GraphForm = ParentsForm | CliquesForm | OrderForm
GraphPart = Annotated[
    Annotated[Path, Tag(FILE)]
    | Annotated[LearnForm, Tag(LEARNT)]
    | Annotated[PartlyForm, Tag(PARTLY)]
    | Annotated[WrittenGraph, Tag(WRITTEN)],
    Discriminator(_graph_form),
    BeforeValidator(_graph, json_schema_input_type=LearnForm | PartlyForm | WrittenGraph),
]


class ProblemForm(Schema):
    """A problem of rehearsal: what is observed, what may be set, and what is desired."""

    data: Source = Field(description=DATA)
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
    cases: Annotated[
        Annotated[DataForm, Tag(SOURCE)]
        | Annotated[list[Annotated[dict[Name, Any], BeforeValidator(_case)]], Tag(LISTED)]
        | Annotated[None, Tag(NOTHING)],
        Discriminator(_which),
        BeforeValidator(
            _cases, json_schema_input_type=str | DataForm | list[dict[str, float | str | bool]] | None
        ),
    ] = Field(
        default=None, description="the cases to decide for: a file, or a list; held-out rows by default"
    )
    identity: Name | None = Field(
        default=None, description="the column that names the cases, or the held-out rows"
    )
    bounds: dict[
        Name, Annotated[list[str], BeforeValidator(_limits, json_schema_input_type=list[float | str])]
    ] = Field(
        default_factory=dict,
        description="of each case, for an action: [lower, upper], with its present value as `current` and "
        "other columns of the cases by their names",
    )
    costs: dict[Name, Name] = Field(
        default_factory=dict,
        description="of each case, for an action: the column of the cases with its cost per unit",
    )
    worth: Worth | None = Field(default=None, description=WORTH)
    candidates: Candidates = Field(
        default_factory=list, description="sets of actions that may be set jointly; each alone by default"
    )
    unit: Name | None = Field(default=None, description="the column that says which rows belong together")
    method: Name | None = Field(
        default=None, description="the method that decides: auto, or a name that decision= takes"
    )
    missing: Annotated[
        str | int,
        BeforeValidator(_missing),
        WithJsonSchema(
            {
                "anyOf": [
                    {"enum": list(MISSING)},
                    {
                        "type": "object",
                        "properties": {
                            "impute": {"type": "integer", "minimum": 2, "maximum": MOST_IMPUTATIONS},
                        },
                        "required": ["impute"],
                        "additionalProperties": False,
                    },
                ]
            }
        ),
    ] = Field(default="complete", description=f"rows with missing cells: {MISSING_AS}")

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "ProblemForm":
        """A form of parts that are right by themselves; the others are None or empty."""
        return cls.model_construct(**{"data": None, "graph": None, "desired": None, "variables": {}, **parts})

    @classmethod
    def between(cls, parts: Mapping[str, Any]) -> Iterator[Fault]:
        """Faults of roles, of settings that do not go together, and of names of actions."""
        variables: Mapping[str, VariableForm] = parts.get("variables", {})
        actions = of_role(variables, "action")
        for name, about in variables.items():
            for each in about.faults(name):
                yield Fault(path_of(("variables", name, *filter(None, [each.path]))), each.words)
        for role in ("action", "outcome") if variables else ():
            if not of_role(variables, role):
                yield Fault("variables", f"expected at least one of the role {role}; there is none")
        for name in dict.fromkeys(each for names in parts.get("candidates", []) for each in names):
            if actions and name not in actions:
                yield Fault("candidates", f"{name!r} is no action; {meant(name, actions)}")
        for name in parts.get("costs", {}) if actions else ():
            own = variables[name].cost if name in actions else None
            what = "cost of each level" if own is not None and own.levels else "cost per unit"
            if name not in actions:
                yield Fault(path_of(("costs", name)), f"is no action; {meant(name, actions)}")
            elif own is not None and own.per_change:
                words = f"{name} has a {what} under variables as well: leave one of the two out"
                yield Fault(path_of(("costs", name)), words)


def of_role(variables: Mapping[str, VariableForm], role: str) -> list[str]:
    """The variables of a role, in the file's order."""
    return [name for name, about in variables.items() if about.role == role]
