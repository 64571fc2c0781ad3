"""A session answers what is asked within the case's own bounds, and refuses the rest in words."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.api.what_if import WhatIf, outside
from rehearsal_torch.data.decision import CHANCE, Decision, Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.sensitivity import Sensitivity
from rehearsal_torch.evaluation.run_record import Recorded
from rehearsal_torch.explorer import rehearsal_session
from rehearsal_torch.explorer.charts import answer
from rehearsal_torch.explorer.open_run import Opened, beside, cautions_of, opened, source_of
from rehearsal_torch.explorer.rehearsal_session import CaseAsked, RehearsalSession, decision_answer
from rehearsal_torch.explorer.session_choice import session_for
from rehearsal_torch.reporting.page.page_content import Material
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.user_error import RequestError
from tests.toys.explored import TASK, rows, run_folder, small_model
from tests.toys.served import Served


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return RehearsalSession(opened(run_folder(tmp_path_factory.mktemp("runs") / "run")))


def test_the_page_is_described(session):
    told = session.describe()
    assert told["title"] == "the table: which action makes y ≤ 2 and y ≥ 1 likely?"
    assert told["fitted"].startswith("Answers of care, fitted to 120 rows")
    assert told["sets"] == [["a"], ["m"], ["a", "m"]]
    assert told["actions"]["a"]["bounds"] == [-4.0, 4.0]
    assert told["actions"]["m"]["levels"] == [-1.0, 0.0, 1.0]
    assert told["cases"] == [{"name": "anna", "words": "x 0.1"}, {"name": "bob", "words": "x -0.4"}]
    assert session.case_of(0)["bounds"] == {}
    second = session.case_of(1)
    assert (second["given"], second["bounds"]) == ({"x": -0.4}, {"a": [0.0, 0.5]})
    (field,) = session.opening()["controls"]["context"]
    assert (field["exact"], field["hint"][:10]) == ("0.1", "observed: ")
    assert told["question"][1] == "Wanted: an outcome with y ≤ 2 and y ≥ 1."
    assert told["cautions"] == ["these rows were simulated"]


def test_all_cases_can_be_chosen(session):
    many = RehearsalSession(opened(session.material.run.path))
    many.material.run.decisions.extend(many.material.run.decisions[:1] * 300)
    assert len(RehearsalSession(Opened(many.model, many.material)).describe()["cases"]) == 302


def test_findings_stand_beside_what_they_concern():
    kinds = {"identifier": "case", "support": "action", "range": "action", "refuted_graph": "answer"}
    card = {"findings": [{"kind": kind, "text": kind} for kind in kinds], "caution": "simulated"}
    of = Material(Recorded(Path("run")), card, {"training_faults": ["it stopped early"]})
    assert beside(of, ("no costs",)) == {
        "case": ["identifier"],
        "action": ["support", "range"],
        "answer": ["no costs", "it stopped early", "refuted_graph"],
    }
    assert cautions_of(of) == ["simulated"]


@pytest.mark.parametrize(
    ("source", "title"),
    [("rows/kettles.csv", "kettles.csv"), ("a sentence on data " * 5, "market"), (None, "market")],
)
def test_a_page_has_the_name_of_its_data(source, title):
    record = Recorded(Path("run"), choices={"dataset": "market"})
    assert source_of(Material(record, {"source": source})) == title


def test_the_held_out_score_of_a_problem_file_is_shown(session):
    score = {"desired_no_action": 1.0, "predicted_no_action": 0.8, "constant_no_action": 0.5}
    lines = [{**line, "score": score} for line in session.material.run.decisions]
    run = replace(session.material.run, decisions=lines, choices={"dataset": "problem"})
    told = RehearsalSession(Opened(session.model, replace(session.material, run=run)))
    assert told.describe()["held_out"].startswith("Held-out score of 2 untouched rows (Brier")
    seen = RehearsalSession(
        Opened(session.model, replace(session.material, run=replace(run, held_out_seen=True)))
    )
    assert "Held-out score of 2" not in seen.describe()["held_out"]


def test_every_candidate_set_has_a_claim_beside_that_of_the_chosen_one(session):
    form = CaseAsked(case=0, given={"x": 0.1}, set={"a": 0.2}, other={"m": 1.0})
    rows = session._pictured(form)["rows"]
    assert [row["name"] for row in rows] == ["a", "m", "a and m"]
    assert [row["chosen"] for row in rows] == [True, False, False]
    for row, setting in zip(rows, ({"a": 0.2}, {"m": 1.0}, {"a": 0.2, "m": 1.0}), strict=True):
        assert row["estimate"] == session.what_if(0, {"x": 0.1}, setting)["estimate"]


def test_a_case_is_picked_with_its_bounds_and_its_decision(session):
    fields = session._picked(CaseAsked(case=1, given={"x": 9.0}))["controls"]
    chosen = session.case_of(1)["set"]
    assert {field["name"]: float(field["exact"]) for field in fields["set"]} == chosen
    every = {field["name"]: field for field in fields["set"] + fields["other"]}
    assert (every["a"]["low"], every["a"]["high"]) == (0.0, 0.5)
    assert every["a"]["hint"] == "from 0 to 0.5; now 0.25"
    assert fields["context"][0]["exact"] == "-0.4"
    assert fields["note"] == "The bounds of a are those of this case."


def test_a_changed_context_is_a_case_of_its_own(session):
    form = CaseAsked(case=1, given={"x": -0.3}, set={"a": 0.5}, other={"m": 0.0})
    assert session._given(form) == (None, {"x": -0.3})
    fields = session._changed(form)["controls"]
    assert (fields["set"][0]["low"], fields["set"][0]["exact"]) == (-4.0, "0.5")
    assert fields["note"] == "It was changed: this is no longer case bob."
    assert session._given(form.model_copy(update={"given": {"x": -0.4}}))[0] == 1


def test_a_curve_is_computed_once_for_all_values_of_its_action(session, monkeypatch):
    session.charts(0, {"x": 0.2}, {"a": 0.2})
    monkeypatch.setattr(rehearsal_session, "curve", lambda *_: pytest.fail("computed again"))
    assert session.charts(0, {"x": 0.2}, {"a": 0.4})["curves"][0]["name"] == "a"


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


def test_what_cannot_be_answered_is_refused(session):
    with pytest.raises(RequestError, match="case: expected one of the 2 cases; got 2"):
        session.what_if(2, {"x": 0.1}, {"a": 0.2})


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
    assert session.case_of(1)["present"] == {"a": 0.25, "m": 1.0}
    assert session.case_of(0)["present"] == {}
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


CLAIM = Estimate(0.6, CHANCE, 0.5, 0.7, 0.95)
BEFORE = Estimate(0.4, CHANCE)
FAR = Finding("support", "the 5th nearest observation is 3.00 standard deviations away")
BEYOND = Finding("range", "age is 200; the observations lie between 19 and 79")
GAIN = Finding("gain", "not told apart from no action")
OLD = Finding("range", "age is 200")


def claim(**more):
    return WhatIf({"bmi": 27.0}, CLAIM, BEFORE, 20.0, 0.761, **more)


def test_a_claim_within_the_data_has_its_numbers_and_its_sentence():
    found = answer(claim(findings=(GAIN,)), [], {})
    assert found["estimate"] == {"point": 0.6, "of": CHANCE, "lower": 0.5, "upper": 0.7, "level": 0.95}
    assert found["baseline"] == {"point": 0.4, "of": CHANCE}
    assert found["sentence"] == (
        "With bmi at 27, the estimated chance of a desired outcome is 60 % (95% interval 50 % to 70 %), "
        "against 40 % with no action."
    )
    assert found["told"] == {
        "point": "60 %",
        "interval": "95% interval 50 % to 70 %",
        "baseline": "40 %",
        "unchanged": "",
    }
    assert (found["withheld"], found["warnings"], found["near"]) == ("", [GAIN.text], 0.76)


def test_how_much_of_a_claim_lies_beyond_the_rows_is_said():
    found = answer(claim(beyond=0.12, hull=(0.45, 0.75)), [], {})
    shown = "".join(found["beyond"].split())
    assert shown.startswith("For12%ofsuchcasesnorowisnearthissetting")
    assert shown.endswith("theintervalis45%to75%.")
    assert "the interval counts anything from 0 to 1 there" in found["sentence"]
    assert answer(claim(beyond=0.01, hull=(0.5, 0.7)), [], {})["sentence"].endswith("with no action.")
    assert answer(claim(), [], {})["beyond"] == ""
    assert answer(claim(beyond=0.9, hull=(0.0, 1.0), findings=(FAR,)), [], {})["beyond"] == ""


def test_outside_the_data_a_sentence_replaces_the_number():
    found = answer(claim(findings=(FAR, BEYOND, GAIN, Finding("graph", "doubtful"))), [OLD], {})
    assert found["sentence"] == ("outside the data: age is 200; the observations lie between 19 and 79")
    assert found["withheld"] == found["sentence"]
    assert found["estimate"] is found["baseline"] is found["near"] is None
    # What else says so stands below; what rests on the number does not.
    assert found["warnings"] == [FAR.text, "doubtful"]
    assert "0.6" not in str(found)
    assert "0.4" not in str(found)
    assert "60 %" not in str(found)
    assert "40 %" not in str(found)


def test_no_action_keeps_its_number_where_only_the_action_is_outside():
    found = answer(claim(findings=(FAR,)), [], {})
    assert found["estimate"] is None
    assert found["baseline"]["point"] == 0.4


def test_a_refusal_has_its_reason_and_no_number():
    found = answer(claim(refused="no support", against="no support", findings=(FAR,)), [], {})
    assert found["sentence"] == "refused: no support"
    assert found["estimate"] is None
    assert found["also"].startswith("outside the data: the 5th nearest")
    assert found["against"] == ""


def test_what_speaks_against_a_setting_is_said_beside_its_number():
    worse = "predicted worse than doing nothing"
    no_better = Finding("no_gain", "predicted no better than doing nothing (0.6)")
    found = answer(claim(against=worse, findings=(no_better,)), [], {})
    assert found["against"] == f"The method would not set this: {worse}"
    assert found["warnings"] == []
    assert found["estimate"]["point"] == 0.6


def test_the_range_comes_before_the_support():
    assert outside([FAR, BEYOND])[0].startswith("outside the data: age is 200")
    assert outside([FAR, BEYOND])[1] == [FAR.text]
    assert outside([GAIN]) == ("", [])


def test_a_decision_is_told_in_the_sentences_of_a_report():
    made = Decision(
        Alteration(("bmi",), torch.tensor([27.0])), 0.6, estimate=CLAIM, baseline=BEFORE, findings=(GAIN,),
        sensitivity=Sensitivity(1.5, "interval", 1.9, "age"),
    )  # fmt: skip
    found = decision_answer(made, {}, wanted="y is at most 1")
    assert found["headline"] == "May help: set bmi to 27."
    assert found["said"][0] == (
        "The estimated chance that y is at most 1 rises from 40 % with no action to 60 % (95% interval 50 % "
        "to 70 %)."
    )
    assert found["said"][1].startswith("A hidden common cause would have to make this action 1.50 times")
    assert (found["setting"], found["warnings"]) == ({"bmi": 27.0}, [GAIN.text])
    assert decision_answer(made, {}, units={"bmi": "kg/m2"})["headline"] == "May help: set bmi to 27 kg/m2."


def test_a_decision_outside_the_data_has_no_number_either():
    made = Decision(
        Alteration(("bmi",), torch.tensor([27.0])), 0.6, estimate=CLAIM, baseline=BEFORE, findings=(FAR,),
        sensitivity=Sensitivity(1.5, "interval", 1.9, "age"),
    )  # fmt: skip
    found = decision_answer(made, {})
    assert found["said"] == [
        "Outside the data: the 5th nearest observation is 3.00 standard deviations away."
    ]


def test_a_refused_decision_says_why():
    found = decision_answer(Decision(None, 0.0, reason=Finding("invalid", "no path"), baseline=BEFORE), {})
    assert found["headline"] == "Refused: the method cannot answer, and recommends nothing."
    assert found["said"][-1] == "Why: no path."
    assert found["setting"] is None


def test_present_values_are_named_beside_what_is_usual():
    found = replace(claim(), unchanged=Estimate(0.2, CHANCE, 0.1, 0.3, 0.95))
    (name,) = found.alteration
    said = answer(found, [], {name: 30.0})["sentence"]
    assert said.endswith(
        f", against 20 % (10 % to 30 %) with {name} left at 30. With what is usual in such a case, it is "
        "40 %."
    )
    unknown = answer(found, [OLD], {name: 30.0})["sentence"]
    assert unknown.endswith(f"against 20 % (10 % to 30 %) with {name} left at 30.")
    assert answer(found, [], {name: 30.0})["unchanged"]["point"] == 0.2
    assert answer(replace(found, findings=(FAR,)), [], {name: 30.0})["unchanged"] is None


def test_present_values_outside_the_data_have_no_number():
    found = replace(claim(), unchanged=Estimate(0.2, CHANCE, 0.1, 0.3, 0.95))
    far = Finding("range", "bmi is set to 90; the observations lie between 20 and 40")
    told = answer(found, [], {"bmi": 90.0}, [far])
    assert told["unchanged"] is None
    assert told["sentence"].endswith("against 40 % with no action.")
    assert told["warnings"] == [
        "leaving the present values has no number: outside the data: bmi is set to 90; the observations lie "
        "between 20 and 40"
    ]


ASKED = {"case": None, "given": {"x": 0.1}, "set": {"a": 0.2}}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    found = Served(session_for(run_folder(tmp_path_factory.mktemp("runs") / "run")))
    yield found
    found.end()


def test_answers_are_those_of_the_session(served):
    claim = answer(small_model().what_if({"x": 0.1}, {"a": 0.2}), [], {})
    html = served.ask("/api/what-if", ASKED)[2]
    assert html.count('<div class="case" id="answer"') == 1
    assert claim["told"]["point"] in html
    assert claim["told"]["interval"] in html
    assert served.ask("/api/charts", ASKED)[2].count('src="data:image/svg+xml;base64,') == 3
    found = served.ask("/api/recommend", {"case": 0, "given": {"x": 0.1}})[2]
    assert decision_answer(*small_model().decide({"x": 0.1}), {})["headline"] in found


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{", "JSON"),
        ("[" * 20_000, ""),
        ("[1]", "the question"),
        (ASKED | {"set": {"a": "much"}}, "set.a: Input should be a valid number"),
        (ASKED | {"set": {"a": True}}, "set.a"),
        ('{"given": {"x": NaN}, "set": {"a": 0}}', "given.x"),
        ('{"given": {"x": 1e999}, "set": {"a": 0}}', "given.x"),
        (ASKED | {"case": 1.5}, "case"),
        (ASKED | {"more": 1}, "more: Extra inputs are not permitted"),
        ({"given": {"x": 0.1}}, "expected an alteration"),
        (ASKED | {"levels": {"x": 1}}, "x: expected one of its 0 levels; got 1"),
        (ASKED | {"case": 2}, "case: expected one of the 2 cases; got 2"),
        (ASKED | {"set": {"a": 9}}, "a may be set within [-4, 4]; got 9"),
        (ASKED | {"given": {f"x{place}": 0.0 for place in range(1001)}}, "1000"),
    ],
)
def test_bad_questions_come_back_with_a_message(served, body, words):
    status, _, content = served.ask("/api/what-if", body)
    assert 400 <= status < 500
    assert words in content["message"]


def test_many_questions_at_once_have_the_same_answers(served):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(served.ask("/api/what-if", ASKED)[2])) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each == found[0] for each in found] == [True] * 8
