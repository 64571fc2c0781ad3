"""Missing cells by the part `missing` of a problem file: left out and counted, refused, or imputed."""

from importlib.metadata import version

import numpy as np
import pytest

from rehearsal_torch.data.missing import chained
from rehearsal_torch.data.missing.imputation import Imputing
from rehearsal_torch.data.problem_file.compiled import ProblemError, written_problem
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
    assert note.startswith("3 of 120 rows have a missing cell; missing cells are imputed 7 times")
    card = "3 of 120 rows, imputed 7 times (by: own); by column: x: 2, z: 2"
    assert problem.gaps.card() == {"missing cells": card}
    whole = written_problem(gaps({}, missing={"impute": 7}))
    assert (whole.gaps.imputations, whole.rows.notes) == (0, ())


def test_chained_equations_are_named_where_they_are_asked_for(gaps, monkeypatch):
    asked = {"impute": 7, "by": "statsmodels"}
    problem = written_problem(gaps({"x": [3, 4], "z": [4, 9]}, missing=asked))
    assert problem.gaps.imputing == Imputing(7, "statsmodels")
    assert problem.rows.notes == (
        "3 of 120 rows have a missing cell; missing cells are imputed 7 times, by statsmodels' chained "
        "equations (missing cells by column: x: 2, z: 2)",
    )
    assert problem.gaps.card()["missing cells"] == (
        f"3 of 120 rows, imputed 7 times (by: statsmodels {version('statsmodels')}); by column: x: 2, z: 2"
    )
    # z is a function of a and d; x is nearly one of a and y.
    (close,) = problem.gaps.doubts
    assert close.startswith("by: statsmodels loosens close dependences")
    assert "standard deviation (x: 0.096, z: 0.000), so that claims may be off" in close
    assert f"missing: {close}" in problem.findings.warnings[0]
    assert problem.gaps.card()["caution: missing cells 1"] == close
    own = written_problem(gaps({"x": [3]}, missing={"impute": 7, "by": "own"}))
    assert own.gaps.doubts == ()
    assert own.gaps.imputing == Imputing(7) == Imputing(7, "own")
    assert own.rows.notes[0].endswith(
        "imputed 7 times, from the joint distribution of all used columns (missing cells by column: x: 1)"
    )
    monkeypatch.setattr(chained, "installed", lambda: "")
    (told,) = faults_of(gaps({"x": [3]}, missing=asked))
    words = "missing: by: statsmodels needs statsmodels 0.15 or later; it is not installed: pip install"
    assert words in told
    assert written_problem(gaps({"x": [3]}, missing={"impute": 7})).gaps.imputations == 7


def test_cases_need_their_context_alone(gaps):
    cases = [{"x": 1.0}, {"y": 2.0}, {"y": 1.0}]
    (told,) = faults_of(gaps({}, cases=cases))
    words = "x is missing in 2 of 3 cases, first in case 2 (line 26): a case needs every"
    assert words in told
    assert "or write x: other" in told
    assert len(written_problem(gaps({}, cases=[{"x": 1.0}, {"x": 2.0, "y": 3.0}])).cases.frame) == 2
