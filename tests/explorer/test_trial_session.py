"""The answers about trials: those of the optimiser, through its file, with nothing lost."""

import base64
import json
import re
import subprocess
import sys
import threading

import pytest

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.explorer import trial_session
from rehearsal_torch.explorer.server import BusyError, Turns
from rehearsal_torch.explorer.trial_session import TrialSession, listing, shown_trials
from rehearsal_torch.spaces.box import setting_text
from rehearsal_torch.user_error import RequestError
from tests.places import ROOT
from tests.toys.explored_trials import PLAIN, QUICK, TASK, file_of_trials, quick, quick_session, system
from tests.toys.humid import HUMID
from tests.toys.served import Served


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """What such a file holds; it takes half a second to make."""
    return file_of_trials(tmp_path_factory.mktemp("kept") / "trials.json").read_bytes()


@pytest.fixture
def file(tmp_path, kept):
    path = tmp_path / "trials.json"
    path.write_bytes(kept)
    return path


def test_the_page_is_described(file):
    told = quick_session(file).describe()
    assert (told["title"], told["live"]) == ("trials: which setting has the largest expected Y?", True)
    assert told["actions"] == [
        {"name": "a", "bounds": [0.0, 1.0], "levels": None},
        {"name": "b", "bounds": [0.0, 2.0], "levels": [0.0, 1.0, 2.0]},
    ]
    assert [node["name"] for node in told["nodes"]] == ["X", "Y"]
    assert told["question"][0].startswith(
        "Which setting has the largest expected Y, and which one should be tried next? Free to set: a"
    )
    assert told["fitted"].startswith("Proposals of excbo")


@pytest.mark.slow
def test_proposals_are_those_of_the_optimiser(file, tmp_path):
    copy = tmp_path / "copy.json"
    copy.write_bytes(file.read_bytes())
    found = quick_session(file).ask(2, {"b": 1.0})["made"]
    told = quick(copy).ask(2, {"b": 1.0})
    assert [each["settings"] for each in found] == [dict(each) for each in told]
    assert [each["trial"] for each in found] == [8, 9]
    assert file.read_bytes() == copy.read_bytes()


def test_the_recommendation_is_that_of_the_optimiser(file):
    found, told = quick_session(file).recommend({}), quick(file).recommend()
    assert (found["settings"], found["predicted"], found["chance"]) == (
        told.action,
        told.predicted,
        told.chance,
    )
    assert (found["lower"], found["upper"]) == (told.low, told.high)
    assert found["sentence"] == str(told)
    assert quick_session(file).recommend({"b": 2.0})["settings"]["b"] == 2.0


@pytest.mark.slow
def test_reports_are_on_disk_before_they_are_answered(file):
    session = quick_session(file)
    (made,) = session.ask(1, {})["made"]
    assert session.tell(made["trial"], {}, system(made["settings"])) == {"trial": 8, "notes": []}
    line = json.loads(file.read_text())["trials"][-1]
    assert (line["state"], line["asked"], "ran" in line) == ("completed", made["settings"], False)
    (made,) = session.ask(1, {})["made"]
    ran = {"a": 0.25, "b": 1.0}
    session.tell(made["trial"], ran, system(ran))
    assert json.loads(file.read_text())["trials"][-1]["ran"] == ran
    (made,) = session.ask(1, {})["made"]
    session.fail(made["trial"], "the pump stopped")
    (other,) = session.ask(1, {})["made"]
    session.abandon(other["trial"], "")
    states = [(each["state"], each.get("reason", "")) for each in json.loads(file.read_text())["trials"][-2:]]
    assert states == [("failed", "the pump stopped"), ("abandoned", "")]
    assert quick_session(file).trials()["summary"].startswith("11 trials: 9 completed, 1 failed, 1 abandoned")


def test_an_experiment_of_ones_own_is_a_trial_of_its_own(file):
    session = quick_session(file)
    (made,) = session.ask(1, {})["made"]
    near = {**made["settings"], "a": made["settings"]["a"] + (0.01 if made["settings"]["a"] < 0.5 else -0.01)}
    found = session.tell(None, near, system(near))
    assert found["trial"] == 9
    assert "trial 8" in found["notes"][0], "a pending one is close"
    assert [row["id"] for row in session.trials()["pending"]] == [8]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda one: one.ask(0, {}), "count: expected at least 1 action; got 0"),
        (lambda one: one.ask(10**6, {}), "count: expected at most 1000 actions at once"),
        (lambda one: one.ask(1, {"c": 1.0}), "c: the task has no such action"),
        (lambda one: one.tell(None, {"a": 7.0, "b": 1.0}, {"X": 1.0, "Y": 1.0}), "a"),
        (lambda one: one.tell(99, {}, {"X": 1.0, "Y": 1.0}), "no trial has the number 99"),
        (lambda one: one.tell(1, {}, {"X": 1.0, "Y": 1.0}), "trial 1 is completed already"),
        (lambda one: one.abandon(1, ""), "trial 1 is completed already"),
    ],
)
def test_what_cannot_be_answered_is_refused(file, ask, words):
    before = file.read_bytes()
    with pytest.raises(ValueError, match=words):
        ask(quick_session(file))
    assert file.read_bytes() == before


