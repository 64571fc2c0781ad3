"""Summaries of a method: over contexts (rehearsal), repeats of online runs, and seeds of trials (optimise).

Rehearsal decisions (`MethodSummary`):

    share of the gain = (mean auf - mean no_action) / (mean oracle - mean no_action)
    coverage          = share of the altered contexts whose true probability lies in the claimed interval
    excess            = mean (estimate - auf), that is, over-confidence
    truth             = the coverage of the bounds on the true probability, where a certificate has them

The share is a ratio of means: the mean of a ratio for each context would be dominated by contexts with next
to no possible gain. The interval of the mean is over seeds if there are several (contexts of one seed share a
fitted model), else over contexts.

Online runs, in which every round updates the model (`OnlineSummary`):

    probability = mean (and deviation) over repeats of the mean over rounds of the true probability of success
    late        = the same over the last 20 rounds (or as many as given); left is the gap to the best possible
    covered     = share of the rounds with a bound whose true probability lies within it

The bound concerns the probability under the posterior, so `covered` may fall short of its nominal level where
the posterior is wrong, above all in early rounds.

Trials (`TrialSummary`):

    simple regret     = optimum - E[r | recommended action], after the last round
    normalised regret = mean over seeds of the simple regret / mean over seeds of (optimum - start),
                        with the best of the start design as start
    average           = mean over rounds of E[r | a_t], without the start design

A normalised regret of 0 is the optimum, one of 1 is no better than the best of the start design; it makes
problems with different units comparable.

Source: Du et al. (2026), Tab. 1 (mean and standard deviation over seeds); Qin et al. (2023), Tab. 1, Fig. 4
and Thm. 7; Ren et al. (2025), Sec. 11.1 (best and average expected reward).
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from rehearsal_torch.evaluation.claim_rows import TRUTH, Row, by_run

# The last rounds of an online run.
LAST = 20


@dataclass(frozen=True)
class TruthSummary:
    """Coverage of bounds on the true probability (`credible_bound`): shares of the intervals that contain it
    and of the one-sided lower bounds that it reaches, and the mean width; NaN for none.
    """

    intervals: int = 0
    covered: float = math.nan
    least: float = math.nan
    width: float = math.nan


def truth_summary(rows: Sequence[Row]) -> TruthSummary:
    """Summarises the bounds on the truth in rows; those without a bound or a truth are left out."""
    complete = _complete(rows, *TRUTH, "auf")
    return TruthSummary(
        intervals=len(complete),
        covered=mean([float(row["truth_lower"] <= row["auf"] <= row["truth_upper"]) for row in complete]),
        least=mean([float(row["truth_least"] <= row["auf"]) for row in complete]),
        width=mean([row["truth_upper"] - row["truth_lower"] for row in complete]),
    )


@dataclass(frozen=True)
class MethodSummary:
    """Results of one method in one world, for rehearsal decisions; NaN where nothing is known.

    Attributes:
        no_action_count: Number of decisions without an alteration, and
        present_count: of those whose estimate is that of leaving known present values.
        auf: Mean true probability with its 95% interval.
        std: Standard deviation over seeds of the mean over contexts.
        oracle, no_action, claimed: Mean probabilities: the largest, without alteration, as estimated.
        covered: Share of the so many `intervals`, of mean `width`, that contain the true probability.
        excess: Mean of estimate minus true probability, over the decisions that have both.
        seconds: Median seconds of a decision.
    """

    count: int
    no_action_count: int
    seeds: int
    auf: Interval
    std: float
    oracle: float
    no_action: float
    claimed: float
    covered: float
    intervals: int
    width: float
    excess: float
    seconds: float
    truth: TruthSummary = TruthSummary()
    present_count: int = 0

    @property
    def share(self) -> float:
        """The share of the oracle's gain that was reached; NaN if that gain is below 0.001."""
        gain = self.oracle - self.no_action
        return (self.auf.mean - self.no_action) / gain if gain > 1e-3 else math.nan


def summed(rows: Sequence[Row], no_action_count: int, present_count: int = 0) -> MethodSummary:
    """Summarises the rows of one method in one world, at least one, with the counts of `MethodSummary`."""
    by_seed: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if not math.isnan(row["auf"]):
            by_seed[row["seed"]].append(row["auf"])
    means = [statistics.fmean(values) for values in by_seed.values()]
    true = [value for values in by_seed.values() for value in values]
    auf = mean_interval(means if len(means) > 1 else true)
    bounded = _complete(rows, "lower", "upper", "auf")
    return MethodSummary(
        count=len(rows),
        no_action_count=no_action_count,
        seeds=len({row["seed"] for row in rows}),
        auf=Interval(statistics.fmean(true) if true else math.nan, auf.low, auf.high, len(true)),
        std=statistics.stdev(means) if len(means) > 1 else math.nan,
        oracle=mean([row["oracle"] for row in rows]),
        no_action=mean([row["no_action"] for row in rows]),
        claimed=mean([row["estimate"] for row in rows]),
        covered=mean([float(row["lower"] <= row["auf"] <= row["upper"]) for row in bounded]),
        intervals=len(bounded),
        width=mean([row["upper"] - row["lower"] for row in bounded]),
        excess=mean([row["estimate"] - row["auf"] for row in rows]),
        seconds=median([row["seconds"] for row in rows]),
        truth=truth_summary(rows),
        present_count=present_count,
    )


