"""The page of the study of avoiding undesired futures: ours beside what the paper prints."""

import pytest

from rehearsal_torch.reporting.sweep_tables import world_cells
from rehearsal_torch.user_error import UserError
from reproduction.auf import documents
from reproduction.auf.illustrations import generator
from reproduction.auf.jobs import job_totals, recorded_rows
from reproduction.page import Section
from tests.reporting.test_sweep_tables import world_rows
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


def test_shares_of_the_gain_leave_out_no_action():
    assert documents.shares(world_cells(world_rows()))[2] == "| bank | 52% | 35% |"
