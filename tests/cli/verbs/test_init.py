"""The verb init: a first file, filled in, checked, and decided by."""

import errno
import os

import pytest

from rehearsal_torch.program import main as program
from rehearsal_torch.program import run
from tests.data.problem_file.conftest import table


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    rows = table()
    rows["good"] = rows["y"] - 2 * rows["z"]
    rows[["x", "a", "d", "name", "good"]].to_csv("data/t.csv", sep=";", decimal=",", index=False)
    return tmp_path


def filled(desk, name="problem.yaml"):
    text = (desk / name).read_text()
    # The least that somebody does: take the arrows as they are, and write what is desired.
    text = text.replace("  # - ", "  - ").replace("desired: #", "desired: good >= 0.5  #")
    (desk / name).write_text(text)


def test_a_draft_that_is_filled_in_passes_the_check(desk, capsys):
    assert program(["init", "data/t.csv"]) == 0
    out = capsys.readouterr().out
    assert "Note: data/t.csv is read as separated by semicolons and written with decimal commas." in out
    assert out.splitlines()[-1] == "  python scripts/check.py problem=problem.yaml"
    assert "data: data/t.csv\n" in (desk / "problem.yaml").read_text()
    assert program(["check", "problem.yaml"]) == 2
    filled(desk)
    assert program(["check", "problem.yaml"]) == 0
    assert "To decide: " in capsys.readouterr().out


def test_the_table_is_named_relative_to_the_file(desk):
    assert run("init", ["data=data/t.csv", "out=data/deep/p.yaml"]) == 0
    assert "data: ../t.csv\n" in (desk / "data/deep/p.yaml").read_text()
    filled(desk, "data/deep/p.yaml")
    assert program(["check", "data/deep/p.yaml"]) == 0


def test_nothing_is_overwritten_unasked(desk, capsys):
    (desk / "problem.yaml").write_text("mine")
    assert run("init", ["data=data/t.csv"]) == 2
    assert "out=problem.yaml: exists already. Name another file with out=, or add force=true." in (
        capsys.readouterr().err
    )
    assert (desk / "problem.yaml").read_text() == "mine"
    assert run("init", ["data=data/t.csv", "force=true"]) == 0
    assert "variables:" in (desk / "problem.yaml").read_text()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["data=data/t.csv", "out=data"], "expected a file that ends in .yaml"),
    ],
)
def test_slips_are_answered(desk, capsys, typed, words):
    assert run("init", typed) == 2
    assert words in capsys.readouterr().err
    assert run("init", ["--help"]) == 0


def test_a_table_of_dates_whose_name_says_nothing_is_told_how_to_ask_for_a_sequence(desk, capsys):
    rows = [f"{unit},2024-03-{day:02d},{unit * day},{day % 2}" for unit in range(1, 9) for day in range(1, 6)]
    (desk / "data/s.csv").write_text("\n".join(["pump,Zeitpunkt,heat,fan", *rows]) + "\n")
    assert run("init", ["data=data/s.csv"]) == 0
    assert (
        "Note: the table has several rows for each pump, one for each Zeitpunkt. Add question=sequence "
        "to decide on what is done step by step." in capsys.readouterr().out
    )
    assert run("init", ["data=data/s.csv", "force=true", "question=sequence"]) == 0
    assert "Note: the table has" not in capsys.readouterr().out
    assert "time: Zeitpunkt\n" in (desk / "problem.yaml").read_text()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_is_not_written_to_is_told(desk, capsys, monkeypatch, number):
    def refuse(path, content):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("rehearsal_torch.files.writing.write_bytes", refuse)
    assert run("init", ["data=data/t.csv", "out=n.yaml"]) == 2
    assert capsys.readouterr().err == (
        f"n.yaml: the operating system cannot read or write here ({os.strerror(number)}). Name a file in a "
        "folder that can be written to by out=FILE.\n"
    )
