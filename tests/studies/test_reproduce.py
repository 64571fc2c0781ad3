"""The command that reproduces a study."""

import sys

import pytest

from rehearsal_torch.studies import reproduce
from rehearsal_torch.studies.reproduce import main, with_flags
from rehearsal_torch.studies.study import STUDIES


@pytest.fixture(autouse=True)
def started(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["rehearsal"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (
            ["stages=[eta]"],
            "expected one of study=auf|calibration|cbo|online|sepsis; got none. Type rehearsal reproduce",
        ),
        (["study=sepsiss"], "Did you mean sepsis?"),
        (["study=qwz23"], "qwz23 is called online now"),
        (["study=auf", "study=cbo"], "got auf and cbo"),
        (
            ["study=auf", "--stages", "table1", "--out", "x"],
            "--stages: options are typed as key=value. Write rehearsal reproduce study=auf "
            "'stages=[table1]' out=x",
        ),
        (["study=auf", "stages=[magic]"], "stages: expected some of table1"),
    ],
)
def test_a_slip_is_answered_in_a_sentence(started, capsys, typed, words):
    assert main(typed) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert (told.out, len(told.err.strip().splitlines())) == ("", 1)
    assert list(started.iterdir()) == []


@pytest.mark.parametrize("name", STUDIES)
def test_help_is_that_of_the_study(capsys, name):
    assert main([f"study={name}", "--help"]) == 0
    first = capsys.readouterr().out
    assert f"Usage: rehearsal reproduce study={name} [key=value ...]" in first
    assert with_flags(name, ["--help"]) == 0
    assert capsys.readouterr().out == first


def test_the_overview_lists_the_studies(capsys):
    assert (main(["--help"]), main([])) == (0, 2)
    out = capsys.readouterr().out
    for name in STUDIES:
        assert f"study={name}" in out


def test_flags_are_translated_for_the_scripts_of_before(started, monkeypatch):
    handed = []
    monkeypatch.setattr(
        "rehearsal_torch.studies.runner.run", lambda make, request, typed: handed.append(typed) or 0
    )
    assert (
        with_flags("cbo", ["--stages", "main", "--settings", "dropwave unit", "--set", "search.screened=8"])
        == 0
    )
    assert handed == [["study=cbo", "stages=[main]", "worlds=['dropwave unit']", "search.screened=8"]]


def test_every_study_has_a_class():
    found = {reproduce._reproduction(name).__module__ for name in STUDIES}
    assert found == {f"rehearsal_torch.studies.{name}.reproduction" for name in STUDIES}
