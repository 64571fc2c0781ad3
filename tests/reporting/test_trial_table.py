"""The table of problems by methods."""

import math

import pytest

from rehearsal_torch.reporting import trial_table
from tests.toys.trial_lines import rows


def test_the_table_averages_over_problems_that_all_methods_share():
    some = [
        *rows("p", "m"),
        *rows("p", "n", values=((2.0, 10.0),) * 3),
        *rows("q", "m"),
        *rows("q", "n"),
        *rows("r", "m"),
        *rows("q", "m", seed=1),
    ]
    fair = trial_table.shared(some)
    assert {(row["problem"], row["method"], row["seed"]) for row in fair} == {
        (problem, method, 0) for problem in "pq" for method in "mn"
    }
    found = trial_table.cells(fair)
    assert trial_table.methods(found) == ["m", "n"]
    assert trial_table.regret(found, "m").mean == pytest.approx(2 / 9)
    assert trial_table.regret(found, "n").mean == pytest.approx(1 / 9)
    text = "\n".join(trial_table.markdown(some))
    assert "| r | 1 | 8 | - | 10 |" in text
    assert "mean normalised regret, 2 problems, 1 seed" in " ".join(trial_table.markdown(some))


def test_its_interval_is_over_seeds_that_all_problems_have():
    some = [
        row
        for seed in range(4)
        for method in "mn"
        for row in rows("p", method, seed, values=((0.0, 2.0 + seed),))
    ]
    some += [
        row
        for seed in (1, 3)
        for method in "mn"
        for row in rows("q", method, seed, values=((0.0, 4.0 + seed),))
    ]
    fair = trial_table.shared(some)
    assert {(row["problem"], row["seed"]) for row in fair} == {
        (problem, seed) for problem in "pq" for seed in (1, 3)
    }
    found = trial_table.regret(trial_table.cells(fair), "m")
    assert found.low <= found.mean <= found.high
    assert found.mean == pytest.approx((6 + 4) / 2 / 9)
    # A mean over seeds that not all problems have stands without an interval.
    every = trial_table.regret(trial_table.cells(some), "m")
    assert every.mean == pytest.approx(((8 + 7 + 6 + 5) / 4 + (5 + 3) / 2) / 2 / 9)
    assert math.isnan(every.low)
    # Without a seed in common each problem keeps its own.
    apart = [row for row in some if (row["problem"], row["seed"]) in (("p", 0), ("q", 1))]
    assert trial_table.shared(apart) == apart
