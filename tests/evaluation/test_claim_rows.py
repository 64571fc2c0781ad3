import csv
import io
import math

from rehearsal_torch.evaluation.claim_rows import (
    COLUMNS,
    NUMBERS,
    ONLINE_COLUMNS,
    interval_of,
    online,
    online_row,
    row,
    scored_by_world,
    truth_bounds,
    typed,
    with_truth,
    written,
)
from tests.toys.trial_lines import rows as trial_rows

DECIDED = {
    "identity": "4",
    "kind": "rehearse",
    "alteration": {"a": 1.0},
    "estimate": {"point": 0.8, "lower": 0.7, "upper": 0.9},
    "baseline": {"point": 0.3, "lower": 0.2, "upper": 0.4},
    "score": {"probability": 0.75, "oracle": 0.9, "no_action": 0.25},
    "seconds": 0.125,
}


def test_with_nothing_altered_and_known_present_values_the_claim_is_that_of_keeping_them():
    kept = {"alteration": None, "status": "leave", "unchanged": {"point": 0.6, "lower": 0.5, "upper": 0.7}}
    assert row("w", "m", 2, DECIDED | kept)["estimate"] == 0.6
    assert row("w", "m", 2, DECIDED | {"unchanged": {"point": 0.6}})["estimate"] == 0.8


def test_a_certificate_bounds_where_the_estimate_does_not():
    certified = {"estimate": {"point": 0.8}, "certificate": {"lower": 0.5, "upper": 0.95}}
    assert interval_of(certified) == (0.5, 0.95)
    assert interval_of(certified | DECIDED) == (0.7, 0.9)
    assert interval_of({}) == (None, None)


def test_bounds_on_the_truth_have_columns_of_their_own_where_a_certificate_has_them():
    ends = {"truth_lower": 0.4, "truth_upper": 0.9, "truth_least": 0.45}
    one = DECIDED | {"certificate": {"lower": 0.5, "upper": 0.6, **ends, "models": 400}}
    assert truth_bounds(one) == ends
    assert all(math.isnan(each) for each in truth_bounds(one | {"alteration": None}).values())
    for old in (DECIDED, DECIDED | {"certificate": {"lower": 0.5, "upper": 0.6}}, {"certificate": None}):
        assert truth_bounds(old) == {}
    some = [row("w", "m", 2, DECIDED), row("w", "m", 2, one) | truth_bounds(one)]
    assert with_truth(COLUMNS, some[:1]) == COLUMNS
    assert with_truth(COLUMNS, some) == (*COLUMNS, *ends)
    lines = written(some, with_truth(COLUMNS, some)).splitlines()
    assert [line.split(",")[-3:] for line in lines[1:]] == [["", "", ""], ["0.4", "0.9", "0.45"]]


def test_only_what_a_world_scores_beside_its_best_is_judged():
    assert scored_by_world(DECIDED)
    assert not scored_by_world({"score": {"probability": 0.5}})
    assert not scored_by_world({"score": None})


def test_rows_come_back_from_csv_to_six_figures():
    rows = [row("w", "m", 2, DECIDED), row("w", "m", 3, {})]
    text = written(rows, COLUMNS)
    assert text.splitlines()[0] == ",".join(COLUMNS)
    assert text.splitlines()[2] == "w,m,3,,,,,,,,"
    assert written(rows, COLUMNS, head=False) == text.partition("\n")[2]
    first, second = typed(csv.DictReader(io.StringIO(text)))
    assert first == rows[0]
    assert second["seed"] == 3
    assert all(math.isnan(second[key]) for key in NUMBERS)
    assert written([{"a": 1 / 3}], ["a"], head=False) == "0.333333\n"


ROUND = {
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
    row = online_row("w", "m", "0.7", 2, ROUND)
    assert tuple(row) == ONLINE_COLUMNS
    assert (row["round"], row["target"], row["value"], row["success"], row["p_true"]) == (
        5,
        "a+b",
        "0.25+-1",
        1,
        0.65,
    )
    assert (row["oracle"], row["information"], row["lower"], row["upper"]) == (0.8, 0.5, 0.6, 0.7)
    assert online(ROUND)
    assert not online({**ROUND, "answer": None})


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
    assert written([row], ONLINE_COLUMNS, head=False) == "w,m,,0,1,,,,,,,,,\n"
    refused = online_row("w", "m", "0.7", 0, {**ROUND, "alteration": None})
    assert written([refused], ONLINE_COLUMNS, head=False) == "w,m,0.7,0,5,,,1,0.65,0.8,,,,0.1\n"
    assert math.isnan(row["information"]), "the value of another search is no information"


def test_the_best_so_far_counts_the_start_design():
    assert [row["best_expected"] for row in trial_rows()] == [2.0, 2.0, 4.0]
    assert [row["best_expected"] for row in trial_rows(start=3.0)] == [3.0, 3.0, 4.0]
    assert [row["round"] for row in trial_rows()] == [1, 2, 3]
