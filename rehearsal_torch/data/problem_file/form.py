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

The schema looks after the parts of a problem file itself; graph, desired region and candidate sets are read
by the reader of tasks (`data.task_file`). Messages never show what `data` holds where it is no file: the
address of a data base may have a password.
"""

from collections.abc import Callable, Iterable
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, TypeAdapter, WithJsonSchema
from pydantic_core import PydanticCustomError

from rehearsal_torch.data.costs import COST, WORTH, Worth, Written
from rehearsal_torch.data.sizes import IMPUTATIONS as MOST_IMPUTATIONS
from rehearsal_torch.data.tables.frame import NO_DATA_BASE
from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.files.schema import (
    Bounds,
    Name,
    Number,
    Schema,
    fault,
    form,
    list_of,
    mapping,
    meant,
    suggested,
)

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


def _untold(words: str) -> PydanticCustomError:
    """A fault that does not show what was found."""
    return PydanticCustomError("fault", "{words}", {"words": words})


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
        raise _untold(NO_DATA_BASE)
    if isinstance(plain, str) and plain.strip():
        return {"file": plain}
    if not isinstance(plain, dict):
        raise _untold(f"expected {DATA}")
    if words := _unknown(plain, DataForm):
        raise _untold(words)
    return plain


def _unknown(plain: dict[Any, Any], model: type[Schema]) -> str:
    """Keys that a form does not have, in words that show no values; empty if there are none."""
    odd = [str(each) for each in plain if each not in model.model_fields]
    return "; ".join(f"unknown key {each!r}, {meant(each, model.model_fields)}" for each in odd)


def _variable(plain: Any) -> Any:
    if isinstance(plain, dict) and (words := _unknown(plain, VariableForm)):
        raise _untold(words)
    if plain is None:
        raise _untold(f"nothing is written there yet; expected its role, one of {', '.join(ROLES)}")
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
        raise _untold(f"unknown key {odd[0]!r}, {meant(odd[0], ['impute'])}")
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
        raise _untold(f"expected a list of cases, or a file: write a list, - {{{beginning(case, 100)}}}")
    return None if plain is None else _source(plain)


def _which(plain: Any) -> str:
    return NOTHING if plain is None else LISTED if isinstance(plain, list) else SOURCE


Level = Annotated[
    float | bool | str,
    BeforeValidator(_level, json_schema_input_type=float | bool | str),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}),
]


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


Source = Annotated[DataForm, BeforeValidator(_source, json_schema_input_type=str | DataForm)]
_STRINGS = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
Loose = Annotated[Any, WithJsonSchema({"anyOf": [*_STRINGS, {"type": "object"}]})]


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
    graph: Loose = Field(
        description="edges such as [cause -> effect, ...], an order, a file (.dagitty, .pdag, "
        ".txt, .dot, .gml, .graphml, .yaml), or learn"
    )
    desired: Loose = Field(
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
    candidates: Annotated[
        Any, WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "string"}}})
    ] = Field(default=None, description="sets of actions that may be set jointly; each alone by default")
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
