"""What columns of numbers and dates say beside these: what is read and told, and what stays text."""

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.tables.cell_values import (
    Notes,
    column_of,
    dates_of,
    order_unknown,
    plain_text,
    unit_of,
)
from rehearsal_torch.data.tables.reader import number_faults, read_table

TEN = [str(place) for place in range(1, 11)]


def read(cells, sign="."):
    told = Notes()
    found = column_of(pd.Series(cells), "x", told, sign)
    return found.tolist(), told


@pytest.mark.parametrize(
    ("cells", "sign", "numbers"),
    [
        (["5,125.73", "950", "1,234"], ".", [5125.73, 950, 1234]),
        (["-1,234,567", "2"], ".", [-1234567, 2]),
        (["5.125,73", "950,5", "1.234"], ",", [5125.73, 950.5, 1234]),
        (["1 234", "5\u202f678,5", "12\u00a0345"], ",", [1234, 5678.5, 12345]),
        (["1'234.5", "2\u2019345"], ".", [1234.5, 2345]),
        (["45 %", "7.5%"], ".", [45, 7.5]),
        (["€ 5,125.73", "€ 1"], ".", [5125.73, 1]),
        (["12,50 EUR", "3 EUR"], ",", [12.5, 3]),
        (["1.5", "n.m.", "k. A.", "-", "3"], ".", [1.5, np.nan, np.nan, np.nan, 3]),
        (["\N{MINUS SIGN}5", "3.5", "\N{MINUS SIGN}"], ".", [-5, 3.5, np.nan]),
        (["True", "3", "false"], ".", [1, 3, 0]),
        ([*TEN * 2, "<5"], ".", [*range(1, 11), *range(1, 11), 5]),
    ],
)
def test_what_has_one_reading_is_read_and_told(cells, sign, numbers):
    found, told = read(cells, sign)
    assert [float(cell) for cell in found] == pytest.approx(numbers, nan_ok=True, abs=0)
    assert len(told.sentences()) == (cells[0] != "True")


@pytest.mark.parametrize(
    "cells",
    [
        ["1,234", "950", "12,345"],
        ["101", "101,102", "7"],
        ["45 %", "0.45"],
        ["5 €", "5 $"],
        [*TEN, "<5"],
        ["<5", ">9", "<7"],
        ["1,5", "2.5"],
        ["12 mg", "3"],
        ["1,234.5.6", "7"],
        ["low", "-", "high"],
    ],
)
def test_what_has_two_readings_stays_as_it_is_written(cells):
    found, told = read(cells)
    assert (found, told.sentences()) == (cells, [])


def test_a_limit_is_refused_with_what_may_be_done_and_a_text_among_numbers_is_the_fault_that_is_told():
    frame = pd.DataFrame({"x": column_of(pd.Series([*TEN, "<5"]), "x", Notes())})
    assert "got '<5' in line 12: a limit says that the value lies beyond it" in number_faults(frame, ["x"])[0]
    frame = pd.DataFrame({"x": column_of(pd.Series(["n.m.", "1,5", "x", "2"]), "x", Notes(), ",")})
    assert "got 'x' in line 4" in number_faults(frame[frame.x.notna()], ["x"])[0]


def test_truth_values_are_truth_values_also_beside_empty_cells():
    assert read(["True", "FALSE"])[0] == [True, False]
    assert read(["True", None, "false"])[0] == [True, None, False]
    assert read([True, "maybe"])[0] == ["True", "maybe"]


def test_texts_that_look_the_same_are_the_same():
    assert plain_text(" gro\u0308\u00dfe \n (\u00b0C) ") == "größe (°C)"
    assert read(["x\u00a0y", "x  y "])[0] == ["x y", "x y"]
    names = ("Temp. (°C)", "c [mg/l]", "f(x) of y", "(a)")
    assert [*map(unit_of, names)] == ["°C", "mg/l", "", "a"]


@pytest.mark.parametrize(
    ("cells", "dates"),
    [
        (["2024-02-19", "2024-2-1", "2024/02/03"], ["2024-02-19", "2024-02-01", "2024-02-03"]),
        (["19.02.2024", "1.2.24", "01.02.1999"], ["2024-02-19", "2024-02-01", "1999-02-01"]),
        (["19/02/2024", "1/2/2024"], ["2024-02-19", "2024-02-01"]),
        (["02/19/2024", "1/2/2024"], ["2024-02-19", "2024-01-02"]),
        (["19.02.2024 13:30", "2024-02-19T13:30:00+01:00"], ["2024-02-19T13:30", "2024-02-19T12:30"]),
        (["2/19/2024 1:30 PM", "2/19/2024 9:05"], ["2024-02-19T13:30", "2024-02-19T09:05"]),
        (["1/2/2024", "3/4/2024"], [None, None]),
        (["19/02/2024", "02/19/2024"], [None, None]),
        (["31.02.2024", "soon", None, "7"], [None] * 4),
    ],
)
def test_dates_are_read_where_their_order_is_known(cells, dates):
    expected = pd.to_datetime(pd.Series(dates, dtype=object), format="ISO8601", utc=True)
    assert dates_of(pd.Series(cells, dtype=object)).equals(expected)


@pytest.mark.parametrize(
    ("lines", "column", "read"),
    [
        (["who,y", "007,1", "07,2", "011,3"], "who", ["007", "07", "011"]),
        (["who,y", "007,1", "008,2", "011,3"], "who", [7, 8, 11]),
        (["id,y", "12345678901234567890123,1", "12345678901234567890124,2", "5,2"], "id", None),
    ],
)
def test_two_names_that_are_one_number_stay_two(tmp_path, lines, column, read):
    """Patients 007 and 07 were one unit."""
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    cells = read_table(tmp_path / "t.csv").frame[column].tolist()
    assert cells == read if read else len(set(cells)) == 3


def test_words_for_an_empty_cell_are_told_where_they_may_be_a_class(tmp_path):
    (tmp_path / "t.csv").write_text("complication,y\nNone,1\nmild,2\nsevere,NA\nNone,4\n")
    found = read_table(tmp_path / "t.csv")
    assert found.frame["complication"].isna().sum() == 2
    (note,) = found.notes
    assert "2 cells such as 'None' are read as missing; if that is a class, give it another name" in note


def test_dates_whose_order_no_row_shows_are_known_as_such():
    assert order_unknown(pd.Series(["01/02/2024", "03/04/2024", None]))
    others = (["01/02/2024", "13/04/2024"], ["01.02.2024", "x"], [1, 2])
    assert not any(order_unknown(pd.Series(cells)) for cells in others)
