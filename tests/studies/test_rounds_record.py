"""The record of a study whose rounds learn from each other."""

from rehearsal_torch.evaluation.online_rows import COLUMNS
from rehearsal_torch.evaluation.rehearsal_rows import written
from rehearsal_torch.files.rows import read_rows
from rehearsal_torch.studies.rounds_record import Repeat, RoundsRecord
from tests.toys.online_rows import rows


def test_the_record_keeps_what_is_done_and_drops_what_is_not(tmp_path):
    record = RoundsRecord(tmp_path)
    one, other, bad = (Repeat("w", "m", "0.7", number) for number in range(3))
    record.add(
        one,
        [row for row in rows() if row["repeat"] == 0],
        {"state": "ok", "rounds": 30, "seconds": 1.0, "commit": "c", "message": ""},
    )
    record.add(bad, [], {"state": "failed", "rounds": 0, "seconds": 1.0, "commit": "c", "message": "why"})
    with record.rows_file.open("a") as file:
        file.write(
            written([row for row in rows() if row["repeat"] == 1][:3], COLUMNS, head=False) + "w,m,0.7,1,4,a"
        )
    torn = record.rows_file.read_text()
    again = RoundsRecord(tmp_path)
    assert len(again.rows()) == 30
    assert record.rows_file.read_text() == torn, "reading changes nothing"
    again.mend()
    assert again.todo([one, other, bad]) == [other, bad]
    assert len(read_rows(record.rows_file)) == 30
    assert record.rows_file.read_text().endswith("\n")
    assert len(read_rows(record.jobs_file)) == 1
