"""The schema of problem files that ask for trials, and the JSON schema of all files.

A file that asks for trials: which experiment to run next.

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
    tolerance: 0.01                   # optional: how far what was set may lie from what was proposed

Source: json-schema.org, draft 2020-12, for ``if`` and ``then``; Ren et al. (2025), Sec. 2.2, for what a task
of trials consists of.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from rehearsal_torch.data.problem_file.findings import QUESTION, QUESTIONS
from rehearsal_torch.data.problem_file.form import DATA, ProblemForm, Source, one_of, positive
from rehearsal_torch.files.schema import Bounds, Name, Number, Schema, fault, list_of, mapping
from rehearsal_torch.problems.episodes.problem import SequenceProblem

TRIAL_ROLES = ("action", "outcome", "other")
TRIAL_ROLES_AS = (
    "action (may be set), outcome (the reward is made of it), other (measured in each experiment)"
)
TRIAL_KINDS = ("continuous", "integer", "binary", "ordinal")
TRIAL_REWARD_AS = (
    "the outcome to maximise, a sum such as yield - 0.2*waste, or {targets: {outcome: value}} for the "
    "smallest squared distance"
)
CLASSES = (
    "code the classes as numbers in the table, leave kind out, and write levels: [0, 1, 2]; neighbouring "
    "numbers are taken to be alike"
)
METHOD_AS = "the method that decides: a name that decision= takes"
_STRINGS = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]


def _variable(plain: Any) -> Any:
    return {"role": plain} if isinstance(plain, str) else plain


def _kind(value: Any) -> Any:
    """One of the kinds; of classes, with how they are coded."""
    if value == "categorical":
        raise fault(f"one of {', '.join(TRIAL_KINDS)}", value, CLASSES)
    return one_of(TRIAL_KINDS)(value)


class TrialVariable(Schema):
    """A variable of experiments: an action, or something that is measured."""

    role: Annotated[
        str, BeforeValidator(one_of(TRIAL_ROLES)), WithJsonSchema({"enum": list(TRIAL_ROLES)})
    ] = Field(description=TRIAL_ROLES_AS)
    kind: Annotated[str, BeforeValidator(_kind), WithJsonSchema({"enum": list(TRIAL_KINDS)})] = Field(
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
    ] = Field(description=f"{{variable: {{role: ...}}}}; the roles are {TRIAL_ROLES_AS}")
    graph: Annotated[Any, WithJsonSchema({"anyOf": [*_STRINGS, {"type": "object"}]})] = Field(
        description="edges such as [cause -> effect, ...], or a file (.dagitty, .dot, .gml, .graphml, ...)"
    )
    reward: Annotated[Any, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]})] = Field(
        default=None, description=f"{TRIAL_REWARD_AS}; the only outcome by default"
    )
    limits: Annotated[Any, WithJsonSchema({"anyOf": _STRINGS})] = Field(
        default=None, description="inequalities of the actions, such as 2*valve + dose <= 6"
    )
    fixed: dict[Name, Number] = Field(
        default_factory=dict, description="actions that the next experiment holds at a value"
    )
    tolerance: Annotated[Any, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "object"}]})] = Field(
        default=None,
        description="how far what was set may lie from what was proposed: a share of each range, or "
        "{action: distance}",
    )
    method: Name | None = Field(default=None, description=METHOD_AS)


FORMS: dict[str, type[Schema]] = {"cases": ProblemForm, "sequence": SequenceProblem, "trials": TrialsForm}
ASKED = (
    "which alteration in each case (cases), which actions step by step (sequence), or which experiment next "
    "(trials)"
)


def problem_schema() -> dict[str, Any]:
    """The JSON schema of problem files, for editors."""
    named = {QUESTION: {"enum": list(QUESTIONS), "default": QUESTIONS[0], "description": ASKED}}
    definitions: dict[str, Any] = {}
    branches = []
    for question, form in FORMS.items():
        made = form.model_json_schema(ref_template="#/$defs/{model}")
        definitions |= made.pop("$defs", {})
        made["properties"] = named | made["properties"]
        definitions[form.__name__] = made
        # A file that names no question asks for cases.
        asked: dict[str, Any] = {"properties": {QUESTION: {"const": question}}}
        if question != QUESTIONS[0]:
            asked["required"] = [QUESTION]
        branches.append({"if": asked, "then": {"$ref": f"#/$defs/{form.__name__}"}})
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Problem of rehearsal"}
    return {**about, "type": "object", "properties": named, "allOf": branches, "$defs": definitions}
