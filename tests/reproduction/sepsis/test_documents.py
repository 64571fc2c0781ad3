"""The page of the sepsis study."""

import pandas as pd
import pytest

from reproduction.sepsis import documents
from reproduction.sepsis.episode_rows import COLUMNS, Case


def case(changes):
    return Case(12, changes, "branch_and_bound", "", 0, 1.0)


@pytest.fixture
def frame():
    rows = [
        (
            "7",
            12,
            k,
            "branch_and_bound",
            "",
            0,
            1.0,
            -76.0,
            -80.0,
            0.01 * k + 0.02 * e,
            5,
            5,
            1.0 + 0.1 * e,
            10,
            0.1,
            True,
        )
        for k in (1, 2, 3)
        for e in range(3)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def test_unproven_means_are_marked_as_lower_bounds(frame):
    frame.loc[0, "proven"] = False
    row = documents.points_table("changes", documents.points_of(frame, "changes", [case(1)])).blocks[1][-1]
    assert row.count("≥ ") == 3
    assert row.endswith("| 67 |")


def test_the_certified_rows_are_those_of_three_changes(frame):
    assert documents.certified(frame)["improvement"].to_list() == pytest.approx([0.03, 0.05, 0.07])
