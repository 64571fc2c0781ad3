"""Titles above headers and footers below rows: what is left out, what is kept, and what is refused."""

import pandas as pd
import pytest
from openpyxl import Workbook

from rehearsal_torch.data.tables.csv_file import cells_as_written
from rehearsal_torch.data.tables.header_checks import TableError
from rehearsal_torch.data.tables.reader import read_table

ROWS = ["B1,20,80.5", "B2,21,81.5", "B3,25,84"]


def table(folder, lines, name="t.csv", separator=","):
    (folder / name).write_text("\n".join(lines).replace(",", separator) + "\n", encoding="utf-8")
    return read_table(folder / name)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(
    "titles",
    [
        ["Esterification 2024"],
        ["Esterification", "", "run by Ann"],
        ["Esterification,,", ",,", "Operator,Ann,"],
        ['"A title\nin two lines, long"'],
        ["", "Esterification of 7 mol"],
    ],
)
def test_titles_above_the_header_are_left_out_and_lines_keep_their_numbers(tmp_path, titles, separator):
    """The first title was the header: line 4, which is, had "values beyond the last column with a name"."""
    found = table(tmp_path, [*titles, "run,Temp (°C),yield", *ROWS], separator=separator)
    assert list(found.frame.columns) == ["run", "Temp (°C)", "yield"]
    assert found.units == {"Temp (°C)": "°C"}
    assert found.frame["yield"].tolist() == [80.5, 81.5, 84]
    above = len(titles)
    assert list(found.frame.index) == [above, above + 1, above + 2]
    lines = "1 line above it is" if above == 1 else f"{above} lines above it are"
    assert f"the header is line {above + 1}; {lines} left out" in found.notes[-1]


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["a,b", "1,2"], ["a", "b"]),
        (["", "a,b", "1,2"], ["a", "b"]),
        ([",name,size", "0,Ann,1", "1,Bob,2"], ["Unnamed: 0", "name", "size"]),
        ([",city,size", "Ann,Rome,x", "Bob,Oslo,3"], ["Unnamed: 0", "city", "size"]),
        (["2019,2020", "1,2"], ["2019", "2020"]),
        (["a", "x", "3"], ["a"]),
        (["who,dose,,", "Ann,high,,", "Bob,3,,", "Eve,4,,"], ["who", "dose"]),
    ],
)
def test_a_header_in_the_first_line_stays_the_header(tmp_path, lines, names):
    found = table(tmp_path, lines)
    assert list(found.frame.columns) == names
    assert not found.notes


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_remarks_behind_the_table_are_no_column(tmp_path, kind):
    """Comments typed beside some rows refused the whole sheet; numbers without a name still do."""
    rows = [["dose", "yield", None], [1, 80.5, None], [2, 81.5, "late"], [3, 84.0, None]]
    file = tmp_path / f"runs.{kind}"

    def written(rows):
        frame = pd.DataFrame(rows)
        frame.to_excel(file, index=False, header=False) if kind == "xlsx" else frame.to_csv(
            file, index=False, header=False
        )
        return read_table(file)

    remarked = written(rows)
    assert list(remarked.frame.columns) == ["dose", "yield"]
    assert remarked.notes[-1].endswith("remarks without a column name, first in line 3, are left out")
    rows[2][2] = 7
    with pytest.raises(TableError, match="values without a name in column 3: name each, or delete it"):
        written(rows)


@pytest.mark.parametrize(
    ("footer", "first"),
    [
        (["mean,22,82"], "mean"),
        (["Mittelwert:,22,82"], "Mittelwert:"),
        (["mean,22,82", "SD,2.65,1.8"], "mean"),
        (["", "total,66,246", "", "Source: our own plant"], "total"),
        (["n = 3,,"], "n = 3"),
        (["* without B4,,"], "* without B4"),
        (["Summe,,"], "Summe"),
        (["Summe Versuche: 3,,"], "Summe Versuche: 3"),
        (["Total: 3,,"], "Total: 3"),
        (["Stand 01.03.2024,,"], "Stand 01.03.2024"),
        ([",see the diary,"], "see the diary"),
    ],
)
def test_footers_are_left_out_and_noted(tmp_path, footer, first):
    """ "mean" was a row, and a problem of three rows one of four."""
    found = table(tmp_path, ["run,t,y", *ROWS, *footer])
    assert found.frame.t.tolist() == [20, 21, 25]
    assert found.frame.y.tolist() == [80.5, 81.5, 84]
    assert len(found.notes) == 1
    assert f"no row of the table and left out ({first!r})" in found.notes[0]
    assert found.notes[0].startswith(f"of {tmp_path / 't.csv'}, line")


