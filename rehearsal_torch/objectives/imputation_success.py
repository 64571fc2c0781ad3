"""The probability of success under multiple imputation: m estimates, pooled by Rubin's rules.

A search maximises the mean of the m values of an action. For its result, the j-th model has the probability
p_j with an interval (l_j, u_j), of half-widths z s_j on each side. With

    p = mean p_j,   W = mean s_j^2,   B = var p_j (over m - 1),   T = W + (1 + 1/m) B,

the interval is p -/+ t_nu sqrt(T) on each side with its own W, within [0, 1], and

    nu = (m - 1) (1 + W / ((1 + 1/m) B))^2

are the degrees of freedom of Student's t, W here the mean of both sides. Where nothing is missing all p_j
are equal, B = 0, and the interval is the method's own. The fraction of missing information, (1 + 1/m) B / T,
is in the trace. Probabilities are pooled as they are, since the intervals of the methods are on that scale.

An action is accepted, or withdrawn, as more than half of the models accept or withdraw it.

Source: Rubin (1987), Eq. 3.1.2 to 3.1.10 (the rules, and nu).
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

MOST_DRAWS = 1000  # of all models, that a decision keeps


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
        target = None if member is None else class_of(member)
        if target is not None and member is not None and isinstance(surrogate, ImputedSurrogate):
            target.check(surrogate.each[0], **settings_of(member))

    @classmethod
    def for_sets(
        cls, surrogate: ImputedSurrogate, cases: Sequence[RehearsalCase], member: Callable[..., Any]
    ) -> list[Self]:
        """The objective of each candidate set.

        Args:
            member: A class of objectives of alterations, or a partial of one, else a TypeError.
        """
        target = class_of(member)
        if target is None or not issubclass(target, AlterationObjective):
            raise TypeError(f"expected a class of objectives of alterations; got {member}")
        settings = settings_of(member)
        objectives = [target.for_sets(model, cases, **settings) for model in surrogate.each]
        return [cls(cases, members) for members in zip(*objectives, strict=True)]

    def __call__(self, actions: Tensor) -> Tensor:
        """The mean value, (..., B, k) -> (..., B)."""
        return self._mean("__call__", actions)

    def _mean(self, value: str, actions: Tensor) -> Tensor:
        return torch.stack([getattr(member, value)(actions) for member in self.members]).mean(0)

    def sought(self, actions: Tensor) -> Tensor:
        """The mean value that searches maximise, (..., B, k) -> (..., B)."""
        return self._mean("sought", actions)

    def sought_at_last(self, actions: Tensor) -> Tensor:
        """The mean value that finally compares actions, (..., B, k) -> (..., B)."""
        return self._mean("sought_at_last", actions)

    def comparison_value(self, actions: Tensor) -> Tensor:
        """The mean comparison value, (..., B, k) -> (..., B)."""
        return self._mean("comparison_value", actions)

    def probability(self, actions: Tensor) -> Tensor:
        """The mean probability by which a search weighs actions, (..., B, k) -> (..., B)."""
        return self._mean("probability", actions)

    def compared_probability(self, actions: Tensor) -> Tensor:
        """The mean probability by which sets are compared, (B, k) -> (B,)."""
        return self._mean("compared_probability", actions)

    def level_value(self, actions: Tensor) -> Tensor:
        """The mean value of levels, (..., B, k) -> (..., B)."""
        return self._mean("level_value", actions)

    def value_and_gradient(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Mean values (..., B) and gradients (..., B, k)."""
        values, gradients = zip(*(member.value_and_gradient(actions) for member in self.members), strict=True)
        return torch.stack(values).mean(0), torch.stack(gradients).mean(0)

    def acceptable(self, actions: Tensor) -> Tensor:
        """Whether at least half of the models accept actions, (..., B, k) -> (..., B) bool."""
        votes = torch.stack([member.acceptable(actions) for member in self.members])
        return votes.to(torch.float64).mean(0) >= 0.5

    def within(self, lower: Tensor, upper: Tensor, fixed: Mapping[str, float]) -> Self:
        """With all of them in the same bounds."""
        pooled = super().within(lower, upper, fixed)
        pooled.members = tuple(member.within(lower, upper, fixed) for member in self.members)
        return pooled

    def at_level(self, level: float) -> Self | None:
        """See `AlterationObjective.at_level`."""
        leveled = [member.at_level(level) for member in self.members]
        members = [member for member in leveled if member is not None]
        return type(self)(self.cases, members) if len(members) == len(leveled) else None

    def frame(self) -> tuple[Tensor, Tensor]:
        """Mean location and scale of the models' frames, (k,) each."""
        locations, scales = zip(*(member.frame() for member in self.members), strict=True)
        return torch.stack(locations).mean(0), torch.stack(scales).mean(0)

    def starts(self, count: int) -> Tensor:
        """Those of the first model, (<= count, B, k): starts that only depend on the box are equal in all."""
        return self.members[0].starts(count)

    @torch.no_grad()
    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None] | None:
        """See `AlterationObjective.contrast`: the m differences, pooled."""
        by_member = [member.contrast(first, second) for member in self.members]
        contrasts = [contrast for contrast in by_member if contrast is not None]
        if len(contrasts) < len(by_member):
            return None
        return [_pooled_gain(estimates) for estimates in zip(*contrasts, strict=True)]

    @torch.no_grad()
    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """See `AlterationObjective.appraise`. Trace: that of the first model, the mean of ``beyond``, and
        under ``imputation`` m, the standard deviation between estimates and the missing information.
        """
        by_case = zip(*(member.appraise(actions) for member in self.members), strict=True)
        return [self._pooled(appraisals) for appraisals in by_case]

    def _pooled(self, by_model: Sequence[Appraisal]) -> Appraisal:
        first, count = by_model[0], len(by_model)
        draws = _joined_draws([each.gain_draws for each in by_model])
        beyond = {} if draws is None else {"beyond": round(draws.beyond, 4)}
        pooled = pool([each.estimate for each in by_model])
        baselines = [each.baseline.point for each in by_model if each.baseline is not None]
        baseline = chance(round(fmean(baselines), 6)) if len(baselines) == count else None
        refused = _majority([each.refused for each in by_model])
        unsupported = None if refused else _majority([each.refused or each.unsupported for each in by_model])
        # Findings with numbers are the same whatever the numbers, others where their sentences are.
        groups: dict[tuple[str, ...], list[Finding]] = {}
        for finding in (finding for each in by_model for finding in each.findings):
            groups.setdefault((finding.kind, *(finding.numbers or [finding.text])), []).append(finding)
        findings = [findings[0] for findings in groups.values() if 2 * len(findings) > count]
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
            best_case = estimate.point if estimate.upper is None else estimate.upper
            if best_case < baseline.point:
                declined = no_improvement(estimate.point, baseline.point)
        return Appraisal(
            estimate,
            baseline,
            tuple(findings),
            refused,
            declined,
            {**first.trace, **beyond, "imputation": facts},
            unsupported=unsupported,
            gain=_pooled_gain([each.gain for each in by_model]),
            gain_draws=draws,
        )


