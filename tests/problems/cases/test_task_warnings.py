"""Findings about tables and tasks that can be decided by."""

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.problems.cases.bermuda import Bermuda
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from rehearsal_torch.problems.cases.changing_world import TwoStores
from rehearsal_torch.problems.cases.linear_examples import LinSyn1, Manage, Market, RideHailing
from rehearsal_torch.problems.cases.nonlinear_examples import Classes, Loan, NonSyn1, NonSyn2, Visits, YesNo
from rehearsal_torch.problems.cases.random_world import DrawnWorld
from rehearsal_torch.problems.cases.task_warnings import note_doubts
from rehearsal_torch.problems.cases.user_table import RehearsalTable
from rehearsal_torch.problems.nhanes.nhanes_data import Nhanes
from rehearsal_torch.problems.world_size import SampleSize
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


WORLDS = [
    Bermuda,
    LinSyn1,
    Manage,
    Market,
    RideHailing,
    Classes,
    Loan,
    NonSyn1,
    NonSyn2,
    Visits,
    YesNo,
    TwoStores,
]


def doubts_of(world):
    """What is doubtful in the observations of a world, as of a user's table."""
    found = Findings("")
    note_doubts(RehearsalTable(world.observations(), world.task.to_plain()), found)
    return found.warnings


@pytest.mark.parametrize("kind", [*WORLDS, Nhanes], ids=lambda kind: kind.__name__)
def test_nothing_is_doubtful_in_worlds(kind):
    assert doubts_of(kind(size=SampleSize(rows=1000, contexts=1), seed=0)) == []


@pytest.mark.parametrize("seed", range(61))
def test_nothing_is_doubtful_in_drawn_worlds(seed):
    assert doubts_of(DrawnWorld(size=SampleSize(rows=1000, contexts=1), seed=seed)) == []


def patients(stream):
    """300 patients, 51 of which have no outcome, and text classes."""
    severity, dose = stream.normal(50, 10, 300), stream.uniform(0, 10, 300)
    outcome = (100 + severity - 6 * dose + stream.normal(0, 10, 300)).round(2)
    outcome[np.argsort(dose)[:51]] = -9
    sex = stream.choice(["female", "male", "Male"], 300, p=[0.5, 0.45, 0.05])
    years = pd.get_dummies(pd.Series(stream.integers(0, 3, 300)), prefix="year", dtype=float)
    return pd.DataFrame({"x": severity, "sex": sex, "a": dose, "y": outcome}).join(years)


def test_doubts_reach_what_python_returns():
    rows = patients(np.random.default_rng(0))
    task = {
        "graph": ["{x sex year_0 year_1 year_2} -> {a y}", "a -> y"],
        "context": ["x", "sex", "year_0", "year_1", "year_2"],
        "box": {"a": [0.5, 9.5]},
        "region": {"y": [None, 120]},
        "codings": {"sex": "categorical"},
    }
    problem = RehearsalTable(pd.concat([rows, rows]), task)
    found = {
        each.text.partition(":")[0].partition(" (")[0]: dict(each.numbers) for each in problem.findings()
    }
    assert found["y"] == {"value": -9, "rows": 102, "share": 0.17}
    assert found["sex"] == {"classes": 2}
    assert found["300 of 600 rows"] == {"repeated": 300, "rows": 600}
    (words,) = [each for each in found if each.startswith("year_0, year_1, year_2 are 0 or 1, and no two of")]
    assert found[words] == {"columns": 3}
    assert problem.card()["findings"] == [each.to_dict() for each in problem.findings()]


def test_rows_that_may_count_are_told_by_the_file(written):  # noqa: F811
    rows = pd.DataFrame([[x, a] for x in range(10) for a in range(6)], columns=["x", "a"])
    rows["y"] = (rows["x"] + rows["a"]) % 4
    problem = {
        "variables": {
            "x": "context",
            "a": {"role": "action", "kind": "integer", "range": [0, 5]},
            "y": "outcome",
        },
        "graph": ["x -> {a y}", "a -> y"],
        "desired": "y >= 2",
    }
    (sentence,) = said(written(**problem), rows.assign(freq=1 + rows.index % 7))
    assert (
        "data: each row may stand for as many as its freq says (234 in all), and is counted once" in sentence
    )
    assert said(written(**problem), rows.assign(hour=1 + rows.index % 7)) == []


@pytest.mark.parametrize(("share", "warned"), [((0.8, 0.3, 0.7), True), ((0.8, 0.6, 0.4), False)])
def test_steps_of_an_ordinal_that_are_unequal_in_the_rows_are_warned_of(share, warned):
    levels, draws = np.arange(900) % 3, np.random.default_rng(4).random(900)
    frame = pd.DataFrame({"x": draws[::-1], "y": (draws < np.array(share)[levels]).astype(float)})
    frame["dose"] = np.array(["none", "some", "much"])[levels]
    task = {"graph": {"parents": {"dose": ["x"], "y": ["x", "dose"]}}, "context": ["x"]}
    task |= {"box": {"dose": {"values": ["none", "some", "much"]}}, "region": {"y": [0.5, None]}}
    task |= {"codings": {"dose": ["none", "some", "much"]}}
    texts = [finding.text for finding in RehearsalTable(frame, task).findings()]
    assert any("its levels do not go in equal steps" in text for text in texts) == warned
