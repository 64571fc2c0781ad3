"""The schema of problem files: what it takes, what it refuses, and what it never shows."""

import json

import pytest

from rehearsal_torch.data.problem_file.form import ProblemForm, problem_schema
from rehearsal_torch.files.schema import read
from tests.data.problem_file.conftest import RIGHT


def test_short_forms_are_the_long_ones():
    form, faults = read(ProblemForm, RIGHT)
    assert faults == []
    assert form["data"].file == "table.csv"
    assert form["variables"]["x"].role == "context"
    assert form["variables"]["z"].unit == "kg"
    long = {**RIGHT, "data": {"file": "table.csv"}, "cases": [{"x": 1}]}
    assert read(ProblemForm, long)[0]["data"] == form["data"]


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("variables", {"x": "kontext"}, "variables.x.role: expected one of context, action, outcome, other"),
        ("variables", {"x": {"role": "action", "kind": "integr"}}, "did you mean 'integer'?"),
        (
            "variables",
            {"x": {"role": "action", "rnage": [0, 1]}},
            "variables.x: unknown key 'rnage', did you mean 'range'?",
        ),
        (
            "variables",
            {"x": {"role": "action", "range": [1, 0]}},
            "variables.x.range: expected lower <= upper",
        ),
        (
            "variables",
            {"x": {"role": "action", "cost": -1}},
            "variables.x.cost: expected a number above 0; got -1",
        ),
        ("variables", [], "variables: expected {variable: {role: ...}}; got []"),
        ("cases", [{"x": [1]}], "cases[0]: expected a case, {variable: number}"),
        ("cases", [], "cases: expected 1 to 100000 cases"),
        ("bounds", {"a": [1]}, "bounds.a: expected [lower, upper], each a number or a sum"),
        ("colour", "red", "colour: unknown key"),
        ("data", {"file": "a", "sql": "b"}, "data: expected either file or sql"),
        ("data", {"sql": "b"}, "data: sql and query belong together"),
        ("data", {"sql": "b", "query": "c", "sheet": "d"}, "data: sheet: for files only"),
        ("data", 3, "data: expected a file, or {file: ..."),
    ],
)
def test_what_is_wrong_is_said_with_its_key(part, value, words):
    _, faults = read(ProblemForm, {**RIGHT, part: value})
    assert any(words in each for each in faults), faults


@pytest.mark.parametrize(
    "data",
    [
        "postgresql://me:hunter2@host/db",
        {"sql": ["postgresql://me:hunter2@host/db"], "query": "select 1"},
        {"sql": "x", "query": ["hunter2"]},
        {"sql": "postgresql://me:hunter2@host/db", "query": "select 1", "colour": 1},
        {"sql": "postgresql://me:hunter2@host/db", "file": "a"},
        ["postgresql://me:hunter2@host/db"],
    ],
)
def test_connections_are_never_shown(data):
    for part in ("data", "cases"):
        if part == "cases" and isinstance(data, list):
            continue
        form, faults = read(ProblemForm, {**RIGHT, part: data})
        assert faults
        assert "hunter2" not in " ".join(faults) + repr(form)
    right = {"sql": "sqlite:///hunter2.db", "query": "select 'hunter2'"}
    assert "hunter2" not in repr(read(ProblemForm, {**RIGHT, "data": right})[0])


def test_the_schema_for_editors_is_that_of_the_model():
    schema = problem_schema()
    assert schema["required"] == ["data", "variables", "graph", "desired"]
    assert set(schema["properties"]) == set(ProblemForm.model_fields)
    assert schema["additionalProperties"] is False
    role = schema["$defs"]["VariableForm"]["properties"]["role"]
    assert role["enum"] == ["context", "action", "outcome", "other"]
    assert {"type": "string"} in schema["properties"]["data"]["anyOf"]
    assert all("description" in each for each in schema["properties"].values())
    json.dumps(schema)


def test_what_the_reader_takes_conforms_to_the_schema_and_slips_do_not():
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(problem_schema())
    full = {
        **RIGHT,
        "cases": [{"x": 1, "name": "b"}],
        "bounds": {"a": ["current - 1", 1]},
        "candidates": [["a"]],
    }
    for plain in (RIGHT, full, {**RIGHT, "data": {"file": "a.xlsx", "sheet": "b"}, "cases": "cases.csv"}):
        assert list(validator.iter_errors(plain)) == []
        assert read(ProblemForm, plain)[1] == []
    for part, value in (
        ("variables", {"x": {"role": "kontext"}}),
        ("variables", {"x": {"role": "action", "rnage": [0, 1]}}),
        ("colour", "red"),
        ("data", 3),
    ):
        assert list(validator.iter_errors({**RIGHT, part: value}))
