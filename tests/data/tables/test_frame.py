"""Cells of sheets as data frames."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from rehearsal_torch.data.reading import number_columns, number_faults
from rehearsal_torch.data.tables.frame import TableError, frame_of, plain_cell


def test_rows_keep_their_numbers_and_empty_ones_are_left_out():
    rows = [[1, None, 2.5], [None], [True, None, " "], ["x", None, 3]]
    frame = frame_of(["a", None, " b "], enumerate(rows, 3), "t")
    assert list(frame.columns) == ["a", "b"]
    assert list(frame.index) == [3, 5, 6]
    assert number_faults(frame, ["a", "b"]) == [
        "a: expected numbers; got 'x' in line 8: encode strings as numbers, or leave the variable out",
        "b: 1 of 3 values are missing or infinite in line 7: drop or impute those rows",
    ]


def test_dates_are_never_numbers():
    cells = [date(2024, 1, 2), datetime(2024, 1, 2, 3), timedelta(hours=1), b"x"]
    assert [plain_cell(cell) for cell in cells] == ["2024-01-02", "2024-01-02T03:00:00", "1:00:00", "b'x'"]
    assert plain_cell(Decimal("1.25")) == 1.25
    assert [plain_cell("#N/A"), plain_cell("  "), plain_cell(" 3 ")] == [None, None, "3"]
    assert number_columns(frame_of(["a"], enumerate([["3"], [True]]), "t"), ["a"], "t").tolist() == [
        [3.0],
        [1.0],
    ]


def test_headers_without_order_are_refused_or_collected(monkeypatch):
    with pytest.raises(TableError, match="t: several columns are called a: keep one of each"):
        frame_of(["a", "a"], enumerate([[1, 2]]), "t")
    faults = []
    assert list(
        frame_of(["a", "a", None, ""], enumerate([[1, 2, 3, 4]]), "t", faults=faults).columns[:2]
    ) == [
        "a",
        "a.1",
    ]
    assert faults == [
        "several columns are called a: keep one of each",
        "columns 3, 4 have values and no name: name them, or delete them",
    ]
    with pytest.raises(TableError, match="t: line 3 has values beyond the last column with a name"):
        frame_of(["a"], enumerate([[1], [1, 2]]), "t")
    monkeypatch.setattr("rehearsal_torch.data.tables.frame.CELLS", 2)
    with pytest.raises(TableError, match="and 2 cells"):
        frame_of(["a"], enumerate([[1], [2], [3]]), "t")
