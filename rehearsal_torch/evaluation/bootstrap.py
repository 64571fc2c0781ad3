"""Intervals of means: how sure an average over episodes is.

Given values x_1 ... x_n of independent episodes, the mean's interval is the bias-corrected and accelerated
bootstrap's: percentiles of the means of resampled episodes, shifted for the bias and the skewness that the
resamples show. Skewed values (improvements, seconds) are why Student's interval is not used. The resamples
are fixed by a seed, so the same values have the same interval.

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
        mean: The average; NaN for no values.
        low: Lower end; NaN below two values.
        high: Upper end; NaN below two values.
        count: n, how many values there were.
    """

    mean: float
    low: float
    high: float
    count: int

    def times(self, factor: float) -> "Interval":
        """The same in a unit of which one holds `factor` of the new ones; factor above 0."""
        return Interval(self.mean * factor, self.low * factor, self.high * factor, self.count)

    def __str__(self) -> str:
        ends = "" if math.isnan(self.low) else f" [{self.low:.3g}, {self.high:.3g}]"
        return f"{self.mean:.3g}{ends}"


def mean_interval(values: Sequence[float], level: float = 0.95, resamples: int = 2000) -> Interval:
    """The mean with its bootstrap interval.

    Args:
        values: (n,), one value an episode.
        level: The interval's confidence.
        resamples: How often the episodes are drawn anew.

    Raises:
        ValueError: if a value is not finite.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"expected finite values; got {numbers[~np.isfinite(numbers)][:3]}: drop the rows without a "
            "value first"
        )
    count = len(numbers)
    if count == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(numbers.mean())
    if count == 1:
        return Interval(mean, math.nan, math.nan, 1)
    # The bootstrap of values that differ by rounding alone divides zero by zero.
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
