"""Findings about tables and tasks that can be decided by."""

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.problems.rehearsal.table_findings import repeated
from rehearsal_torch.problems.written.own_problem import OwnProblem
from tests.data.problem_file.conftest import RIGHT, table, written  # noqa: F401

QUIET = {
    "graph": ["x -> {a d y z}", "a -> {y z}", "d -> {y z}"],
    "variables": RIGHT["variables"] | {"d": {"role": "action", "kind": "integer", "range": [0, 3]}},
}


def said(file, frame=None):
    if frame is not None:
        frame.to_csv(file.parent / "table.csv", index=False)
    return OwnProblem(file).found.warnings


def test_a_sound_problem_has_no_warnings(written):  # noqa: F811
    assert said(written(**QUIET, desired="y - 2*z >= 0")) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda rows: rows.head(40),
            "data: 40 rows for 5 variables: estimates will be rough; 50 rows are usual",
        ),
        (
            lambda rows: pd.concat([rows, rows.head(12)]),
            "data: 12 of 132 rows (9%) repeat an earlier row in all columns (lines 122, 123, 124 and 9 more)",
        ),
        (
            lambda rows: rows.assign(x=[0.0] * 117 + [1.0, 2.0, 3.0]),
            "variables.x: 117 of 120 rows have the value 0: it hardly varies",
        ),
        (lambda rows: rows.assign(x=np.arange(120) + 7), "variables.x: every row has another whole number"),
        (lambda rows: rows.assign(y=rows["y"] + 1.5), "of the rows lie in the desired region already"),
        (lambda rows: rows.assign(y=rows["y"] - 99), "desired: none of the"),
        (
            lambda rows: rows.assign(a=rows["a"] / 9),
            "variables.a.range: may be set from -1 to 1; the rows go from",
        ),
    ],
)
def test_what_may_not_be_meant_is_warned_of_with_its_line(written, change, words):  # noqa: F811
    found = said(written(**QUIET, desired="y - 2*z >= 0"), change(table()))
    assert [each for each in found if words in each and each.startswith("line ")], found


def test_an_action_without_a_path_is_warned_of(written):  # noqa: F811
    found = said(written(**QUIET | {"graph": ["x -> {a d y z}", "a -> {y z}"]}, desired="y - 2*z >= 0"))
    assert any(
        "variables.d: no directed path leads from d to y or z: it will never be set" in each for each in found
    )
    rows = table()
    rows["y"] = rows["y"] + 3 * rows["d"]
    found = said(written(**QUIET | {"graph": ["x -> {a d y z}", "a -> {y z}"]}, desired="y - 2*z >= 0"), rows)
    assert any("setting d cannot change y, z by the graph" in each for each in found)


def test_variables_outside_the_graph_are_not_looked_at(written):  # noqa: F811
    rows = table().assign(extra=pd.Series(range(120)))
    variables = QUIET["variables"] | {"extra": "other"}
    found = said(written(**QUIET | {"variables": variables}, desired="y - 2*z >= 0"), rows)
    assert [each.partition(": ")[2] for each in found] == ["is in no edge of the graph, and so is not used"]


def test_present_values_outside_of_what_is_offered_are_told(written):  # noqa: F811
    cases = [{"x": 0, "a": 0.5}, {"x": 1, "a": -3}, {"x": 1, "a": 4}]
    (sentence,) = [each for each in said(written(cases=cases)) if "at present" in each]
    assert "variables.a.range: may be set from -1 to 1, and case 2 has -3 at present and 1 more" in sentence
    assert not [each for each in said(written(cases=cases[:1])) if "at present" in each]


def test_identifiers_are_warned_of_as_variables_and_as_names(written):  # noqa: F811
    rows = table().rename(columns={"x": "patient_id"}).assign(email=[f"p{row}@q.org" for row in range(120)])
    variables = {("patient_id" if name == "x" else name): each for name, each in QUIET["variables"].items()}
    graph = ["patient_id -> {a d y z}", "a -> {y z}", "d -> {y z}"]
    file = written(variables=variables, graph=graph, desired="y - 2*z >= 0", identity="email")
    first, second = said(file, rows)
    assert "variables.patient_id: its name ends in id: is it a row number or an identifier" in first
    assert "identity: email names the cases, and looks like a person's data" in second
    assert "in tables and in the report" in second
    named = OwnProblem(file)
    assert all(each.endswith("@q.org") for each in named.identities)


def test_harmless_names_of_cases_are_not_warned_of(written):  # noqa: F811
    cases = [{"x": 0, "ward": "north"}, {"x": 1, "ward": "south"}, {"x": 2, "ward": "west"}]
    assert said(written(**QUIET, desired="y - 2*z >= 0", cases=cases, identity="ward")) == []


RANDOM = np.random.default_rng(3)
ROWS = pd.DataFrame({"x": RANDOM.normal(size=100), "group": RANDOM.choice(["a", "b"], 100), "n": range(100)})


def twice(frame, count):
    return pd.concat([frame, frame.head(count)], ignore_index=True)


@pytest.mark.parametrize(
    "frame",
    [
        ROWS,
        twice(ROWS, 5),
        twice(ROWS, 10).assign(entry=range(110)),
        pd.DataFrame({"yes": RANDOM.integers(0, 2, 500), "class": RANDOM.choice(list("abc"), 500)}),
        pd.DataFrame({"age": RANDOM.integers(20, 80, 500), "yes": RANDOM.integers(0, 2, 500)}),
        pd.DataFrame({"warm": RANDOM.normal(20, 3, 800).round(1), "yes": RANDOM.integers(0, 2, 800)}),
        pd.DataFrame(columns=["x"], dtype=float),
    ],
    ids=["none", "few", "other", "discrete", "ages", "rounded", "empty"],
)
def test_what_is_no_repetition_is_not_told(frame):
    assert repeated(frame) == ""


def test_missing_cells_agree_with_each_other():
    frame = twice(ROWS.assign(x=ROWS["x"].where(ROWS.index % 9 > 0)), 20)
    assert repeated(frame).startswith("20 of 120 rows (17%)")
