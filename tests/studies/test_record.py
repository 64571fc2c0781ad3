"""The record of a study, whole, torn and taken up again."""

import pytest

from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.studies.record import Job, Outcome, StudyRecord

FILES = {"table1": "table1.csv", "eta": "table3.csv"}


def outcome(stage="table1", method="cme", seed=0, setting="", state="ok", idle=0):
    job = Job(stage, "bank", method, setting, seed)
    rows = [
        dict(zip(COLUMNS, ("bank", method, seed, str(context), *[0.5] * 7), strict=True))
        for context in range(2)
    ]
    line = {
        "state": state,
        "fit_seconds": 0.25,
        "decisions": 2,
        "idle": idle,
        "warned": 0,
        "commit": "abc",
        "message": "",
    }
    return Outcome(job, rows if state == "ok" else [], line)


def record(folder):
    return StudyRecord(folder, FILES, plain=("table1",))


def test_a_stage_has_its_file_and_the_settings_their_column(tmp_path):
    first = record(tmp_path)
    first.add(outcome())
    first.add(outcome("eta", setting="eta=3", idle=1))
    assert (tmp_path / "table1.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    assert (tmp_path / "table3.csv").read_text().splitlines()[0] == "dataset,method,setting," + ",".join(
        COLUMNS[2:]
    )
    again = record(tmp_path)
    assert [(row["setting"], row["fit_seconds"], row["auf"]) for row in again.rows("eta")] == [
        ("eta=3", 0.25, 0.5)
    ] * 2
    assert again.counts("eta", "idle") == {("bank", "cme"): 1}
    jobs = [
        outcome().job,
        outcome(seed=1).job,
        outcome("eta", setting="eta=3").job,
        outcome("eta", setting="eta=5").job,
    ]
    assert again.todo(jobs) == [jobs[1], jobs[3]]


def test_what_a_killed_job_left_is_dropped_and_done_again(tmp_path):
    first = record(tmp_path)
    first.add(outcome(seed=0))
    whole = (tmp_path / "table1.csv").read_text()
    with (tmp_path / "table1.csv").open("a") as file:
        file.write("bank,cme,1,0,.5,.5,.5,.5,.5,.5,.5\nbank,cme,1,1,.5,.")
    again = record(tmp_path)
    assert (tmp_path / "table1.csv").read_text() == whole
    again.add(outcome(seed=1))
    assert len(record(tmp_path).rows("table1")) == 4


@pytest.mark.parametrize("torn", ["table1,bank,cme,,1,ok,0.2", "\n"])
def test_a_torn_line_of_a_job_does_not_count(tmp_path, torn):
    record(tmp_path).add(outcome())
    whole = (tmp_path / "jobs.csv").read_text()
    with (tmp_path / "jobs.csv").open("a") as file:
        file.write(torn)
    again = record(tmp_path)
    again.add(outcome(seed=1))
    assert (tmp_path / "jobs.csv").read_text().startswith(whole)
    assert record(tmp_path).todo([outcome(seed=0).job, outcome(seed=1).job]) == []


def test_what_failed_is_tried_again(tmp_path):
    first = record(tmp_path)
    first.add(outcome(state="failed"))
    assert "failed" in (tmp_path / "jobs.csv").read_text()
    again = record(tmp_path)
    assert "failed" not in (tmp_path / "jobs.csv").read_text()
    assert again.todo([outcome().job]) == [outcome().job]
    again.add(outcome())
    assert len(again.rows("table1")) == 2


def test_a_damaged_record_is_named_and_stays(tmp_path):
    record(tmp_path).add(outcome())
    whole = (tmp_path / "table1.csv").read_text()
    (tmp_path / "table1.csv").write_text(whole.replace("0.5", "hot", 1))
    with pytest.raises(PlainFileError, match=r"table1\.csv, line 2, auf: expected a number; got 'hot'"):
        record(tmp_path)
    assert "hot" in (tmp_path / "table1.csv").read_text()