def test_without_enough_trials_nothing_is_recommended(tmp_path):
    session = quick_session(file_of_trials(tmp_path / "few.json", completed=2))
    with pytest.raises(ValueError, match="expected at least 5 rows; got 2"):
        session.recommend({})


def test_a_report_that_another_page_was_faster_with_becomes_a_trial_of_its_own(file):
    session, other = quick_session(file), quick_session(file)
    (made,) = session.ask(1, {})["made"]
    pending = session._pending(made["trial"])
    other.tell(made["trial"], {}, {"X": 0.1, "Y": 0.2})
    with pytest.raises(RequestError, match="trial 8 is completed already, perhaps by another page"):
        session.tell(made["trial"], {}, {"X": 0.3, "Y": 0.4})
    # Between the look and the report there is a moment: what comes then is kept as well.
    session._pending = lambda number: pending
    assert session.tell(made["trial"], {}, {"X": 0.3, "Y": 0.4})["trial"] == 9
    rows = {row["id"]: row["nodes"] for row in session.trials()["rows"]}
    assert (rows[8], rows[9]) == ({"X": 0.1, "Y": 0.2}, {"X": 0.3, "Y": 0.4})


TELLING = """
import sys
from pathlib import Path
from tests.toys.explored_trials import quick_session, system
session = quick_session(Path(sys.argv[1]))
for place in range(10):
    settings = {"a": (place + float(sys.argv[2])) / 20, "b": 1.0}
    session.tell(None, settings, system(settings))
"""


@pytest.mark.slow
def test_two_processes_on_one_file_lose_no_trial(file):
    made = [
        subprocess.Popen([sys.executable, "-c", TELLING, str(file), shift], cwd=ROOT)
        for shift in ("0.2", "0.7")
    ]
    assert [each.wait(120) for each in made] == [0, 0]
    found = quick_session(file).trials()
    assert [row["id"] for row in found["rows"]] == list(range(27, 0, -1))
    told = {row["settings"]["a"] for row in found["rows"]}
    assert {(place + shift) / 20 for place in range(10) for shift in (0.2, 0.7)} <= told


def test_one_answer_at_a_time(file):
    session = quick_session(file)
    session._turns = Turns(0.01)
    begun, ended = threading.Event(), threading.Event()

    def holding():
        with session._turns.turn():
            begun.set()
            ended.wait(10)

    other = threading.Thread(target=holding)
    other.start()
    begun.wait(10)
    with pytest.raises(BusyError):
        session.ask(1, {})
    ended.set()
    other.join()
    assert session.trials()["pending"] == []


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return quick_session(file_of_trials(tmp_path_factory.mktemp("trials") / "trials.json"))


@pytest.fixture(scope="module")
def served(session):
    found = Served(session)
    yield found
    found.end()


@pytest.mark.slow
def test_a_trial_is_proposed_told_and_counted(served, session):
    html = served.ask("/api/ask", {"count": 2, "fixed": {"b": 1}})[2]
    assert "Proposed: trials 8 and 9." in html
    assert html.count('<form class="case report"') == 2
    nodes = system(session.trials()["pending"][0]["settings"])
    assert "Trial 8 is recorded." in served.ask("/api/tell", {"trial": 8, "nodes": nodes})[2]
    assert "failed: a leak" in served.ask("/api/fail", {"trial": 9, "reason": "a leak"})[2]
    rows = session.trials()["rows"]
    assert (rows[1]["nodes"], rows[0]["reason"]) == (nodes, "a leak")
    assert "Proposed: trial 10. Type below what came of it." in served.ask("/api/ask", {"count": 1})[2]
    assert "Trial 10 is withdrawn." in served.ask("/api/abandon", {"trial": 10})[2]
    html = served.ask("/api/adopt", {})[2]
    assert str(session.optimiser.recommend()) in html
    assert "recommended" in base64.b64decode(re.search(r"base64,([^\"]+)", html)[1]).decode()
    assert 'id="point"' not in served.ask("/api/tell", {"nodes": nodes, "settings": {"a": 0.5, "b": 1}})[2]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/ask", {"count": 1.5}, "count"),
        ("/api/ask", {"count": 1, "fixed": {"b": "1"}}, "fixed: b: expected a finite number"),
        ("/api/ask", '{"count": 1, "fixed": {"b": 1e999}}', "fixed.b"),
        ("/api/adopt", {"more": 1}, "Extra inputs are not permitted"),
        ("/api/fail", {}, "no trial has the number None"),
        ("/api/tell", {"nodes": {"X": "?", "Y": 1}, "settings": {"a": 0.5, "b": 1}}, "got '?'"),
        ("/api/tell", {"trial": None, "nodes": {"X": True, "Y": 1}}, "nodes.X"),
        ("/api/tell", r'{"trial": null, "nodes": {"X": 1, "Y": "\ud800"}}', "holds half of a sign"),
        ("/api/tell", {"trial": None, "nodes": {"X": "9" * 201, "Y": 1}}, "nodes.X"),
        ("/api/fail", {"trial": 1, "reason": "x" * 1001}, "reason"),
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
    assert served.ask("/api/trials", {}, host="evil.example")[0] == 403
    assert session.file.read_bytes() == before


