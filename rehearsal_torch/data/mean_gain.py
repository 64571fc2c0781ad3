"""The mean gain of decisions over all cases, with its interval, by the draws that the cases have in common.

What is unknown of a fitted model is the same in every case, so that intervals of single cases can be neither
averaged nor taken as independent. Draws can: with g_kb draw k of the gain of case b, zero where nothing is
altered, the draws of the mean over B cases are

    g_k = (g_k1 + ... + g_kB) / B.

Draws of different altered variables come from regressions of their own: these are averaged apart, and their
distances to the ends of the intervals added, which holds whatever the dependence.

S is the share of cases like one's own for which the table has no row near the action. Where its mean over
the cases exceeds `TOLD_BEYOND`, the interval is the hull: from no success at all there to success always.

Source: Rubin (1978) (predictive distributions of averages); Manski (1990) (bounds where nothing is observed).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import torch
from torch import Tensor

from rehearsal_torch.data.estimate import DIFFERENCE, Estimate, percents

Status = Literal["do", "may", "leave"]
TOLD_BEYOND = 0.05  # S above which the interval counts what the model cannot know.
WIDER = 1.2  # By how much intervals are wider than those of the draws, for what the model leaves out.
STEP = 1e-5  # Draws in files are whole numbers of these.


def counted_beyond(trace: Mapping[str, Any]) -> str:
    """What an interval counts where no row is near, in words; empty where it is the model's."""
    beyond = trace.get("beyond")
    if not isinstance(beyond, float) or beyond <= TOLD_BEYOND:
        return ""
    (share,) = percents([beyond])
    condition = f"For {share} of such cases no row is near this action"
    return f"{condition}: the interval counts anything from 0 to 1 there"


def central(draws: Tensor, fits: int, level: float) -> tuple[Tensor, Tensor]:
    """The central interval of draws, (..., D) -> (...) each, those of E fits side by side.

    With V the variance between the means of fits, the draws hold (1 - 1 / E) V of the (1 + 1 / E) V by which
    a further fit would differ: 2 V / E is added.
    """
    ends = draws.new_tensor([(1 - level) / 2, (1 + level) / 2])
    lower, upper = torch.quantile(draws, ends, dim=-1)
    mean = draws.mean(-1)
    missing_variance = torch.zeros_like(mean)
    if fits > 1:
        between = draws.unflatten(-1, (fits, -1)).mean(-1).var(-1)
        missing_variance = torch.special.ndtri(ends[1]).square() * 2 * between / fits
    below, above = (((mean - end).square() + missing_variance).sqrt() for end in (lower, upper))
    return mean - WIDER * below, mean + WIDER * above


