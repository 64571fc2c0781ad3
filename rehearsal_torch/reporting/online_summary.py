"""What a method came to over repeats of rounds that learn from each other.

    probability = mean over repeats of the mean over rounds of the true probability of success; its deviation is over repeats
    late        = the same over the last 20 rounds (or as many as asked for); left is what it lacks to the best possible there
    covered     = share of the rounds with a bound whose true probability lies in it

The bound speaks of the posterior's probability, so that `covered` may fall short of its level where the posterior errs, early above all.

Source: Qin et al. (2023), Tab. 1, Fig. 4 and Thm. 7.
"""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rehearsal_torch.reporting.interval import Interval, mean_interval
from rehearsal_torch.reporting.method_summary import mean, median
from rehearsal_torch.reporting.online_rows import Row, by_repeat

LAST = 20


@dataclass(frozen=True)
class OnlineSummary:
    """A method in a world, for one tau.

    Attributes:
        repeats: How many.
        rounds: In a repeat, the largest number.
        probability: Mean true probability of success, with the 95% interval over repeats.
        deviation: Its standard deviation over repeats; NaN for one repeat.
        successes: Mean number of rounds that succeeded, in a repeat.
        oracle: Mean of the best possible probability.
        late: Mean true probability over the last rounds.
        left: Mean of what is left to the best possible over the last rounds.
        information: Mean of what a round was expected to teach, in nats; NaN where the method does not ask.
        information_late: The same over the last rounds.
        covered: Share of bounds that hold the true probability; NaN for none.
        covered_late: The same over the last rounds.
        width: Mean width of the bounds.
        targets: Altered variables to the share of all rounds; "-" for nothing altered.
        seconds: Median seconds of a round.
    """

    repeats: int
    rounds: int
    probability: Interval
    deviation: float
    successes: float
    oracle: float
    late: float
    left: float
    information: float
    information_late: float
    covered: float
    covered_late: float
    width: float
    targets: dict[str, float]
    seconds: float


def online_summary(rows: Sequence[Row], last: int = LAST) -> OnlineSummary:
    """Sums up the rows of one method, world and tau.

    Args:
        rows: At least one.
        last: How many rounds are the last ones.
    """
    repeats = list(by_repeat(rows).values())
    late = [row for repeat in repeats for row in repeat[-last:]]
    means = [mean([row["p_true"] for row in repeat]) for repeat in repeats]
    counts = Counter(str(row["target"]) or "-" for row in rows)
    known = [value for value in means if not math.isnan(value)]
    return OnlineSummary(
        repeats=len(repeats),
        rounds=max(len(repeat) for repeat in repeats),
        probability=mean_interval(known),
        deviation=statistics.stdev(known) if len(known) > 1 else math.nan,
        successes=mean([sum(row["success"] for row in repeat) for repeat in repeats]),
        oracle=mean([row["oracle"] for row in rows]),
        late=mean([row["p_true"] for row in late]),
        left=mean([row["oracle"] - row["p_true"] for row in late]),
        information=mean([row["information"] for row in rows]),
        information_late=mean([row["information"] for row in late]),
        covered=_covered(rows),
        covered_late=_covered(late),
        width=mean([row["upper"] - row["lower"] for row in rows]),
        targets={name: count / len(rows) for name, count in counts.most_common()},
        seconds=median([row["seconds"] for row in rows]),
    )


def _covered(rows: Sequence[Row]) -> float:
    bounded = [row for row in rows if not any(math.isnan(row[key]) for key in ("lower", "upper", "p_true"))]
    return mean([float(row["lower"] <= row["p_true"] <= row["upper"]) for row in bounded])
