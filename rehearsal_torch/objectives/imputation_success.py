"""The probability of success under multiple imputation: m estimates, pooled by Rubin's rules.

A search maximises the mean of the m values of an action. Of the action found, the j-th model says the
probability p_j with an interval (l_j, u_j), of half-widths z s_j on each side. With

    p = mean p_j,   W = mean s_j^2,   B = var p_j (over m - 1),   T = W + (1 + 1/m) B,

the interval is p -/+ t_nu sqrt(T) on each side with its own W, within [0, 1], and

    nu = (m - 1) (1 + W / ((1 + 1/m) B))^2

are the degrees of freedom of Student's t, W here the mean of both sides. Where nothing is missing all p_j
are equal, B = 0, and the interval is the method's own. The fraction of missing information, (1 + 1/m) B / T,
is in the trace. Probabilities are pooled as they are, since the intervals of the methods are on that scale.

An action is accepted, or withdrawn, as more than half of the models accept or withdraw it.

Source: Rubin (1987), Eq. 3.1.2 to 3.1.10 (the rules, and nu); ours for intervals with two sides.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, variance
from typing import Any, Self

import torch
from scipy.special import stdtrit
from torch import Tensor

from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.mean_gain import GainDraws
from rehearsal_torch.objectives.objective import (
    AlterationObjective,
    Appraisal,
    chance,
    class_of,
    difference,
    no_improvement,
    normal_quantile,
    settings_of,
)
from rehearsal_torch.surrogates.imputation_ensemble import ImputedSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate

# Draws of all models that are kept of a decision.
MOST_DRAWS = 1000


class ImputedSuccess(AlterationObjective):
    """The pooled objective of altering one candidate set: `members` are those of the m models."""

    takes = (ImputedSurrogate,)
    of_success = True

    def __init__(self, cases: Sequence[RehearsalCase], members: Sequence[AlterationObjective]) -> None:
        super().__init__(cases, members[0].names, members[0].lower.device)
        self.members = tuple(members)
        self.enumerable = members[0].enumerable

    @classmethod
    def check(cls, surrogate: Surrogate, member: Callable[..., Any] | None = None, **_: Any) -> None:
        """The check of the method's own objective."""
        made = None if member is None else class_of(member)
        if made is not None and member is not None and isinstance(surrogate, ImputedSurrogate):
            made.check(surrogate.each[0], **settings_of(member))

    @classmethod
    def for_sets(
        cls, surrogate: ImputedSurrogate, cases: Sequence[RehearsalCase], member: Callable[..., Any]
    ) -> list[Self]:
        """The objective of each candidate set.

        Args:
            member: The objective of one of them: a class of objectives of alterations, or a partial of one.

        Raises:
            TypeError: if the member is another kind of objective.
        """
        made = class_of(member)
        if made is None or not issubclass(made, AlterationObjective):
            raise TypeError(f"expected a class of objectives of alterations; got {member}")
        settings = settings_of(member)
        every = [made.for_sets(each, cases, **settings) for each in surrogate.each]
        return [cls(cases, members) for members in zip(*every, strict=True)]

    def __call__(self, actions: Tensor) -> Tensor:
        """The mean value, (..., B, k) -> (..., B)."""
        return torch.stack([each(actions) for each in self.members]).mean(0)

    def sought(self, actions: Tensor) -> Tensor:
        """The mean of what is sought, (..., B, k) -> (..., B)."""
        return torch.stack([each.sought(actions) for each in self.members]).mean(0)

    def sought_at_last(self, actions: Tensor) -> Tensor:
        """The mean of what is finally compared, (..., B, k) -> (..., B)."""
        return torch.stack([each.sought_at_last(actions) for each in self.members]).mean(0)

    def comparison_value(self, actions: Tensor) -> Tensor:
        """The mean comparison value, (..., B, k) -> (..., B)."""
        return torch.stack([each.comparison_value(actions) for each in self.members]).mean(0)

    def probability(self, actions: Tensor) -> Tensor:
        """The mean probability by which a search weighs actions, (..., B, k) -> (..., B)."""
        return torch.stack([each.probability(actions) for each in self.members]).mean(0)

    def compared_probability(self, actions: Tensor) -> Tensor:
        """The mean probability by which sets are compared, (B, k) -> (B,)."""
        return torch.stack([each.compared_probability(actions) for each in self.members]).mean(0)

    def level_value(self, actions: Tensor) -> Tensor:
        """The mean value of levels, (..., B, k) -> (..., B)."""
        return torch.stack([each.level_value(actions) for each in self.members]).mean(0)

    def value_and_gradient(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Mean values (..., B) and gradients (..., B, k)."""
        values, gradients = zip(*(each.value_and_gradient(actions) for each in self.members), strict=True)
        return torch.stack(values).mean(0), torch.stack(gradients).mean(0)

    def acceptable(self, actions: Tensor) -> Tensor:
        """Whether at least half of the models accept actions, (..., B, k) -> (..., B) bool."""
        votes = torch.stack([each.acceptable(actions) for each in self.members])
        return votes.to(torch.float64).mean(0) >= 0.5

    def within(self, lower: Tensor, upper: Tensor, fixed: Mapping[str, float]) -> Self:
        """With all of them in the same bounds."""
        made = super().within(lower, upper, fixed)
        made.members = tuple(each.within(lower, upper, fixed) for each in self.members)
        return made

    def at_level(self, level: float) -> Self | None:
        """See `AlterationObjective.at_level`."""
        others = [each.at_level(level) for each in self.members]
        known = [each for each in others if each is not None]
        return type(self)(self.cases, known) if len(known) == len(others) else None

    def frame(self) -> tuple[Tensor, Tensor]:
        """Mean location and scale of the models' frames, (k,) each."""
        places, scales = zip(*(each.frame() for each in self.members), strict=True)
        return torch.stack(places).mean(0), torch.stack(scales).mean(0)

    def starts(self, count: int) -> Tensor:
        """Those of the first model, (<= count, B, k): what the box alone fixes is the same in all of them,
        so that taking turns would give the same few starts m times.
        """
        return self.members[0].starts(count)

    @torch.no_grad()
    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None] | None:
        """See `AlterationObjective.contrast`: the m differences, pooled."""
        every = [each.contrast(first, second) for each in self.members]
        known = [each for each in every if each is not None]
        if len(known) < len(every):
            return None
        return [_pooled_gain(several) for several in zip(*known, strict=True)]

    @torch.no_grad()
    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """See `AlterationObjective.appraise`. Trace: that of the first model with the mean of ``beyond``, and
        under ``imputation`` m, the standard deviation between the m estimates and the fraction of missing
        information.
        """
        every = zip(*(each.appraise(actions) for each in self.members), strict=True)
        return [self._pooled(several) for several in every]

    def _pooled(self, several: Sequence[Appraisal]) -> Appraisal:
        first, count = several[0], len(several)
        draws = _side_by_side([each.gain_draws for each in several])
        beyond = {} if draws is None else {"beyond": round(draws.beyond, 4)}
        pooled = pool([each.estimate for each in several])
        baselines = [each.baseline.point for each in several if each.baseline is not None]
        baseline = chance(round(fmean(baselines), 6)) if len(baselines) == count else None
        refused = _often([each.refused for each in several])
        unsupported = None if refused else _often([each.refused or each.unsupported for each in several])
        # What has numbers is the same finding with other numbers, else with another sentence another one.
        alike: dict[tuple[str, ...], list[Finding]] = {}
        for finding in (finding for each in several for finding in each.findings):
            alike.setdefault((finding.kind, *(finding.numbers or [finding.text])), []).append(finding)
        often = [findings[0] for findings in alike.values() if 2 * len(findings) > count]
        declined: Finding | None = None
        estimate: Estimate | None = None
        facts: dict[str, float | int] = {"imputations": count}
        if pooled is not None:
            facts |= {"between": round(pooled.between, 6), "missing_information": round(pooled.missing, 4)}
            lower, upper = pooled.lower, pooled.upper
            estimate = chance(
                round(pooled.point, 6),
                None if lower is None else round(max(lower, 0.0), 6),
                None if upper is None else round(min(upper, 1.0), 6),
                pooled.level,
            )
        if estimate is not None and baseline is not None:
            worse = estimate.point if estimate.upper is None else estimate.upper
            if worse < baseline.point:
                declined = no_improvement(estimate.point, baseline.point)
        return Appraisal(
            estimate,
            baseline,
            tuple(often),
            refused,
            declined,
            {**first.trace, **beyond, "imputation": facts},
            unsupported=unsupported,
            gain=_pooled_gain([each.gain for each in several]),
            gain_draws=draws,
        )


