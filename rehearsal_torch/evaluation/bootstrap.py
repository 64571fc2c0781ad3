"""Confidence intervals of means, by the bias-corrected and accelerated bootstrap (BCa).

Given values x_1 ... x_n of independent episodes, the interval of their mean consists of percentiles of the
means of resampled episodes, corrected for the bias and the skewness that the resamples show. Skewed values
(improvements, seconds) are why Student's t interval is not used. The resamples come from a fixed seed, so
equal values have equal intervals.

Source: Efron (1987), Better bootstrap confidence intervals, Sec. 3-4.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import bootstrap

from rehearsal_torch.seeding import numpy_generator


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval, in the values' unit.

    Attributes:
        mean: The average; NaN if there are no values.
        low: Lower bound; NaN for fewer than two values.
        high: Upper bound; NaN for fewer than two values.
        count: n, the number of values.
    """

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


def mean_interval(values: Sequence[float], level: float = 0.95, resamples: int = 2000) -> Interval:
    """The mean with its bootstrap interval.

    Args:
        values: (n,), one value per episode.
        level: Confidence level.
        resamples: Number of bootstrap resamples.

    Raises:
        ValueError: if a value is not finite.
    """
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
    found = bootstrap(
        (numbers,),
        np.mean,
        confidence_level=level,
        n_resamples=resamples,
        method="BCa",
        rng=numpy_generator(0),
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high), count)