def _joined_draws(by_model: Sequence[GainDraws | None]) -> GainDraws | None:
    """The draws of all models, at most `MOST_DRAWS` of them; None where a model has none."""
    draws = [part for part in by_model if part is not None]
    if len(draws) < len(by_model):
        return None
    fits, step = draws[0].fits, -(-len(draws) * len(draws[0].gain) // MOST_DRAWS)
    gain, lowest = (
        torch.cat([getattr(part, name).unflatten(0, (fits, -1))[:, ::step].flatten() for part in draws])
        for name in ("gain", "lowest")
    )
    beyond = fmean(part.beyond for part in draws)
    return replace(draws[0], gain=gain, lowest=lowest, beyond=beyond, fits=fits * len(draws))


def _pooled_gain(gains: Sequence[Estimate | None]) -> Estimate | None:
    """The pooled gains over no action; None where a model has none."""
    pooled = pool(gains)
    if pooled is None or pooled.lower is None or pooled.upper is None:
        return None
    return difference(pooled.point, pooled.lower, pooled.upper, pooled.level)


def _majority(findings: Sequence[Finding | None]) -> Finding | None:
    """The first of the findings of m tables, with their number, if more than half have one; else None."""
    present = [first for first in findings if first is not None]
    if 2 * len(present) <= len(findings):
        return None
    note, first = f" (in {len(present)} of {len(findings)} imputed tables)", present[0]
    return replace(first, text=first.text + note, general=first.general and first.general + note)


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
        within: Squared standard errors of the lower and upper sides, m pairs; None without intervals.
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
        below, above = fmean(pair[0] for pair in within), fmean(pair[1] for pair in within)
        between, within_mean = (1 + 1 / len(points)) * spread, (below + above) / 2
        quantile = normal_quantile(level)
        if between > 1e-18:
            self.missing = between / (within_mean + between)
            freedom = (len(points) - 1) / self.missing**2
            quantile = float(stdtrit(freedom, (1 + level) / 2)) if freedom < 1e6 else quantile
        self.lower = self.point - quantile * math.sqrt(below + between)
        self.upper = self.point + quantile * math.sqrt(above + between)


def pool(several: Sequence[Estimate | None]) -> Pooled | None:
    """m >= 2 estimates pooled; None if one is missing, without an interval if one has none."""
    full = [claim for claim in several if claim is not None]
    if len(full) < len(several):
        return None
    level = full[0].level or 0.95
    quantile = normal_quantile(level)
    within = [
        (((claim.point - claim.lower) / quantile) ** 2, ((claim.upper - claim.point) / quantile) ** 2)
        for claim in full
        if claim.lower is not None and claim.upper is not None
    ]
    return Pooled([claim.point for claim in full], within if len(within) == len(full) else None, level)
