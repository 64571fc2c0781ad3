"""The kernel value: the nested ridge estimate of the smoothed probability of a desired outcome, as an
objective.

An ascent climbs the estimate J(a; x). What it finds is then judged with caution,

    J(a; x) - caution sd(J(a; x)),

because the largest of many uncertain values is likely to be large by chance, and most uncertain where no row
lies. What is reported is the estimate of P(Y in S | x, a) itself, from a regression of the indicator with the
same kernel, with an interval from its posterior, and the number of rows that lie near the decision. A
decision that no row comes near is refused; one whose whole interval lies below the estimate for doing nothing
is declined (`search.guard` declines every one whose estimate is not above it); one that few rows come near,
or whose adjustment is not valid, bears a warning.

Source: Du et al. (2026), Eq. (9); caution, interval and refusals are ours.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.graphs.separation import Adjustment
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, chance
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue, NestedRidge


class AlteredValue(AlterationObjective):
    """The kernel value of altering one set.

    Args:
        surrogate: What was fitted.
        cases: The B situations.
        which: The number of the candidate set.
        before: Estimate of P(Y in S | x) with nothing altered and its deviation, (B,) each.
        caution: How many posterior deviations are taken off.
        level: Probability that the interval should cover the truth.
        min_support: Rows near a decision below which it is refused.
        low_support: Rows near a decision below which it bears a warning.
    """

    def __init__(
        self,
        surrogate: NestedRidge,
        cases: Sequence[RehearsalCase],
        which: int,
        before: tuple[Tensor, Tensor],
        caution: float,
        level: float,
        min_support: float,
        low_support: float,
    ) -> None:
        names = surrogate.task.candidates[which]
        super().__init__(cases, names)
        self.surrogate, self.which, self.before = surrogate, which, before
        self.caution, self.level, self.min_support, self.low_support = (
            caution,
            level,
            min_support,
            low_support,
        )
        self.prepared = self.estimator.prepare(_contexts(surrogate, cases))

    @property
    def estimator(self) -> AlterationValue:
        """The estimator of the set."""
        return self.surrogate.values()[self.which]

    @property
    def adjustment(self) -> Adjustment:
        """What the set is adjusted for."""
        return self.surrogate.adjustments[self.which]

    def shown(self, actions: Tensor) -> Tensor:
        """Units to standardised actions, (..., k)."""
        return self.surrogate.scaler.shown(self.names, actions).to(actions.dtype)

    def forward(self, actions: Tensor) -> Tensor:
        """J, (..., B, k) -> (..., B)."""
        return self.estimator.value(self.prepared, self.shown(actions))

    def value_and_gradient(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """J (..., B), and its gradient per unit of each action (..., B, k)."""
        value, gradients = self.estimator.value_and_gradient(self.prepared, self.shown(actions))
        return value, gradients / self.frame()[1].to(gradients)

    def value_and_gradient_in_frame(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """J (..., B), and its gradient per standard deviation of each action (..., B, k)."""
        return self.estimator.value_and_gradient(self.prepared, points)

    def comparison_value(self, actions: Tensor) -> Tensor:
        """J less `caution` posterior deviations, (..., B, k) -> (..., B)."""
        shown = self.shown(actions)
        value = self.estimator.value(self.prepared, shown)
        return value - self.caution * self.estimator.std(self.prepared, shown) if self.caution else value

    def acceptable(self, actions: Tensor) -> Tensor:
        """Whether enough rows lie near, (..., B, k) -> (..., B)."""
        shown = self.shown(actions)
        flat = shown.reshape(-1, *shown.shape[-2:])
        support = torch.stack([self.estimator.support(self.prepared, each) for each in flat])
        return support.reshape(shown.shape[:-1]) >= self.min_support

    def frame(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each action over the rows, (k,) each: the estimator's own
        coordinates.
        """
        scaler = self.surrogate.scaler
        place = [scaler.names.index(name) for name in self.names]
        return scaler.location[place], scaler.scale[place]

    def starts(self, count: int) -> Tensor:
        """The historical actions that speak most for themselves in each situation, moved into the box,
        (count, B, k).

        Source: Du et al. (2026), Alg. 1, line 13.
        """
        actions = self.estimator.actions
        weights = self.estimator.weights(self.prepared)
        best = weights.topk(min(count, weights.shape[1]), dim=1).indices
        return self.project(self.surrogate.scaler.units(self.names, actions[best].transpose(0, 1)))

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """See `AlterationObjective.appraise`. Trace: ``support``, rows near the decision under the fitted
        kernel.
        """
        shown = self.shown(actions)
        probability = self.estimator.value(self.prepared, shown, 1)
        std = self.estimator.std(self.prepared, shown, 1)
        reach = (
            math.sqrt(2) * float(torch.special.erfinv(torch.tensor(self.level, dtype=torch.float64))) * std
        )
        support = self.estimator.support(self.prepared, shown)
        appraisals = []
        for index in range(len(self.cases)):
            estimated, baseline = _clipped(probability[index]), _clipped(self.before[0][index])
            lower, upper = (
                _clipped(probability[index] - reach[index]),
                _clipped(probability[index] + reach[index]),
            )
            near = round(float(support[index]), 2)
            warnings, refused, declined = (
                [f"adjustment: {reason}" for reason in self.adjustment.reasons],
                "",
                "",
            )
            if near < self.low_support:
                warnings.append(f"support: only {near:g} of the rows lie near this decision")
            if near < self.min_support:
                refused = (
                    f"no support: {near:g} rows lie near the best alteration found, fewer than "
                    f"{self.min_support:g}; collect data there or widen the task"
                )
            elif upper < baseline:
                declined = f"predicted worse than doing nothing ({estimated:.3f} against {baseline:.3f})"
            appraisals.append(
                Appraisal(
                    chance(estimated, lower, upper, self.level),
                    chance(baseline),
                    tuple(warnings),
                    refused,
                    declined,
                    {"support": near},
                )
            )
        return appraisals


