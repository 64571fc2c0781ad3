"""What a problem file adds to a command line."""

import pytest

from rehearsal_torch.cli.choice.asked import asks_for, typed_again, with_asked
from rehearsal_torch.problems.written.recognised import is_plain, problem_content


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
        (
            "question: sequence\nchanges: 5\n",
            [],
            ["+experiment=own_sequence", "objective.changes=5"],
        ),
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
