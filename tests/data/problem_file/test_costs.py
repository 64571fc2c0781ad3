"""Costs in a problem file: what the task holds, the columns of the cases, and faults with their lines."""

from rehearsal_torch.data.problem_file.cases_builder import written_problem
from tests.data.problem_file.conftest import RIGHT, table


def priced(of_a, **of_d):
    about = {"role": "action", "range": [-1, 1]}
    d = RIGHT["variables"]["d"] | of_d
    return RIGHT["variables"] | {"a": about | {"cost": of_a}, "d": d}


def test_costs_and_worth_become_those_of_the_task(written):
    found = written_problem(written(variables=priced({"up": 3, "down": 1}, cost=5), worth=100))
    assert found.task.to_plain()["costs"] == {"a": {"up": 3.0, "down": 1.0}, "d": {"up": 5.0, "down": 5.0}}
    assert found.task.worth == 100.0
    assert not [each for each in found.findings.warnings if "cost" in each]


def test_each_case_may_have_its_own_cost(written):
    cases = [{"x": 0, "price": 2.0}, {"x": 1, "price": 0}]
    found = written_problem(written(costs={"a": "price"}, cases=cases, worth=10))
    assert found.task.to_plain()["costs"] == {"a": {"column": "price"}}


def test_held_out_rows_have_the_costs_of_the_table(written, tmp_path):
    path = written(costs={"a": "price"}, worth=10)
    table().assign(price=1.5).to_csv(tmp_path / "table.csv", index=False)
    assert written_problem(path).task.to_plain()["costs"] == {"a": {"column": "price"}}
