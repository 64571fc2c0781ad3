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
