"""Data frames of pandas, polars and narwhals: what is read, and every fault in one paragraph."""

import decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rehearsal_torch as rt
from rehearsal_torch.data.tables.in_memory import data_frame, frame_of_rows, row_count
from rehearsal_torch.data.tables.reader import TableError

COLUMNS = {"a": [1.0, 2.5, -3.0], "b": [0, 1, 1], "c": [True, False, True]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda c: nw.from_native(pl.DataFrame(c))])
def test_frames_of_all_libraries_give_the_same_table(make):
    frame = make(COLUMNS)
    found = rt.Table.from_frame(frame)
    assert found.names == ("a", "b", "c")
    assert found.values.dtype == torch.float64
    assert found.values.tolist() == [[1, 0, 1], [2.5, 1, 0], [-3, 1, 1]]
    assert not found.altered.any()
    assert row_count(frame) == 3
    assert rt.Table.from_frame(frame, ["b", "a"]).values.tolist() == [[0, 1], [1, 2.5], [1, -3]]


def test_numbers_of_every_kind_are_numbers():
    frame = pd.DataFrame(
        {
            "whole": pd.Series([1, 2], dtype="Int64"),
            "level": pd.Series([3, 4]).astype("category"),
            "sparse": pd.Series([0.0, 5.0]).astype("Sparse[float]"),
            "exact": [decimal.Decimal("1.5"), decimal.Decimal("2.5")],
            7: np.array([1, 2], dtype=np.uint8),
        }
    )
    found = rt.Table.from_frame(frame)
    assert found.names == ("whole", "level", "sparse", "exact", "7")
    assert found.values.tolist() == [[1, 3, 0, 1.5, 1], [2, 4, 5, 2.5, 2]]
    exact = pl.DataFrame({"exact": [decimal.Decimal("1.5")]})
    assert rt.Table.from_frame(exact).values.item() == 1.5


def test_complex_numbers_are_refused_with_a_remedy():
    with pytest.raises(TableError, match=r"got '.1.2j.' in line 2: split complex numbers into two columns"):
        rt.Table.from_frame(pd.DataFrame({"x": pd.Series([1 + 2j, 3])}))


def test_cells_of_other_libraries_are_no_numbers_either():
    frame = pl.DataFrame({"x": [b"3", b"4"], "y": [[1], [2]], "z": [{"a": 1}, {"a": 2}]})
    with pytest.raises(TableError) as caught:
        rt.Table.from_frame(frame.with_columns(pl.Series("t", [torch.tensor(1.0)] * 2, dtype=pl.Object)))
    assert [line.partition(" in line")[0] for line in str(caught.value).splitlines()[1:]] == [
        """- x: expected numbers; got "b'3'\"""",
        "- y: expected numbers; got '[1]'",
        """- z: expected numbers; got "{'a': 1}\"""",
        "- t: expected numbers; got 'tensor(1.)'",
    ]
    assert frame_of_rows([{"x": "\ud800"}]).x.tolist() == ["?"]
    made = frame_of_rows([{"x": torch.tensor(1.0), 3: b"3"}, {"x": 2, 3: "c"}])
    assert made.to_dict("list") == {"x": ["tensor(1.)", 2], 3: ["b'3'", "c"]}


def test_names_that_occur_twice_are_a_fault_among_the_others():
    frame = pd.DataFrame([[1.0, 2.0, None]], columns=["a", "a", "b"])
    with pytest.raises(TableError) as caught:
        rt.Table.from_frame(frame)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the data frame: 2 faults, nothing was read"
    assert lines[1] == "- several columns are called 'a': rename them"
    assert lines[2].startswith("- b: 1 of 1 values are missing")
    with pytest.raises(TableError, match="the cases: several columns are called 'a': rename them"):
        data_frame(frame, "the cases")
    # A name as a number and as text is the same name.
    with pytest.raises(TableError, match="several columns are called '1'"):
        data_frame(pd.DataFrame([[1, 2]], columns=[1, "1"]), "the cases")


def test_what_is_not_a_frame_in_memory_is_refused():
    with pytest.raises(TableError, match="expected a data frame in memory; got a lazy LazyFrame: collect it"):
        rt.Table.from_frame(pl.DataFrame(COLUMNS).lazy())
    assert row_count([[1.0, 2.0]]) is None


@given(st.data(), st.integers(0, 5), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_to_frame_and_back_loses_nothing(data, rows, width):
    numbers = st.floats(-1e150, 1e150, allow_nan=False)
    cells = data.draw(st.lists(numbers, min_size=rows * width, max_size=rows * width))
    marks = data.draw(st.lists(st.booleans(), min_size=rows * width, max_size=rows * width))
    values = torch.tensor(cells, dtype=torch.float64).reshape(rows, width)
    altered = torch.tensor(marks, dtype=torch.bool).reshape(rows, width)
    table = rt.Table(tuple(f"v{place}" for place in range(width)), values, altered)
    frame = table.to_frame()
    for same in (rt.Table.from_frame(frame), rt.Table.from_frame(pl.DataFrame(dict(frame.items())))):
        assert same.names == table.names
        assert torch.equal(same.values, table.values)
        assert torch.equal(same.altered, table.altered)


def test_a_frame_is_not_changed_by_reading_or_by_its_table():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])
    table = rt.Table.from_frame(frame)
    table.values[0] = 7.0
    shown = table.to_frame()
    table.values[0] = 8.0
    assert (list(frame.index), frame.a.tolist(), shown.a.tolist()) == (["x", "y"], [1.0, 2.0], [7.0, 2.0])
