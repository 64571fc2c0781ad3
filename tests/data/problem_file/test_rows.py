"""Rows from files, relative to the folder of the problem file."""

from rehearsal_torch.data.problem_file.findings import Findings
from rehearsal_torch.data.problem_file.form import DataForm
from rehearsal_torch.data.problem_file.rows import rows_of
from rehearsal_torch.data.tables.frame import NO_DATA_BASE


def test_faults_are_collected(tmp_path):
    (tmp_path / "t.csv").write_text("a,a\n1,2\n")
    found = Findings("p")
    rows_of(DataForm(file="t.csv"), tmp_path, "data", found)
    assert rows_of(DataForm(file="tt.csv"), tmp_path, "cases", found) is None
    (tmp_path / "t.db").write_bytes(b"SQLite format 3\0")
    assert rows_of(DataForm(file="t.db"), tmp_path, "data", found) is None
    assert found.faults == [
        f"data: {tmp_path / 't.csv'}: several columns are called a: keep one of each",
        f"cases: there is no file {tmp_path / 'tt.csv'}: did you mean 't.csv'?",
        f"data: {tmp_path / 't.db'} is not comma-separated text but an SQLite data base; {NO_DATA_BASE}",
    ]


def test_a_table_that_is_not_there_is_told_as_what_is_there(tmp_path):
    found = Findings("problem.yaml", {})
    (tmp_path / "rows").mkdir()
    for name in ("rows", "elsewhere.csv"):
        assert rows_of(DataForm(file=name), tmp_path, "data", found) is None
    assert found.faults == [
        f"data: there is a folder, not a file, at {tmp_path / 'rows'}",
        f"data: there is no file {tmp_path / 'elsewhere.csv'}: the name is relative to the folder of the "
        "problem file",
    ]
