"""Questions about episodes over a real socket: answers of the session, and messages for everything else."""

import threading

import pytest

from rehearsal_torch.explorer.sessions import session_for
from rehearsal_torch.explorer.turns import Turns
from tests.toys.explored_episodes import episodes_run
from tests.toys.served import Served


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return session_for(episodes_run(tmp_path_factory.mktemp("episodes") / "run"))


@pytest.fixture(scope="module")
def served(session):
    found = Served(session)
    yield found
    found.end()


def test_the_page_is_that_of_episodes(served):
    status, form, content = served.ask("/")
    assert (status, form) == (200, "text/html; charset=utf-8")
    assert 'src="/page/episodes.js"' in content
    assert served.ask("/api/run")[2]["subject"] == "machine"


def test_answers_are_those_of_the_session(served, session):
    episode = served.ask("/api/episode", {"episode": 1})[2]
    assert episode == session.episode(1)
    asked = {"episode": 1, "changes": 2, "fixed": [0], "seconds": 30}
    found = served.ask("/api/look-back", asked)[2]
    assert {**found, "seconds": 0} == {**session.look_back(1, 2, [0], 30.0), "seconds": 0}
    replayed = served.ask("/api/replay", {"episode": 1, "actions": found["actions"]})[2]
    assert replayed["value"] == found["value"]


def test_questions_about_cases_are_not_answered_here(served):
    assert served.ask("/api/what-if", {"given": {}, "set": {}})[0] == 404


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/episode", {}, "episode: Field required"),
        ("/api/episode", {"episode": "0"}, "episode: Input should be a valid integer"),
        ("/api/look-back", {"episode": 0, "changes": 1.5, "seconds": 5}, "changes"),
        ("/api/look-back", '{"episode": 0, "changes": 1, "seconds": 1e999}', "seconds"),
        ("/api/look-back", {"episode": 0, "changes": 1, "seconds": 5, "budget": 1}, "Extra inputs"),
        ("/api/replay", {"episode": 0, "actions": [0] * 10_001}, "actions"),
    ],
)
def test_bad_questions_come_back_with_a_message(served, path, body, words):
    status, _, content = served.ask(path, body)
    assert 400 <= status < 500
    assert words in content["message"]


def test_a_question_that_comes_meanwhile_is_turned_away(served, session):
    begun, ended = threading.Event(), threading.Event()
    session._turns = Turns(0.01)

    def holding():
        with session._turns.turn():
            begun.set()
            ended.wait(20)

    other = threading.Thread(target=holding)
    other.start()
    begun.wait(10)
    status, _, content = served.ask("/api/episode", {"episode": 0})
    ended.set()
    other.join()
    assert (status, content["message"]) == (
        409,
        "another question is still being answered: ask again when it is",
    )
    assert served.ask("/api/episode", {"episode": 0})[0] == 200
