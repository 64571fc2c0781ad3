"""A problem file before its parts are read."""

import pytest

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
