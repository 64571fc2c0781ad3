"""What the page of claims says of rows that can be checked by hand."""

import math

import pytest

from rehearsal_torch.run_folder import RunFolder
from reproduction.calibration.documents import (
    COLUMNS,
    bounds_table,
    claims_of,
    claims_table,
    coverages,
    levels_table,
    parts,
)
from reproduction.page import write_page
from reproduction.plan import jobs, study
from reproduction.run import defaults
from tests.reproduction.kept import record_in

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


def test_methods_without_intervals_have_dashes():
    (line,) = claims_table([row(0, 0.7, 0.6)])[2:]
    assert " - | - | " in line


def test_coverage_is_counted_at_every_level():
    ends = {"lower50": 0.58, "upper50": 0.62, "lower80": 0.7, "upper80": 0.8}
    some = [row(0, 0.6, 0.6, 0.5, 0.9) | ends, row(1, 0.6, 0.71, 0.5, 0.9) | ends, row(1, 0.6, 0.6)]
    assert coverages(some) == {50: 0.5, 80: 0.5, 95: 1.0}
    first, second = claims_of(some)
    assert (first["inside50"], first["inside80"], second["inside80"]) == (1.0, 0.0, 1.0)
    assert levels_table(some)[-1] == "| w | `m` | 50% | 50% | 100% |"


def test_rows_of_earlier_versions_have_no_further_levels():
    old = [row(0, 0.7, 0.6, 0.5, 0.8)]
    assert levels_table(old) == []
    assert math.isnan(claims_of(old)[0]["inside50"])


def test_figures_have_the_style_of_all_figures(tmp_path):
    (job,) = jobs(study("calibration"), "rehearsal", [0], worlds=["bank"], methods=["cme"])
    line = {"state": "ok", "seconds": 1.0, "commit": "abc", "message": ""}
    rows = [each | {"dataset": "bank", "method": "cme"} for each in ROWS[:2]]
    record_in("calibration", tmp_path, "rehearsal").add(job, rows, line)
    out = RunFolder(tmp_path)
    write_page(out, parts(out, defaults("calibration")))
    # The colour of the grid, which matplotlib does not draw by itself.
    assert "#dddddd" in (tmp_path / "figures/probabilities.svg").read_text()
