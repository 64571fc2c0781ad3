"""The server over a real socket: its files, its answers, and messages for everything else."""

import http.client
import json
import threading
import time

import pytest
import uvicorn

from rehearsal_torch.explorer.loopback import listening
from rehearsal_torch.explorer.recorded_model import opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.explorer.server import page_file, server
from tests.toys.explored import run_folder, small_model

ASKED = {"case": None, "given": {"x": 0.1}, "set": {"a": 0.2}}


class Served:
    """A session behind a server in a thread."""

    def __init__(self, session):
        self.socket = listening("127.0.0.1", 0)
        self.port = self.socket.getsockname()[1]
        config = uvicorn.Config(server(session, self.port), log_level="critical", lifespan="off", ws="none")
        self.uvicorn = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.uvicorn.run, args=([self.socket],))
        self.thread.start()
        while not self.uvicorn.started:
            time.sleep(0.01)

    def end(self):
        self.uvicorn.should_exit = True
        self.thread.join(10)
        self.socket.close()

    def ask(self, path, body=None, **headers):
        """Status, content type and content of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        text = None if body is None else body if isinstance(body, str) else json.dumps(body)
        kind = {} if body is None else {"content-type": "application/json"}
        connection.request("GET" if body is None else "POST", path, text, kind | headers)
        answer = connection.getresponse()
        content, form = answer.read(), answer.headers["content-type"]
        connection.close()
        return answer.status, form, json.loads(content) if form == "application/json" else content.decode()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    found = Served(RehearsalSession(opened(run_folder(tmp_path_factory.mktemp("runs") / "run"))))
    yield found
    found.end()


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("/", "text/html; charset=utf-8", '<script type="module" src="/page/explorer.js">'),
        ("/page/explorer.js", "text/javascript; charset=utf-8", 'from "/page/chart.js"'),
        ("/page/chart.js", "text/javascript; charset=utf-8", "export function curve"),
        ("/page/explorer.css", "text/css; charset=utf-8", ".asked"),
        ("/page/report.css", "text/css; charset=utf-8", "--warn-tint"),
    ],
)
def test_the_page_is_served(served, path, kind, words):
    status, form, content = served.ask(path)
    assert (status, form) == (200, kind)
    assert words in content


@pytest.mark.parametrize(
    "path",
    [
        "/docs",
        "/redoc",
        "/openapi.json",
        "/page/nothing.js",
        "/page/..%2fserver.py",
        "/page/__init__.py",
        "/x",
    ],
)
def test_there_is_nothing_else(served, path):
    status, _, content = served.ask(path)
    assert (status, list(content)) == (404, ["message"])


def test_files_of_the_page_name_nothing_outside():
    for name in ("explorer.html", "explorer.js", "chart.js", "explorer.css"):
        text = page_file(name).decode().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in text.replace("// ", "").replace("//\n", ""), name
        assert "style=" not in text, "the policy refuses styles of single elements"
    assert page_file("../server.py") is None


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
        (ASKED | {"set": {"a": 9}}, "a may be set within [-4, 4]; got 9"),
        (ASKED | {"case": 7}, "case: expected one of the 2 cases; got 7"),
        (ASKED | {"given": {f"x{place}": 0.0 for place in range(1001)}}, "1000"),
    ],
)
def test_bad_questions_come_back_with_a_message(served, body, words):
    status, _, content = served.ask("/api/what-if", body)
    assert 400 <= status < 500
    assert words in content["message"]


def test_other_sites_get_nothing(served):
    assert served.ask("/api/run", host="evil.example")[0] == 403
    assert served.ask("/api/what-if", ASKED, origin="http://evil.example")[0] == 403
    assert served.ask("/api/what-if", ASKED, **{"content-type": "text/plain"})[0] == 415


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
    assert found[0]["estimate"]["point"] > 0


def test_a_fault_is_named_and_printed(capsys):
    class Broken:
        def describe(self):
            raise KeyError("gone")

    broken = Served(Broken())
    try:
        status, _, content = broken.ask("/api/run")
    finally:
        broken.end()
    assert status == 500
    assert content["message"].startswith("a fault of this program (KeyError)")
    assert "gone" in capsys.readouterr().err
