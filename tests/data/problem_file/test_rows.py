"""Rows from files and queries, relative to the folder of the problem file."""

import sqlite3

from rehearsal_torch.data.problem_file.findings import Findings
from rehearsal_torch.data.problem_file.form import DataForm
from rehearsal_torch.data.problem_file.rows import rows_of


def test_files_and_queries(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1.5;2\n")
    found = Findings("p")
    assert rows_of(DataForm(file="t.csv"), tmp_path, "data", found).frame["a"].tolist() == [1.5]
    given = DataForm(file="t.csv", separator=";", decimal=".")
    assert list(rows_of(given, tmp_path, "data", found).frame.columns) == ["a", "b"]
    with sqlite3.connect(tmp_path / "t.db") as opened:
        opened.execute("create table t as select 3 as a")
    opened.close()
    query = DataForm(sql="sqlite:///t.db", query="select a from t")
    assert rows_of(query, tmp_path, "data", found).frame["a"].tolist() == [3]
    assert found.faults == []


def test_faults_are_collected(tmp_path):
    (tmp_path / "t.csv").write_text("a,a\n1,2\n")
    found = Findings("p")
    rows_of(DataForm(file="t.csv"), tmp_path, "data", found)
    assert rows_of(DataForm(file="tt.csv"), tmp_path, "cases", found) is None
    assert rows_of(DataForm(sql="mysql+none://secret", query="select 1"), tmp_path, "data", found) is None
    assert found.faults == [
        f"data: {tmp_path / 't.csv'}: several columns are called a: keep one of each",
        f"cases: there is no file {tmp_path / 'tt.csv'}: did you mean 't.csv'?",
        "data: there is no such kind of data base: expected sqlite:///FILE, or the address of a data base, "
        "such as postgresql+psycopg://USER@HOST/NAME",
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
