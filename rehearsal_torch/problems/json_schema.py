"""The JSON schema of problem files: of cases, of sequences and of trials.

Source: json-schema.org, draft 2020-12, for ``if`` and ``then``.
"""

from typing import Any

from rehearsal_torch.data.problem_file.cases_schema import ProblemForm
from rehearsal_torch.data.problem_file.diagnostics import QUESTION, QUESTIONS
from rehearsal_torch.data.problem_file.trials_schema import TrialsProblem
from rehearsal_torch.files.schema import Schema
from rehearsal_torch.problems.sequences.sequence_schema import SequenceProblem

FORMS: dict[str, type[Schema]] = {"cases": ProblemForm, "sequence": SequenceProblem, "trials": TrialsProblem}
_QUESTION_AS = (
    "which alteration in each case (cases), which actions step by step (sequence), or which experiment next "
    "(trials)"
)


def problem_schema() -> dict[str, Any]:
    """The JSON schema of problem files, for editors."""
    question_key = {"enum": list(QUESTIONS), "default": QUESTIONS[0], "description": _QUESTION_AS}
    definitions, branches = dict[str, Any](), list[Any]()
    for question, form in FORMS.items():
        schema = form.model_json_schema(ref_template="#/$defs/{model}")
        definitions |= schema.pop("$defs", {})
        definitions[form.__name__] = schema | {"properties": {QUESTION: question_key, **schema["properties"]}}
        # A file without a question asks for cases.
        condition: dict[str, Any] = {"properties": {QUESTION: {"const": question}}}
        if question != QUESTIONS[0]:
            condition["required"] = [QUESTION]
        branches.append({"if": condition, "then": {"$ref": f"#/$defs/{form.__name__}"}})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Problem of rehearsal",
        "type": "object",
        "properties": {QUESTION: question_key},
        "allOf": branches,
        "$defs": definitions,
    }
