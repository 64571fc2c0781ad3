"""A session answers what is asked within the case's own bounds, and refuses the rest in words."""

from dataclasses import replace

import pytest

import rehearsal_torch as rt
from rehearsal_torch.explorer.recorded_model import Opened, opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.verbs.methods import RequestError
from tests.toys.explored import TASK, rows, run_folder, small_model


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return RehearsalSession(opened(run_folder(tmp_path_factory.mktemp("runs") / "run")))


def test_what_the_page_is_told(session):
    told = session.describe()
    assert (told["title"], told["method"], told["more"]) == ("run", "care", 0)
    assert told["fitted"].startswith("Answers of care, fitted to 120 rows")
    assert told["sets"] == [["a"], ["m"], ["a", "m"]]
    assert told["actions"]["a"]["bounds"] == [-4.0, 4.0]
    assert told["actions"]["m"]["levels"] == [-1.0, 0.0, 1.0]
    assert [one["name"] for one in told["cases"]] == ["anna", "bob"]
    assert told["cases"][0]["bounds"] == {}
    assert told["cases"][1] == {
        "name": "bob",
        "given": {"x": -0.4},
        "bounds": {"a": [0.0, 0.5]},
        "set": told["cases"][1]["set"],
        "present": {"a": 0.25, "m": 1.0},
    }
    low, high = told["context"][0]["range"]
    assert low < told["usual"]["x"] < high
    assert told["question"][1] == "Wanted: an outcome with y ≤ 2 and y ≥ 1."
    assert "rows: these rows were simulated" in told["cautions"]


def test_a_claim_is_that_of_what_if(session):
    found = session.what_if(None, {"x": 0.1}, {"a": 0.2})
    claim = small_model().what_if({"x": 0.1}, {"a": 0.2})
    assert found["estimate"] == claim.estimate.to_dict()
    assert found["baseline"] == claim.baseline.to_dict()


def test_outside_the_data_no_number_leaves_the_session(session):
    found = session.what_if(None, {"x": 50.0}, {"a": 0.2})
    assert found["sentence"].startswith("outside the data: x is 50; the observations lie between")
    assert found["estimate"] is found["baseline"] is None
    drawn = session.charts(None, {"x": 50.0}, {"a": 0.2})
    assert drawn["outcomes"] is drawn["baseline"] is None
    assert drawn["withheld"] is True
    assert set(drawn["curves"][0]["point"]) == {None}


def test_a_case_has_its_own_bounds(session):
    with pytest.raises(RequestError, match=r"a may be set within \[0, 0.5\]; got -0.5"):
        session.what_if(1, {"x": -0.4}, {"a": -0.5})
    assert session.what_if(0, {"x": -0.4}, {"a": -0.5})["setting"] == {"a": -0.5}
    (curve,) = session.charts(1, {"x": -0.4}, {"a": 0.25})["curves"]
    assert (curve["at"][0], curve["at"][-1]) == (0.0, 0.5)


def test_the_recommendation_is_that_of_the_method(session):
    (decision,) = small_model().decide({"x": 0.1})
    assert session.recommend(0, {"x": 0.1})["setting"] == decision.to_dict()["alteration"]
    assert session.recommend(0, {"x": 0.1})["status"] == decision.status


@pytest.mark.parametrize(
    ("case", "given", "setting", "words"),
    [
        (2, {"x": 0.1}, {"a": 0.2}, "case: expected one of the 2 cases; got 2"),
        (-1, {"x": 0.1}, {"a": 0.2}, "case: expected one of the 2 cases; got -1"),
        (None, {}, {"a": 0.2}, "the case: no value for x; expected x"),
        (None, {"x": 0.1, "z": 1.0}, {"a": 0.2}, "z is no variable of the context"),
        (None, {"x": 1e200}, {"a": 0.2}, r"x: expected a number of at most 1e\+150 in size"),
        (None, {"x": 0.1}, {"a": 7.0}, r"a may be set within \[-4, 4\]; got 7"),
        (None, {"x": 0.1}, {"m": 0.5}, "m may be set to"),
        (None, {"x": 0.1}, {"y": 0.5}, "expected values for one of the candidate sets"),
        (None, {"x": 0.1}, {}, "expected an alteration"),
    ],
)
def test_what_cannot_be_answered_is_refused(session, case, given, setting, words):
    with pytest.raises(RequestError, match=words):
        session.what_if(case, given, setting)


def test_a_method_without_claims_is_known_before_a_page_is_opened(session):
    session.first_answer()
    found = opened(session.material.run.path)
    silent = replace(found.model, method=replace(found.model.method, objective=lambda *_: None))
    with pytest.raises(RequestError, match="does not judge alterations that it has not chosen"):
        RehearsalSession(replace(found, model=silent)).first_answer()


def test_bounds_of_an_edited_folder_stay_within_the_task(session):
    assert session._bounds({"bounds": {"a": [-9, 0.5], "zzz": [0, 1], "m": "wide"}}) == {"a": [-4.0, 0.5]}
    assert session._bounds({"bounds": {"a": [None, 0.5]}}) == {"a": [-4.0, 0.5]}
    assert session._bounds({}) == {}


def test_present_values_stand_beside_the_claim(session):
    assert session.describe()["cases"][1]["present"] == {"a": 0.25, "m": 1.0}
    assert session.describe()["cases"][0]["present"] == {}
    found = session.what_if(1, {"x": -0.4}, {"a": 0.4})
    assert found["unchanged"] == small_model().what_if({"x": -0.4}, {"a": 0.25}).estimate.to_dict()
    assert session.what_if(None, {"x": -0.4}, {"a": 0.4})["unchanged"] is None
    assert session.charts(1, {"x": -0.4}, {"a": 0.4})["present"] == {"a": 0.25, "m": 1.0}


@pytest.mark.parametrize("far", [90.0, -3.5])
def test_leaving_what_lies_outside_the_data_has_no_number(session, far):
    session.recorded[1]["present"] = {"a": far}
    found = session.what_if(1, {"x": -0.4}, {"a": 0.4})
    assert found["estimate"] is not None
    assert found["unchanged"] is None
    assert found["warnings"][0].startswith("leaving the present values has no number: outside the data: ")
    assert "a left at" not in found["sentence"]


def test_a_claim_says_what_it_costs(session):
    priced = rt.learn(
        rows(), TASK | {"costs": {"a": {"column": "price", "usual": 0.0}, "m": 2}, "worth": 10}, method="care"
    )
    one = RehearsalSession(Opened(priced, session.material, session.notes))
    one.recorded[1] = {**one.recorded[1], "costs": {"a": 4.0}}
    found = one.what_if(1, {"x": -0.4}, {"a": 0.5})
    assert found["cost"] == pytest.approx(4 * 0.25)
    assert "It costs 1, nets " in found["sentence"]
    assert any(text.startswith("It costs ") for text in one.recommend(1, {"x": -0.4})["said"])
    # Of a case that somebody makes up no cost is stated.
    assert one.what_if(None, {"x": -0.4}, {"a": 0.5})["cost"] is None
