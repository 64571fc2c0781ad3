"""A table of texts is decided for as the same table in numbers, to the last bit, and is told in texts."""

import numpy as np
import pandas as pd
import pytest

import rehearsal_torch as rt
from rehearsal_torch.data.problem_file.diagnostics import ProblemError
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.explorer.open_run import opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from rehearsal_torch.problems.cases.user_table import RehearsalTable

CODINGS = {"smoker": ["no", "yes"], "severity": ["low", "medium", "high"], "ward": "categorical"}
TEXTS = {
    "graph": ["{ward severity age} -> {smoker y}", "smoker -> y"],
    "context": ["ward", "severity", "age"],
    "box": {"smoker": {"values": ["no", "yes"]}},
    "region": "y = well",
    "codings": {**CODINGS, "y": ["ill", "well"]},
}
NUMBERS = {
    "graph": ["{w_B w_C severity age} -> {smoker y}", "smoker -> y", "w_B <-> w_C"],
    "context": ["w_B", "w_C", "severity", "age"],
    "box": {"smoker": {"values": [0, 1]}},
    "region": "y >= 0.5",
}
CASES = [
    {"ward": "B", "severity": "high", "age": 50.0, "smoker": "yes"},
    {"ward": "C", "severity": "low", "age": 40.0, "smoker": "no"},
    {"ward": "A", "severity": "medium", "age": 45.0, "smoker": "yes"},
]


def table():
    random = np.random.default_rng(3)
    ward = random.choice(list("ABC"), 90, p=[0.5, 0.3, 0.2])
    severity = random.integers(0, 3, 90)
    age = random.normal(50, 8, 90).round(1)
    smoker = (random.random(90) < 0.4 + 0.2 * (ward == "B")).astype(int)
    y = (50 - age) / 8 + (ward == "C") - 1.5 * smoker - 0.4 * severity + random.normal(size=90) > -1
    return pd.DataFrame(
        {
            "ward": ward,
            "severity": np.array(["low", "medium", "high"])[severity],
            "age": age,
            "smoker": np.where(smoker, "yes", "no"),
            "y": np.where(y, "well", "ill"),
        }
    )


def in_numbers(rows):
    frame = pd.DataFrame(rows)
    wards = {f"w_{each}": (frame["ward"] == each).astype(float) for each in "BC"}
    codes = {
        "severity": frame["severity"].map({"low": 0, "medium": 1, "high": 2}),
        "smoker": frame["smoker"].map({"no": 0, "yes": 1}),
        **({"y": frame["y"].map({"ill": 0, "well": 1})} if "y" in frame else {}),
    }
    return frame.drop(columns="ward").assign(**codes, **wards)


@pytest.fixture
def rows():
    return table()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
@pytest.mark.parametrize("method", ["care", "outcome_regression"])
def test_decisions_of_texts_are_those_of_numbers(rows, method):
    words = rt.rehearse(rows, TEXTS, CASES, method=method)
    numbers = rt.rehearse(in_numbers(rows), NUMBERS, in_numbers(CASES), method=method)
    assert [each.estimate for each in words] == [each.estimate for each in numbers]
    assert [each.baseline for each in words] == [each.baseline for each in numbers]
    assert [each.gain for each in words] == [each.gain for each in numbers]
    assert [each.status for each in words] == [each.status for each in numbers]
    frame = words.to_frame()
    assert frame["given/ward"].tolist() == ["B", "C", "A"]
    assert frame["given/severity"].tolist() == ["high", "low", "medium"]
    assert frame["present/smoker"].tolist() == ["yes", "no", "yes"]
    assert set(frame["set/smoker"].dropna()) <= {"no", "yes"}
    assert frame["set/smoker"].notna().tolist() == numbers.to_frame()["set/smoker"].notna().tolist()


@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
def test_a_saved_model_knows_its_texts(rows, tmp_path):
    model = rt.learn(rows, TEXTS, method="care")
    model.save(tmp_path / "model")
    again = rt.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.decide(CASES).to_frame(), model.decide(CASES).to_frame())
    assert again.task.to_plain() == model.task.to_plain()
    assert (
        again.what_if(CASES[0], {"smoker": "no"})
        .sentence()
        .startswith("With smoker at no, the estimated chance")
    )
    with pytest.raises(
        ValueError, match="ward: expected one of A, B, C; got 'D' in line 2: no row to learn from has"
    ):
        again.decide({**CASES[0], "ward": "D"})
    with pytest.raises(ValueError, match="smoker: expected one of no, yes; got 'No'"):
        again.what_if(CASES[0], {"smoker": "No"})
    with pytest.raises(ValueError, match="smoker: expected one of no, yes; got the number 1 in line 2"):
        again.decide({**CASES[0], "smoker": 1})


