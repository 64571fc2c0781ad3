import math

import pytest

from rehearsal_torch.evaluation.claim_rows import COLUMNS
from rehearsal_torch.reporting import sweep_tables
from rehearsal_torch.reporting.sweep_tables import world_cells, worlds_as_markdown
from tests.toys.trial_lines import rows

NAN = float("nan")


def world_rows():
    found = []
    for world, oracle in (("bank", 0.8), ("reef", 0.6)):
        for method, gain in (("none", 0.0), ("cme", 0.3), ("care", 0.2)):
            for seed in (0, 1):
                if (world, method, seed) != ("reef", "care", 1):
                    numbers = (0.2 + gain + 0.02 * seed * (gain > 0), oracle, 0.2, NAN, NAN, NAN, 0.1)
                    found.append(dict(zip(COLUMNS, (world, method, seed, "0", *numbers), strict=True)))
    return found


def test_worlds_by_methods_between_no_action_and_the_oracle():
    lines = worlds_as_markdown(world_cells(world_rows()))
    assert lines[0] == "| world | no action | cme | care | oracle |"
    assert lines[2] == "| bank | 0.200 | 0.510 ± 0.014 | 0.410 ± 0.014 | 0.800 |"
    assert lines[3] == "| reef | 0.200 | 0.510 ± 0.014 | 0.400 | 0.600 |"


def test_counts_of_the_idle_reach_their_cells():
    found = world_cells(world_rows(), {("bank", "cme"): 1})
    assert found["bank"]["cme"].no_action_count == 1
    assert found["reef"]["cme"].no_action_count == 0
    assert found["bank"]["cme"].share == pytest.approx(0.31 / 0.6)


def test_the_table_averages_over_problems_that_all_methods_share():
    some = [
        *rows("p", "m"),
        *rows("p", "n", values=((2.0, 10.0),) * 3),
        *rows("q", "m"),
        *rows("q", "n"),
        *rows("r", "m"),
        *rows("q", "m", seed=1),
    ]
    fair = sweep_tables.shared(some)
    assert {(row["problem"], row["method"], row["seed"]) for row in fair} == {
        (problem, method, 0) for problem in "pq" for method in "mn"
    }
    found = sweep_tables.trial_cells(fair)
    assert sweep_tables.methods(found) == ["m", "n"]
    assert sweep_tables.regret(found, "m").mean == pytest.approx(2 / 9)
    assert sweep_tables.regret(found, "n").mean == pytest.approx(1 / 9)
    text = "\n".join(sweep_tables.trials_as_markdown(some))
    assert "| r | 1 | 8 | - | 10 |" in text
    assert "mean normalised regret, 2 problems, 1 seed" in " ".join(sweep_tables.trials_as_markdown(some))


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
    fair = sweep_tables.shared(some)
    assert {(row["problem"], row["seed"]) for row in fair} == {
        (problem, seed) for problem in "pq" for seed in (1, 3)
    }
    found = sweep_tables.regret(sweep_tables.trial_cells(fair), "m")
    assert found.low <= found.mean <= found.high
    assert found.mean == pytest.approx((6 + 4) / 2 / 9)
    # A mean over seeds that not all problems have stands without an interval.
    every = sweep_tables.regret(sweep_tables.trial_cells(some), "m")
    assert every.mean == pytest.approx(((8 + 7 + 6 + 5) / 4 + (5 + 3) / 2) / 2 / 9)
    assert math.isnan(every.low)
    # Without a seed in common each problem keeps its own.
    apart = [row for row in some if (row["problem"], row["seed"]) in (("p", 0), ("q", 1))]
    assert sweep_tables.shared(apart) == apart
