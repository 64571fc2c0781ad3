"""Excel workbooks: sheets, rows of the sheet in messages, and what is no workbook."""

import sys
from datetime import date
from itertools import product
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from openpyxl import Workbook

from rehearsal_torch.data.tables import excel
from rehearsal_torch.data.tables.excel import TableError, read_workbook
from rehearsal_torch.data.tables.reader import number_columns, number_faults, read_table


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
    assert "b: expected numbers; got 'True' in line 3: it has two values, 'True' and 'x'" in faults[0]
    assert "when: expected numbers; got '2024-01-02' in line 3" in faults[1]
    other = read_workbook(tmp_path / "t.xlsx", "other")
    assert (other.frame["c"].tolist(), other.notes) == ([4], ())


def test_percentages_are_read_as_of_the_sheet_saved_as_text(tmp_path):
    book = Workbook()
    book.active.append(["rate", "share"])
    for row in ((0.07, 0.5), (0.155, 0.25)):
        book.active.append(row)
        book.active.cell(book.active.max_row, 1).number_format = "0.0%"
    book.save(tmp_path / "t.xlsx")
    (tmp_path / "t.csv").write_text("rate,share\n7%,0.5\n15.5%,0.25\n")
    sheet, text = read_workbook(tmp_path / "t.xlsx"), read_table(tmp_path / "t.csv")
    assert sheet.frame.equals(text.frame)
    assert sheet.frame["rate"].tolist() == [7.0, 15.5]
    assert sheet.units == text.units == {"rate": "%"}


@pytest.mark.parametrize("form", ['0.0"%"', r"0\%", '0 "% of beds"'])
def test_a_percent_sign_that_only_stands_there_scales_nothing(tmp_path, form):
    book = Workbook()
    for row in (["rate"], [45.0], [7.5]):
        book.active.append(row)
        book.active.cell(book.active.max_row, 1).number_format = form
    book.save(tmp_path / "t.xlsx")
    assert read_workbook(tmp_path / "t.xlsx").frame["rate"].tolist() == [45.0, 7.5]


def test_merged_cells_count_where_they_are_seen(tmp_path):
    """Of four rows below one merged cell, three had an empty one, without a word."""
    book = Workbook()
    rows = [
        ["site", "T", None, "y"],
        [None, "set", "actual", None],
        *([None, n, n + 0.5, 7 - n] for n in range(6)),
    ]
    for row in rows:
        book.active.append(row)
    book.active["A3"], book.active["A6"] = "north", "south"
    for area in ("A1:A2", "B1:C1", "A3:A5", "A6:A8"):
        book.active.merge_cells(area)
    book.save(tmp_path / "t.xlsx")
    read = read_workbook(tmp_path / "t.xlsx")
    assert [*read.frame] == ["site", "T set", "T actual", "y"]
    assert [*read.frame["site"]] == ["north"] * 3 + ["south"] * 3
    assert "cells that are merged (2, first in line 3) count in each row" in read.notes[0]


def test_a_large_workbook_and_one_that_nothing_can_read_are_refused(tmp_path, monkeypatch):
    file = written(tmp_path / "t.xlsx", first=[(1, ["a"]), (2, [1])])
    cell = b'<c r="%b"/><sheetData>' % (b"< " * 2_300_000)
    with pytest.raises(TableError, match="not well-formed"):
        read_workbook(changed(file, lambda text: text.replace(b"<sheetData>", cell)))
    monkeypatch.setattr(excel, "BYTES", 100)
    with pytest.raises(TableError, match="when unpacked"):
        read_workbook(file)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        TableError, match=r"openpyxl, which reads it, is not installed: type pip install 'rehear"
    ):
        read_workbook(file)


def changed(file, change):
    """A workbook with another text of its first sheet."""
    made = file.with_name("changed.xlsx")
    with ZipFile(file) as before, ZipFile(made, "w", ZIP_DEFLATED) as after:
        for name in before.namelist():
            content = before.read(name)
            after.writestr(name, change(content) if name.endswith("sheet1.xml") else content)
    return made


SEEN_AT_THEIR_ENDS = [b"<!--%b-->", b"<![CDATA[%b]]>", b"<?x %b?>", b"<!--%b", b"<!DOCTYPE w [<!--%b-->]>"]


@pytest.mark.parametrize(
    ("mark", "filling"),
    # A parser refuses a cell with b"< " at its first byte.
    [*product([*SEEN_AT_THEIR_ENDS, b'<c r="%b"/>'], [b"x", b">"]), *product(SEEN_AT_THEIR_ENDS, [b"< "])],
)
def test_marks_that_a_parser_scans_again_and_again_never_reach_it(tmp_path, mark, filling, monkeypatch):
    monkeypatch.setattr("openpyxl.load_workbook", None)
    file = written(tmp_path / "t.xlsx", first=[(1, ["a"]), (2, [1])])
    for place in (b"<sheetData>", b"<worksheet"):
        long = changed(file, lambda text, at=place: text.replace(at, mark % (filling * 2_300_000) + at))
        with pytest.raises(TableError, match="has comments, or marks of a mebibyte"):
            read_workbook(long)


@pytest.mark.parametrize("unit", [b"<c/>", b"<row/>"])
def test_what_unpacks_to_more_than_can_be_parsed_is_refused_before_it_is(tmp_path, unit, monkeypatch):
    monkeypatch.setattr(excel, "MARKS", 100_000)
    monkeypatch.setattr(excel, "ITEMS", 100_000)
    file = written(tmp_path / "t.xlsx", first=[(1, ["a"]), (2, [1])])
    bomb = changed(file, lambda text: text.replace(b"</sheetData>", unit * 200_000 + b"</sheetData>"))
    assert bomb.stat().st_size < 20_000
    monkeypatch.setattr("openpyxl.load_workbook", None)
    with pytest.raises(TableError, match="expected at most 512 MiB when unpacked, and 1048576 rows"):
        read_workbook(bomb)