PROBLEM = """
data: table.csv
variables:
  ward: {role: context, kind: categorical}
  severity: {role: context, kind: ordinal, levels: [low, medium, high]}
  age: context
  smoker: {role: action, kind: binary}
  y: {role: outcome, kind: binary, levels: [ill, well]}
graph: ["{ward severity age} -> {smoker y}", "smoker -> y"]
desired: y = well
"""


def test_a_problem_file_of_texts_holds_the_same_numbers(rows, tmp_path):
    rows.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "problem.yaml").write_text(
        PROBLEM
        + "cases:\n- {ward: B, severity: high, age: 50, smoker: yes}\n- {ward: A, severity: low, age: 9}\n"
    )
    problem = OwnProblem(tmp_path / "problem.yaml")
    numbers = in_numbers(rows)
    order = ["w_B", "w_C", "severity", "age", "smoker", "y"]
    assert problem.task.graph.names == ("ward=B", "ward=C", "severity", "age", "smoker", "y")
    learnt, written = problem.observations().values.numpy(), numbers[order].to_numpy(float)
    np.testing.assert_array_equal(learnt[np.lexsort(learnt.T)], written[np.lexsort(written.T)])
    assert problem.given.tolist() == [[1, 0, 2, 50], [0, 0, 0, 9]]
    assert problem.present == [{"smoker": 1.0}, {}]
    assert problem.task.box.levels == {"smoker": (0.0, 1.0)}
    assert (
        problem.task.to_plain()
        == RehearsalTask.of({**TEXTS, "codings": problem.task.to_plain()["codings"]}).to_plain()
    )
    words = rt.rehearse(problem.problem.rows.frame, problem.task, CASES, method="care")
    assert words.to_frame()["given/ward"].tolist() == ["B", "C", "A"]


def test_rows_are_held_out_and_missing_texts_are_left_out(rows, tmp_path):
    rows.loc[[3, 8], "ward"] = None
    rows.loc[20, "smoker"] = None
    rows.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "problem.yaml").write_text(PROBLEM)
    problem = OwnProblem(tmp_path / "problem.yaml")
    assert (len(problem.observations()), problem.count()) == (70, 17)
    assert problem.problem.gaps.cells.columns == {"ward": 2, "smoker": 1}
    (tmp_path / "problem.yaml").write_text(PROBLEM + "missing: {impute: 3}\n")
    with pytest.raises(
        ProblemError, match="ward has 2 missing cells, and is one of 3 classes, which are not drawn"
    ):
        OwnProblem(tmp_path / "problem.yaml")
    rows["ward"] = rows["ward"].fillna("A")
    rows.loc[30, "severity"] = None
    rows.to_csv(tmp_path / "table.csv", index=False)
    problem = OwnProblem(tmp_path / "problem.yaml")
    drawn = problem.observations().columns(("severity", "smoker"))
    assert set(drawn[:, 0].tolist()) == {0.0, 1.0, 2.0}
    assert set(drawn[:, 1].tolist()) == {0.0, 1.0}


def test_rare_and_lost_classes_are_told(rows):
    rows.loc[0:2, "ward"] = "D"
    problem = RehearsalTable(rows, TEXTS, pd.DataFrame(CASES))
    assert "D in 3 of 90 rows" in " ".join(problem.facts().notes)
    assert any("D in 3 of 90" in finding.text for finding in problem.findings())
    rows["ward"] = [*rows["ward"][:-1].replace("D", "A"), "D"]
    with pytest.raises(
        ValueError, match="ward: none of 72 rows has the class D; the rows that have it are held out"
    ):
        RehearsalTable(rows, TEXTS, validation=0.2, kept="last")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
def test_other_graphs_name_the_variable_of_classes(rows):
    graph = {"parents": {"smoker": ["ward", "age", "severity"], "y": ["ward", "severity", "smoker", "age"]}}
    (first, *_) = rt.rehearse(rows, TEXTS, CASES, method="care", graphs=[graph])
    assert first.trace["graphs"]["graphs"] == 1
    assert first.trace["graphs"]["left_out"] == 0


def test_a_fault_of_a_task_with_texts_stands_alone():
    with pytest.raises(ValueError, match="expected one of ill, well") as told:
        RehearsalTable(table(), TEXTS | {"region": "y = fine"})
    assert "encode strings" not in str(told.value)
    assert "no column" not in str(told.value)


def test_the_page_refuses_a_context_that_no_case_has(tmp_path):
    codings = TEXTS["codings"] | {"ward": {"classes": ["A", "B", "C"], "reference": "A"}}
    model = rt.learn(table(), TEXTS | {"codings": codings}, method="care")
    session = RehearsalSession(opened(model.save(tmp_path / "saved")))
    known = {"ward=B": 0.0, "ward=C": 1.0, "severity": 1.0, "age": 50.0}
    assert session.what_if(None, known, {"smoker": 0.0})["estimate"]
    for odd in ({"ward=B": 0.5}, {"ward=B": 1.0}):
        with pytest.raises(ValueError, match="ward: expected one of A, B, C"):
            session.what_if(None, known | odd, {"smoker": 0.0})
