"""A problem file before its parts are read."""

import pytest

from rehearsal_torch.data.problem_file.findings import ProblemError
from rehearsal_torch.data.problem_file.opened import expect, opened


@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "problem.yaml").write_text(text)
        return tmp_path / "problem.yaml"

    return write


def test_the_question_is_cases_unless_it_is_named(file):
    found = opened(file("data: a.csv\n"), ())
    assert (found.question, dict(found.plain)) == ("cases", {"data": "a.csv"})
    found = opened(file("question: trials\ndata: a.csv\n"), ())
    assert (found.question, dict(found.plain)) == ("trials", {"data": "a.csv"})
    expect(found, "trials")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("question: trial\n", "line 1, question: expected one of cases, sequence, trials; got 'trial': did"),
        ("question: [cases]\n", "line 1, question: expected one of cases, sequence, trials; got ['cases']"),
        (
            "data: a.csv\ntime: week\n",
            "line 2, time: is a part of another question: add the line question: s",
        ),
        ("reward: y\n", "add the line question: trials"),
        ("", "is empty: draft a problem file from a table by rehearsal init TABLE"),
        ("- a\n", "expected the parts data, graph; got list"),
        (
            "a,b\n1,2\n",
            "expected the parts data, graph; got a text without them: of a table, rehearsal init TABLE "
            "writes a problem file",
        ),
        ("graph: [{a b} -> c]\n", 'put arrows with braces in quotes, such as "{a b} -> c"'),
        ("a:\n\t- b\n", "indent lines with blanks, not with tabs"),
    ],
)
def test_faults_of_the_text_say_what_to_do(file, text, words):
    with pytest.raises(ProblemError) as caught:
        opened(file(text), ("data", "graph"))
    assert words in str(caught.value)


def test_no_file_and_a_missing_file_are_told(tmp_path):
    with pytest.raises(ProblemError, match=r"set path=problem\.yaml"):
        opened(None, ())
    with pytest.raises(ProblemError, match="no such file"):
        opened(tmp_path / "problem.yaml", ())


def test_another_question_is_refused_with_what_to_type(file):
    found = opened(file("question: sequence\n"), ())
    with pytest.raises(ProblemError, match=r"type rehearsal decide .*, or call rt\.learn_episodes in Python"):
        expect(found, "cases")
