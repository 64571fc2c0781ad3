"""The schema of problem files: what it takes, what it refuses, and what it never shows."""

import pytest

from rehearsal_torch.data.problem_file.cases_schema import ProblemForm
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
