"""Summaries over repeats and seeds, by hand."""

import math

import numpy as np
import pytest

from rehearsal_torch.evaluation.summaries import online_summary, trial_summary
from tests.toys.online_rows import rows
from tests.toys.trial_lines import rows as trials


def test_sums_are_over_repeats():
    one = online_summary(rows())
    true = [np.mean([row["p_true"] for row in rows() if row["repeat"] == repeat]) for repeat in range(3)]
    assert (one.repeats, one.rounds, one.successes) == (3, 30, 15)
    assert one.probability.mean == pytest.approx(np.mean(true))
    assert one.deviation == pytest.approx(0.01)
    late = [row["p_true"] for row in rows() if row["round"] > 10]
    assert (one.late, one.left) == (pytest.approx(np.mean(late)), pytest.approx(0.8 - np.mean(late)))
    assert one.targets == {"a": pytest.approx(29 / 30), "-": pytest.approx(1 / 30)}
    assert (one.covered, one.width) == (1.0, pytest.approx(0.1))
    assert online_summary(rows(bound=-0.01)).covered == 0.0
    assert math.isnan(online_summary(rows(1)).deviation)


def test_regret_is_a_share_of_what_the_start_left():
    one = trial_summary([*trials(), *trials(seed=1, values=((2.0, 3.0), (3.0, 5.0), (3.0, 10.0)), start=5.0)])
    assert (one.seeds, one.rounds, one.optimum, one.start) == (2, 3, 10.0, 3.0)
    assert one.regrets == (2.0, 0.0)
    assert one.normalised == pytest.approx(1.0 / 7.0)
    assert one.recommended.mean == 9.0
    assert one.best.mean == pytest.approx(4.5)
    assert trial_summary(trials(), 1).regrets == (7.0,)
    assert math.isnan(trial_summary(trials(start=10.0)).normalised)