def test_rows_are_the_trials(tmp_path):
    made = quick(tmp_path / "trials.json")
    one, two, three, four = made.ask(4)
    made.tell(one, system(one))
    made.tell(two.trial, {"X": 0.5, "Y": 2.0}, ran={"a": 0.5, "b": 1})
    made.fail(three, "the pump stopped")
    found = shown_trials(made.task, made.trials)
    assert [row["id"] for row in found["rows"]] == [4, 3, 2, 1]
    assert [row["state"] for row in found["rows"]] == ["pending", "failed", "completed", "completed"]
    assert [row["id"] for row in found["pending"]] == [4]
    assert found["pending"][0]["settings"] == dict(four)
    ran = found["rows"][2]
    assert (ran["settings"], ran["asked"], ran["reward"]) == ({"a": 0.5, "b": 1.0}, dict(two), 2.0)
    assert (found["rows"][1]["reason"], found["rows"][1]["reward"]) == ("the pump stopped", None)
    first = system(one)["Y"]
    assert found["course"] == {"numbers": [1, 2], "rewards": [first, 2.0], "best": [first, 2.0]}


def test_the_best_so_far_never_falls():
    rows = [{"id": n, "state": "", "reward": reward} for n, reward in enumerate([2.0, None, 1.0, 3.0])]
    course = listing(rows)["course"]
    assert course == {"numbers": [0, 2, 3], "rewards": [2.0, 1.0, 3.0], "best": [2.0, 2.0, 3.0]}
    assert listing([])["course"]["best"] == []


def test_many_trials_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_session, "LISTED", 2)
    made = quick(tmp_path / "trials.json")
    made.ask(5)
    found = shown_trials(made.task, made.trials)
    assert ([row["id"] for row in found["rows"]], found["more"]) == ([5, 4], 3)
    assert len(found["pending"]) == 5, "each of them waits for its result"


@pytest.mark.slow
def test_a_context_is_typed_beside_what_is_proposed(tmp_path):
    file = tmp_path / "humid.json"
    page = Served(TrialSession(CausalOptimiser(HUMID, file=file), file, "excbo"))
    try:
        html = page.ask("/api/ask", {"count": 1, "context": {"c": 0.25}})[2]
        assert 'name="c" data-part="settings" value="0.25" data-exact="0.25"' in html
        status, _, refused = page.ask("/api/ask", {"count": 1})
        assert (status, "{c: ...}; got none" in str(refused)) == (422, True)
        assert 'name="c" data-part="context"' in page.ask("/")[2]
    finally:
        page.end()


@pytest.mark.slow
def test_two_rewards_have_a_front_on_the_page(tmp_path):
    file, parts = tmp_path / "pair.json", {"surrogate": PLAIN, "search": QUICK, "initial": 6}
    pair = CausalOptimiser({**TASK, "reward": ["Y", "-X"]}, file=file, **parts)
    for action in pair.ask(6):
        pair.tell(action, system(action))
    page = Served(TrialSession(pair, file, "excbo"))
    try:
        html = page.ask("/")[2]
        assert "pair: which settings are best in expected Y and -X?" in html
        assert [html.count(f'<th scope="col" class="n">{name}</th>') for name in ("Y", "-X")] == [1, 1]
        adopted = page.ask("/api/adopt", {})[2]
        for best in pair.recommend():
            for ends in best.rewards.values():
                assert "{} ({} to {})".format(*map(setting_text, ends)) in adopted
        assert "Proposed: trial 7." in page.ask("/api/ask", {})[2]
    finally:
        page.end()
