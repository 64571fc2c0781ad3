"""The schema of a problem file that asks for trials: which experiment to run next.

    question: trials
    data: experiments.csv             # optional: the experiments so far
    variables:
      valve: {role: action, range: [0, 1]}
      dose: {role: action, levels: [0, 1, 2, 5], unit: ml}
      temperature: {role: other, unit: degrees}
      yield: outcome
    graph: [valve -> temperature, dose -> yield, temperature -> yield]
    reward: yield                     # or a sum, such as yield - 0.2*waste; the only outcome by default
    limits: 2*valve + dose <= 6       # optional
    fixed: {dose: 2}                  # optional: held in the next experiment

Source: ours; Ren et al. (2025), Sec. 2.2, for what a task consists of.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from rehearsal_torch.data.problem_file.form import DATA, Source, one_of, positive
from rehearsal_torch.files.schema import Bounds, Name, Number, Schema, fault, list_of, mapping

ROLES = ("action", "outcome", "other")
ROLES_AS = "action (may be set), outcome (the reward is made of it), other (measured in each experiment)"
KINDS = ("continuous", "integer", "binary", "ordinal")
REWARD_AS = (
    "the outcome to maximise, a sum such as yield - 0.2*waste, or {targets: {outcome: value}} for the "
    "smallest squared distance"
)
CLASSES = (
    "code the classes as numbers in the table, leave kind out, and write levels: [0, 1, 2]; neighbouring "
    "numbers are taken to be alike"
)
_STRINGS = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]


def _variable(plain: Any) -> Any:
    return {"role": plain} if isinstance(plain, str) else plain


def _kind(value: Any) -> Any:
    """One of the kinds; of classes, with how they are coded."""
    if value == "categorical":
        raise fault(f"one of {', '.join(KINDS)}", value, CLASSES)
    return one_of(KINDS)(value)


class TrialVariable(Schema):
    """A variable of experiments: an action, or something that is measured."""

    role: Annotated[str, BeforeValidator(one_of(ROLES)), WithJsonSchema({"enum": list(ROLES)})] = Field(
        description=ROLES_AS
    )
    kind: Annotated[str, BeforeValidator(_kind), WithJsonSchema({"enum": list(KINDS)})] = Field(
        default="continuous", description="of an action: what may be set"
    )
    unit: Name | None = Field(default=None, description="its unit, for the reader")
    range: Bounds | None = Field(default=None, description="of an action: [lower, upper]")
    levels: Annotated[list[Number], list_of("a list of numbers")] | None = Field(
        default=None, description="of an action: the only values that it may be set to"
    )
    step: Annotated[Number, AfterValidator(positive)] | None = Field(
        default=None, description="of an action: the distance of its values, from the lower end of range"
    )


class TrialsForm(Schema):
    """A problem of experiments: what may be set, what is measured, and what counts."""

    data: Source | None = Field(default=None, description=f"the experiments so far: {DATA}")
    variables: Annotated[
        dict[
            Name,
            Annotated[TrialVariable, BeforeValidator(_variable, json_schema_input_type=TrialVariable | str)],
        ],
        mapping("{variable: {role: ...}}"),
    ] = Field(description=f"{{variable: {{role: ...}}}}; the roles are {ROLES_AS}")
    graph: Annotated[Any, WithJsonSchema({"anyOf": [*_STRINGS, {"type": "object"}]})] = Field(
        description="edges such as [cause -> effect, ...], or a file (.dagitty, .dot, .gml, .graphml, ...)"
    )
    reward: Annotated[Any, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]})] = Field(
        default=None, description=f"{REWARD_AS}; the only outcome by default"
    )
    limits: Annotated[Any, WithJsonSchema({"anyOf": _STRINGS})] = Field(
        default=None, description="inequalities of the actions, such as 2*valve + dose <= 6"
    )
    fixed: dict[Name, Number] = Field(
        default_factory=dict, description="actions that the next experiment holds at a value"
    )
    method: Name | None = Field(
        default=None, description="the method that decides: a name that decision= takes"
    )
