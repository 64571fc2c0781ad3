"""Rows of the data as cases, by a condition: which rows it takes, and what it says of faulty ones."""

import pandas as pd
import pytest

from rehearsal_torch.data.problem_file.case_filter import rows_where
from rehearsal_torch.data.problem_file.cases_builder import written_problem
from rehearsal_torch.data.problem_file.diagnostics import Findings, ProblemError
from rehearsal_torch.data.tables.reader import ReadTable
from tests.toys.linear_truth import chain

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
