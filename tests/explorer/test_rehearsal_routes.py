"""Questions about a rehearsal method over a real socket: answers of the session, and messages for slips."""

import pytest

from rehearsal_torch.explorer.sessions import session_for
from tests.toys.explored import run_folder, small_model
from tests.toys.served import Served

ASKED = {"case": None, "given": {"x": 0.1}, "set": {"a": 0.2}}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    found = Served(session_for(run_folder(tmp_path_factory.mktemp("runs") / "run")))
    yield found
    found.end()


def test_answers_are_those_of_the_session(served):
    claim = small_model().what_if({"x": 0.1}, {"a": 0.2})
    assert served.ask("/api/what-if", ASKED)[2]["estimate"] == claim.estimate.to_dict()
    assert served.ask("/api/charts", ASKED)[2]["curves"][0]["name"] == "a"
    (decision,) = small_model().decide({"x": 0.1})
    asked = {"case": 0, "given": {"x": 0.1}}
    assert served.ask("/api/recommend", asked)[2]["setting"] == decision.to_dict()["alteration"]
    assert served.ask("/api/run")[2]["method"] == "care"


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
        ({"given": {"x": 0.1}}, "set: Field required"),
        (r'{"given": {"\ud800": 1}, "set": {"a": 0}}', "holds half of a sign"),
        (ASKED | {"set": {"a": 9}}, "a may be set within [-4, 4]; got 9"),
        (ASKED | {"case": 7}, "case: expected one of the 2 cases; got 7"),
        (ASKED | {"given": {f"x{place}": 0.0 for place in range(1001)}}, "1000"),
    ],
)
def test_bad_questions_come_back_with_a_message(served, body, words):
    status, _, content = served.ask("/api/what-if", body)
    assert 400 <= status < 500
    assert words in content["message"]