def grouped(rows: Sequence[Row], *keys: str) -> dict[tuple[object, ...], list[Row]]:
    """The rows grouped by some of their columns, in order of appearance."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return dict(groups)


def _complete(rows: Sequence[Row], *keys: str) -> list[Row]:
    """The rows that have numbers under all keys."""
    return [row for row in rows if not any(math.isnan(row.get(key, math.nan)) for key in keys)]


def mean(values: Sequence[float]) -> float:
    """The mean of the values that are not NaN; NaN if there are none."""
    finite = [value for value in values if not math.isnan(value)]
    return statistics.fmean(finite) if finite else math.nan


def median(values: Sequence[float]) -> float:
    """The median of the values that are not NaN; NaN if there are none."""
    finite = [value for value in values if not math.isnan(value)]
    return statistics.median(finite) if finite else math.nan


@dataclass(frozen=True)
class OnlineSummary:
    """Results of one method in one world for one tau, over repeats of an online run; NaN where unknown.

    Attributes:
        rounds: Largest number of rounds of a repeat.
        probability: As above, with the 95% interval and `std` over repeats.
        successes: Mean number of successful rounds of a repeat.
        information: Mean expected information gain of a round, in nats; `_late` in the last rounds.
        width: Mean width of the bounds.
        targets: Altered variables to their share of all rounds; "-" stands for no action.
        seconds: Median seconds of a round.
    """

    repeats: int
    rounds: int
    probability: Interval
    std: float
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
    """Summarises the rows of one method, world and tau, at least one, and those of so many last rounds."""
    repeats = list(by_run(rows, "repeat").values())
    late = [row for repeat in repeats for row in repeat[-last:]]
    means = [mean([row["p_true"] for row in repeat]) for repeat in repeats]
    counts = Counter(str(row["target"]) or "-" for row in rows)
    finite = [value for value in means if not math.isnan(value)]
    return OnlineSummary(
        repeats=len(repeats),
        rounds=max(len(repeat) for repeat in repeats),
        probability=mean_interval(finite),
        std=statistics.stdev(finite) if len(finite) > 1 else math.nan,
        successes=mean([sum(row["success"] for row in repeat) for repeat in repeats]),
        oracle=mean([row["oracle"] for row in rows]),
        late=mean([row["p_true"] for row in late]),
        left=mean([row["oracle"] - row["p_true"] for row in late]),
        information=mean([row["information"] for row in rows]),
        information_late=mean([row["information"] for row in late]),
        covered=_coverage(rows),
        covered_late=_coverage(late),
        width=mean([row["upper"] - row["lower"] for row in rows]),
        targets={name: count / len(rows) for name, count in counts.most_common()},
        seconds=median([row["seconds"] for row in rows]),
    )


def _coverage(rows: Sequence[Row]) -> float:
    bounded = _complete(rows, "lower", "upper", "p_true")
    return mean([float(row["lower"] <= row["p_true"] <= row["upper"]) for row in bounded])


@dataclass(frozen=True)
class TrialSummary:
    """Results of one method on one problem, over seeds of trials with so many rounds at least.

    Attributes:
        best, average: Expected rewards of the actions tried: the best, and the mean over rounds.
        recommended: Expected reward of the recommended action; all three with 95% intervals over seeds.
        regrets: Simple regrets, one number per seed.
        seconds: Median seconds of a round.
    """

    seeds: int
    rounds: int
    best: Interval
    recommended: Interval
    average: Interval
    regrets: tuple[float, ...]
    optimum: float
    start: float
    seconds: float

    @property
    def normalised(self) -> float:
        """Normalised regret of the recommended action; NaN if the start design reached the optimum."""
        gap = self.optimum - self.start
        return sum(self.regrets) / len(self.regrets) / gap if gap > 0 else math.nan


def trial_summary(rows: Sequence[Row]) -> TrialSummary:
    """Summarises the rows of one problem, setting and method after the last round that all seeds have."""
    runs = list(by_run(rows, "seed").values())
    length = min(len(run) for run in runs)
    runs = [run[:length] for run in runs]
    ends = [run[-1] for run in runs]
    return TrialSummary(
        seeds=len(runs),
        rounds=length,
        best=mean_interval([end["best_expected"] for end in ends]),
        recommended=mean_interval([end["recommended_expected"] for end in ends]),
        average=mean_interval([mean([row["expected"] for row in run]) for run in runs]),
        regrets=tuple(end["optimum"] - end["recommended_expected"] for end in ends),
        optimum=ends[0]["optimum"],
        start=mean([end["start"] for end in ends]),
        seconds=median([row["seconds"] for run in runs for row in run]),
    )
