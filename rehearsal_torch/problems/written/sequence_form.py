"""The schema of a problem file that asks for a sequence: what should have been done, step by step.

    question: sequence
    data: machines.csv                # one row for each unit and time
    unit: machine                     # the column that says whose row it is
    time: week                        # the column of time
    variables:
      wear: {role: state, unit: "%", range: [0, 100]}
      model: {role: static, kind: categorical}
      shift: context
      service: {role: action, levels: [none, minor, major], cost: [0, 2, 6]}
    reward: {weights: {wear: -0.1}, name: risk and cost}
    changes: 3                        # at most so many actions of a unit are changed

`data` and `missing` are written as in a file that asks for cases; what reward, levels, costs, steps and words
mean is read by the reader of tasks of episodes (`problems.episodes.task`).

Source: ours; Tsirtsis and Gomez-Rodriguez (2023), Sec. 2, for what an episode consists of.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from rehearsal_torch.data.problem_file.form import DATA, KINDS, Source, one_of
from rehearsal_torch.files.schema import Name, Schema, fault, mapping
from rehearsal_torch.problems.episodes.task import MISSING_AS, REWARD_AS

ROLES = ("state", "static", "context", "action", "other")
ROLES_AS = (
    "state (a model predicts it), static (constant in a unit), context (varies, and no action changes it), "
    "action, or other"
)
CHANGES_AS = "at most how many actions of a unit are changed"
_LEVELS = [{"type": "integer", "minimum": 2}, {"type": "array", "minItems": 2}]
_ANY = {"anyOf": [{"type": "number"}, {"type": "array"}, {"type": "object"}]}


def _changes(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise fault(f"{CHANGES_AS}, a whole number of at least 1", value)
    return value


def _variable(plain: Any) -> Any:
    return {"role": plain} if isinstance(plain, str) else plain


class SequenceVariable(Schema):
    """A variable of episodes: a column of the data."""

    role: Annotated[str, BeforeValidator(one_of(ROLES)), WithJsonSchema({"enum": list(ROLES)})] = Field(
        description=ROLES_AS
    )
    kind: Annotated[str, BeforeValidator(one_of(KINDS)), WithJsonSchema({"enum": list(KINDS)})] | None = (
        Field(default=None, description="what its values are; categorical for static texts")
    )
    unit: Name | None = Field(default=None, description="its unit; amounts of an action have one")
    range: Annotated[Any, WithJsonSchema({"type": "array", "minItems": 2, "maxItems": 2})] = Field(
        default=None, description="[lowest, highest] possible value, null for an open side"
    )
    levels: Annotated[Any, WithJsonSchema({"anyOf": _LEVELS})] = Field(
        default=None,
        description="of an action: its levels in order, or their number; of static texts: all of them",
    )
    cost: Annotated[Any, WithJsonSchema(_ANY)] = Field(
        default=None, description="of an action: of each level, or of one unit of an amount"
    )
    combine: Literal["sum", "mean", "max"] | None = Field(
        default=None, description="of an action: how rows that fall into one step are joined"
    )


class SequenceForm(Schema):
    """A problem of episodes: whose rows, what was done in each step, and what a step is worth."""

    data: Source = Field(description=DATA)
    unit: Name = Field(description="the column that says whose row it is")
    time: Name = Field(description="the column of time: numbers, or dates, which count in days")
    step: Annotated[Any, WithJsonSchema({"type": "number", "exclusiveMinimum": 0})] = Field(
        default=None, description="the length of a step, into which rows are merged"
    )
    variables: Annotated[
        dict[
            Name,
            Annotated[
                SequenceVariable, BeforeValidator(_variable, json_schema_input_type=SequenceVariable | str)
            ],
        ],
        mapping("{variable: {role: ...}}"),
    ] = Field(description=f"{{variable: {{role: ...}}}}; the roles are {ROLES_AS}")
    levels: Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 2})] = Field(
        default=5, description="of amounts: none, and intervals of the others"
    )
    reward: Annotated[Any, WithJsonSchema({"type": "object"})] = Field(description=REWARD_AS)
    missing: Annotated[Any, WithJsonSchema({"anyOf": [{"enum": ["refuse", "drop"]}, {"type": "object"}]})] = (
        Field(default="refuse", description=f"empty cells and missing steps: {MISSING_AS}")
    )
    words: Annotated[Any, WithJsonSchema({"type": "object"})] = Field(
        default_factory=dict,
        description="what reports call things: {unit: machine, units: machines, step: week}",
    )
    method: Name | None = Field(
        default=None, description="the method that decides: a name that decision= takes"
    )
    changes: (
        Annotated[int, BeforeValidator(_changes), WithJsonSchema({"type": "integer", "minimum": 1})] | None
    ) = Field(default=None, description=f"{CHANGES_AS}; 3 by default")
