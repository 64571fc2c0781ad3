"""The verb report: pages of run folders, and one page that compares them."""

import pytest

from rehearsal_torch.console_command import run
from rehearsal_torch.reporting.page.html import MARK
from tests.toys import recorded_runs
from tests.toys.read_page import Page


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recorded_runs.alterations(tmp_path / "one")
    record = recorded_runs.RECORD | {"choices": {"decision": "care", "dataset": "table"}}
    recorded_runs.alterations(tmp_path / "two", record=record)
    return tmp_path


def told(capsys, arguments, code=2):
    assert run("report", arguments) == code
    return capsys.readouterr().err


def test_a_page_is_written_and_named(here, capsys):
    assert run("report", ["one", "run=two"]) == 0
    assert capsys.readouterr().out == "Written: one/report.html\nWritten: two/report.html\n"
    assert Page((here / "one/report.html").read_text(encoding="utf-8")).faults == []


@pytest.mark.slow
def test_figures_are_drawn_again_from_the_records_where_that_is_asked_for(here, capsys):
    assert run("report", ["one"]) == 0
    assert not (here / "one/figures").exists()
    (here / "one/figures").mkdir()
    (here / "one/figures/answer.svg").write_bytes(b"of an earlier version")
    assert run("report", ["one", "figures=true"]) == 0
    assert capsys.readouterr().out == "Written: one/report.html\n" * 2
    drawn = {path.name: path.read_bytes() for path in (here / "one/figures").iterdir()}
    assert {"answer.png", "answer.svg"} <= set(drawn)
    assert drawn["answer.svg"].startswith(b"<?xml")
    page = Page((here / "one/report.html").read_text(encoding="utf-8"))
    assert page.faults == []
    assert any(each["alt"].startswith("Before and after.") for name, each in page.tags if name == "img")
    assert run("report", ["one", "figures=true"]) == 0
    assert drawn == {path.name: path.read_bytes() for path in (here / "one/figures").iterdir()}


def test_a_run_that_cannot_be_drawn_keeps_its_page(here, capsys):
    assert run("report", ["one"]) == 0
    before = (here / "one/report.html").read_bytes()
    (here / "one/figures").write_text("no folder")
    assert len(told(capsys, ["one", "figures=true"]).strip().splitlines()) == 1
    assert (here / "one/report.html").read_bytes() == before


def test_runs_are_compared_on_one_page(here, capsys):
    assert run("report", ["one", "two", "out=both.html"]) == 0
    assert "Written: both.html" in capsys.readouterr().out
    page = Page((here / "both.html").read_text(encoding="utf-8"))
    assert page.faults == []
    assert "care" in page.said
    assert run("report", ["one", "two", "out=both.html"]) == 0


def test_what_others_wrote_is_not_overwritten(here, capsys):
    (here / "both.html").write_text("<html>mine")
    assert "both.html: exists already, and was not written by this command." in told(
        capsys, ["one", "two", "out=both.html"]
    )
    assert (here / "both.html").read_text() == "<html>mine"
    assert not (here / "one/report.html").exists()
    assert "out=one: is a folder." in told(capsys, ["one", "two", "out=one"])
    (here / "both.html").write_text(MARK)
    assert run("report", ["one", "two", "out=both.html"]) == 0
