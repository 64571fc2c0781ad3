"""The weighted mean of two estimates of success, and what each of them says of the result.

With the weight w of the stack (`surrogates.outcome.stacked`), an action's value is

    w (J_I(a; x) - caution sd J_I(a; x)) + (1 - w) J_O(a; x),

J_I the kernel value with its caution (`objectives.kernel_value`), J_O the posterior mean of the outcome
regression (`outcome_success`), which needs none. The estimate is the weighted mean of both estimates. Both
are models of the same probability, with prior weights w and 1 - w; by the law of total variance the distance
of an end of the interval from the estimate p is

    d^2 = w d_I^2 + (1 - w) d_O^2 + z^2 w (1 - w) (p_I - p_O)^2,

with d_I and d_O those of the two and z the normal quantile of the level. A decision is refused if the outcome
regression has no rows near it, or by its rule of near rows, of the weighted mean. The indicator's own support
only warns: where few rows are desired it covers little of the box, and refusing by it lost .1 of the
probability even with a weight of .03 (bermuda, icml).

Source: Hoeting et al. (1999), Sec. 1 (mixtures of models: mean and variance); the rest is ours.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.finding import joined
from rehearsal_torch.objectives.kernel_value import KernelValue
from rehearsal_torch.objectives.objective import (
    AlterationObjective,
    Appraisal,
    chance,
    difference,
    normal_quantile,
    worse_than_nothing,
)
from rehearsal_torch.objectives.outcome_success import OutcomeSuccess, acceptable, unaltered, withheld
from rehearsal_torch.surrogates.outcome.stacked import StackedRegression


class StackedSuccess(AlterationObjective):
    """The weighted mean for altering one candidate set, with the weight w of the indicator's regression."""

    takes = (StackedRegression,)
    of_success = True
    pools = True

    def __init__(
        self, cases: Sequence[RehearsalCase], weight: float, indicator: KernelValue, outcome: OutcomeSuccess
    ) -> None:
        super().__init__(cases, outcome.names, outcome.lower.device)
        self.weight, self.indicator, self.outcome = weight, indicator, outcome

    @classmethod
    def for_sets(
        cls,
        surrogate: StackedRegression,
        cases: Sequence[RehearsalCase],
        indicator: dict[str, Any] | None = None,
        outcome: dict[str, Any] | None = None,
        level: float = 0.95,
    ) -> list[Self]:
        """The objective of each candidate set.

        Args:
            indicator: Settings of the kernel value, besides the level.
            outcome: Settings of the posterior success, besides the level.
            level: Coverage probability of the interval.
        """
        surrogate.require_fitted()
        pairs = zip(
            KernelValue.for_sets(surrogate.indicator, cases, level=level, **(indicator or {})),
            OutcomeSuccess.for_sets(surrogate.outcome, cases, level=level, **(outcome or {})),
            strict=True,
        )
        return [cls(cases, surrogate.weight, *pair) for pair in pairs]

    def within(self, lower: Tensor, upper: Tensor, fixed: Mapping[str, float]) -> Self:
        """With both in the same bounds."""
        parts = {"indicator": self.indicator, "outcome": self.outcome}
        inside = {name: part.within(lower, upper, fixed) for name, part in parts.items()}
        return super().within(lower, upper, fixed).changed(**inside)

    @torch.no_grad()
    def tabulated(self) -> Self:
        """With both tabulated."""
        indicator = self.indicator.tabulated() if self.weight else self.indicator
        return self.changed(at_risk=self.at_risk, outcome=self.outcome.tabulated(), indicator=indicator)

    @torch.no_grad()
    def __call__(self, actions: Tensor) -> Tensor:
        """The weighted mean, (..., B, k) -> (..., B)."""
        value = (1 - self.weight) * self.outcome(actions)
        return value + self.weight * self.indicator.comparison_value(actions) if self.weight else value

    def at_level(self, level: float) -> Self:
        """See `AlterationObjective.at_level`."""
        outcome = self.outcome.changed(level=level)
        return type(self)(self.cases, self.weight, self.indicator.changed(level=level), outcome)

    def acceptable(self, actions: Tensor) -> Tensor:
        """What the outcome regression supports, with the rule of near rows for the weighted mean."""
        may = acceptable(self.outcome.beyond(actions), self(actions), self.at_risk)
        return self.outcome.supported(actions) & may

    @cached_property
    def at_risk(self) -> Tensor:
        """The probability that acting puts at risk (`outcome_success`), (B,)."""
        none = self.outcome.before.mean(-1)
        if self.weight:
            none = (1 - self.weight) * none + self.weight * self.indicator.baseline.to(none)
        return unaltered(self, none, self._mean)

    def _mean(self, actions: Tensor) -> Tensor:
        """The weighted mean without the indicator's caution, (B, k) -> (B,)."""
        value = (1 - self.weight) * self.outcome(actions)
        return value + self.weight * self.indicator.indicated(actions).to(value) if self.weight else value

    def frame(self) -> tuple[Tensor, Tensor]:
        """That of the outcome regression."""
        return self.outcome.frame()

    def starts(self, count: int) -> Tensor:
        """Starts of both, half each, (<= count, B, k)."""
        if not self.weight:
            return self.outcome.starts(count)
        half = count // 2
        parts = [self.outcome.starts(count - half)] + ([self.indicator.starts(half)] if half else [])
        return torch.cat(parts)

    @torch.no_grad()
    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None] | None:
        """See `AlterationObjective.contrast`: the mixture of both differences, if the indicator has one."""
        outcomes = self.outcome.contrast(first, second)
        indicators = self.indicator.contrast(first, second) if self.weight else outcomes
        if not self.weight or indicators is None:
            return indicators
        quantile, level = normal_quantile(self.outcome.level), self.outcome.level
        found: list[Estimate | None] = []
        for pair in zip(indicators, outcomes, strict=True):
            known = [
                (claim.point, claim.lower, claim.upper)
                for claim in pair
                if claim is not None and claim.lower is not None and claim.upper is not None
            ]
            mixed = _mixed(self.weight, known[0], known[1], quantile) if len(known) == 2 else None
            found.append(None if mixed is None else difference(*mixed, level))
        return found

    @torch.no_grad()
    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """See `AlterationObjective.appraise`. Trace: those of the outcome regression, w, both estimates."""
        outcomes = self.outcome.assessed(actions)
        indicators = self.indicator.appraise(actions) if self.weight else outcomes
        both = [self._both(*pair) for pair in zip(indicators, outcomes, strict=True)]
        return withheld(both, self.outcome.beyond(actions), self.at_risk)

    def _both(self, indicator: Appraisal, outcome: Appraisal) -> Appraisal:
        weight = self.weight
        trace = outcome.trace | {"indicator_weight": round(weight, 4)}
        if not weight:
            why = "too few rows are desired, or too many"
            note = f"estimated by the regression of the outcome's value alone: {why}"
            return replace(outcome, trace=trace | {"note": note})
        note = (
            f"estimated by two regressions: of whether the outcome is desired ({weight:.0%}), and of its "
            f"value ({1 - weight:.0%})"
        )
        estimate = _mixture(weight, indicator, outcome, self.outcome.level)
        own, other = indicator.baseline, outcome.baseline
        baseline = None
        if own is not None and other is not None:
            baseline = chance(round(weight * own.point + (1 - weight) * other.point, 6))
        pair = {"indicator": indicator.estimate, "outcome": outcome.estimate}
        points = {name: claim.point for name, claim in pair.items() if claim is not None}
        declined, upper = None, None if estimate is None else estimate.upper
        if estimate is not None and baseline is not None and upper is not None and upper < baseline.point:
            declined = worse_than_nothing(estimate.point, baseline.point)
        trace |= {"estimates": points, "note": note}
        findings = joined(indicator.findings, outcome.findings)
        return Appraisal(estimate, baseline, findings, outcome.refused, declined, trace)


