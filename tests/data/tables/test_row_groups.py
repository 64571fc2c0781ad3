"""Parquet files in parts: the cells of a file that is read at once."""

import sys

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.reading import read_table
from rehearsal_torch.data.tables.frame import TableError
from rehearsal_torch.data.tables.row_groups import parquet_files, read_parts

FRAME = pd.DataFrame(
    {
        "a": [float(each) for each in range(10)],
        "kind": pd.Categorical(["x", "y"] * 5),
        "when": pd.date_range("2024-01-01", periods=10),
        "more": range(10),
    }
)


@pytest.mark.parametrize("group", [3, 100])
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_parts_are_the_rows_of_the_file_in_order(tmp_path, group, rows):
    FRAME.to_parquet(tmp_path / "t.parquet", row_group_size=group)
    parts = list(read_parts(tmp_path / "t.parquet", ["kind", "a", "when", "absent"], rows))
    assert {source for source, _ in parts} == {str(tmp_path / "t.parquet")}
    assert max(len(frame) for _, frame in parts) <= rows
    whole = read_table(tmp_path / "t.parquet").frame
    pd.testing.assert_frame_equal(pd.concat([frame for _, frame in parts]), whole[["kind", "a", "when"]])


def test_what_has_been_read_is_let_go(tmp_path):
    import pyarrow as pa

    numbers = pd.DataFrame({name: np.random.default_rng(0).random(200_000) for name in "ab"})
    numbers.to_parquet(tmp_path / "t.parquet", row_group_size=5000)
    begun, held, count = pa.total_allocated_bytes(), [], 0
    for _, frame in read_parts(tmp_path / "t.parquet", ["a", "b"], 10_000):
        held.append(pa.total_allocated_bytes() - begun)
        count += len(frame)
    assert count == 200_000
    assert max(held) < 1_000_000, "of 3.2 million bytes"


def test_a_folder_is_one_table_and_rows_are_numbered_in_their_file(tmp_path):
    for name, begin in (("b.parquet", 4), ("a.parquet", 0)):
        FRAME.iloc[begin : begin + 4].to_parquet(tmp_path / name, index=False)
    (tmp_path / "notes.txt").write_text("no table")
    parts = list(read_parts(tmp_path, ["a"], 3))
    assert [source.rpartition("/")[2][0] for source, _ in parts] == ["a", "a", "b", "b"]
    assert pd.concat([frame for _, frame in parts])["a"].tolist() == list(range(8))
    assert [frame.index.tolist() for _, frame in parts] == [[0, 1, 2], [3], [0, 1, 2], [3]]


def test_rows_without_a_value_are_left_out_and_the_others_keep_their_numbers(tmp_path):
    pd.DataFrame({"a": [1.0, None, 3.0], "b": [None, None, 1.0]}).to_parquet(tmp_path / "t.parquet")
    ((_, frame),) = read_parts(tmp_path / "t.parquet", ["a", "b"])
    assert frame.index.tolist() == [0, 2]


def test_what_is_no_parquet_file_is_refused(tmp_path, monkeypatch):
    with pytest.raises(TableError, match="there is no file"):
        parquet_files(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="no Parquet file in"):
        parquet_files(tmp_path)
    FRAME.to_csv(tmp_path / "t.csv")
    with pytest.raises(TableError, match=r"only Parquet files are read in parts; got \.csv"):
        parquet_files(tmp_path / "t.csv")
    (tmp_path / "t.parquet").write_bytes((tmp_path / "t.csv").read_bytes())
    with pytest.raises(TableError, match=r"t.parquet is not a Parquet file, or is damaged"):
        list(read_parts(tmp_path / "t.parquet", ["a"]))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match="pyarrow, which reads it, is not installed"):
        list(read_parts(tmp_path / "t.parquet", ["a"]))


def test_damage_in_the_middle_is_told_when_it_is_reached(tmp_path):
    pd.DataFrame({"a": [float(each % 977) for each in range(60_000)]}).to_parquet(
        tmp_path / "t.parquet", row_group_size=10_000
    )
    content = bytearray((tmp_path / "t.parquet").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = b"\xff" * 2000
    (tmp_path / "t.parquet").write_bytes(bytes(content))
    parts = read_parts(tmp_path / "t.parquet", ["a"], 5000)
    assert len(next(parts)[1]) == 5000
    with pytest.raises(TableError, match="is damaged"):
        list(parts)


def test_columns_of_one_name_are_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    twice = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0]), pa.array([3.0])], names=["a", "a", "b"])
    pyarrow.parquet.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(TableError, match="several columns are called a: keep one of each"):
        list(read_parts(tmp_path / "t.parquet", ["a"]))
    ((_, frame),) = read_parts(tmp_path / "t.parquet", ["b"])
    assert frame["b"].tolist() == [3.0]
