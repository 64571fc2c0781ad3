import pytest

from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS
from rehearsal_torch.reporting.cross_table import cells, markdown, shares

NAN = float("nan")


def rows():
    found = []
    for world, oracle in (("bank", 0.8), ("reef", 0.6)):
        for method, gain in (("none", 0.0), ("cme", 0.3), ("care", 0.2)):
            for seed in (0, 1):
                if (world, method, seed) != ("reef", "care", 1):
                    numbers = (0.2 + gain + 0.02 * seed * (gain > 0), oracle, 0.2, NAN, NAN, NAN, 0.1)
                    found.append(dict(zip(COLUMNS, (world, method, seed, "0", *numbers), strict=True)))
    return found


def test_worlds_by_methods_between_no_action_and_the_oracle():
    lines = markdown(cells(rows()))
    assert lines[0] == "| world | no action | cme | care | oracle |"
    assert lines[2] == "| bank | 0.200 | 0.510 ± 0.014 | 0.410 ± 0.014 | 0.800 |"
    assert lines[3] == "| reef | 0.200 | 0.510 ± 0.014 | 0.400 | 0.600 |"
    assert shares(cells(rows()))[2] == "| bank | 52% | 35% |"


def test_counts_of_the_idle_reach_their_cells():
    found = cells(rows(), {("bank", "cme"): 1})
    assert found["bank"]["cme"].no_action_count == 1
    assert found["reef"]["cme"].no_action_count == 0
    assert found["bank"]["cme"].share == pytest.approx(0.31 / 0.6)
