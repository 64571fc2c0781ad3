"""The server over a real socket: its files, its answers, and messages for everything else."""

import re

import pytest
import yaml

from rehearsal_torch.explorer.open_run import opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.explorer.server import page_file
from rehearsal_torch.explorer.session_choice import session_for
from tests.places import ROOT
from tests.toys.explored import run_folder
from tests.toys.explored_episodes import episodes_run
from tests.toys.explored_trials import file_of_trials
from tests.toys.read_page import Page
from tests.toys.served import Served

ASKED = {"case": None, "given": {"x": 0.1}, "set": {"a": 0.2}}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    found = Served(RehearsalSession(opened(run_folder(tmp_path_factory.mktemp("runs") / "run"))))
    yield found
    found.end()


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("/", "text/html; charset=utf-8", '<script type="module" src="/page/page.js">'),
        ("/page/page.js", "text/javascript; charset=utf-8", "function held"),
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
        "/page/cases.html",
        "/x",
    ],
)
def test_there_is_nothing_else(served, path):
    status, _, content = served.ask(path)
    assert (status, list(content)) == (404, ["message"])


def test_files_of_the_page_name_nothing_outside():
    for file in (ROOT / "rehearsal_torch/explorer/page").iterdir():
        text = file.read_text()
        assert "//" not in text.replace("// ", "").replace("//\n", ""), file.name
        assert " style=" not in text, "the policy refuses styles of single elements"
    assert page_file("../server.py") is None


@pytest.mark.parametrize("make", [run_folder, episodes_run, file_of_trials])
def test_every_page_is_whole_and_has_a_title_of_its_own(make, tmp_path):
    made = Served(session_for(make(tmp_path / ("trials.json" if make is file_of_trials else "run"))))
    try:
        text = made.ask("/")[2]
    finally:
        made.end()
    page = Page(text)
    # The files of the page are served beside it.
    assert [fault for fault in page.faults if not re.search(" loads | runs |leads nowhere", fault)] == []
    assert [page.count(name) for name in ("main", "header", "footer", "script")] == [1, 1, 1, 1]
    assert re.search(r"<title>[^<]+: which [^<]+\?</title>", text)


def test_what_data_say_is_text(tmp_path):
    folder = run_folder(tmp_path / "run")
    card = yaml.safe_load((folder / "data.yaml").read_text())
    card |= {"caution": "<script>alert(1)</script>", "source": "<b>x</b>"}
    (folder / "data.yaml").write_text(yaml.safe_dump(card))
    made = Served(session_for(folder))
    try:
        text = made.ask("/")[2]
    finally:
        made.end()
    assert "&lt;script&gt;alert(1)" in text
    assert "<b>x</b>" not in text


def test_other_sites_get_nothing(served):
    assert served.ask("/", host="evil.example")[0] == 403
    assert served.ask("/api/what-if", ASKED, origin="http://evil.example")[0] == 403
    assert served.ask("/api/what-if", ASKED, **{"content-type": "text/plain"})[0] == 415


def test_a_fault_is_named_and_printed(capsys):
    class Broken:
        page = "cases.html"

        def questions(self):
            return {}

        def describe(self):
            raise KeyError("gone")

    broken = Served(Broken())
    try:
        status, _, content = broken.ask("/")
    finally:
        broken.end()
    assert status == 500
    assert content["message"].startswith("a fault of this program (KeyError)")
    assert "gone" in capsys.readouterr().err