class KernelValue(Candidates[AlteredValue]):
    """The kernel value of each candidate set.

    Args:
        surrogate: What was fitted.
        cases: The B situations.
        caution: How many posterior deviations are taken off what an ascent has found; 0 is the paper's
            choice.
        level: Probability that intervals should cover the truth.
        min_support: Rows near a decision below which it is refused.
        low_support: Rows near a decision below which it bears a warning.

    Raises:
        ValueError: if a number is out of range.
    """

    def __init__(
        self,
        surrogate: NestedRidge,
        cases: Sequence[RehearsalCase],
        caution: float = 2.0,
        level: float = 0.95,
        min_support: float = 1.0,
        low_support: float = 5.0,
    ) -> None:
        if caution < 0 or not 0 < level < 1 or min_support < 0 or low_support < min_support:
            raise ValueError(
                f"expected caution >= 0, level in (0, 1), 0 <= min_support <= low_support; got {caution}, "
                f"{level}, "
                f"{min_support}, {low_support}"
            )
        surrogate.require_fitted()
        before = surrogate.untouched(_contexts(surrogate, cases))[:, 1]
        unsure = torch.zeros_like(before)
        sets = [
            AlteredValue(surrogate, cases, which, (before, unsure), caution, level, min_support, low_support)
            for which in range(len(surrogate.task.candidates))
        ]
        super().__init__(cases, sets, surrogate)


def _contexts(surrogate: NestedRidge, cases: Sequence[RehearsalCase]) -> Tensor:
    """Standardised contexts, (B, |X|); there may be no context variable at all."""
    return surrogate.scaler.shown(surrogate.task.context, surrogate.task.given(cases))


def _clipped(probability: Tensor) -> float:
    value = float(probability)
    return round(min(max(value, 0.0), 1.0), 6) if math.isfinite(value) else math.nan
