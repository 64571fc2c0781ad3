"""Parquet files, and what is none."""

import subprocess
import sys
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rehearsal_torch.data.tables import header_checks
from rehearsal_torch.data.tables.parquet import TableError, read_parquet
from rehearsal_torch.data.tables.reader import number_columns, number_faults, read_table

FRAME = pd.DataFrame(
    {
        "a": [1.5, 2.5],
        "yes": [True, False],
        "kind": pd.Categorical(["x", "y"]),
        "when": pd.to_datetime(["2024-01-02", "2024-01-03"]),
        "price": [Decimal("1.25"), Decimal("2.50")],
    }
)


def test_columns_are_numbers_or_text(tmp_path):
    FRAME.to_parquet(tmp_path / "t.parquet")
    frame = read_parquet(tmp_path / "t.parquet").frame
    assert number_columns(frame, ["a", "yes", "price"], "t").tolist() == [[1.5, 1.0, 1.25], [2.5, 0.0, 2.5]]
    faults = number_faults(frame, ["kind", "when"])
    assert "kind: expected numbers; got 'x' in line 2" in faults[0]
    assert "when: expected numbers; got '2024-01-02' in line 2" in faults[1]


def test_an_index_without_a_name_is_no_column(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 9]).to_parquet(tmp_path / "t.parquet")
    assert list(read_parquet(tmp_path / "t.parquet").frame.columns) == ["a"]


def test_large_files_are_refused(tmp_path, monkeypatch):
    FRAME.to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(header_checks, "CELLS", 5)
    with pytest.raises(TableError, match="and 5 cells; there are more"):
        read_parquet(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match="pyarrow, which reads it, is not installed"):
        read_parquet(tmp_path / "t.parquet")


def test_columns_that_are_not_needed_are_neither_read_nor_counted(tmp_path, monkeypatch):
    FRAME.to_parquet(file := tmp_path / "t.parquet")
    asked = []
    found = read_parquet(file, needed=lambda names: asked.append(names) or ["price", "a"]).frame
    assert asked == [list(FRAME.columns)]
    pd.testing.assert_frame_equal(found, read_parquet(tmp_path / "t.parquet").frame[["a", "price"]])
    monkeypatch.setattr(header_checks, "CELLS", 5)
    assert len(read_parquet(tmp_path / "t.parquet", needed=lambda _: ["a"]).frame) == 2
    with pytest.raises(TableError, match="and 5 cells; there are more"):
        read_parquet(tmp_path / "t.parquet", needed=lambda _: ["a", "yes", "kind"])


def test_a_folder_of_parquet_files_is_one_table(tmp_path, monkeypatch):
    whole = pd.DataFrame({"a": [1.0, 2.5, 3.0, 4.0], "b": list("xyzx")})
    whole.iloc[2:].to_parquet(tmp_path / "2.parquet", index=False)
    whole.iloc[:2][["b", "a"]].to_parquet(tmp_path / "1.PARQUET", index=False)
    (tmp_path / "notes.txt").write_text("a,b")
    found = read_table(tmp_path).frame
    pd.testing.assert_frame_equal(found[["a", "b"]], whole)
    assert found.index.tolist() == [0, 1, 2, 3]
    monkeypatch.setattr(header_checks, "CELLS", 7)
    with pytest.raises(TableError, match="and 7 cells; there are more"):
        read_parquet(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="there is no file"):
        read_table(tmp_path / "empty")


@pytest.mark.parametrize("needed", [None, lambda _: ["kind", "a"]], ids=["all", "needed"])
@pytest.mark.parametrize("categorical", [True, False])
def test_a_part_without_rows_adds_nothing(tmp_path, needed, categorical):
    whole = pd.DataFrame({"a": [1.0, 2.0], "kind": ["x", "y"], "more": [1, 2]})
    if categorical:
        whole["kind"] = whole["kind"].astype("category")
    table = pa.Table.from_pandas(whole)
    for name, part in (("1", table.slice(0, 0)), ("2", table), ("3", table.slice(0, 0))):
        pq.write_table(part, tmp_path / f"{name}.parquet")
    found = read_parquet(tmp_path, needed=needed).frame
    assert found["kind"].tolist() == ["x", "y"]
    assert list(found.columns) == ["a", "kind", *(["more"] if needed is None else [])]


def test_a_repeated_name_is_told_where_columns_are_chosen(tmp_path):
    table = pa.table([[1.0], [2.0], [3.0]], names=["a", "a", "b"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TableError, match="several columns are called a"):
        read_parquet(tmp_path / "t.parquet", needed=lambda _: ["a"])


CLASSES = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 50_000, pa.int32()), ["x" * 100, "y" * 100])
TEXTS = CLASSES.dictionary_decode()
BEGUN = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
# Small files: the column, and the settings by which it is written.
GROWING = {
    "classes": (CLASSES, {}),
    "row groups": (CLASSES, {"row_group_size": 5_000}),
    "texts": (TEXTS, {}),
    "views": (TEXTS.cast(pa.string_view()), {}),
    "lists": (pa.array([["x" * 100] * 50] * 800), {}),
    "one beginning": (["x" * 100_000 + str(place) for place in range(60)], BEGUN),
    "one width": (pa.array([b"x" * 90_000] * 60, pa.binary(90_000)), {}),
}


@pytest.mark.parametrize("kind", GROWING)
def test_what_unpacks_to_more_than_is_read_is_refused(tmp_path, monkeypatch, kind):
    column, options = GROWING[kind]
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": column}), file, **options)
    assert file.stat().st_size < 500_000
    assert len(read_parquet(file).frame) == len(column)
    monkeypatch.setattr(header_checks, "BYTES", 5_000_000)
    with pytest.raises(TableError, match="at most 5,000,000 bytes when unpacked, and 200,000,000 cells"):
        read_parquet(file)


MEASURED = """
import resource, sys
from pathlib import Path
from rehearsal_torch.data.tables.parquet import read_parquet
read_parquet(Path(sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
frame = read_parquet(Path(sys.argv[2])).frame
assert len(frame) == 2_000_000 and frame["a"].iloc[-1] == "y" * 200
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.slow
def test_texts_take_the_memory_that_is_counted(tmp_path):
    texts = ["x" * 200, "y" * 200]
    for rows in (2, 2_000_000):
        kept = pa.DictionaryArray.from_arrays(pa.array([0, 1] * (rows // 2), pa.int32()), texts)
        pq.write_table(pa.table({"a": kept}), tmp_path / f"{rows}.parquet")
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, *(str(tmp_path / f"{rows}.parquet") for rows in (2, 2_000_000))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < 1.4 * 2_000_000 * 200
