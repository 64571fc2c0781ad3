"""Summaries over repeats and seeds, by hand."""

import math

import numpy as np
import pytest

from rehearsal_torch.evaluation.method_summaries import (
    TruthSummary,
    online_summary,
    summed,
    trial_summary,
    truth_summary,
)
from tests.toys.online_rows import bounded, rows
from tests.toys.trial_lines import rows as trials


def test_sums_are_over_repeats():
    one = online_summary(rows())
    true = [np.mean([row["p_true"] for row in rows() if row["repeat"] == repeat]) for repeat in range(3)]
    assert (one.repeats, one.rounds, one.successes) == (3, 30, 15)
    assert one.probability.mean == pytest.approx(np.mean(true))
    assert one.std == pytest.approx(0.01)
    late = [row["p_true"] for row in rows() if row["round"] > 10]
    assert (one.late, one.left) == (pytest.approx(np.mean(late)), pytest.approx(0.8 - np.mean(late)))
    assert one.targets == {"a": pytest.approx(29 / 30), "-": pytest.approx(1 / 30)}
    assert (one.covered, one.width) == (1.0, pytest.approx(0.1))
    assert online_summary(rows(bound=-0.01)).covered == 0.0
    assert math.isnan(online_summary(rows(1)).std)


def test_regret_is_a_share_of_what_the_start_left():
    one = trial_summary([*trials(), *trials(seed=1, values=((2.0, 3.0), (3.0, 5.0), (3.0, 10.0)), start=5.0)])
    assert (one.seeds, one.rounds, one.optimum, one.start) == (2, 3, 10.0, 3.0)
    assert one.regrets == (2.0, 0.0)
    assert one.normalised == pytest.approx(1.0 / 7.0)
    assert one.recommended.mean == 9.0
    assert one.best.mean == pytest.approx(4.5)
    assert math.isnan(trial_summary(trials(start=10.0)).normalised)


def judged(seed, auf, estimate, lower=math.nan, upper=math.nan, seconds=1.0):
    numbers = {"auf": auf, "oracle": 0.9, "no_action": 0.1, "estimate": estimate}
    return {"seed": seed, **numbers, "lower": lower, "upper": upper, "seconds": seconds}


def test_a_method_is_summed_up_over_seeds():
    rows = [judged(0, 0.4, 0.5, 0.3, 0.6), judged(0, 0.6, 0.5, 0.4, 0.55, 3.0), judged(1, 0.8, math.nan)]
    one = summed(rows, 1)
    assert (one.count, one.no_action_count, one.seeds, one.intervals) == (3, 1, 2, 2)
    assert one.auf.mean == pytest.approx(0.6)
    # Means of the seeds are .5 and .8.
    assert one.std == pytest.approx(0.3 / math.sqrt(2))
    assert (one.claimed, one.excess) == (pytest.approx(0.5), pytest.approx(0.0))
    assert (one.covered, one.width, one.seconds) == (0.5, pytest.approx(0.225), 1.0)
    assert one.share == pytest.approx(0.5 / 0.8)
    assert math.isnan(summed([judged(0, math.nan, 0.5)], 0).auf.mean)
    assert math.isnan(summed(rows[:2], 0).std)


def test_bounds_on_the_truth_are_counted_apart_from_those_of_the_claim():
    def of_online_rows(reach):
        return truth_summary([row | {"auf": row["p_true"]} for row in bounded(rows(), reach=reach)])

    one = of_online_rows(0.2)
    assert (one.intervals, one.covered, one.least) == (90, 0.5, 1.0)
    assert one.width == pytest.approx(0.4)
    assert of_online_rows(-0.05).least == 0.5
    lines = [judged(0, 0.4, 0.5, 0.45, 0.6) | {"truth_lower": 0.3, "truth_upper": 0.7, "truth_least": 0.45}]
    both = summed([*lines, judged(0, 0.6, 0.5, 0.4, 0.55)], 0)
    assert (both.covered, both.intervals) == (0.0, 2)
    assert both.truth == TruthSummary(1, 1.0, 0.0, pytest.approx(0.4))
    assert math.isnan(truth_summary([row | {"auf": row["p_true"]} for row in rows()]).covered)
    assert summed([judged(0, 0.6, 0.5)], 0).truth.intervals == 0
