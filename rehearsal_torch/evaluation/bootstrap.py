"""Confidence intervals of means, by the bias-corrected and accelerated bootstrap (BCa).

Given values x_1 ... x_n of independent episodes, the interval of their mean consists of percentiles of the
means of resampled episodes, corrected for the bias and the skewness that the resamples show. Skewed values
(improvements, seconds) are why Student's t interval is not used. The resamples come from the seed 0, so
equal values have equal intervals.

Values of one unit (a patient, a store) are not independent of each other. With units, whole units are
resampled: the mean is the ratio of the sums and the counts of the units, and the resamples and the jackknife
leave units in or out.

Source: Efron (1987), Better bootstrap confidence intervals, Sec. 3-4; Davison and Hinkley (1997), Sec. 3.8
(resampling of clusters).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rehearsal_torch.seeding import numpy_generator

RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """The mean of so many values and its confidence interval, in their unit; NaN where there are too few."""

    mean: float
    low: float
    high: float
    count: int

    def times(self, factor: float) -> "Interval":
        """Converts mean and bounds to another unit: multiplies them by `factor`, above 0."""
        return Interval(self.mean * factor, self.low * factor, self.high * factor, self.count)

    def __str__(self) -> str:
        ends = "" if math.isnan(self.low) else f" [{self.low:.3g}, {self.high:.3g}]"
        return f"{self.mean:.3g}{ends}"


def mean_interval(values: Sequence[float], units: Sequence[str] | None = None) -> Interval:
    """The mean with its 95% BCa interval, resampled by `units`; ValueError if a value is not finite."""
    if units is not None and len(units) != len(values):
        raise ValueError(f"expected a unit for each of {len(values)} values; got {len(units)}")
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"expected finite values; got {numbers[~np.isfinite(numbers)][:3]}: drop the rows without a "
            "finite value first"
        )
    count = len(numbers)
    if count == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(numbers.mean())
    if count == 1:
        return Interval(mean, math.nan, math.nan, 1)
    # For values that differ only by rounding error, BCa divides zero by zero.
    if float(np.ptp(numbers)) <= 1e-12 * max(abs(mean), 1e-300):
        return Interval(mean, mean, mean, count)
    if units is not None and len(set(units)) < count:
        sums, sizes = _by_unit(numbers, units)
        if len(sums) == 1:
            return Interval(mean, math.nan, math.nan, count)
        if float(np.ptp(sums / sizes)) <= 1e-12 * max(abs(mean), 1e-300):
            return Interval(mean, mean, mean, count)
        sample: tuple[NDArray[np.float64], ...] = (sums, sizes)
    else:
        sample = (numbers,)
    # Loaded only here: decisions without a known truth have no such interval.
    from scipy.stats import bootstrap

    interval = bootstrap(
        sample,
        np.mean if len(sample) == 1 else _ratio,
        paired=len(sample) > 1,
        confidence_level=0.95,
        n_resamples=RESAMPLES,
        method="BCa",
        rng=numpy_generator(0),
    ).confidence_interval
    return Interval(mean, float(interval.low), float(interval.high), count)


def _by_unit(
    numbers: NDArray[np.float64], units: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sum of the values of each unit and their number."""
    _, unit = np.unique(np.asarray(units, dtype=str), return_inverse=True)
    return np.bincount(unit, weights=numbers).astype(np.float64), np.bincount(unit).astype(np.float64)


def _ratio(sums: NDArray[np.float64], sizes: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """The mean over all values of the units."""
    mean: NDArray[np.float64] = sums.sum(axis) / sizes.sum(axis)
    return mean