@pytest.mark.parametrize(
    "last",
    [
        "Max,19,70",
        "B4,,",
        "Total Bill,,",
        "Max 2,,",
        "min,30,10",
        "B4,n.m.,",
        "Max,25,84",
        "n,3,3",
        "n,3,80",
        "mean,99,1",
        "mean,22,90",
    ],
)
def test_no_row_is_taken_for_a_footer(tmp_path, last):
    """A patient called Max was dropped, as his age was the largest."""
    found = table(tmp_path, ["run,t,y", *ROWS, last])
    assert len(found.frame) == 4


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        (["power,speed", "Low,8.6", "Low,1.5", "High,7.7", "mean,1", "mean,1"], 5),
        (["run,t,y", *ROWS, "mean,22,82", "min,20,80.5", "max,25,84", "n,3,3"], 3),
        (["run,t,y", *ROWS, "mean,22,82", "min,20,80.5", "max,25,84", "n,4,3"], 7),
        (["kind,t", "total,1", "part,2", "total,3"], 3),
    ],
    ids=["one label", "a block", "one of a block is none", "a level"],
)
def test_rows_of_a_label_are_footers_where_all_are_statistics(tmp_path, lines, rows):
    assert len(table(tmp_path, lines).frame) == rows


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (["run,T,,y", ",set,actual,"], ["run", "T set", "T actual", "y"]),
        (["run,T,T,y", ",set,actual,"], ["run", "T set", "T actual", "y"]),
        ([",T,,y", "run,set,actual,(%)"], ["run", "T set", "T actual", "y (%)"]),
        ([",T,T,y", ",mean,sd,y", "run,,,"], ["run", "T mean", "T sd", "y"]),
        (["run,T,,y", ",set,actual,", ",°C,°C,"], ["run", "T set", "T actual", "y"]),
    ],
)
def test_a_header_of_groups_goes_on_in_the_next_line(tmp_path, header, names):
    """The second line was a row, which made texts of its columns, and names were missing or repeated."""
    rows = ["B1,20,20.5,1", "B2,21,21.5,3", "B3,25,25,2"]
    read = table(tmp_path, [*header, *rows])
    assert list(read.frame.columns) == names
    assert read.frame.iloc[:, 1].tolist() == [20, 21, 25]
    assert read.frame.index[0] == len(header) - 1
    assert read.units.get("T set", "") == header[-1].split(",")[1] * ("°C" in header[-1])
    assert f"its header goes on to line {3 if header[-1] == 'run,,,' else 2} (run, T" in read.notes[0]
    assert cells_as_written(read).iloc[0, 2] == "20.5"


def test_a_header_that_stands_again_is_no_row(tmp_path):
    """Parts of a table, put together, had their headers as rows, which made texts of all columns."""
    read = table(tmp_path, ["run,t,y", *ROWS, "run,t,y", *ROWS])
    assert [*zip(read.frame.index, read.frame.t[:4], strict=False)] == [(0, 20), (1, 21), (2, 25), (4, 20)]
    assert "the header stands again in line 5, and is left out" in read.notes[0]


@pytest.mark.parametrize("second", ["years,mg/dl,", "(y),(mg/dl),(-)", "y,mg/dl,-"])
def test_a_line_of_units_is_no_row(tmp_path, second):
    (tmp_path / "t.csv").write_text(f"age,chol,group\n{second}\n50,200,a\n60,210,b\n70,190,m\n")
    read = read_table(tmp_path / "t.csv")
    assert (read.frame["age"].tolist(), list(read.frame.index)) == ([50, 60, 70], [1, 2, 3])
    assert (read.units["chol"], "group" in read.units) == ("mg/dl", False)
    assert "line 2 has units and is no row" in read.notes[0]


def test_a_sheet_need_not_begin_in_the_first_cell(tmp_path):
    book = Workbook()
    sheet, hidden = book.active, book.create_sheet("old", 0)
    hidden.append(["a"])
    hidden.sheet_state = "hidden"
    book.active = 1
    sheet["B2"] = "Esterification, spring"
    sheet.merge_cells("B2:D2")
    for place, row in enumerate([["run", "Temp.\n(°C)", "y"], ["B1", 20, 80.5], ["B2", "n.m.", 81]], 4):
        for at, cell in enumerate(row, 3):
            sheet.cell(place, at, cell)
    book.save(tmp_path / "t.xlsx")
    found = read_table(tmp_path / "t.xlsx")
    expected = pd.DataFrame({"run": ["B1", "B2"], "Temp. (°C)": [20, None], "y": [80.5, 81]}, index=[3, 4])
    pd.testing.assert_frame_equal(found.frame, expected)
    assert [note.removeprefix(f"of {tmp_path / 't.xlsx'}, ") for note in found.notes] == [
        "the first of 2 sheets is read, 'Sheet'",
        "the header is line 4; 3 lines above it are left out",
        "1 cell such as 'n.m.' is read as missing among numbers (Temp. (°C))",
    ]
