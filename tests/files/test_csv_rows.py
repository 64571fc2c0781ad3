import csv
import io
import math

import pytest

from rehearsal_torch.files.csv_rows import as_csv, as_written, cell, read_rows

WHOLE = "who,seed,value\nann,0,0.5\n\nbob,1,\n"


def test_rows_are_read_as_they_stand(tmp_path):
    assert read_rows(tmp_path / "none.csv", ("who",)) == []
    (tmp_path / "a.csv").write_text(f"{WHOLE}cid,2,")
    found = read_rows(tmp_path / "a.csv", ("who", "seed"), ("value",))
    assert [(row["who"], row["seed"], row["value"]) for row in found] == [
        ("ann", "0", "0.5"),
        ("bob", "1", ""),
    ]


FORMULAS = ['=HYPERLINK("http://x")', "+1+1", "-1+2", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0", "-", "'=1"]
PLAIN = ["ann", "'quoted'", "a=b", "", "-1.5", "+2", "-1e-3", "-inf", "<->", "Größe"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_becomes_a_text_and_is_found_again(text):
    assert cell(text) == f"'{text}"
    assert as_written(cell(text)) == text


@pytest.mark.parametrize("text", PLAIN)
def test_all_other_texts_stay(text):
    assert cell(text) == as_written(text) == text


@pytest.mark.parametrize("value", [-1.5, -3, True, None])
def test_what_is_no_text_stays(value):
    assert cell(value) is value


def test_rows_have_all_columns_and_numbers_their_digits():
    rows = [{"a": 1, "b": math.nan}, {"a": 0.1 + 0.2, "c": "x,y"}, {"c": -math.inf}]
    assert as_csv(rows) == 'a,b,c\n1,,\n0.30000000000000004,,"x,y"\n,,-inf\n'
    assert as_csv(rows[:1], "nan") == "a,b\n1,nan\n"
    assert as_csv([{"=cmd|x": "=1", "n": -1}]) == "'=cmd|x,n\n'=1,-1\n"


def test_the_package_reads_the_texts_that_were_written(tmp_path):
    rows = [{"name": text, "x": -0.5} for text in (*FORMULAS, *PLAIN)]
    (tmp_path / "claims.csv").write_text(as_csv(rows), encoding="utf-8")
    found = read_rows(tmp_path / "claims.csv", ("name",), ("x",))
    assert [row["name"] for row in found] == [*FORMULAS, *PLAIN]
    assert {row["x"] for row in found} == {"-0.5"}
    cells = [row[0] for row in csv.reader(io.StringIO(as_csv(rows)))][1:]
    assert [text for text in cells if text[:1] in "=+@\t\r" and text not in ("", "+2")] == []
