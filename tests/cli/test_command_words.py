"""What people are told to type: the script where they typed a script, the console command where they typed
that."""

import sys

import pytest

from rehearsal_torch.cli import command_words
from rehearsal_torch.cli.command_words import (
    asks_for,
    on_file,
    quoted,
    quoted_file,
    spoken,
    typed_again,
    typed_as,
    with_asked,
)
from rehearsal_torch.cli.job import provenance
from rehearsal_torch.cli.main import main, train
from rehearsal_torch.cli.overrides import read_override
from rehearsal_torch.problems.drafts.draft_yaml import is_plain, problem_content

SPELT = [
    ("train", "python scripts/train.py", "rehearsal train"),
    ("cross_validate", "python scripts/cross_validate.py", "rehearsal cross-validate"),
    ("learn_graph", "python scripts/learn_graph.py", "rehearsal learn-graph"),
]


@pytest.mark.parametrize(("script", "as_script", "as_verb"), SPELT)
@pytest.mark.parametrize("program", ["/somewhere/bin/rehearsal", "rehearsal", "C:/Scripts/rehearsal.exe"])
def test_both_spellings(monkeypatch, script, as_script, as_verb, program):
    monkeypatch.setattr(sys, "argv", ["scripts/train.py"])
    assert spoken(script) == as_script
    monkeypatch.setattr(sys, "argv", [program])
    assert spoken(script) == as_verb


def test_the_package_is_typed_as_it_was_started(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/rehearsal_torch/__main__.py", "train"])
    assert spoken("learn_graph") == "python -m rehearsal_torch learn-graph"
    monkeypatch.setattr(sys, "argv", ["/somewhere/other/__main__.py"])
    assert spoken("train") == "python scripts/train.py"


def test_without_a_checkout_there_are_no_scripts(monkeypatch):
    monkeypatch.setattr(command_words, "checkout", lambda: None)
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py"])
    assert typed_as("train") == ["rehearsal", "train"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Type, for example, rehearsal train +experiment=sepsis (experiments: auf"),
        (["checkpoint=nowhere", "+experiment=sepsis"], "Use rehearsal decide, or leave checkpoint= out"),
    ],
)
def test_answers_use_the_spelling_that_was_typed(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rehearsal"])
    assert main(train, arguments) == 2
    as_user_error = capsys.readouterr().err
    assert words in as_user_error
    assert "scripts/" not in as_user_error


def test_a_run_records_what_was_typed(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rehearsal"])
    found = provenance("train", ["seed=1"], 1)
    assert (found["command"], found["script"]) == ("rehearsal train seed=1", "train")


@pytest.mark.parametrize(
    "value",
    [
        "runs/a, b",
        "my 'own' run",
        r"C:\runs\first",
        r"\\server\runs",
        "ends with one\\",
        "ends with two\\\\",
        r"before a quote \' and \\' two",
        "'",
        "\\",
        "",
    ],
)
def test_a_quoted_value_is_read_as_it_is(value):
    assert read_override(f"out={quoted(value)}").value() == value


def test_a_plain_file_name_needs_no_quotes():
    assert quoted_file("runs/my_table-2.csv") == "runs/my_table-2.csv"
    for name in ("my table.csv", "null", "2024.5", "../table.csv"):
        assert quoted_file(name) == f"'{name}'"
        assert read_override(f"path={quoted_file(name)}").value() == name


def test_a_command_on_a_file_has_one_spelling(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rehearsal"])
    assert on_file("check", "problem.yaml", "problem") == "rehearsal check problem.yaml"
    assert on_file("decide", "my problem.yaml") == "rehearsal decide 'my problem.yaml'"
    assert on_file("decide", "a=b.yaml") == "rehearsal decide path='a=b.yaml'"
    monkeypatch.setattr(sys, "argv", ["scripts/decide.py"])
    assert on_file("check", "problem.yaml", "problem") == "python scripts/check.py problem=problem.yaml"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "problem.yaml").write_text(text)
        return "path=problem.yaml"

    return write


@pytest.mark.parametrize(
    ("text", "typed", "added"),
    [
        ("data: a.csv\n", [], ["+experiment=own_problem"]),
        ("question: cases\n", [], ["+experiment=own_problem"]),
        ("question: sequence\n", ["seed=1"], ["+experiment=own_sequence"]),
        ("question: trials\nmethod: ucb\n", [], ["+experiment=own_trials", "decision=ucb"]),
        ("question: sequence\nchanges: 5\n", [], ["+experiment=own_sequence", "objective.changes=5"]),
        ("question: sequence\nchanges: 5\n", ["objective.changes=2"], ["+experiment=own_sequence"]),
        ("question: sequence\nchanges: many\n", [], ["+experiment=own_sequence"]),
        ("question: sequence\nchanges: yes\n", [], ["+experiment=own_sequence"]),
        ("data: a.csv\nchanges: 5\n", [], ["+experiment=own_problem"]),
        ("data: a.csv\nmethod: care\n", ["+experiment=own_problem"], ["decision=care"]),
        ("data: a.csv\nmethod: care\n", ["decision=cme"], ["+experiment=own_problem"]),
        # What there is not, or is somebody else's to tell, is left to the reader of the file.
        ("data: a.csv\nmethod: caree\n", [], ["+experiment=own_problem"]),
        ("data: a.csv\nmethod: ../care\n", [], ["+experiment=own_problem"]),
        ("question: [1]\nmethod: 3\n", [], ["+experiment=own_problem"]),
        ("question: {\n", [], ["+experiment=own_problem"]),
        ("data: a.csv\nmethod: care\n", ["+experiment=own_table"], []),
        ("question: sequence\n", ["dataset=sequence"], []),
    ],
)
def test_the_words_of_a_problem_file(file, text, typed, added):
    words = [file(text), *typed]
    assert with_asked(words) == [*words, *added]


def test_other_files_and_other_words_stay(file):
    assert with_asked(["path=table.csv", "seed=1"]) == ["path=table.csv", "seed=1"]
    assert with_asked(["+experiment=sepsis"]) == ["+experiment=sepsis"]
    assert with_asked(["path='problem.yaml'"]) == ["path='problem.yaml'", "+experiment=own_problem"]


def test_a_problem_file_is_told_from_other_files(file, tmp_path):
    file("graph: [a -> b]\nbox: {a: [0, 1]}\n")
    assert problem_content("problem.yaml") is None
    assert is_plain("problem.yaml")
    file("question: trials\n")
    assert asks_for("problem.yaml") == "trials"
    file("question: {\n")
    assert not is_plain("problem.yaml")
    assert asks_for("problem.yaml") == asks_for("nowhere.yaml") == "cases"


def test_a_run_of_a_problem_file_is_typed_again_by_the_file_alone(file, monkeypatch):
    monkeypatch.setattr("sys.argv", ["rehearsal"])
    typed = [file("question: trials\nmethod: ucb\n"), "+experiment=own_trials", "decision=ucb", "seed=1"]
    assert typed_again("decide", typed) == "rehearsal decide problem.yaml seed=1"
    assert typed_again("decide", [*typed[:2], "decision=excbo"]) == (
        "rehearsal decide problem.yaml decision=excbo"
    )
    other = ["path=table.csv", "+experiment=own_table"]
    assert typed_again("decide", other) == "rehearsal decide path=table.csv +experiment=own_table"
