import math

import numpy as np
import pytest
from scipy.stats import bootstrap

from rehearsal_torch.evaluation.bootstrap import mean_interval


def test_equal_values_have_a_point_and_one_value_has_no_interval():
    same = mean_interval([0.1 + 0.2] * 7)
    assert same.low == same.mean == same.high == pytest.approx(0.3)
    assert math.isnan(mean_interval([4.0]).low)
    assert math.isnan(mean_interval([]).mean)
    assert str(mean_interval([4.0])) == "4"
    assert str(mean_interval([4.0, 4.0])) == "4 [4, 4]"


def test_repeated_measurements_of_a_unit_do_not_narrow_the_interval():
    draws = np.random.default_rng(4).normal(size=40)
    alone, repeated = mean_interval(draws), np.repeat(draws, 5)
    units = [f"u{place // 5}" for place in range(200)]
    by_unit = mean_interval(repeated, units=units)
    assert by_unit.mean == pytest.approx(alone.mean)
    assert by_unit.high - by_unit.low == pytest.approx(alone.high - alone.low, rel=0.05)
    assert by_unit.high - by_unit.low > 2 * (mean_interval(repeated).high - mean_interval(repeated).low)
    assert mean_interval(draws, units=[str(place) for place in range(40)]) == alone


def test_a_single_unit_has_no_interval():
    assert math.isnan(mean_interval([1.0, 2.0], units=["a", "a"]).low)
    same = mean_interval([1.0, 3.0, 1.0, 3.0], units=["a", "a", "b", "b"])
    assert (same.low, same.high) == (2.0, 2.0)


@pytest.mark.parametrize("unit", [1e6, 1e-9])
def test_only_rounding_is_no_difference_whatever_the_unit(unit):
    same = mean_interval([unit, unit * (1 + 2e-16), unit])
    assert same.low == same.high == same.mean
    differing = mean_interval([unit, unit * (1 + 1e-9), unit * (1 + 2e-9)])
    assert differing.low < differing.mean < differing.high
    units = ["a", "a", "b", "b", "c", "c"]
    by_unit = mean_interval(list(np.repeat([unit, unit * (1 + 1e-9), unit * (1 + 2e-9)], 2)), units=units)
    assert by_unit.low < by_unit.mean < by_unit.high
    # Units of different sizes with the same mean do not differ.
    even = mean_interval([unit, 3 * unit, 2 * unit], units=["a", "a", "b"])
    assert even.low == even.high == even.mean


def resampled(sample, statistic, level, resamples):
    """SciPy's own interval, from the seed 0."""
    found = bootstrap(
        sample,
        statistic,
        paired=len(sample) > 1,
        confidence_level=level,
        n_resamples=resamples,
        method="BCa",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return found.low, found.high


def test_the_interval_is_that_of_2000_resamples_of_the_seed_0() -> None:
    values = np.random.default_rng(3).exponential(size=25)
    found = mean_interval(values)
    assert (found.low, found.high) == resampled((values,), np.mean, 0.95, 2000)


def test_the_interval_of_units_is_that_of_the_ratio_of_their_sums_and_counts() -> None:
    values = np.random.default_rng(3).exponential(size=12)
    units, counts = ["c"] * 3 + ["a"] * 1 + ["b"] * 6 + ["d"] * 2, (1, 6, 3, 2)
    sums = (values[3], values[4:10].sum(), values[:3].sum(), values[10:].sum())
    found = mean_interval(values, units)

    def ratio(total, count, axis=-1):
        return total.sum(axis) / count.sum(axis)

    told = resampled((np.array(sums), np.array(counts, dtype=float)), ratio, 0.95, 2000)
    assert (found.low, found.high) == pytest.approx(told, rel=1e-12)
    assert (found.mean, found.count) == (values.mean(), 12)
