"""The verb report: pages of run folders, and one page that compares them."""

from pathlib import Path

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.verbs.report import main, read
from rehearsal_torch.files.lock import locked
from rehearsal_torch.reporting.page.document import MARK
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
    assert main(arguments) == code
    return capsys.readouterr().err


def test_a_page_is_written_and_named(here, capsys):
    assert main(["one", "run=two"]) == 0
    assert capsys.readouterr().out == "Written: one/report.html\nWritten: two/report.html\n"
    assert Page((here / "one/report.html").read_text(encoding="utf-8")).faults == []


def test_rows_and_cases_are_as_asked_for(here):
    assert main(["one", "rows=true", "cases=1"]) == 0
    said = Page((here / "one/report.html").read_text(encoding="utf-8")).said
    assert "What was known of each case" in said
    assert "Case bob" not in said


@pytest.mark.slow
def test_figures_are_drawn_again_from_the_records_where_that_is_asked_for(here, capsys):
    assert main(["one"]) == 0
    assert not (here / "one/figures").exists()
    (here / "one/figures").mkdir()
    (here / "one/figures/decisions.svg").write_bytes(b"of an earlier version")
    assert main(["one", "figures=true"]) == 0
    assert capsys.readouterr().out == "Written: one/report.html\n" * 2
    drawn = {path.name: path.read_bytes() for path in (here / "one/figures").iterdir()}
    assert {"decisions.png", "decisions.svg"} <= set(drawn)
    assert drawn["decisions.svg"].startswith(b"<?xml")
    page = Page((here / "one/report.html").read_text(encoding="utf-8"))
    assert page.faults == []
    assert any(
        each["alt"].startswith("What is claimed of each case.") for name, each in page.tags if name == "img"
    )
    assert main(["one", "figures=true"]) == 0
    assert drawn == {path.name: path.read_bytes() for path in (here / "one/figures").iterdir()}


def test_a_run_that_cannot_be_drawn_keeps_its_page(here, capsys):
    assert main(["one"]) == 0
    before = (here / "one/report.html").read_bytes()
    (here / "one/figures").write_text("no folder")
    assert len(told(capsys, ["one", "figures=true"]).strip().splitlines()) == 1
    assert (here / "one/report.html").read_bytes() == before


def test_runs_are_compared_on_one_page(here, capsys):
    assert main(["one", "two", "out=both.html"]) == 0
    assert "Written: both.html" in capsys.readouterr().out
    page = Page((here / "both.html").read_text(encoding="utf-8"))
    assert page.faults == []
    assert "care" in page.said
    assert main(["one", "two", "out=both.html"]) == 0


def test_what_others_wrote_is_not_overwritten(here, capsys):
    (here / "both.html").write_text("<html>mine")
    assert "both.html: exists already, and was not written by this command." in told(
        capsys, ["one", "two", "out=both.html"]
    )
    assert (here / "both.html").read_text() == "<html>mine"
    assert not (here / "one/report.html").exists()
    assert "out=one: is a folder." in told(capsys, ["one", "two", "out=one"])
    (here / "both.html").write_text(MARK)
    assert main(["one", "two", "out=both.html"]) == 0


def test_a_damaged_folder_is_told_in_one_paragraph_and_the_others_are_written(here, capsys):
    with (here / "one/decisions.jsonl").open("a") as file:
        file.write("garbage\n")
    said = told(capsys, ["one", "two", "out=both.html"])
    assert said.startswith("one/decisions.jsonl, line 3: cannot be read as JSON")
    assert len(said.strip().splitlines()) == 1
    assert (here / "two/report.html").exists()
    assert not (here / "both.html").exists()


def test_every_folder_that_cannot_be_read_is_named(here, capsys):
    (here / "empty").mkdir()
    (here / "sweep").mkdir()
    (here / "sweep/sweep.json").write_text("{}")
    recorded_runs.alterations(here / "none", [])
    said = told(capsys, ["nowhere", "empty", "sweep", "none"]).splitlines()
    assert [line.partition(" ")[0] for line in said] == ["nowhere:", "empty", "sweep:", "none:"]
    assert "there is no such folder" in said[0]
    assert "is not a run folder" in said[1]
    assert "is the folder of a sweep" in said[2]
    assert "holds no decisions yet" in said[3]


def test_content_that_no_run_writes_is_told_and_not_traced(here, capsys):
    line = recorded_runs.recommended()
    line["sensitivity"] = {"tipping": 0.5, "basis": "interval"}
    recorded_runs.alterations(here / "odd", [line])
    said = told(capsys, ["odd"])
    assert said.startswith(
        "odd: decisions.jsonl: sensitivity: expected strengths of at least 1 with their basis"
    )
    assert len(said.strip().splitlines()) == 1


def test_a_run_that_is_under_way_is_left_alone(here, capsys):
    with locked(here / "one"):
        assert "is in use" in told(capsys, ["one"])
    assert not (here / "one/report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rows=true"], "expected at least one run folder"),
        (["one", "rows=maybe"], "expected true or false"),
        (["one", "cases=0"], "expected a whole number from 1 to 10,000"),
        (["one", "cases=x"], "cases=x: expected a whole number"),
        (["one", "row=true"], "Did you mean rows?"),
        (["one", "--rows"], "expected a run folder or key=value"),
        (["one", "out=x.html"], "there is one run, and a page that compares needs two"),
    ],
)
def test_slips_are_answered_in_a_sentence(here, capsys, arguments, words):
    said = told(capsys, arguments)
    assert words in said
    assert len(said.strip().splitlines()) == 1
    assert not (here / "one/report.html").exists()


def test_a_folder_with_an_equals_sign_in_its_name_is_a_folder(here):
    recorded_runs.alterations(here / "seed=1")
    runs, options = read(["seed=1", "cases=7"])
    assert (runs, options["cases"], options["rows"]) == ([Path("seed=1")], "7", "false")
    with pytest.raises(UserError, match="no such option"):
        read(["seed=2"])


def test_the_help_lists_the_options(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "RUN [RUN ...] [key=value ...]" in out
    assert "rows=true|false" in out
    assert "figures=true|false" in out
    assert "(default: 20)" in out
    assert main([]) == 2
