"""Sections of the page: ours beside what the paper prints."""

import pytest

from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.studies.auf import results
from rehearsal_torch.studies.auf.documents import SECTIONS
from rehearsal_torch.studies.auf.reproduction import record_in
from tests.toys.decided import outcome


@pytest.fixture
def record(tmp_path):
    found = record_in(tmp_path)
    for seed in (0, 1):
        for method in ("none", "cme"):
            found.add(outcome(method=method, seed=seed))
        found.add(outcome("scalability", "cme_published", seed, "rows=1000"))
        found.add(outcome("eta", "cme", seed, "eta=10"))
        found.add(outcome("lambdas", "cme_published", seed, "lambda_h=1 lambda_x=1"))
        found.add(outcome("learning_curve", "cme", seed, "rows=200"))
        found.add(outcome("sensitivity", "cme_published", seed, "widths=1"))
    return found


def line(text, head):
    return next(each for each in text if each.startswith(f"| {head} "))


def test_table1_stands_beside_the_papers_numbers(record):
    with drawing():
        text, figures = results.table1(record)
    assert set(figures) == {"table1", "calibration"}
    assert "Mean ± sd over 2 seeds of the mean over 2 contexts a seed; every cell is complete." in text
    assert any("0.820 ± 0.078" in each for each in text)
    assert "- bank: the paper prints 0.820 for its method;" in "\n".join(text)
    record.add(outcome(method="care"))
    with drawing():
        assert any("Not all jobs are done" in each for each in results.table1(record)[0])


def test_the_other_tables_have_a_column_or_line_of_the_paper(record):
    with drawing():
        sections = [
            section(record)[0]
            for section in (results.table2, results.table3, results.table4, results.learning_curve)
        ]
        assert results.sensitivity(record)[0][0] == "## With and without our selection"
    assert line(sections[0], "cme_published").endswith("| 0.131 | 0.424 | 2 |")
    assert line(sections[1], "paper") == "| paper | 0.456 |"
    assert sections[2][2] == "`cme_published`, eta = 10, factors of the default .001; oracle 0.500."
    assert sections[3][2] == "In brackets the share of the possible gain."


@pytest.mark.parametrize("section", SECTIONS)
def test_without_rows_there_is_no_section(tmp_path, section):
    assert section(record_in(tmp_path)) == ([], {})
