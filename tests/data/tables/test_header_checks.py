"""Cells of sheets as data frames."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.tables.header_checks import TableError, frame_of, plain_cell
from rehearsal_torch.data.tables.in_memory import data_frame
from rehearsal_torch.data.tables.reader import number_columns


def test_dates_are_never_numbers():
    cells = [date(2024, 1, 2), datetime(2024, 1, 2, 3), timedelta(hours=1), b"x"]
    assert [plain_cell(cell) for cell in cells] == ["2024-01-02", "2024-01-02T03:00:00", "1:00:00", "b'x'"]
    assert plain_cell(Decimal("1.25")) == 1.25
    assert [plain_cell("#N/A"), plain_cell("  "), plain_cell(" 3 ")] == [None, None, "3"]
    frame = frame_of(["a"], enumerate([["3"], [True]]), "t").frame
    assert number_columns(frame, ["a"], "t").tolist() == [[3.0], [1.0]]


UNITS = range(30)
IDENTITIES = {
    "uuid": [UUID(int=10**30 + (place << 64)) for place in UNITS],
    "path": [PurePosixPath(f"/data/hospital/{place:02d}/of-all-patients-in-the-year.csv") for place in UNITS],
    "bytes": [bytes(8) + bytes([place]) + bytes(8) for place in UNITS],
    "tuple": [
        ("ward", "hospital", "city", "region", "country", "world", "x" * 300, place) for place in UNITS
    ],
    "array": [np.array([0.0] * 2000 + [place] + [0.0] * 2000) for place in UNITS],
    "level": list(Enum("Level", [f"LEVEL_OF_ALL_{place:02d}_IN_THE_TABLE" for place in UNITS])),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_different_cells_stay_different(name):
    cells = IDENTITIES[name]
    texts = [plain_cell(cell) for cell in cells]
    assert len(set(texts)) == len(cells)
    assert all(isinstance(text, str) and len(text) <= 200 for text in texts)
    column = pd.Series(cells, dtype=object).to_frame("id")
    assert data_frame(column, "t")["id"].tolist() == texts
    assert texts == [plain_cell(cell) for cell in cells]


def test_objects_are_no_numbers_and_whatever_they_hold_is_text():
    assert [plain_cell(cell) for cell in (PurePosixPath("3"), UUID(int=1))] == [
        "PurePosixPath('3')",
        "00000000-0000-0000-0000-000000000001",
    ]
    assert plain_cell(PurePosixPath("/a\udc80")) == "/a\\udc80"
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert plain_cell(deep) == f"{'[' * 20}[...]{']' * 20}"
    assert plain_cell({"b", "a"}) == "{'a', 'b'}"
    assert np.isnan(plain_cell(Decimal("sNaN")))


def test_headers_without_order_are_refused_or_collected(monkeypatch):
    faults = []
    frame = frame_of(["a", "a", None, ""], enumerate([[1, 2, 3, 4]]), "t", faults).frame
    assert list(frame.columns[:2]) == ["a", "a.1"]
    assert faults == [
        "several columns are called a: keep one of each",
        "values without a name in columns 3, 4: name each, or delete it",
    ]
    monkeypatch.setattr("rehearsal_torch.data.tables.header_checks.CELLS", 2)
    with pytest.raises(TableError, match="and 2 cells"):
        frame_of(["a"], enumerate([[1], [2], [3]]), "t")
