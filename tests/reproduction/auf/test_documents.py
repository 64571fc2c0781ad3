"""The page of the study of avoiding undesired futures: ours beside what the paper prints."""

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.reporting.style import drawing
from reproduction.auf import documents
from reproduction.auf.illustrations import generator
from reproduction.auf.jobs import job_totals, recorded_rows
from reproduction.page import Section
from tests.reproduction.kept import record_in
from tests.toys.decided import outcome


@pytest.fixture
def record(tmp_path):
    found = record_in("auf", tmp_path, "table1")
    for seed in (0, 1):
        for method in ("none", "cme"):
            found.add(*outcome(method=method, seed=seed))
        found.add(*outcome("scalability", "cme_published", seed, "rows=1000"))
        found.add(*outcome("eta", "cme", seed, "eta=10"))
        found.add(*outcome("lambdas", "cme_published", seed, "lambda_h=1 lambda_x=1"))
        found.add(*outcome("learning_curve", "cme", seed, "rows=200"))
        found.add(*outcome("sensitivity", "cme_published", seed, "widths=1"))
    return found


def lines(section):
    """All lines of a section."""
    return "\n".join(
        each if isinstance(each, str) else "\n".join(each) for each in section.blocks
    ).splitlines()


def line(section, head):
    return next(each for each in lines(section) if each.startswith(f"| {head} "))


def test_table1_stands_beside_the_papers_numbers(record):
    with drawing():
        section = documents.table1(record)
    assert set(section.figures) == {"table1", "calibration"}
    text = lines(section)
    assert any(
        "over 2 seeds of the mean over 2 contexts per seed. **926 of 930 planned jobs are" in each
        for each in text
    )
    assert any("0.820 ± 0.078" in each for each in text)
    assert any(each.startswith("- bank: the paper prints 0.820 for its method;") for each in text)
    assert line(section, "bank | cme").endswith("| 100% of 4 | 0.000 | 0 of 4 | 0 |")
    record.add(*outcome(method="care"))
    with drawing():
        text = lines(documents.table1(record))
    assert any("2 in most cells, and 1 in those with the fewest. **925 of" in each for each in text)


def test_the_other_tables_have_a_column_or_line_of_the_paper(record):
    table2, table3, table4 = documents.table2(record), documents.table3(record), documents.table4(record)
    assert line(table2, "cme_published").endswith("| 0.131 | 0.424 | 2 |")
    assert line(table3, "paper") == "| paper | 0.456 |"
    assert line(table3, "oracle") == "| oracle | 0.500 |"
    assert (
        table4.blocks[1]
        == "`cme_published` with eta = 10; ridges as factors of the default .001; oracle 0.500."
    )
    assert line(table4, "1x") == "| 1x | 0.500 |", "the paper's grid has five factors"


def test_curves_and_selection_have_a_table_each(record):
    with drawing():
        curve = documents.learning_curve(record)
    assert set(curve.figures) == {"learning_curve"}
    assert line(curve, "bank").startswith("| bank | 0.500 | 0.500 ± 0.000 (-) | 0.500 |")
    sensitivity = documents.sensitivity(record)
    assert line(sensitivity, "world") == "| world | `cme` | widths=1 |"
    assert line(sensitivity, "widths=1") == "| widths=1 | 0.000 | 0.000 |"


@pytest.mark.parametrize("section", documents.SECTIONS)
def test_without_rows_there_is_no_section(tmp_path, section):
    assert section(record_in("auf", tmp_path, "table1")) == Section()


def test_figures_of_participants_are_asked_for_by_name(tmp_path):
    (tmp_path / "nhanes").mkdir()
    with pytest.raises(UserError, match=r"nhanes=.*: expected marginals\.svg, correlations\.svg there"):
        generator(tmp_path / "out", str(tmp_path / "nhanes"))


def test_a_row_has_its_setting_and_the_seconds_of_its_fit(record):
    (found,) = {(row["setting"], row["fit_seconds"], row["auf"]) for row in recorded_rows(record, "eta")}
    assert found == ("eta=10", 0.25, 0.5)
    assert {row["setting"] for row in recorded_rows(record, "table1")} == {""}
    assert job_totals(record, "table1", "decisions") == {("bank", "none"): 4, ("bank", "cme"): 4}
