"""The schema of problem files: what it takes, what it refuses, and what it never shows."""

import pytest

from rehearsal_torch.data.problem_file.form import ProblemForm
from rehearsal_torch.data.tables.frame import NO_DATA_BASE
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
            "variables.x.cost: expected a cost of at least 0; got -1",
        ),
        (
            "variables",
            {"x": {"role": "context", "levels": ["a", None]}},
            "variables.x.levels[1]: expected a text or a number; got None",
        ),
        ("variables", [], "variables: expected {variable: {role: ...}}; got []"),
        ("cases", [{"x": [1]}], "cases[0]: expected a case, {variable: number} or {variable: text}"),
        ("cases", [], "cases: expected 1 to 100000 cases"),
        ("bounds", {"a": [1]}, "bounds.a: expected [lower, upper], each a number or a sum"),
        ("colour", "red", "colour: unknown key"),
        ("data", {"file": "a", "sql": "b"}, f"data: {NO_DATA_BASE}"),
        ("data", {"query": "c", "sheet": "d"}, f"data: {NO_DATA_BASE}"),
        ("data", {"sheet": "d"}, "data.file: missing"),
        ("cases", {"sql": "sqlite:///shop.db", "query": "c"}, f"cases: {NO_DATA_BASE}"),
        ("cases", {"query": 3}, "cases: expected a list of cases, or a file: write a list, - {query: 3}"),
        (
            "cases",
            {"x": "http://x.org"},
            "cases: expected a list of cases, or a file: write a list, - {x: ...}",
        ),
        ("data", {"file": "a", "sheet": ["x://y"]}, "data.sheet: expected"),
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
        {"file": "postgresql+psycopg://me:hunter2@host/db"},
        {"postgresql+psycopg://me:hunter2@host/db": None},
        {"sql": "postgresql://me:hunter2@host/db", "query": "select 1", "colour": 1},
        {"sql": "postgresql://me:hunter2@host/db", "file": "a"},
        ["postgresql://me:hunter2@host/db"],
    ],
)
def test_addresses_are_never_shown(data):
    for part in ("data", "cases"):
        if part == "cases" and isinstance(data, list):
            continue
        form, faults = read(ProblemForm, {**RIGHT, part: data})
        assert faults
        assert "hunter2" not in " ".join(faults) + repr(form)
