"""The verb init: a first file, filled in, checked, and decided by."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.console_command import main as program
from rehearsal_torch.console_command import run
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
    assert program(["init", "data/t.csv", "outcome=good", "action=a"]) == 0
    out = capsys.readouterr().out
    assert "Note: data/t.csv is read as separated by semicolons and written with decimal commas." in out
    assert out.splitlines()[-1] == "  python scripts/check.py problem=problem.yaml"
    assert "data: data/t.csv\n" in (desk / "problem.yaml").read_text()
    assert program(["check", "problem.yaml"]) == 2
    filled(desk)
    assert program(["check", "problem.yaml"]) == 0
    assert "To decide: " in capsys.readouterr().out


def test_the_table_is_named_relative_to_the_file(desk):
    typed = ["data=data/t.csv", "out=data/deep/p.yaml", "outcome=good", "action=[a,d]"]
    assert run("init", typed) == 0
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


def test_a_slip_is_answered(desk, capsys):
    assert run("init", ["data=data/t.csv", "out=data"]) == 2
    assert "expected a file that ends in .yaml" in capsys.readouterr().err
    assert run("init", ["--help"]) == 0


def test_a_table_of_dates_of_units_is_one_of_episodes(desk, capsys):
    rows = [f"{unit},2024-03-{day:02d},{unit * day},{day % 2}" for unit in range(1, 9) for day in range(1, 6)]
    (desk / "data/s.csv").write_text("\n".join(["pump,Zeitpunkt,heat,fan", *rows]) + "\n")
    assert run("init", ["data=data/s.csv"]) == 0
    assert (
        "Guessed: the table has several rows for each pump, one for each Zeitpunkt: question=sequence. Add "
        "question=cases to decide for rows." in capsys.readouterr().out
    )
    assert "time: Zeitpunkt\n" in (desk / "problem.yaml").read_text()
    assert run("init", ["data=data/s.csv", "force=true", "question=cases"]) == 0
    assert "Guessed" not in capsys.readouterr().out
    assert run("init", ["data=data/s.csv", "force=true", "question=cases", "unit=pump"]) == 2
    assert "unit= and time= are for a sequence" in capsys.readouterr().err


def test_names_that_are_typed_are_checked(desk, capsys):
    assert run("init", ["data=data/t.csv", "outcome=god"]) == 2
    assert "outcome=god: no column 'god'; did you mean 'good'?" in capsys.readouterr().err
    assert not (desk / "problem.yaml").exists()


def at_terminal(monkeypatch, *answers):
    """Answers at a terminal, then the end of the input."""
    lines = iter(answers)

    def typed(prompt):
        print(prompt)
        if (line := next(lines, None)) is None:
            raise EOFError
        if line == "^C":
            raise KeyboardInterrupt
        return line

    monkeypatch.setattr("builtins.input", typed)
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)


def test_at_a_terminal_what_is_not_clear_is_asked(desk, capsys, monkeypatch):
    at_terminal(monkeypatch, "god", "good", "[a, d]")
    assert run("init", ["data=data/t.csv"]) == 0
    out = capsys.readouterr().out
    assert "Which column should come out as desired? One of: x, a, d, good\n" in out
    assert "outcome=god: no column 'god'; did you mean 'good'?\n" in out
    variables = yaml.safe_load((desk / "problem.yaml").read_text())["variables"]
    assert {name: each["role"] for name, each in variables.items()} == {
        "x": "context", "a": "action", "d": "action", "good": "outcome"
    }  # fmt: skip
    assert "Guessed" not in out


def test_an_empty_answer_leaves_it_open_and_what_was_typed_is_not_asked(desk, capsys, monkeypatch):
    at_terminal(monkeypatch, "")
    assert run("init", ["data=data/t.csv", "outcome=good"]) == 0
    assert (
        "Open: which column may be set (x, a, d). Add action=COLUMN, or fill it in."
        in capsys.readouterr().out
    )


def test_what_a_row_is_is_asked_of_few_rows(desk, monkeypatch):
    (desk / "data/e.csv").write_text("\n".join(["heat,time,purity", "1,2,3", "2,5,4", "3,4,6", "9,1,2"]))
    at_terminal(monkeypatch, "trials", "purity", "heat,time")
    assert run("init", ["data=data/e.csv"]) == 0
    plain = yaml.safe_load((desk / "problem.yaml").read_text())
    assert (plain["question"], plain["reward"]) == ("trials", "purity")
    assert [plain["variables"][each]["role"] for each in ("heat", "time")] == ["action", "action"]


@pytest.mark.parametrize(
    ("answers", "code", "words"),
    [
        (["good"], 2, "action=: the input ended before the answer; nothing was written.\n"),
        (["^C"], 130, "Interrupted; nothing was written.\n"),
    ],
)
def test_without_an_answer_nothing_is_written(desk, capsys, monkeypatch, answers, code, words):
    at_terminal(monkeypatch, *answers)
    assert run("init", ["data=data/t.csv"]) == code
    assert capsys.readouterr().err == words
    assert not (desk / "problem.yaml").exists()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_is_not_written_to_is_told(desk, capsys, monkeypatch, number):
    def refuse(path, content):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("rehearsal_torch.files.atomic_write.write_bytes", refuse)
    assert run("init", ["data=data/t.csv", "out=n.yaml"]) == 2
    assert capsys.readouterr().err == (
        f"n.yaml: the operating system cannot read or write here ({os.strerror(number)}). Name a file in a "
        "folder that can be written to by out=FILE.\n"
    )


# CPU of a draft and of a check, beside that of importing pandas.
DRAFT, CHECK = 3.0, 4.0
RUN = "import sys; from rehearsal_torch.console_command import main; sys.exit(main({typed}))"
WIDE = """
data: wide.csv
variables: {{{context}, dose: {{role: action, range: [-1, 1]}}, y: outcome}}
graph: ["{{{causes}}} -> {{dose y}}", dose -> y]
desired: y <= 0
"""


@pytest.mark.slow
def test_a_draft_and_a_check_are_fast(desk):
    """CPU seconds of whole commands, in one run: a table of 1,000 rows and 10 columns, and pandas alone."""
    rows = np.random.default_rng(0).normal(size=(1000, 10)).round(6)
    pd.DataFrame(rows, columns=[*"abcdefgh", "dose", "y"]).to_csv("wide.csv", index=False)
    context = ", ".join(f"{name}: context" for name in "abcdefgh")
    Path("wide.yaml").write_text(WIDE.format(context=context, causes=" ".join("abcdefgh")))
    typed = {"draft": ["init", "wide.csv", "force=true"], "check": ["check", "wide.yaml"]}
    commands = {"pandas": "import pandas", **{name: RUN.format(typed=each) for name, each in typed.items()}}
    least = dict.fromkeys(commands, np.inf)
    for name, code in [*commands.items()] * 3:
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", code], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        after = getrusage(RUSAGE_CHILDREN)
        least[name] = min(least[name], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(least)
    assert least["draft"] < DRAFT * least["pandas"], least
    assert least["check"] < CHECK * least["pandas"], least
