"""Missing cells: counts, Holm's method, and whether completeness depends on what was observed."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from rehearsal_torch.data.missing.cells import dependence, doubts, holm, left_out, missing_cells


def test_rows_and_columns_are_counted():
    frame = pd.DataFrame(
        {"x": [1.0, None, 3.0, 4.0], "y": [None, None, 1.0, np.inf], "text": ["a", "b", None, "c"], "z": 1}
    )
    found = missing_cells(frame, ["x", "y", "z"])
    assert found.complete.tolist() == [False, False, True, True]
    assert found.columns == {"x": 1, "y": 2}
    assert (found.rows, found.incomplete, found.by_column()) == (4, 2, "y: 2, x: 1")
    assert left_out(found) == (
        "2 of 4 rows have a missing cell and are left out (missing cells by column: y: 2, x: 1)"
    )
    assert missing_cells(frame, ["z"]).incomplete == 0


def test_p_values_are_adjusted_step_down():
    assert holm({"a": 0.04, "b": 0.01, "c": 0.03}) == pytest.approx({"b": 0.03, "c": 0.06, "a": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"b": 1.0, "a": 1.0}
    assert holm({}) == {}


def drawn(slope, rows=400):
    random = np.random.default_rng(3)
    x, y, u = random.normal(size=(3, rows))
    missing = random.random(rows) < 1 / (1 + np.exp(2 - slope * x))
    return pd.DataFrame({"x": x, "y": np.where(missing, np.nan, y), "u": u})


def test_dependence_on_an_observed_column_is_found_and_named():
    frame = drawn(1.5)
    found = missing_cells(frame, ["x", "y", "u"])
    p_values = dependence(frame, ["x", "y", "u"], found.complete)
    # y has no value in incomplete rows, so that two columns are compared.
    plain = mannwhitneyu(frame["x"][found.complete], frame["x"][~found.complete]).pvalue
    assert list(p_values) == ["x", "u"]
    assert p_values["x"] == pytest.approx(2 * plain)
    assert p_values["x"] < 1e-6 < p_values["u"]
    many, depends = doubts(found, frame, ["x", "y", "u"])
    assert many == (
        f"{found.incomplete / 400:.1%} of the rows are left out because a cell is missing (y: "
        f"{found.incomplete}): "
        "estimates are those of the complete rows; missing: {impute: 20} uses the others as well"
    )
    assert depends.startswith("whether a row is complete depends on x (p = ")
    assert "Mann-Whitney tests adjusted by Holm's method" in depends


def test_chance_is_seldom_taken_for_dependence():
    warned = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        frame = pd.DataFrame(random.normal(size=(60, 4)), columns=list("abcd"))
        frame.loc[random.random(60) < 0.2, "d"] = np.nan
        found = missing_cells(frame, list("abcd"))
        warned += any("depends" in each for each in doubts(found, frame, list("abcd")))
    # At most 2 of 40 are expected; 7 or more have a probability below .005.
    assert warned < 7


def test_few_missing_cells_are_no_reason_to_doubt():
    frame = pd.DataFrame({"x": np.arange(100.0), "y": [None] * 4 + [1.0] * 96})
    found = missing_cells(frame, ["x", "y"])
    # Four incomplete rows are too few to be compared.
    assert dependence(frame, ["x", "y"], found.complete) == {}
    assert doubts(found, frame, ["x", "y"]) == []
    assert doubts(missing_cells(frame, ["x"]), frame, ["x"]) == []
