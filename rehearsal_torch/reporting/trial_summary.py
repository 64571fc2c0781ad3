"""What a method came to over seeds of trials.

    simple regret     = optimum - E[r | recommended action], after the last round
    normalised regret = mean over seeds of the simple regret / mean over seeds of (optimum - best of the start design)
    average           = mean over rounds of E[r | a_t], without the start design

A normalised regret of 0 is the optimum, one of 1 is no better than the best of the start design; problems with different units can
be averaged by it.

Source: Ren et al. (2025), Sec. 11.1 (best and average expected reward); the normalisation is ours.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rehearsal_torch.reporting.interval import Interval, mean_interval
from rehearsal_torch.reporting.method_summary import mean, median
from rehearsal_torch.reporting.trial_rows import Row, by_seed


@dataclass(frozen=True)
class TrialSummary:
    """A method on a problem.

    Attributes:
        seeds: How many.
        rounds: In each; the fewest of all seeds.
        best: Best expected reward of what was tried, with its 95% interval over seeds.
        recommended: Expected reward of the recommended action.
        average: Expected reward of what was tried, on average over rounds.
        regrets: Simple regret of the recommended action, seed by seed.
        optimum: The largest expected reward.
        start: Best of the start design, the mean over seeds.
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
        """Normalised regret of the recommended action; NaN where the start design was at the optimum."""
        gap = self.optimum - self.start
        return sum(self.regrets) / len(self.regrets) / gap if gap > 0 else math.nan


def trial_summary(rows: Sequence[Row], round_: int | None = None) -> TrialSummary:
    """Sums up the rows of one problem, setting and method.

    Args:
        rows: At least one.
        round_: After which round; None for the last that all seeds have.
    """
    runs = list(by_seed(rows).values())
    length = min(len(run) for run in runs) if round_ is None else round_
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
