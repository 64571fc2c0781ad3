"""What a method came to over many contexts.

    share of the gain = (mean auf - mean no_action) / (mean oracle - mean no_action)
    coverage          = share of the altered contexts whose true probability lies in the claimed interval
    over-claim        = mean (estimate - auf) over the altered contexts

The share is that of the means: a ratio for each context would be ruled by those in which there is next to nothing to gain.
The interval of the mean is over seeds where there are several (contexts of a seed share a fitted model), else over contexts.

Source: Du et al. (2026), Tab. 1 (mean and deviation over seeds); share and coverage are ours.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rehearsal_torch.reporting.interval import Interval, mean_interval
from rehearsal_torch.reporting.rehearsal_rows import Row


@dataclass(frozen=True)
class MethodSummary:
    """A method in a world.

    Attributes:
        count: Decisions.
        idle: How many of them altered nothing.
        seeds: How many seeds.
        auf: Mean true probability with its 95% interval; NaN where no truth is known.
        deviation: Standard deviation over seeds of the mean over contexts; NaN for one seed.
        oracle: Mean of the largest possible probability.
        no_action: Mean probability with nothing altered.
        claimed: Mean of the method's own estimate.
        covered: Share of the decisions with an interval whose truth lies in it; NaN for none.
        intervals: How many decisions have an interval and a known truth.
        width: Mean width of the intervals.
        excess: Mean of estimate minus truth, over decisions with both.
        seconds: Median seconds of a decision.
    """

    count: int
    idle: int
    seeds: int
    auf: Interval
    deviation: float
    oracle: float
    no_action: float
    claimed: float
    covered: float
    intervals: int
    width: float
    excess: float
    seconds: float

    @property
    def share(self) -> float:
        """The share of the oracle's gain that was reached; NaN where there is next to nothing to gain."""
        gain = self.oracle - self.no_action
        return (self.auf.mean - self.no_action) / gain if gain > 1e-3 else math.nan


def summed(rows: Sequence[Row], idle: int) -> MethodSummary:
    """Sums up the rows of one method in one world.

    Args:
        rows: At least one.
        idle: How many of them altered nothing.
    """
    by_seed: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if not math.isnan(row["auf"]):
            by_seed[row["seed"]].append(row["auf"])
    means = [statistics.fmean(values) for values in by_seed.values()]
    true = [value for values in by_seed.values() for value in values]
    auf = mean_interval(means if len(means) > 1 else true)
    bounded = [row for row in rows if not any(math.isnan(row[key]) for key in ("lower", "upper", "auf"))]
    claims = [row["estimate"] - row["auf"] for row in rows if not math.isnan(row["estimate"] - row["auf"])]
    return MethodSummary(
        count=len(rows),
        idle=idle,
        seeds=len({row["seed"] for row in rows}),
        auf=Interval(statistics.fmean(true) if true else math.nan, auf.low, auf.high, len(true)),
        deviation=statistics.stdev(means) if len(means) > 1 else math.nan,
        oracle=mean([row["oracle"] for row in rows]),
        no_action=mean([row["no_action"] for row in rows]),
        claimed=mean([row["estimate"] for row in rows]),
        covered=mean([float(row["lower"] <= row["auf"] <= row["upper"]) for row in bounded]),
        intervals=len(bounded),
        width=mean([row["upper"] - row["lower"] for row in bounded]),
        excess=mean(claims),
        seconds=median([row["seconds"] for row in rows]),
    )


def grouped(rows: Sequence[Row], *keys: str) -> dict[tuple[object, ...], list[Row]]:
    """The rows by some of their columns, in order of appearance."""
    found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row)
    return dict(found)


def mean(values: Sequence[float]) -> float:
    """The mean of the values that are numbers; NaN for none."""
    known = [value for value in values if not math.isnan(value)]
    return statistics.fmean(known) if known else math.nan


def median(values: Sequence[float]) -> float:
    """The median of the values that are numbers; NaN for none."""
    known = [value for value in values if not math.isnan(value)]
    return statistics.median(known) if known else math.nan
