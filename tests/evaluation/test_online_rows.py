"""Rows of rounds that learn from each other."""

import math

import numpy as np

from rehearsal_torch.evaluation.online_rows import COLUMNS, online, online_row
from rehearsal_torch.evaluation.rehearsal_rows import TRUTH, with_truth, written
from rehearsal_torch.files.rows import read_rows
from reproduction.online.documents import online_typed
from tests.toys.online_rows import bounded, rows

DECIDED = {
    "index": 4,
    "given": {"x": 1.0},
    "kind": "rehearse",
    "status": "may",
    "trace": {"search": "informative"},
    "alteration": {"a": 0.25, "b": -1.0},
    "value": 0.5,
    "success": True,
    "answer": {"rows": {}, "altered": []},
    "certificate": {"lower": 0.6, "upper": 0.7},
    "score": {"probability": 0.65, "oracle": 0.8, "no_action": 0.1},
    "seconds": 0.1,
}


def test_a_row_says_what_was_done_and_what_came_of_it():
    row = online_row("w", "m", "0.7", 2, DECIDED)
    assert tuple(row) == COLUMNS
    assert (row["round"], row["target"], row["value"], row["success"], row["p_true"]) == (
        5,
        "a+b",
        "0.25+-1",
        1,
        0.65,
    )
    assert (row["oracle"], row["information"], row["lower"], row["upper"]) == (0.8, 0.5, 0.6, 0.7)
    assert online(DECIDED)
    assert not online({**DECIDED, "answer": None})


def test_what_is_not_known_is_left_empty():
    row = online_row(
        "w",
        "m",
        "",
        0,
        {
            "index": 0,
            "alteration": None,
            "trace": {"search": "mixed_integer"},
            "value": 0.9,
            "success": None,
            "answer": {},
        },
    )
    assert written([row], COLUMNS, head=False) == "w,m,,0,1,,,,,,,,,\n"
    refused = online_row("w", "m", "0.7", 0, {**DECIDED, "alteration": None})
    assert written([refused], COLUMNS, head=False) == "w,m,0.7,0,5,,,1,0.65,0.8,,,,0.1\n"
    assert math.isnan(row["information"]), "the value of another search is no information"


def test_rows_come_back_from_csv(tmp_path):
    (tmp_path / "rounds.csv").write_text(written(rows(), COLUMNS))
    found = online_typed(read_rows(tmp_path / "rounds.csv"))
    assert [row["round"] for row in found] == [row["round"] for row in rows()]
    np.testing.assert_allclose([row["p_true"] for row in found], [row["p_true"] for row in rows()], rtol=1e-5)


def test_rows_of_earlier_runs_have_no_bounds_on_the_truth_and_those_of_later_ones_do(tmp_path):
    (tmp_path / "old.csv").write_text(written(rows(), COLUMNS))
    assert all(TRUTH[0] not in row for row in online_typed(read_rows(tmp_path / "old.csv")))
    made = bounded(rows())
    (tmp_path / "new.csv").write_text(written(made, with_truth(COLUMNS, made)))
    found = online_typed(read_rows(tmp_path / "new.csv"))
    for key in TRUTH:
        np.testing.assert_allclose([row[key] for row in found], [row[key] for row in made], rtol=1e-5)
