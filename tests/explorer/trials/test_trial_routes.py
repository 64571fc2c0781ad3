"""Questions about trials over a real socket: answers of the session, and messages for everything else."""

import pytest

from tests.toys.explored_trials import file_of_trials, quick_session, system
from tests.toys.served import Served


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return quick_session(file_of_trials(tmp_path_factory.mktemp("trials") / "trials.json"))


@pytest.fixture(scope="module")
def served(session):
    found = Served(session)
    yield found
    found.end()


def test_the_page_is_that_of_trials(served):
    assert 'src="/page/trials.js"' in served.ask("/")[2]
    assert served.ask("/api/run")[2]["nodes"] == ["X", "Y"]


@pytest.mark.slow
def test_a_trial_is_proposed_told_and_counted(served, session):
    found = served.ask("/api/ask", {"count": 2, "fixed": {"b": 1}})[2]["made"]
    assert [each["trial"] for each in found] == [8, 9]
    assert [row["id"] for row in served.ask("/api/trials")[2]["pending"]] == [8, 9]
    nodes = system(found[0]["settings"])
    assert served.ask("/api/tell", {"trial": 8, "nodes": nodes})[2] == {"trial": 8, "notes": []}
    assert served.ask("/api/fail", {"trial": 9, "reason": "a leak"})[2]["trial"] == 9
    rows = served.ask("/api/trials")[2]["rows"]
    assert (rows[1]["nodes"], rows[0]["reason"]) == (nodes, "a leak")
    (other,) = served.ask("/api/ask", {"count": 1})[2]["made"]
    assert served.ask("/api/abandon", {"trial": other["trial"]})[0] == 200
    assert served.ask("/api/adopt", {})[2] == session.recommend({})


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/ask", {"count": 1.5}, "count"),
        ("/api/ask", {"count": 0}, "count: expected at least 1 action; got 0"),
        ("/api/ask", {"count": 1, "fixed": {"b": "1"}}, "fixed.b"),
        ("/api/ask", '{"count": 1, "fixed": {"b": 1e999}}', "fixed.b"),
        ("/api/adopt", {"count": 1}, "Extra inputs are not permitted"),
        ("/api/tell", {"nodes": {}}, "trial: Field required"),
        (
            "/api/tell",
            {"trial": None, "nodes": {"X": "?", "Y": 1}, "settings": {"a": 0.5, "b": 1}},
            "got '?'",
        ),
        ("/api/tell", {"trial": None, "nodes": {"X": True, "Y": 1}}, "nodes.X"),
        ("/api/tell", r'{"trial": null, "nodes": {"\ud800": 1, "Y": 1}}', "holds half of a sign"),
        ("/api/tell", r'{"trial": null, "nodes": {"X": 1, "Y": "\ud800"}}', "holds half of a sign"),
        ("/api/tell", {"trial": None, "nodes": {"X": "9" * 201, "Y": 1}}, "nodes.X"),
        ("/api/fail", {"trial": 1, "reason": "x" * 1001}, "reason"),
        ("/api/abandon", {"trial": 1}, "trial 1 is completed already"),
    ],
)
def test_bad_questions_come_back_with_a_message(served, path, body, words):
    status, _, content = served.ask(path, body)
    assert 400 <= status < 500
    assert words in content["message"]


def test_other_sites_get_nothing_and_change_nothing(served, session):
    before = session.file.read_bytes()
    assert served.ask("/api/ask", {"count": 1}, host="evil.example")[0] == 403
    assert served.ask("/api/ask", {"count": 1}, origin="http://evil.example")[0] == 403
    assert served.ask("/api/ask", {"count": 1}, **{"content-type": "text/plain"})[0] == 415
    assert served.ask("/api/trials", host="evil.example")[0] == 403
    assert session.file.read_bytes() == before
