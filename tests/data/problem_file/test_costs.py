"""Costs in a problem file: what the task holds, the columns of the cases, and faults with their lines."""

from rehearsal_torch.data.problem_file.cases_builder import written_problem
from tests.data.problem_file.conftest import RIGHT


def priced(of_a, **of_d):
    about = {"role": "action", "range": [-1, 1]}
    d = RIGHT["variables"]["d"] | of_d
    return RIGHT["variables"] | {"a": about | {"cost": of_a}, "d": d}


def test_each_case_may_have_its_own_cost(written):
    cases = [{"x": 0, "price": 2.0}, {"x": 1, "price": 0}]
    found = written_problem(written(costs={"a": "price"}, cases=cases, worth=10))
    assert found.task.to_plain()["costs"] == {"a": {"column": "price"}}
