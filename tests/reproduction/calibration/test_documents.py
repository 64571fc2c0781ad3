"""What the page of claims says of rows that can be checked by hand."""

import math

import pytest

from reproduction.calibration.documents import COLUMNS, bounds_table, claims_of, claims_table

NAN = math.nan


def row(seed, claimed, true, lower=NAN, upper=NAN, *, no_action=0.2, best=0.8, method="m"):
    return {
        "dataset": "w",
        "method": method,
        "seed": seed,
        "context": "0",
        "auf": true,
        "oracle": best,
        "no_action": no_action,
        "estimate": claimed,
        "lower": lower,
        "upper": upper,
        "seconds": 0.1,
    }


ROWS = [row(0, 0.7, 0.6, 0.5, 0.8), row(0, 0.5, 0.1, 0.4, 0.6), row(1, 0.6, 0.5), row(1, 0.4, 0.6)]


def test_means_are_those_of_each_seed():
    first, second = claims_of(ROWS)
    assert tuple(first) == COLUMNS
    assert (first["claimed"], first["true"]) == pytest.approx((0.6, 0.35))
    assert (first["inside95"], first["width"], first["worse_off"]) == pytest.approx((0.5, 0.25, 0.5))
    assert math.isnan(second["inside95"])
    assert second["worse_off"] == 0
    assert claims_of(ROWS, percent=True)[0]["claimed"] == pytest.approx(60)
    assert claims_of(ROWS, percent=True)[0]["worse_off"] == pytest.approx(0.5)


def test_a_line_has_the_gap_with_its_interval_over_seeds():
    head, _, line = claims_table(ROWS)
    cells = dict(
        zip(*([each.strip() for each in text.strip("| ").split(" | ")] for text in (head, line)), strict=True)
    )
    assert cells["claimed - true"].startswith("+0.100 [")
    assert (cells["share of gain"], cells["worse off"], cells["interval holds"]) == ("42%", "25.0%", "50%")
    assert (cells["seeds"], cells["cases"]) == ("2", "4")


def test_bounds_are_drawn_from_intervals_at_the_true_strength():
    # At strength 2 the interval [.7, .8] widens to [.4, .9].
    some = [row(0, 0.75, 0.75, 0.7, 0.8), row(0, 0.75, 0.5, 0.7, 0.8), row(0, 0.75, 0.3, 0.7, 0.8)]
    (line,) = bounds_table([*some, row(0, 0.7, 0.6)])[2:]
    assert line.endswith("| 3 | 0.750 | 0.517 | 33.3% | 66.7% |")
