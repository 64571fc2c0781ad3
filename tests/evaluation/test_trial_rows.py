"""Rows of trials, from lines as runs record them."""

import csv
import io

from rehearsal_torch.evaluation.rehearsal_rows import written
from rehearsal_torch.evaluation.trial_rows import COLUMNS, by_seed
from reproduction.cbo.documents import trial_typed
from tests.toys.trial_lines import rows


def test_the_best_so_far_counts_the_start_design():
    assert [row["best_expected"] for row in rows()] == [2.0, 2.0, 4.0]
    assert [row["best_expected"] for row in rows(start=3.0)] == [3.0, 3.0, 4.0]
    assert [row["round"] for row in rows()] == [1, 2, 3]


def test_rows_survive_a_file():
    some = rows()
    assert trial_typed(csv.DictReader(io.StringIO(written(some, COLUMNS)))) == some
    assert list(by_seed([*rows(seed=1), *some])) == [0, 1]
