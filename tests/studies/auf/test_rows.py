"""Rows with what their jobs say, and what jobs counted."""

from rehearsal_torch.studies.auf.reproduction import record_in
from rehearsal_torch.studies.auf.rows import counts, rows_of
from tests.toys.decided import outcome


def test_a_row_has_its_setting_and_the_seconds_of_its_fit(tmp_path):
    record = record_in(tmp_path)
    record.add(outcome())
    record.add(outcome("eta", setting="eta=3"))
    assert [(row["setting"], row["fit_seconds"], row["auf"]) for row in rows_of(record, "eta")] == [
        ("eta=3", 0.25, 0.5)
    ] * 2
    assert {row["setting"] for row in rows_of(record, "table1")} == {""}
    assert rows_of(record, "lambdas") == []


def test_counts_are_sums_over_jobs_of_a_stage(tmp_path):
    record = record_in(tmp_path)
    for seed, idle in ((0, 1), (1, 2)):
        record.add(outcome(seed=seed, idle=idle))
    record.add(outcome("eta", setting="eta=3", idle=1))
    assert counts(record, "table1", "idle") == {("bank", "cme"): 3}
    assert counts(record, "eta", "decisions") == {("bank", "cme"): 2}
