import numpy as np
import pandas as pd
import polars as pl
import pytest

import rehearsal_torch as rt
from rehearsal_torch.api.rehearsal_request import Request, check_workers, labels_of, rows_of
from rehearsal_torch.data.problem_file.diagnostics import ProblemError
from tests.api.test_rehearse import TASK
from tests.data.problem_file.conftest import written  # noqa: F401

FRAME = pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])


def test_rows_of_every_form_are_kept_and_dictionaries_become_a_frame(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    table = rt.Table.from_frame(FRAME)
    for given in (FRAME, pl.DataFrame({"a": [1.0]}), table, path, str(path)):
        assert rows_of(given, "table") is given
    for given in ({"a": 1.0}, [{"a": 1.0}], ({"a": 1.0},)):
        assert rows_of(given, "cases").to_dict("list") == {"a": [1.0]}


def test_arguments_of_a_request_are_checked():
    request = Request.of(FRAME, rt.RehearsalTask.of(TASK), "care", 3, {})
    assert (request.task.context, request.seed) == (("X1", "X2"), 3)
    assert type(Request.of(FRAME, TASK, "care", np.uint8(3), {}).seed) is int


def test_only_frames_of_pandas_have_labels():
    assert list(labels_of(FRAME)) == ["x", "y"]
    assert labels_of(pl.DataFrame({"a": [1.0]})) is None
    check_workers(2)


@pytest.mark.slow
def test_a_problem_file_has_rows_task_cases_and_method(written):  # noqa: F811
    assert Request.of(written(), None, None, 0, {}).method == "outcome_regression"
    file = written(cases=[{"x": 0.2, "a": 0.5, "d": 1}], method="care", candidates=[["a", "d"]])
    request = Request.of(file, None, None, 0, {})
    assert (request.method, len(request.rows.frame)) == ("care", 120)
    assert Request.of(file, None, "cme", 0, {}).method == "cme"
    config, _ = request.configured()
    assert request.problem(config).case(0).present == {"a": 0.5, "d": 1.0}
    (decision,) = rt.rehearse(file)
    assert decision.alteration is not None or decision.undecided
    # Other cases decide by the same rows and the same task.
    one = rt.rehearse(file, cases={"x": 0.2, "a": 0.5, "d": 1})[0]
    assert one.value == decision.value


@pytest.mark.slow
def test_bounds_of_a_file_are_for_its_own_cases(written):  # noqa: F811
    cases = [{"x": 0.2, "a": 0.5, "d": 1}]
    bounds = {"a": ["current - 0.1", "current"]}
    file = written(cases=cases, bounds=bounds, method="care", candidates=[["a", "d"]])
    assert rt.learn(file).method is not None
    # Other cases get theirs from their own columns.
    config, _ = Request.of(file, None, None, 0, {}).configured()
    others = pd.DataFrame({"x": [0.2, 0.3], "a": [-0.5, 0.95], "d": [1, 2]})
    problem = Request.of(file, None, None, 0, {}).problem(config, others)
    assert [problem.case(place).feasible["a"] for place in (0, 1)] == [
        pytest.approx((-0.6, -0.5)),
        pytest.approx((0.85, 0.95)),
    ]
    with pytest.raises(
        ProblemError, match=r"bounds\.a: the present value: the cases: no column 'a'; there are x"
    ):
        rt.rehearse(file, cases={"x": 0.2})
    beyond = Request.of(file, None, None, 0, {}).problem(
        config, pd.DataFrame({"x": [0.2], "a": [2.0], "d": [1]})
    )
    assert beyond.case(0).feasible["a"] == (2.0, 2.0)
