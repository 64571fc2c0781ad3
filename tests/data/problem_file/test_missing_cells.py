"""Missing cells by the part `missing` of a problem file: left out and counted, refused, or imputed."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from rehearsal_torch.data.problem_file.cases_builder import ProblemError, written_problem
from rehearsal_torch.data.problem_file.missing_cells import dependence, doubts, holm, missing_cells
from tests.data.problem_file.conftest import RIGHT, table


@pytest.fixture
def gaps(written):
    """Writes the problem, and the table with missing cells; `name` and `w` are not in the graph."""

    def write(holes, frame=None, **changes):
        file = written(**changes)
        rows = (table() if frame is None else frame).assign(w=np.nan)
        for name, places in holes.items():
            rows.loc[places, name] = np.nan
        rows.to_csv(file.parent / "table.csv", index=False)
        return file

    return write


def faults_of(file):
    with pytest.raises(ProblemError) as told:
        written_problem(file)
    return list(told.value.faults)


def test_incomplete_rows_are_left_out_and_counted_by_default(gaps):
    problem = written_problem(gaps({"x": [3, 4], "z": [4, 9, 20]}))
    assert len(problem.rows.frame) == 116
    assert not {3, 4, 9, 20} & set(problem.rows.frame.index)
    assert problem.rows.notes == (
        "4 of 120 rows have a missing cell and are left out (missing cells by column: z: 3, x: 2)",
    )
    assert problem.gaps.card() == {"missing cells": "4 of 120 rows, left out; by column: z: 3, x: 2"}
    assert not [each for each in problem.findings.warnings if "missing" in each]
    assert problem.gaps.imputations == 0


def test_columns_that_are_not_used_may_have_gaps(gaps):
    variables = RIGHT["variables"] | {"w": "other"}
    problem = written_problem(gaps({}, variables=variables))
    assert len(problem.rows.frame) == 120
    assert problem.gaps.card() == {}
    refused = faults_of(gaps({}, variables=variables, missing="refuse"))
    assert len(refused) == 1
    assert "variables.w: column 'w'" in refused[0]
    assert "120 of 120 values are missing" in refused[0]


def test_imputed_rows_stay_and_are_counted(gaps):
    problem = written_problem(gaps({"x": [3, 4], "z": [4, 9]}, missing={"impute": 7}))
    assert len(problem.rows.frame) == 120
    assert problem.gaps.imputations == 7
    (note,) = problem.rows.notes
    assert note == (
        "3 of 120 rows have a missing cell; missing cells are imputed 7 times, from the joint distribution "
        "of all used columns (missing cells by column: x: 2, z: 2)"
    )
    assert problem.gaps.doubts == ()
    card = "3 of 120 rows, imputed 7 times; by column: x: 2, z: 2"
    assert problem.gaps.card() == {"missing cells": card}
    whole = written_problem(gaps({}, missing={"impute": 7}))
    assert (whole.gaps.imputations, whole.rows.notes) == (0, ())


def test_p_values_are_adjusted_step_down():
    assert holm({"a": 0.04, "b": 0.01, "c": 0.03}) == pytest.approx({"b": 0.03, "c": 0.06, "a": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"b": 1.0, "a": 1.0}
    assert holm({}) == {}


def drawn(slope, rows=400):
    random = np.random.default_rng(3)
    x, y, u = random.normal(size=(3, rows))
    missing = random.random(rows) < 1 / (1 + np.exp(2 - slope * x))
    return pd.DataFrame({"x": x, "y": np.where(missing, np.nan, y), "u": u})


def test_dependence_on_an_observed_column_is_found_and_named():
    frame = drawn(1.5)
    found = missing_cells(frame, ["x", "y", "u"])
    p_values = dependence(frame, ["x", "y", "u"], found.complete)
    # y has no value in incomplete rows, so that two columns are compared.
    plain = mannwhitneyu(frame["x"][found.complete], frame["x"][~found.complete]).pvalue
    assert list(p_values) == ["x", "u"]
    assert p_values["x"] == pytest.approx(2 * plain)
    assert p_values["x"] < 1e-6 < p_values["u"]
    many, depends = doubts(found, frame, ["x", "y", "u"])
    assert many == (
        f"{found.incomplete / 400:.1%} of the rows are left out because a cell is missing (y: "
        f"{found.incomplete}): "
        "estimates are those of the complete rows; missing: {impute: 20} uses the others as well"
    )
    assert depends.startswith("whether a row is complete depends on x (p = ")
    assert "Mann-Whitney tests adjusted by Holm's method" in depends


def test_chance_is_seldom_taken_for_dependence():
    warned = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        frame = pd.DataFrame(random.normal(size=(60, 4)), columns=list("abcd"))
        frame.loc[random.random(60) < 0.2, "d"] = np.nan
        found = missing_cells(frame, list("abcd"))
        warned += any("depends" in each for each in doubts(found, frame, list("abcd")))
    # At most 2 of 40 are expected; 7 or more have a probability below .005.
    assert warned < 7


def test_few_missing_cells_are_no_reason_to_doubt():
    frame = pd.DataFrame({"x": np.arange(100.0), "y": [None] * 4 + [1.0] * 96})
    found = missing_cells(frame, ["x", "y"])
    # Four incomplete rows are too few to be compared.
    assert dependence(frame, ["x", "y"], found.complete) == {}
    assert doubts(found, frame, ["x", "y"]) == []
    assert doubts(missing_cells(frame, ["x"]), frame, ["x"]) == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("complete", "28 rows are left out for this column alone"),
        ({"impute": 2}, "what is filled in for them rests on the others alone"),
    ],
)
def test_a_column_of_which_many_cells_are_missing_is_told(gaps, rule, words):
    file = gaps({"z": list(range(30)), "x": [3, 4, 50]}, missing=rule)
    told = written_problem(file).findings.findings
    (of_column,) = [each for each in told if each.text.startswith("z: ")]
    assert of_column.text.startswith(f"z: 30 of 120 cells (25%) are missing; {words}")
    assert of_column.numbers == {"share": 0.25, "missing": 30, "alone": 28}
    if rule == "complete":
        (of_rows,) = [each for each in told if "of the rows are left out because" in each.text]
        assert of_rows.numbers == {"rows": 120, "incomplete": 31}
