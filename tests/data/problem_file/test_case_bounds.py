"""Cases from files and lists, and the bounds of each."""

import pandas as pd
import pytest

from rehearsal_torch.data.problem_file.case_bounds import (
    ranges_of,
    rows_where,
    unused_columns,
    with_needed,
    with_truths,
)
from rehearsal_torch.data.problem_file.cases_builder import written_problem
from rehearsal_torch.data.problem_file.cases_schema import DataForm, ProblemForm, VariableForm
from rehearsal_torch.data.problem_file.diagnostics import Findings, ProblemError
from rehearsal_torch.data.tables.reader import ReadTable
from rehearsal_torch.spaces.box import Box
from tests.toys.linear_truth import chain

BOX = Box.of({"bmi": [20, 35], "drug": {"values": [0, 1]}})
ROWS = ReadTable(pd.DataFrame({"bmi": [22.0, 34.0], "text": ["a", "b"]}), "cases.csv")


def test_bounds_are_cut_to_the_range_of_all_cases():
    found = Findings("p")
    made = ranges_of({"bmi": ["current - 3", "1.1*current"]}, BOX, ROWS, found)
    assert made["bmi"] == [(20.0, pytest.approx(24.2)), (31.0, 35.0)]
    assert ranges_of({"bmi": ["25", "30"]}, BOX, ROWS, found) == {"bmi": [(25.0, 30.0)] * 2}
    assert found.faults == []


def test_where_nothing_is_left_an_action_stays_and_each_such_case_is_named():
    found, beyond = Findings("p"), ReadTable(pd.DataFrame({"bmi": [22.0, 47.0]}), "cases.csv")
    made = ranges_of({"bmi": ["current", "current + 3"]}, BOX, beyond, found)
    assert made["bmi"] == [(22.0, 25.0), (47.0, 47.0)]
    assert found.faults == []
    assert found.warnings == [
        "bounds.bmi: line 3 of cases.csv: its own bounds hold nothing that may be set (from 20 to 35), so "
        "that it stays as it is"
    ]
    ranges_of({"bmi": ["current", "current - 1"]}, BOX, ROWS, found)
    assert "line 2, line 3 of cases.csv: [22, 21] has no number" in found.faults[0]
    ranges_of({"bmi": ["2", "3"]}, BOX, ROWS, found)
    assert "[2, 3] has nothing in common with the range [20, 35]" in found.faults[1]


def test_whole_numbers_are_cut_to_the_values_that_may_be_set():
    found, box = Findings("p"), Box.of({"bmi": {"values": [20, 23, 25, 30, 33]}})
    assert ranges_of({"bmi": ["current", "current + 3"]}, box, ROWS, found)["bmi"] == [
        (23.0, 25.0),
        (34.0, 34.0),
    ]
    assert found.faults == []


def test_cases_that_lack_what_is_needed_are_left_out_unless_all_do():
    form = ProblemForm.of_parts({"variables": VARIABLES | {"age": VariableForm(role="context")}})
    frame = pd.DataFrame({"age": [1.0, None, None], "bmi": [None, 2.0, None]})
    found = Findings("p")
    assert len(with_needed(ReadTable(frame, "cases.csv"), form, found).frame) == 1
    assert found.warnings == [
        "cases: age is missing in 2 of 3 cases (line 3, line 4): nothing is decided for these; measure it, "
        "and ask again"
    ]
    assert len(with_needed(ReadTable(frame.tail(2), "cases.csv"), form, found).frame) == 2


VARIABLES = {name: VariableForm(role="action") for name in ("bmi", "bp", "x")}


def told(columns, cases=(), **parts):
    found = Findings("problem.yaml", {})
    rows = ReadTable(pd.DataFrame([dict.fromkeys(columns, 1.0)]), "the cases")
    form = ProblemForm.of_parts({"variables": VARIABLES, "cases": list(cases), **parts})
    unused_columns(rows, form, found)
    return found.faults, found.warnings


def test_truths_are_read_where_rows_have_them():
    rows = pd.DataFrame({"smoker": [True, False], "old": [True, None], "x": [1, 0]})
    cases = pd.DataFrame({"smoker": [True, "no", None], "old": ["yes", "odd", 1], "x": [True, "no", 1]})
    made = with_truths(ReadTable(cases, "the cases"), rows).frame
    assert made["smoker"].fillna(-1).tolist() == [1.0, 0.0, -1]
    assert made["old"].tolist() == [1.0, "odd", 1]
    assert made["x"].tolist() == [True, "no", 1]


