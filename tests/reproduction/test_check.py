"""Rows that are kept in git come out again: a cheap draw."""

from dataclasses import replace

from reproduction.check import again, drawn, main


def test_five_rows_of_a_paper_come_out_again():
    rows = drawn("auf", 0, dataset=["bank", "lin_syn1"], method=["cme_published"])
    assert len(rows) == 5
    assert again("auf", rows) == []


def test_a_row_that_differs_is_told():
    (row,) = drawn("auf", 0, 1, dataset=["bank"], method=["cme_published"])
    changed = replace(row, row={**row.row, "auf": "0.5"})
    (told,) = again("auf", [changed])
    assert "auf 0.5 is now" in told


def test_the_draw_is_that_of_the_seed(capsys):
    assert drawn("calibration", 1) == drawn("calibration", 1)
    assert main(["bank"]) == 2
    assert "choose from auf" in capsys.readouterr().err
