"""The JSON schema of problem files: what it takes is what the readers of the three questions take."""

import json

import pytest
from jsonschema import Draft202012Validator

from rehearsal_torch.files.schema import read
from rehearsal_torch.problems.json_schema import FORMS, problem_schema
from rehearsal_torch.problems.sequences.sequence_schema import SequenceProblem
from tests.data.problem_file.conftest import RIGHT
from tests.problems.conftest import SEQUENCE, TRIALS

FULL = {**RIGHT, "cases": [{"x": 1, "name": "b"}], "bounds": {"a": ["current - 1", 1]}, "candidates": [["a"]]}
IMPUTED = {**RIGHT, "missing": {"impute": 20}}
WELL = {"cases": [RIGHT, FULL, IMPUTED], "sequence": [SEQUENCE], "trials": [TRIALS]}


def test_every_question_has_a_form_with_a_description_of_each_part():
    schema = problem_schema()
    Draft202012Validator.check_schema(schema)
    for form in FORMS.values():
        found = schema["$defs"][form.__name__]
        assert set(found["properties"]) == {*form.model_fields, "question"}
        assert found["additionalProperties"] is False
        assert all("description" in each for each in found["properties"].values())
    assert schema["$defs"]["ProblemForm"]["required"] == ["data", "variables", "graph", "desired"]
    role = schema["$defs"]["VariableForm"]["properties"]["role"]
    levels = schema["$defs"]["VariableForm"]["properties"]["levels"]["anyOf"][0]["items"]["anyOf"]
    assert levels == [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]
    assert role["enum"] == ["context", "action", "outcome", "other"]
    assert {"type": "string"} in schema["$defs"]["ProblemForm"]["properties"]["data"]["anyOf"]
    json.dumps(schema)


@pytest.mark.parametrize("question", FORMS)
def test_what_the_reader_takes_conforms_to_the_schema(question):
    validator = Draft202012Validator(problem_schema())
    for plain in WELL[question]:
        assert list(validator.iter_errors({**plain, "question": question})) == []
        bare = {key: each for key, each in plain.items() if key != "question"}
        assert read(FORMS[question], bare)[1] == []


@pytest.mark.parametrize(
    ("plain", "part", "value"),
    [
        (RIGHT, "variables", {"x": {"role": "kontext"}}),
        (RIGHT, "variables", {"x": {"role": "action", "rnage": [0, 1]}}),
        (RIGHT, "colour", "red"),
        (RIGHT, "missing", {"impute": 20, "by": "statsmodels"}),
        (RIGHT, "missing", {}),
        (RIGHT, "data", 3),
        (RIGHT, "question", "case"),
        (SEQUENCE, "variables", {"wear": {"role": "varying"}}),
        (SEQUENCE, "graph", ["a -> b"]),
        (SEQUENCE, "unit", None),
        (TRIALS, "variables", {"dose": {"role": "state"}}),
        (TRIALS, "desired", "yield >= 3"),
    ],
)
def test_slips_do_not_conform(plain, part, value):
    assert list(Draft202012Validator(problem_schema()).iter_errors({**plain, part: value}))


PARTS = {key: each for key, each in SEQUENCE.items() if key != "question"}


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("variables", {"a": {"role": "action", "combine": "median"}}, "variables.a.combine"),
        ("variables", {"a": {"role": "action", "step": 1}}, "unknown key"),
        ("variables", {"a": {"role": "state", "kind": "continous"}}, "did you mean 'continuous'?"),
        ("data", "postgresql://me:hunter2@host/db", "data: data bases and addresses are not read"),
        ("time", True, "time"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(part, value, words):
    _, faults = read(SequenceProblem, {**PARTS, part: value})
    assert any(words in each for each in faults), faults
    assert "hunter2" not in " ".join(faults)
