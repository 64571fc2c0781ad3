"""Excel workbooks: sheets, rows of the sheet in messages, and what is no workbook."""

import sys
from datetime import date

import pytest
from openpyxl import Workbook

from rehearsal_torch.data.reading import number_columns, number_faults
from rehearsal_torch.data.tables import workbook
from rehearsal_torch.data.tables.workbook import TableError, read_workbook


def written(file, **sheets):
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for place, row in rows:
            for column, cell in enumerate(row, 1):
                sheet.cell(place, column, cell)
    book.save(file)
    return file


def test_a_sheet_is_read_with_its_rows(tmp_path):
    rows = [
        (2, ["a", "b", None, "when"]),
        (3, [1.5, True, None, date(2024, 1, 2)]),
        (5, [2, "x", None, None]),
    ]
    found = read_workbook(written(tmp_path / "t.xlsx", first=rows, other=[(1, ["c"]), (2, [4])]))
    assert list(found.frame.columns) == ["a", "b", "when"]
    assert number_columns(found.frame, ["a"], "t").tolist() == [[1.5], [2.0]]
    assert found.notes == (f"of {tmp_path / 't.xlsx'}, the first of 2 sheets is read, 'first'",)
    faults = number_faults(found.frame, ["b", "when"])
    assert "b: expected numbers; got 'x' in line 5" in faults[0]
    assert "when: expected numbers; got '2024-01-02T00:00:00' in line 3" in faults[1]
    other = read_workbook(tmp_path / "t.xlsx", "other")
    assert (other.frame["c"].tolist(), other.notes) == ([4], ())


def test_what_is_no_workbook_is_refused(tmp_path, monkeypatch):
    file = written(tmp_path / "t.xlsx", first=[(1, ["a"]), (2, [1])], empty=[])
    with pytest.raises(TableError, match="there is no sheet 'frist'; did you mean 'first'"):
        read_workbook(file, "frist")
    with pytest.raises(TableError, match="sheet 'empty': it is empty; expected a header row"):
        read_workbook(file, "empty")
    (tmp_path / "csv.xlsx").write_text("a,b\n1,2\n")
    (tmp_path / "cut.xlsx").write_bytes(file.read_bytes()[:-200])
    for name in ("csv.xlsx", "cut.xlsx"):
        with pytest.raises(TableError, match=f"{name} is not an Excel workbook, or is damaged"):
            read_workbook(tmp_path / name)
    whole = file.read_bytes()
    place = whole.index(b"xl/worksheets/sheet1.xml") + 60
    (tmp_path / "flipped.xlsx").write_bytes(whole[:place] + bytes(40) + whole[place + 40 :])
    with pytest.raises(TableError, match=r"flipped\.xlsx is not an Excel workbook, or is damaged"):
        read_workbook(tmp_path / "flipped.xlsx")
    monkeypatch.setattr(workbook, "BYTES", 100)
    with pytest.raises(TableError, match="when unpacked"):
        read_workbook(file)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        TableError, match=r"openpyxl, which reads it, is not installed: type pip install 'rehear"
    ):
        read_workbook(file)
