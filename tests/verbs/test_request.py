import pandas as pd
import polars as pl
import pytest

import rehearsal_torch as rt
from rehearsal_torch.method_choice.rule import chosen
from rehearsal_torch.method_choice.simplicity import SIMPLEST_FIRST
from rehearsal_torch.problems.rehearsal.loan import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.verbs import request as module
from rehearsal_torch.verbs.methods import RequestError
from rehearsal_torch.verbs.request import Request, check_workers, labels_of, rows_of
from tests.method_choice.test_rule import NOTHING, found
from tests.verbs.test_rehearse import TASK

FRAME = pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])


def test_rows_of_every_form_are_kept_and_dictionaries_become_a_frame(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    table = rt.Table.from_frame(FRAME)
    for given in (FRAME, pl.DataFrame({"a": [1.0]}), table, path, str(path)):
        assert rows_of(given, "table") is given
    for given in ({"a": 1.0}, [{"a": 1.0}], ({"a": 1.0},)):
        assert rows_of(given, "cases").to_dict("list") == {"a": [1.0]}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "cases: expected at least one row; got none"),
        (FRAME.head(0), "cases: expected at least one row; got none"),
        (rt.Table.from_frame(FRAME.head(0)), "cases: expected at least one row; got none"),
        ([1], "cases: expected a dictionary for each row; got a int"),
        (7, "cases: expected a data frame, a .csv file, a Table or a list of dictionaries; got a int"),
        ("absent.csv", "cases: there is no file absent.csv"),
    ],
)
def test_other_rows_are_refused(given, words):
    with pytest.raises(RequestError, match=words):
        rows_of(given, "cases")


def test_arguments_of_a_request_are_checked():
    request = Request.of(FRAME, rt.RehearsalTask.of(TASK), "care", 3, {})
    assert (request.task["context"], request.seed) == (["X1", "X2"], 3)
    with pytest.raises(RequestError, match=r"seed: expected a whole number of at least 0; got True"):
        Request.of(FRAME, TASK, "care", True, {})
    with pytest.raises(RequestError, match=r"'dataset.contexts' is the argument `cases`: give it there"):
        Request.of(FRAME, TASK, "care", 0, {"dataset.contexts": "cases.csv"})
    with pytest.raises(
        RequestError, match="task: expected a dictionary, a YAML file or a RehearsalTask; got"
    ):
        Request.of(FRAME, 3, "care", 0, {})
    with pytest.raises(RequestError, match="there is no method 'carre'"):
        Request.of(FRAME, TASK, "carre", 0, {}).configured()


def test_only_frames_of_pandas_have_labels():
    assert list(labels_of(FRAME)) == ["x", "y"]
    assert labels_of(pl.DataFrame({"a": [1.0]})) is None
    check_workers(2)
    with pytest.raises(RequestError, match="workers: expected a whole number of at least 1; got 0"):
        check_workers(0)


def test_auto_takes_a_method_and_keeps_the_settings_of_the_data(monkeypatch):
    rows = Loan(size=SampleSize(rows=80)).observations()
    asked = Request.of(rows, TASK, "auto", 0, {"dataset.validation": 0.2, "choose.cases": 4})
    config, method = asked.configured()
    assert (method, config.choose.cases) == (None, 4)
    given = found({"care": [0.6] * 4}, NOTHING)
    monkeypatch.setattr(module, "choose", lambda config, problem: chosen(given, 200, SIMPLEST_FIRST))
    request, config, method, choice = asked.settled(config, method, asked.problem(config))
    assert (request.method, dict(request.settings)) == ("care", {"dataset.validation": 0.2})
    assert (choice.chosen, "choose" in config) == ("care", False)
    assert config.surrogate._target_.endswith("LinearStructural")
    again = request.configured()
    assert request.settled(*again, None) == (request, *again, None)


def test_auto_takes_no_settings_of_a_method():
    asked = Request.of(FRAME, TASK, "auto", 0, {"objective.caution": 1.0})
    with pytest.raises(RequestError, match=r"'objective.caution' cannot be set here: expected .* choose"):
        asked.configured()
