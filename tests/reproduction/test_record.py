"""Rows of jobs: finished ones are known, cut ones are removed, and equal rows are packed to equal bytes."""

from reproduction.plan import Job
from reproduction.record import Layout, Record, pack, unpack

LAYOUT = Layout("rows.csv", ("method", "seed"), ("method", "seed", "value"))
LOG = ("method", "seed", "state", "message")


def job(method, seed=0):
    return Job("s", "", "", method, seed, (), (method, str(seed)))


def filled(folder, log=LOG):
    record = Record(folder, {"s": LAYOUT}, log)
    for method in ("a", "b"):
        rows = [{"method": method, "seed": 0, "value": value} for value in (0.5, 1 / 3)]
        record.add(job(method), rows, {"state": "ok"})
    return record


def test_finished_jobs_are_known_and_failed_ones_are_tried_again(tmp_path):
    filled(tmp_path).add(job("c"), [], {"state": "failed", "message": "why"})
    again = Record(tmp_path, {"s": LAYOUT}, LOG)
    assert again.todo([job("a"), job("b"), job("c")]) == [job("c")]
    again.mend()
    assert "why" not in (tmp_path / "jobs.csv").read_text()
    assert [row["value"] for row in again.rows("s")] == ["0.5", "0.333333"] * 2


def test_what_an_interrupted_job_left_is_removed(tmp_path):
    filled(tmp_path)
    whole = (tmp_path / "rows.csv").read_text()
    (tmp_path / "rows.csv").write_text(f"{whole}c,0,0.1\nc,0,0.")
    again = Record(tmp_path, {"s": LAYOUT}, LOG)
    again.mend()
    assert (tmp_path / "rows.csv").read_text() == whole


def test_without_a_log_a_job_is_finished_with_its_rows(tmp_path):
    filled(tmp_path, ())
    (tmp_path / "rows.csv").write_text((tmp_path / "rows.csv").read_text()[:-3])
    counted = Layout(LAYOUT.file, LAYOUT.key, LAYOUT.columns, count=2)
    assert Record(tmp_path, {"s": counted}).todo([job("a"), job("b")]) == [job("b")]


def test_packed_rows_are_the_same_rows(tmp_path):
    text = "a,b\n" + "1,2\n" * 50_000
    (tmp_path / "large.csv").write_text(text)
    (tmp_path / "small.csv").write_text("a\n1\n")
    pack(tmp_path)
    packed = (tmp_path / "large.csv.gz").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"large.csv.gz", "small.csv"}
    unpack(tmp_path)
    assert (tmp_path / "large.csv").read_text() == text
    pack(tmp_path)
    assert (tmp_path / "large.csv.gz").read_bytes() == packed