def _side_by_side(several: Sequence[GainDraws | None]) -> GainDraws | None:
    """The draws of all models, at most `MOST_DRAWS` of them; None where a model has none."""
    draws = [each for each in several if each is not None]
    if len(draws) < len(several):
        return None
    fits, step = draws[0].fits, -(-len(draws) * len(draws[0].gain) // MOST_DRAWS)
    gain, lowest = (
        torch.cat([getattr(each, name).unflatten(0, (fits, -1))[:, ::step].flatten() for each in draws])
        for name in ("gain", "lowest")
    )
    return replace(
        draws[0],
        gain=gain,
        lowest=lowest,
        beyond=fmean(each.beyond for each in draws),
        fits=fits * len(draws),
    )


def _pooled_gain(several: Sequence[Estimate | None]) -> Estimate | None:
    """The pooled gains over no action; None where a model has none."""
    pooled = pool(several)
    if pooled is None or pooled.lower is None or pooled.upper is None:
        return None
    return difference(pooled.point, pooled.lower, pooled.upper, pooled.level)


def _often(findings: Sequence[Finding | None]) -> Finding | None:
    """The first of the findings of m tables, with how many have one, if more than half have; else None."""
    known = [each for each in findings if each is not None]
    if 2 * len(known) <= len(findings):
        return None
    counted, first = f" (in {len(known)} of {len(findings)} imputed tables)", known[0]
    return replace(first, text=first.text + counted, general=first.general and first.general + counted)


class Pooled:
    """m estimates of one quantity, pooled by Rubin's rules.

    Attributes:
        point: p.
        lower: Lower end of the interval; None without intervals.
        upper: Upper end.
        level: Its coverage probability.
        between: The standard deviation of the m points.
        missing: The fraction of missing information, (1 + 1/m) B / T; 0 without intervals.

    Args:
        points: The m points, m >= 2.
        within: The squared standard errors of the lower and of the upper side, m pairs; None without
            intervals.
        level: The coverage probability of the intervals.
    """

    def __init__(
        self, points: Sequence[float], within: Sequence[tuple[float, float]] | None, level: float
    ) -> None:
        self.point, spread = fmean(points), variance(points)
        self.level, self.between = level, math.sqrt(spread)
        self.lower: float | None = None
        self.upper: float | None = None
        self.missing = 0.0
        if within is None:
            return
        below, above = fmean(each[0] for each in within), fmean(each[1] for each in within)
        extra, inside = (1 + 1 / len(points)) * spread, (below + above) / 2
        quantile = normal_quantile(level)
        if extra > 1e-18:
            self.missing = extra / (inside + extra)
            quantile = _student(level, (len(points) - 1) / self.missing**2)
        self.lower = self.point - quantile * math.sqrt(below + extra)
        self.upper = self.point + quantile * math.sqrt(above + extra)


def pool(several: Sequence[Estimate | None]) -> Pooled | None:
    """m >= 2 estimates of one quantity, with intervals of one level, pooled; None if one of them is missing,
    without an interval if one of them has none.
    """
    known = [each for each in several if each is not None]
    if len(known) < len(several):
        return None
    level = known[0].level or 0.95
    quantile = normal_quantile(level)
    within = [
        (((each.point - each.lower) / quantile) ** 2, ((each.upper - each.point) / quantile) ** 2)
        for each in known
        if each.lower is not None and each.upper is not None
    ]
    return Pooled([each.point for each in known], within if len(within) == len(known) else None, level)


def _student(level: float, freedom: float) -> float:
    """Half the width of the central interval of Student's t that holds `level` of it."""
    return float(stdtrit(freedom, (1 + level) / 2)) if freedom < 1e6 else normal_quantile(level)
