"""A problem file as a data set: the same as its table and task, within the bounds of each case."""

import pandas as pd
import pytest
import torch

from rehearsal_torch.data.problem_file.cases_builder import written_problem
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from rehearsal_torch.problems.cases.user_table import RehearsalTable
from tests.data.problem_file.conftest import RIGHT, written  # noqa: F401


def test_it_is_the_table_with_the_task(written):  # noqa: F811
    file = written()
    problem = OwnProblem(file, seed=3)
    table = RehearsalTable(file.parent / "table.csv", written_problem(file).task, seed=3)
    assert problem.observations().fingerprint() == table.observations().fingerprint()
    assert problem.held_out().fingerprint() == table.held_out().fingerprint()
    assert problem.count() == table.count() == 24
    assert problem.case(5).facts() == table.case(5).facts()
    # The file has other columns, too.
    assert {**problem.card(), "findings": []} == {**table.card(), "findings": []}


def test_each_case_has_its_own_bounds(written):  # noqa: F811
    cases = [{"x": 0, "a": 0.5}, {"x": 1, "a": -0.8}]
    problem = OwnProblem(written(cases=cases, bounds={"a": ["current - 0.25", "current + 0.25"]}))
    assert [problem.case(place).feasible["a"] for place in range(2)] == [
        pytest.approx((0.25, 0.75)),
        pytest.approx((-1.0, -0.55)),
    ]
    assert problem.case(1).feasible["d"] == (0.0, 3.0)
    assert problem.case(1).facts() == {
        "identity": "2",
        "given": {"x": 1.0},
        "present": {"a": -0.8},
        "bounds": {"a": pytest.approx([-1.0, -0.55])},
    }
    assert [problem.case(place).identity for place in range(2)] == ["1", "2"]


def test_held_out_rows_are_bounded_by_their_own_values(written):  # noqa: F811
    file = written(
        bounds={"a": ["current - 0.1", "current + 5"]},
        variables=RIGHT["variables"] | {"a": {"role": "action", "range": [-9, 9]}},
    )
    problem, rows = OwnProblem(file, seed=1), pd.read_csv(file.parent / "table.csv")
    for place in range(problem.count()):
        case = problem.case(place)
        value = float(rows["a"][int(case.identity) - 2])
        assert case.feasible["a"] == pytest.approx((value - 0.1, value + 5))


def test_lines_of_the_file_name_the_cases(written):  # noqa: F811
    file = written(cases="cases.csv")
    (file.parent / "cases.csv").write_text("x;a\n\n0,5;1\n1;1\n")
    problem = OwnProblem(file)
    assert [problem.case(place).identity for place in range(2)] == ["3", "4"]
    torch.testing.assert_close(problem.case(0).given["x"], torch.tensor(0.5, dtype=torch.float64))
    assert "separated by semicolons and written with decimal commas" in problem.facts().notes[0]


def holes(file, rows=(3, 50, 77)):
    frame = pd.read_csv(file.parent / "table.csv")
    frame.loc[list(rows), "y"] = None
    frame.to_csv(file.parent / "table.csv", index=False)
    return file


def test_rows_with_gaps_are_left_out_of_rows_and_cases(written):  # noqa: F811
    problem = OwnProblem(holes(written()))
    assert len(problem.every) == 117
    assert problem.facts().imputations == 0
    assert not {"5", "52", "79"} & set(problem.identities)
    assert problem.card()["missing cells"] == "3 of 120 rows, left out; by column: y: 3"
    assert "3 of 120 rows have a missing cell and are left out" in problem.facts().notes[0]


def test_imputed_rows_are_learnt_from_and_complete_ones_held_out(written):  # noqa: F811
    file = written(
        missing={"impute": 3},
        bounds={"a": ["current - 0.1", "current + 5"]},
        variables=RIGHT["variables"] | {"a": {"role": "action", "range": [-9, 9]}},
    )
    problem = OwnProblem(holes(file))
    assert problem.facts().imputations == 3
    table = problem.observations()
    assert len(table) == 120 - 23
    assert int(table.missing.sum()) == 3
    assert len(table.completed) == 3
    assert not {"5", "52", "79"} & set(problem.identities)
    rows = pd.read_csv(file.parent / "table.csv")
    for place in range(problem.count()):
        case = problem.case(place)
        row = rows.loc[int(case.identity) - 2]
        assert float(case.given["x"]) == pytest.approx(row["x"])
        assert case.feasible["a"] == pytest.approx((row["a"] - 0.1, row["a"] + 5))
    assert problem.seen_by(table.fingerprint()) is False
    assert len(problem.every) == 120


def test_no_incomplete_row_of_a_held_out_unit_is_learnt_from(written):  # noqa: F811
    file = written(missing={"impute": 2}, unit="name")
    frame = pd.read_csv(file.parent / "table.csv").assign(name=[f"u{row // 10}" for row in range(120)])
    frame.loc[[row for row in range(120) if row % 10 == 3], "y"] = None
    frame.to_csv(file.parent / "table.csv", index=False)
    problem = OwnProblem(file)
    assert not set(problem.past_units) & set(problem.aside_units)
    assert len(problem.past_units) == len(problem.observations()) == 90
    assert len(problem.aside_units) == 27
