"""The record of a study, whole, torn and resumed."""

import pytest

from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.files.rows import read_rows
from rehearsal_torch.studies.auf.reproduction import record_in, recorded_rows
from rehearsal_torch.studies.plan import Job
from rehearsal_torch.studies.record import Layout, Outcome, Record
from tests.toys.decided import outcome


def resumed(folder):
    record = record_in(folder)
    record.mend()
    return record


def test_a_stage_has_its_file_and_the_settings_their_column(tmp_path):
    first = resumed(tmp_path)
    first.add(outcome())
    first.add(outcome("eta", setting="eta=3", idle=1))
    assert (tmp_path / "table1.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    assert (tmp_path / "table3.csv").read_text().splitlines()[0] == "dataset,method,setting," + ",".join(
        COLUMNS[2:]
    )
    again = resumed(tmp_path)
    assert [row["setting"] for row in again.rows("eta")] == ["eta=3"] * 2
    jobs = [
        outcome().job,
        outcome(seed=1).job,
        outcome("eta", setting="eta=3").job,
        outcome("eta", setting="eta=5").job,
    ]
    assert again.todo(jobs) == [jobs[1], jobs[3]]


def test_what_a_killed_job_left_is_dropped_and_done_again(tmp_path):
    first = resumed(tmp_path)
    first.add(outcome(seed=0))
    whole = (tmp_path / "table1.csv").read_text()
    with (tmp_path / "table1.csv").open("a") as file:
        file.write("bank,cme,1,0,.5,.5,.5,.5,.5,.5,.5\nbank,cme,1,1,.5,.")
    torn = (tmp_path / "table1.csv").read_text()
    assert len(record_in(tmp_path).rows("table1")) == 2
    assert (tmp_path / "table1.csv").read_text() == torn, "reading changes nothing"
    again = resumed(tmp_path)
    assert (tmp_path / "table1.csv").read_text() == whole
    again.add(outcome(seed=1))
    assert len(recorded_rows(resumed(tmp_path), "table1")) == 4


@pytest.mark.parametrize("torn", ["table1,bank,cme,,1,ok,0.2", "\n"])
def test_a_torn_line_of_a_job_does_not_count(tmp_path, torn):
    resumed(tmp_path).add(outcome())
    whole = (tmp_path / "jobs.csv").read_text()
    with (tmp_path / "jobs.csv").open("a") as file:
        file.write(torn)
    again = resumed(tmp_path)
    again.add(outcome(seed=1))
    assert (tmp_path / "jobs.csv").read_text().startswith(whole)
    assert resumed(tmp_path).todo([outcome(seed=0).job, outcome(seed=1).job]) == []


def test_what_failed_is_tried_again(tmp_path):
    first = resumed(tmp_path)
    first.add(outcome(state="failed"))
    assert "failed" in (tmp_path / "jobs.csv").read_text()
    again = resumed(tmp_path)
    assert "failed" not in (tmp_path / "jobs.csv").read_text()
    assert again.todo([outcome().job]) == [outcome().job]
    again.add(outcome())
    assert len(again.rows("table1")) == 2


def test_a_damaged_record_is_named_and_stays(tmp_path):
    resumed(tmp_path).add(outcome())
    resumed(tmp_path).add(outcome(seed=1, state="failed"))
    before = (tmp_path / "jobs.csv").read_text()
    whole = (tmp_path / "table1.csv").read_text()
    (tmp_path / "table1.csv").write_text(whole.replace("0.5", "hot", 1))
    with pytest.raises(PlainFileError, match=r"table1\.csv, line 2, auf: expected a number; got 'hot'"):
        resumed(tmp_path)
    assert "hot" in (tmp_path / "table1.csv").read_text()
    assert (tmp_path / "jobs.csv").read_text() == before


KEPT = {
    "first": Layout("rows.csv", ("name",), ("name", "value"), ("value",), exact=True, count=2),
    "second": Layout("more.csv", ("name",), ("name", "value"), ("value",), exact=True),
}


def test_without_a_log_a_job_is_done_where_its_rows_are(tmp_path):
    (tmp_path / "rows.csv").write_text("name,value\na,0.1\na,0.30000000000000004\nb,1\nc,1\nc,")
    (tmp_path / "more.csv").write_text("name,value\nx,1\ny,1\ny,2")
    record = Record(tmp_path, KEPT)
    assert set(record.lines) == {("a",), ("x",)}
    record.mend()
    assert (tmp_path / "rows.csv").read_text() == "name,value\na,0.1\na,0.30000000000000004\n"
    job = Job("second", "", "", "", 0, (), ("y",))
    record.add(Outcome(job, [{"name": "y", "value": 1 / 3}]))
    assert read_rows(tmp_path / "more.csv")[-1] == {"name": "y", "value": "0.3333333333333333"}
    assert Record(tmp_path, KEPT).todo([job]) == []


GROWN = {"first": Layout("rows.csv", ("name",), ("name", "value"), ("value",), optional=("more",))}


def test_a_file_without_the_later_columns_is_read_and_gets_them_when_it_is_mended(tmp_path):
    (tmp_path / "rows.csv").write_text("name,value\na,0.1\n")
    record = Record(tmp_path, GROWN)
    assert record.rows("first") == [{"name": "a", "value": "0.1", "more": ""}]
    assert (tmp_path / "rows.csv").read_text() == "name,value\na,0.1\n", "reading changes nothing"
    record.mend()
    record.add(Outcome(Job("first", "", "", "", 0, (), ("b",)), [{"name": "b", "value": 0.5, "more": 2.0}]))
    assert (tmp_path / "rows.csv").read_text() == "name,value,more\na,0.1,\nb,0.5,2\n"
    (tmp_path / "rows.csv").write_text("name,value,else\na,0.1,1\n")
    with pytest.raises(PlainFileError, match=r"expected the columns name,value,more; got name,value,else"):
        Record(tmp_path, GROWN)


def test_texts_of_exact_rows_come_back_as_they_were_written(tmp_path):
    layout = Layout("rows.csv", ("name",), ("name", "value"), ("value",), exact=True)
    rows = [{"name": name, "value": -0.1} for name in ("=1+1", "'=1+1", "'quoted", "plain")]
    (tmp_path / "rows.csv").write_text(layout.written(rows, head=True))
    assert read_rows(tmp_path / "rows.csv") == [{**row, "value": "-0.1"} for row in rows]