@pytest.mark.parametrize(("name", "meant"), [("bmii", "bmi"), ("BMI", "bmi"), ("Bp", "bp")])
def test_slips_are_faults_of_a_list_and_warnings_of_a_file(name, meant):
    faults, warnings = told([name])
    assert (len(faults), warnings) == (1, [])
    assert f"{name!r} is no variable; did you mean {meant!r}?" in faults[0]
    found = Findings("problem.yaml", {})
    rows = ReadTable(pd.DataFrame({name: [1.0]}), "cases.csv")
    form = ProblemForm.of_parts({"variables": VARIABLES, "cases": DataForm(file="cases.csv")})
    unused_columns(rows, form, found)
    assert found.faults == []
    assert f"did you mean {meant!r}?" in found.warnings[0]


def test_other_keys_of_a_list_are_warned_of_and_other_columns_of_a_file_are_not():
    faults, (warning,) = told(["remark", "bmi"])
    assert faults == []
    assert "'remark' is no variable, and not used" in warning
    for name in ("y", "bpx"):
        faults, (warning,) = told(["bmi", name])
        assert faults == [], "of a short name only upper and lower case may differ"
        assert f"{name!r} is no variable, and not used" in warning


FRAME = pd.DataFrame(
    {
        "age": [30, 61, 70, None, 80],
        "bmi now": [20.0, 25, 31, 40, 33],
        "smoker": ["no", "yes", None, "yes", "no"],
        "ward": ["A", "B 2", "A", "B 2", "C"],
        "sick": [True, False, True, True, False],
    }
)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("age > 60", [1, 2, 4]),
        ("age > 60 and smoker = yes", [1]),
        ("smoker != yes", [0, 4]),
        ("age < 40 or age >= 80 and ward == C", [0, 4]),
        ("60 < age <= 70", [1, 2]),
        ('ward in {A, "B 2"} and 2*`bmi now` - 10 >= 40', [1, 2, 3]),
        ("sick = true", [0, 2, 3]),
        ("age != 61", [0, 2, 4]),
    ],
)
def test_the_rows_that_fulfil_a_condition_are_cases(condition, rows):
    cases = rows_where(condition, ReadTable(FRAME, "t.csv", notes=("once",)), Findings("p.yaml"))
    assert cases.frame.index.tolist() == rows
    assert cases.notes == ()


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("agee > 3", "no column 'agee'; did you mean 'age'?"),
        ("ward < 3", "ward has texts, which have no order"),
        ("age + ward > 3", "ward has texts: compare it alone"),
        ("smoker = maybe", "smoker is never 'maybe'"),
        ("age > 200", "no row of t.csv is such that age > 200"),
        ("age", "expected a sign, such as > or ="),
        ("age > 60 und sick = yes", "expected a sign between two values"),
        ("__import__('os')", "expected"),
    ],
)
def test_a_faulty_condition_is_a_fault_of_cases(condition, text):
    found = Findings("p.yaml")
    assert rows_where(condition, ReadTable(FRAME, "t.csv"), found) is None
    ((path, words),) = [(fault.path, fault.words) for fault in found.faults]
    assert path == "cases"
    assert text in words


def test_a_problem_file_takes_its_cases_from_its_data(tmp_path):
    world = chain()
    pd.DataFrame(world.draw(60), columns=list(world.names)).to_csv(tmp_path / "t.csv", index=False)
    content = """
data: t.csv
variables: {x: context, a: {role: action, range: [-3, 3]}, m: other, y: outcome}
graph: [x -> a, a -> m, m -> y]
desired: y >= 0
cases: where x > 0.5
"""
    (tmp_path / "problem.yaml").write_text(content)
    problem = written_problem(tmp_path / "problem.yaml")
    assert (problem.cases.frame["x"] > 0.5).all()
    assert 0 < len(problem.cases.frame) < len(problem.rows.frame) == 60
    (tmp_path / "problem.yaml").write_text(content.replace("x > 0.5", "x > 50"))
    with pytest.raises(ProblemError, match="cases: no row of"):
        written_problem(tmp_path / "problem.yaml")