def _mixture(weight: float, indicator: Appraisal, outcome: Appraisal, level: float) -> Estimate | None:
    """The estimate of the mixture, with its interval; None if one of the two has none."""
    one, other = indicator.estimate, outcome.estimate
    if one is None or other is None or one.lower is None or other.lower is None:
        return None
    assert one.upper is not None
    assert other.upper is not None
    pair = (one.point, one.lower, one.upper), (other.point, other.lower, other.upper)
    point, lower, upper = _mixed(weight, *pair, normal_quantile(level))
    return chance(round(point, 6), round(max(0.0, lower), 6), round(min(1.0, upper), 6), level)


def _mixed(
    weight: float, one: tuple[float, float, float], other: tuple[float, float, float], quantile: float
) -> tuple[float, float, float]:
    """The weighted mean of two points with their intervals, (point, lower, upper) each, and its own."""
    point = weight * one[0] + (1 - weight) * other[0]
    apart = quantile**2 * weight * (1 - weight) * (one[0] - other[0]) ** 2

    def distance(own: float, others: float) -> float:
        return math.sqrt(weight * own**2 + (1 - weight) * others**2 + apart)

    lower = point - distance(one[0] - one[1], other[0] - other[1])
    return point, lower, point + distance(one[2] - one[0], other[2] - other[0])
