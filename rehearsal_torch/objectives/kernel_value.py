"""The kernel value: the nested ridge estimate of the smoothed probability of a desired outcome.

An ascent maximises the estimate J(a; x). Its end points are then compared by a lower confidence bound,

    J(a; x) - caution sd(J(a; x)),

because the largest of many uncertain values is likely to be large by chance, and most uncertain where there
are no observations. Reported is the estimate of P(Y in S | x, a) itself, from a regression of the indicator
with the same kernel, with an interval from its posterior, and the support: the number of observations near
the decision. A decision without nearby observations is refused; one whose whole interval lies below the
estimate for no action is declined (`claims.improvement_test` declines every one whose estimate is not above
it); one with few nearby observations, or whose adjustment is not valid, carries a warning.

Source: Du et al. (2026), Eq. (9).
"""

import math
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.codings.decision_texts import sentence_in_words
from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.objectives.objective import (
    AlterationObjective,
    Appraisal,
    chance,
    difference,
    normal_quantile,
    worse_than_nothing,
)
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue, NestedRidge


class KernelValue(AlterationObjective):
    """The kernel value of altering one candidate set.

    Args:
        before: Estimate of P(Y in S | x) without an alteration, (B,).
        caution: Posterior standard deviations that are subtracted to compare end points; 0 in the paper.
        level: Coverage probability of the interval.
        min_support: Number of observations near a decision below which it is refused.
        low_support: Number of observations near a decision below which it carries a warning.
    """

    takes = (NestedRidge,)
    of_success = True
    level: float

    def __init__(
        self,
        surrogate: NestedRidge,
        cases: Sequence[RehearsalCase],
        which: int,
        before: Tensor,
        caution: float,
        level: float,
        min_support: float,
        low_support: float,
    ) -> None:
        super().__init__(cases, surrogate.task.candidates[which], before.device)
        self.surrogate, self.which, self.before = surrogate, which, before
        self.caution, self.level = caution, level
        self.min_support, self.low_support = min_support, low_support
        self.prepared = self.estimator.prepare(_contexts(surrogate, cases))

    @classmethod
    def for_sets(
        cls,
        surrogate: NestedRidge,
        cases: Sequence[RehearsalCase],
        caution: float = 2.0,
        level: float = 0.95,
        min_support: float = 1.0,
        low_support: float = 5.0,
    ) -> list[Self]:
        """The kernel value of each candidate set; numbers out of range raise a ValueError."""
        valid = caution >= 0 and 0 < level < 1 and 0 <= min_support <= low_support
        numbers = {"caution": caution, "level": level, "min_support": min_support, "low_support": low_support}
        require(valid, "caution >= 0, level in (0, 1), 0 <= min_support <= low_support", **numbers)
        surrogate.require_fitted()
        before, count = surrogate.no_action(_contexts(surrogate, cases))[:, 1], len(surrogate.task.candidates)
        settings = (caution, level, min_support, low_support)
        return [cls(surrogate, cases, which, before, *settings) for which in range(count)]

    @property
    def estimator(self) -> AlterationValue:
        """The estimator of the set."""
        return self.surrogate.values()[self.which]

    @property
    def baseline(self) -> Tensor:
        """The probability without an alteration, (B,)."""
        return self.before.clamp(0, 1)

    def standardised(self, actions: Tensor) -> Tensor:
        """From the actions' units to standardised actions, (..., k)."""
        return self.surrogate.scaler.standardised(self.names, actions).to(actions.dtype)

    def __call__(self, actions: Tensor) -> Tensor:
        """J, (..., B, k) -> (..., B)."""
        return self.estimator.value(self.prepared, self.standardised(actions))

    def value_and_gradient(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """J (..., B), and its gradient per unit of each action (..., B, k)."""
        value, gradients = self.estimator.value_and_gradient(self.prepared, self.standardised(actions))
        return value, gradients / self.frame()[1].to(gradients)

    def value_and_gradient_in_frame(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """J (..., B), and its gradient per standard deviation of each action (..., B, k)."""
        return self.estimator.value_and_gradient(self.prepared, points)

    def comparison_value(self, actions: Tensor) -> Tensor:
        """J minus `caution` posterior standard deviations, (..., B, k) -> (..., B)."""
        standardised = self.standardised(actions)
        if not self.caution:
            return self.estimator.value(self.prepared, standardised)
        value, std = self.estimator.value_and_std(self.prepared, standardised)
        return value - self.caution * std

    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None] | None:
        """See `AlterationObjective.contrast`: from the posterior of the difference, where there is one."""
        z_first, z_second = self.standardised(first), self.standardised(second)
        moments = self.estimator.difference_and_std(self.prepared, z_first, z_second, 1)
        if moments is None:
            return None
        value, half = moments[0].tolist(), (normal_quantile(self.level) * moments[1]).tolist()
        points = (self.estimator.value(self.prepared, z, 1) for z in (z_first, z_second))
        pairs = zip(*points, value, half, strict=True)
        return [
            difference(_clipped(p) - _clipped(q), mean - width, mean + width, self.level)
            for p, q, mean, width in pairs
        ]

    def acceptable(self, actions: Tensor) -> Tensor:
        """Whether there are enough observations nearby, (..., B, k) -> (..., B) bool."""
        standardised = self.standardised(actions)
        flat = standardised.reshape(-1, *standardised.shape[-2:])
        support = torch.stack([self.estimator.support(self.prepared, batch) for batch in flat])
        return support.reshape(standardised.shape[:-1]) >= self.min_support

    def frame(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each action over the observations, (k,) each."""
        return self.surrogate.scaler.moments(self.names)

    def starts(self, count: int) -> Tensor:
        """The historical actions of the largest weights (Alg. 1, line 13), projected, (count, B, k)."""
        actions = self.estimator.actions
        weights = self.estimator.weights(self.prepared)
        best = weights.topk(min(count, weights.shape[1]), dim=1).indices
        return self.project(self.surrogate.scaler.units(self.names, actions[best].transpose(0, 1)))

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """See `AlterationObjective.appraise`. Trace: ``support``, the number of observations near it."""
        standardised = self.standardised(actions)
        probability, std = self.estimator.value_and_std(self.prepared, standardised, 1)
        half_width = normal_quantile(self.level) * std
        support = self.estimator.support(self.prepared, standardised)
        coded = self.surrogate.task.coded
        adjusted = self.surrogate.adjustments[self.which]
        shared_findings = [
            *(Finding("adjustment", sentence_in_words(text, coded)) for text in adjusted.reasons),
            *(Finding("assumption", sentence_in_words(text, coded)) for text in adjusted.assumed),
        ]
        appraisals = []
        for index in range(len(self.cases)):
            point, half, baseline = probability[index], half_width[index], _clipped(self.before[index])
            estimated, lower, upper = (_clipped(end) for end in (point, point - half, point + half))
            count = round(float(support[index]), 2)
            refused = declined = None
            findings = list(shared_findings)
            if count < self.low_support:
                text = f"{_count_text(count)} near this decision"
                findings.append(Finding("support", text, {"support": count}))
            if count < self.min_support:
                refused = Finding(
                    "no_support",
                    f"no support: {count:g} rows lie near the best alteration found, fewer than "
                    f"{self.min_support:g}; collect data there or widen the task",
                    {"support": count},
                )
            elif upper < baseline:
                declined = worse_than_nothing(estimated, baseline)
            claims = chance(estimated, lower, upper, self.level), chance(baseline)
            appraisals.append(Appraisal(*claims, tuple(findings), refused, declined, {"support": count}))
        return appraisals


def _contexts(surrogate: NestedRidge, cases: Sequence[RehearsalCase]) -> Tensor:
    """Standardised contexts, (B, |X|); there may be no context variable at all."""
    return surrogate.scaler.standardised(surrogate.task.context, surrogate.task.given(cases))


def _clipped(probability: Tensor) -> float:
    number = float(probability)
    return round(min(max(number, 0.0), 1.0), 6) if math.isfinite(number) else math.nan


def _count_text(count: float) -> str:
    """The number of nearby observations in words; the count is weighted, and need not be whole."""
    if count == 0:
        return "no observation lies"
    return "only 1 observation lies" if count == 1 else f"only {count:g} observations lie"
