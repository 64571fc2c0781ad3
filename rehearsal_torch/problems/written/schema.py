"""The JSON schema of problem files, for editors: one for all three questions.

Source: ours; json-schema.org, draft 2020-12, for ``if`` and ``then``.
"""

from typing import Any

from rehearsal_torch.data.problem_file.form import ProblemForm
from rehearsal_torch.data.problem_file.opened import QUESTION, QUESTIONS
from rehearsal_torch.files.schema import Schema
from rehearsal_torch.problems.written.sequence_form import SequenceForm
from rehearsal_torch.problems.written.trials_form import TrialsForm

FORMS: dict[str, type[Schema]] = {"cases": ProblemForm, "sequence": SequenceForm, "trials": TrialsForm}
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
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Problem of rehearsal",
        "type": "object",
        "properties": named,
        "allOf": branches,
        "$defs": definitions,
    }
