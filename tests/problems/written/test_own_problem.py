"""A problem file as a data set: the same as its table and task, within the bounds of each case."""

import pandas as pd
import pytest
import torch
import yaml

from rehearsal_torch.data.problem_file.compiled import ProblemError, written_problem
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from rehearsal_torch.problems.written.own_problem import OwnProblem
from tests.data.problem_file.conftest import RIGHT, written  # noqa: F401


def test_it_is_the_table_with_the_task(written):  # noqa: F811
    file = written()
    problem = OwnProblem(file, seed=3)
    table = RehearsalTable(file.parent / "table.csv", written_problem(file).task, seed=3)
    assert problem.observations().fingerprint() == table.observations().fingerprint()
    assert problem.held_out().fingerprint() == table.held_out().fingerprint()
    assert problem.count() == table.count() == 24
    assert problem.case(5).facts() == table.case(5).facts()
    assert problem.card() == table.card()


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
        "bounds": {"a": pytest.approx([-1.0, -0.55])},
    }
    assert [problem.case(place).identity for place in range(2)] == ["1", "2"]


def test_what_no_action_means_is_said_where_present_values_are_known(written):  # noqa: F811
    problem = OwnProblem(written(cases=[{"x": 0, "a": 0.5}, {"x": 1, "a": -0.5}]))
    assert list(problem.present) == ["a"]
    assert problem.present["a"].tolist() == [0.5, -0.5]
    assert "the present values of a count for bounds alone" in problem.card()["caution: no action"]
    assert problem.notes()[-1] == problem.card()["caution: no action"]
    without = OwnProblem(written(cases=[{"x": 0}]))
    assert without.present == {}
    assert "caution: no action" not in without.card()


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
    assert "separated by semicolons and written with decimal commas" in problem.notes()[0]


def test_faults_are_those_of_the_file(written):  # noqa: F811
    with pytest.raises(ProblemError, match=r"variables\.a: an action needs range"):
        OwnProblem(written(variables=RIGHT["variables"] | {"a": "action"}))
    with pytest.raises(ValueError, match="validation: expected a share"):
        OwnProblem(written(), validation=2)
    assert yaml.safe_load(written().read_text())["data"] == "table.csv"
