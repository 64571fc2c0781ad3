import csv
import io
import math

import pytest

from rehearsal_torch.evaluation.rehearsal_rows import (
    COLUMNS,
    NUMBERS,
    interval_of,
    number,
    row,
    scored_by_world,
    truth_bounds,
    typed,
    with_truth,
    written,
)

DECIDED = {
    "identity": "4",
    "kind": "rehearse",
    "alteration": {"a": 1.0},
    "estimate": {"point": 0.8, "lower": 0.7, "upper": 0.9},
    "baseline": {"point": 0.3, "lower": 0.2, "upper": 0.4},
    "score": {"probability": 0.75, "oracle": 0.9, "no_action": 0.25},
    "seconds": 0.125,
}


def test_a_row_holds_what_is_true_and_what_was_claimed():
    found = row("w", "m", 2, DECIDED)
    assert tuple(found) == COLUMNS
    assert [found[key] for key in COLUMNS] == ["w", "m", 2, "4", 0.75, 0.9, 0.25, 0.8, 0.7, 0.9, 0.125]


def test_with_nothing_altered_the_claim_is_that_of_doing_nothing():
    found = row("w", "m", 2, DECIDED | {"alteration": None})
    assert found["estimate"] == 0.3
    assert math.isnan(found["lower"])
    assert math.isnan(found["upper"])


def test_with_nothing_altered_and_known_present_values_the_claim_is_that_of_keeping_them():
    kept = {
        "alteration": None,
        "status": "leave",
        "unchanged": {"point": 0.6, "lower": 0.5, "upper": 0.7},
    }
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


@pytest.mark.parametrize(
    ("value", "found"), [("0.5", 0.5), (1, 1.0), (True, 1.0), ("", None), (None, None), ([], None)]
)
def test_numbers(value, found):
    assert number(value) == found if found is not None else math.isnan(number(value))


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
