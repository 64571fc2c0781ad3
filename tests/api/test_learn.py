"""Learning: the fit of `rehearse`, kept for later."""

import pytest

import rehearsal_torch as rt
from rehearsal_torch.user_error import RequestError, RequestWarning
from tests.api.test_rehearse import CASES, SMALL, TASK, plain
from tests.api.test_rehearsed import frame  # noqa: F401  the fixture
from tests.data.problem_file.conftest import written  # noqa: F401


@pytest.mark.slow
@pytest.mark.parametrize(("method", "settings"), [("care", {}), ("outcome_regression", SMALL)])
def test_a_learnt_method_decides_as_rehearse_does(frame, method, settings):  # noqa: F811
    model = rt.learn(frame, TASK, method=method, seed=3, **settings)
    whole = rt.rehearse(frame, TASK, CASES, method=method, seed=3, **settings)
    assert plain(model.decide(CASES)) == plain(whole)
    assert plain(whole.model.decide(CASES)) == plain(whole)
    assert (model.name, model.seed, model.task.context) == (method, 3, ("X1", "X2"))
    # Where rows speak is said of the cases, and a model that is learnt alone has its rows for some.
    cards = [dict(each.card) for each in (model, whole.model)]
    for card in cards:
        said = [each for each in card["data"].get("findings", ()) if each["kind"] != "support"]
        card["data"] = {**card["data"], "findings": said}
    assert cards[0] == cards[1]


@pytest.mark.slow
def test_held_out_rows_are_scored_on_the_card(frame):  # noqa: F811
    model = rt.learn(frame, TASK, method="care", **{"dataset.validation": 0.25})
    score = rt.rehearse(frame, TASK, CASES, method="care", **{"dataset.validation": 0.25}).untouched
    assert model.card["held_out"]["in words"] == score.line()
    assert model.card["held_out"]["brier"]["rows"] == 20
    assert model.card["data"]["rows"] == 60


@pytest.mark.slow
def test_bounds_of_each_case_that_a_model_does_not_keep_are_told(written):  # noqa: F811
    cases = [{"x": 0.1, "a": 0.4}]
    sets = {"method": "care", "candidates": [["a", "d"]]}
    file = written(cases=cases, bounds={"a": ["current - 0.1", "current"]}, **sets)
    model = rt.learn(file)
    words = (
        r"bounds: a model does not keep those that .*problem.yaml has for each case, .* a from -1 to 1: to"
    )
    with pytest.warns(RequestWarning, match=words) as told:
        model.decide([{"x": 0.1}])
    assert told[0].filename == __file__
    with pytest.warns(RequestWarning, match=words):
        rt.rehearse(file).model.decide([{"x": 0.1}])
    rt.learn(written(**sets)).decide([{"x": 0.1}])


def test_faults_are_told_before_a_fit(frame, monkeypatch):  # noqa: F811
    monkeypatch.setattr("rehearsal_torch.api.rehearse.learnt", lambda *_: pytest.fail("fitted"))
    with pytest.raises(ValueError, match=r"U1: all 80 values are 0.5"):
        rt.learn(frame.assign(U1=0.5), TASK)
    with pytest.raises(RequestError, match="method='greedy' decides for episodes"):
        rt.learn(frame, TASK, method="greedy")