@dataclass(frozen=True)
class GainDraws:
    """D draws, the same in every case, of an action's gain over what it is compared with, (D,) each.

    Attributes:
        gain: By the model.
        lowest: If nothing succeeds where no row is near.
        beyond: S, the share of such cases in which no row is near the action.
        fits: E, the number of fits whose draws stand side by side.
        level: Coverage probability of the intervals.
        untouched: Whether they come from rows that did not choose the action.
    """

    gain: Tensor
    lowest: Tensor
    beyond: float
    fits: int = 1
    level: float = 0.95
    untouched: bool = False

    def estimate(self, hull: bool | None = None) -> Estimate:
        """The mean with its interval; the `hull` by default where S exceeds `TOLD_BEYOND`."""
        hull = self.beyond > TOLD_BEYOND if hull is None else hull
        lower, upper = map(float, central(self.lowest if hull else self.gain, self.fits, self.level))
        upper += self.beyond if hull else 0.0
        return _difference(float(self.gain.mean()), lower, upper, self.level)

    def told(self, gain: Estimate) -> Self:
        """Moved and scaled to another estimate from rows that did not choose the action."""
        lower, upper = map(float, central(self.gain, self.fits, self.level))
        mean, width = self.gain.mean(), (gain.upper or 0.0) - (gain.lower or 0.0)
        factor = width / (upper - lower) if upper > lower else 1.0
        gains = gain.point + factor * (self.gain - mean)
        lowest = gains + (self.lowest - self.gain)
        return replace(self, gain=gains, lowest=lowest, level=gain.level or self.level, untouched=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, in whole numbers of `STEP`; `lowest` where it differs."""
        lowest = {} if self.lowest.equal(self.gain) else {"lowest": _steps(self.lowest)}
        numbers = {"beyond": self.beyond, "fits": self.fits, "level": self.level, "untouched": self.untouched}
        return {"gain": _steps(self.gain), **lowest, **numbers}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """The draws that `to_dict` wrote."""
        gain, lowest = (
            STEP * torch.tensor(plain[name], dtype=torch.float64)
            for name in ("gain", "lowest" if "lowest" in plain else "gain")
        )
        return cls(gain, lowest, *(plain[name] for name in ("beyond", "fits", "level", "untouched")))


def _steps(numbers: Tensor) -> list[int]:
    return [round(number / STEP) for number in numbers.tolist()]


@dataclass(frozen=True)
class Answer:
    """The decision of one case: the variables that it sets, what it is compared with (None if unknown),
    whether it is at most *may* (`finding.doubted`), and draws of its gain (None where nothing is altered).
    """

    status: Status
    altered: tuple[str, ...] = ()
    before: float | None = None
    doubted: bool = False
    draws: GainDraws | None = None


@dataclass(frozen=True)
class Overall:
    """The decisions of several cases, on average over all of them.

    Attributes:
        before: The mean probability of a desired outcome if nothing is altered.
        gain: By how much it rises, with its interval; cases in which nothing is altered count as zero.
        counts: How many cases are *do*, *may* and *leave*.
        beyond: S, the share of such cases in which no row is near.
        status: *do* if the interval of the gain lies above zero, unless some case is doubted.
    """

    before: float
    gain: Estimate
    counts: Mapping[Status, int]
    beyond: float
    status: Status

    @property
    def cases(self) -> int:
        """The number of cases."""
        return sum(self.counts.values())

    @property
    def after(self) -> float:
        """The mean probability with the decisions."""
        return self.before + self.gain.point

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        numbers = {"status": self.status, "counts": dict(self.counts), "beyond": round(self.beyond, 6)}
        return {"before": round(self.before, 6), "gain": self.gain.to_dict(), **numbers}


def overall(answers: Sequence[Answer]) -> Overall | None:
    """All cases together; None if nothing is altered in any, or draws or what is compared are missing."""
    before = [answer.before for answer in answers if answer.before is not None]
    acted = [answer for answer in answers if answer.status != "leave"]
    of_sets: dict[tuple[str, ...], list[GainDraws]] = {}
    for answer in acted:
        if answer.draws is not None:
            of_sets.setdefault(answer.altered, []).append(answer.draws)
    if not acted or len(before) < len(answers) or sum(map(len, of_sets.values())) < len(acted):
        return None
    count = len(answers)
    means = [_mean(draws, count) for draws in of_sets.values()]
    beyond = sum(mean.beyond for mean in means)
    parts = [mean.estimate(beyond > TOLD_BEYOND) for mean in means]
    point, lower, upper = (sum(getattr(part, end) for part in parts) for end in ("point", "lower", "upper"))
    gain = _difference(point, lower, upper, means[0].level)
    doubted = any(answer.doubted for answer in acted)
    statuses: tuple[Status, ...] = ("do", "may", "leave")
    return Overall(
        sum(before) / count,
        gain,
        {status: sum(answer.status == status for answer in answers) for status in statuses},
        beyond,
        "do" if (gain.lower or 0.0) > 0 and not doubted else "may",
    )


def _mean(draws: Sequence[GainDraws], count: int) -> GainDraws:
    """The sum of draws over the number of all cases."""
    gain, lowest = (
        torch.stack([getattr(draw, name) for draw in draws]).sum(0) / count for name in ("gain", "lowest")
    )
    return GainDraws(gain, lowest, sum(draw.beyond for draw in draws) / count, draws[0].fits, draws[0].level)


def _difference(point: float, lower: float, upper: float, level: float) -> Estimate:
    point, lower, upper = (round(value, 6) for value in (point, max(lower, -1.0), min(upper, 1.0)))
    return Estimate(point, DIFFERENCE, min(lower, point), max(upper, point), level)
