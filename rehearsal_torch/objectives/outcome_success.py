"""The posterior mean of the probability of success under regressions of the outcomes.

An action's value is the posterior mean of P(Y in S | x, a), a share of posterior functions and resampled
residuals (`surrogates.outcome.posterior_success`): a step function of the action. The estimate that is
reported comes from other draws than those that chose.

Its interval holds what is unknown of the functions and of their kernels, and that the noise was seen in n
rows only. With p the mean of the shares p_d, q_l and q_u their quantiles, and z that of the normal
distribution,

    lower = p - sqrt((p - q_l)^2 + z^2 R),    upper = p + sqrt((q_u - p)^2 + z^2 R),
    R = p (1 - p) / n + 2 B / E.

R holds the counting error of n rows, and the variance B between the E fits: of (1 + 1/E) B, by which a
further fit would differ, the draws of E fits hold (1 - 1/E) B. The quantiles also hold the counting error of
P residuals per draw, which makes the interval wider than it must be.

Where success itself is modelled (`surrogates.outcome.outcome_regression`), the distribution of the noise is
not estimated, and the first term of R makes the interval wider than it must be.

The support is the effective number of observations like the decision: the variance of the noise over the
posterior variance of the function. Below `min_support` a decision is refused; at the default, .01, what is
unknown of the function has ten times the standard deviation of the noise. It is low because a function may be
known badly beside a small noise, and well enough for the region; it is not zero because the linear part
continues its trend with confidence, however far from the rows.

That confidence is why the rows themselves are asked as well. Of the points at which an action is judged, the
share S has no row near (`outcome.outcome_regression`). There success may be anything. If nothing succeeds
there, the chance is at least P - S, so that at most

    lost = P(none) - max(0, P - S)

of the probability is lost by acting, with P(none) that of no action or, where the present values of what
would be set are known, of leaving them. An action may be recommended if

    S <= .1    or    lost <= .02:

rows speak for nearly all of it, or there is hardly anything to lose, as where success is rare without an
action. Of an action that is left at its present value nothing is asked: it is what it is compared with.

A search that maximises within the rule ends at its edge, where up to S of the cases may lose: in two worlds
in which some patients are dosed with little freedom (seeds 3 and 4), 6 and 9 of 20 decisions were worse than
no action by .02 at S <= .2, 3 and 3 at .1, and the mean gain in the worlds of the package (seed 900), by a
first form of the rule, was .377 at .2 and .376 at .1.

Source: Rubin (1987), Eq. 3.1.8 (the variance between imputations, (1 + 1/E) B); Manski (1990) (bounds by what
is not observed being anything between 0 and 1); the rest is ours.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.codings.texts import sentence_in_words
from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.estimate import percents
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.objective import (
    AlterationObjective,
    Appraisal,
    chance,
    difference,
    worse_than_nothing,
)
from rehearsal_torch.surrogates.outcome.outcome_regression import JUDGEMENT, OutcomeRegression
from rehearsal_torch.surrogates.outcome.posterior_success import (
    PosteriorSuccess,
    SuccessInContexts,
    SuccessOfMany,
    TabulatedSuccess,
)

MOST_BEYOND, MOST_LOST = 0.1, 0.02

UNKNOWN = Finding(
    "support",
    "it is not known whether rows are near: there are too few, or an earlier version fitted the "
    "model, which is to be fitted again",
)


def allowed(beyond: Tensor, value: Tensor, unaltered: Tensor, most: float = MOST_LOST) -> Tensor:
    """Whether actions may be recommended, given S, P and the chance of leaving things, (..., B) each -> (...,
    B) bool, if at most `most` may be lost; true where S is not known (NaN).
    """
    lost = unaltered.to(value) - (value - beyond.to(value)).clamp_min(0)
    return (beyond.to(value) <= MOST_BEYOND) | (lost <= most) | beyond.to(value).isnan()


def acceptable(beyond: Tensor, value: Tensor, unaltered: Tensor) -> Tensor:
    """`allowed` for a search, with a margin: it maximises the value by other draws than those that judge."""
    return allowed(beyond, value, unaltered, MOST_LOST / 2)


@torch.no_grad()
def unaltered(
    objective: AlterationObjective, none: Tensor, probability: Callable[[Tensor], Tensor]
) -> Tensor:
    """The probability that acting puts at risk, (B,): that of leaving what would be set at its present
    values, (B, k) -> (B,), where a case knows all of them, else that of no action, `none`.
    """
    known = {
        place: [case.present[name] for name in objective.names]
        for place, case in enumerate(objective.cases)
        if set(objective.names) <= set(case.present)
    }
    if not known:
        return none
    present, places = objective.lower.clone(), list(known)
    present[places] = present.new_tensor(list(known.values()))
    at_risk = none.clone()
    at_risk[places] = probability(present).to(none)[places]
    return at_risk


def withheld(appraisals: Sequence[Appraisal], beyond: Tensor, unaltered: Tensor) -> list[Appraisal]:
    """The appraisals with ``beyond``, S, and why not to recommend; with a finding where S is not known."""
    found = []
    for each, share, before in zip(appraisals, beyond.tolist(), unaltered.tolist(), strict=True):
        if math.isnan(share):
            found.append(replace(each, findings=(*each.findings, UNKNOWN)))
            continue
        made, point = replace(each, trace=each.trace | {"beyond": round(share, 4)}), each.estimate
        if point is not None and not each.refused:
            one, two, three = torch.tensor((share, point.point, before), dtype=torch.float64)
            if not bool(allowed(one, two, three)):
                made = replace(made, unsupported=_reason(share, point.point, before))
        found.append(made)
    return found


def _reason(share: float, point: float, before: float) -> Finding:
    here, most, chance, lost = percents([share, MOST_BEYOND, point, before - max(0.0, point - share)])
    return Finding(
        "no_support",
        f"no support: for {here} of such cases no row is near this action (at most {most} may be so): the "
        f"estimate of {chance} continues the model's form, and if nothing succeeds there, {lost} of the "
        "probability is lost; collect rows there, or offer actions that such cases have had",
        {"beyond": share},
    )


SEARCH = 0


class OutcomeSuccess(AlterationObjective):
    """The posterior mean of success of altering one candidate set.

    Args:
        before: p_d(x) without an alteration, (B, D).
        draws: Number of posterior functions for the search.
        points: Number of residuals per function for the search.
        judging_draws: Number of other functions for the estimate.
        judging_points: Number of residuals per function for the estimate.
        level: Coverage probability of the interval.
        min_support: Effective number of observations below which a decision is refused.
        low_support: Effective number of observations below which a decision carries a warning.
    """

    takes = (OutcomeRegression,)
    of_success = True
    pools = True
    level: float

    def __init__(
        self,
        surrogate: OutcomeRegression,
        cases: Sequence[RehearsalCase],
        which: int,
        before: Tensor,
        draws: int,
        points: int,
        judging_draws: int,
        judging_points: int,
        level: float,
        min_support: float,
        low_support: float,
    ) -> None:
        super().__init__(cases, surrogate.task.candidates[which], before.device)
        self.surrogate, self.which, self.before, self.level = surrogate, which, before, level
        self.judging_draws, self.judging_points = judging_draws, judging_points
        self.min_support, self.low_support = min_support, low_support
        self.contexts = surrogate.contexts(surrogate.task.given(cases))
        self.drawn = surrogate.success(which, draws, points, SEARCH)

    @classmethod
    def for_sets(
        cls,
        surrogate: OutcomeRegression,
        cases: Sequence[RehearsalCase],
        draws: int = 24,
        points: int = 64,
        judging_draws: int = 64,
        judging_points: int = 128,
        level: float = 0.95,
        min_support: float = 0.01,
        low_support: float = 1.0,
    ) -> list[Self]:
        """The objective of each candidate set; numbers out of range raise a ValueError."""
        counts = (draws, points, judging_draws, judging_points)
        require(min(counts) >= 2, "at least two draws and points", numbers=counts)
        fits, support = 0 < level < 1 and 0 <= min_support <= low_support, (min_support, low_support)
        require(fits, "level in (0, 1) and 0 <= min_support <= low_support", level=level, support=support)
        surrogate.require_fitted()
        contexts = surrogate.contexts(surrogate.task.given(cases))
        before = surrogate.success_without_action(contexts, judging_draws, judging_points)
        settings = (draws, points, judging_draws, judging_points, level, min_support, low_support)
        count = len(surrogate.task.candidates)
        return [cls(surrogate, cases, which, before, *settings) for which in range(count)]

    @cached_property
    def success(self) -> SuccessOfMany:
        """Success in the cases, by which actions are compared."""
        return SuccessInContexts(self.drawn, self.contexts)

    @torch.no_grad()
    def tabulated(self) -> Self:
        """See `AlterationObjective.tabulated`."""
        bounds = self.standardised(self.lower), self.standardised(self.upper)
        table = TabulatedSuccess.over(self.drawn, self.contexts, *bounds)
        if table is None:
            return self
        # The table holds within the bounds, and present values may lie outside.
        return self.changed(success=table, at_risk=self.at_risk)

    def standardised(self, actions: Tensor) -> Tensor:
        """From the actions' units to standardised actions, (..., k)."""
        return self.surrogate.scaler.standardised(self.names, actions.to(torch.float64))

    @torch.no_grad()
    def __call__(self, actions: Tensor) -> Tensor:
        """The posterior mean of success, (..., B, k) -> (..., B)."""
        return self.success.mean(self.standardised(actions)).to(actions.dtype)

    @torch.no_grad()
    def acceptable(self, actions: Tensor) -> Tensor:
        """Whether enough observations are like them, with rows nearby or little to lose, (..., B) bool."""
        return self.supported(actions) & acceptable(self.beyond(actions), self(actions), self.at_risk)

    @torch.no_grad()
    def supported(self, actions: Tensor) -> Tensor:
        """Whether the effective number of observations is enough, (..., B, k) -> (..., B) bool."""
        found = self.surrogate.support(self.which, self.contexts, self.standardised(actions))
        return found >= self.min_support

    @torch.no_grad()
    def beyond(self, actions: Tensor) -> Tensor:
        """S, the share of the points that judge actions where no row is near, (..., B, k) -> (..., B)."""
        shown = self.standardised(actions)
        return self.surrogate.beyond(self.judging, self.which, self.contexts, shown)

    @cached_property
    def at_risk(self) -> Tensor:
        """The probability that acting puts at risk (see above), (B,)."""
        return unaltered(self, self.before.mean(-1), self)

    @property
    def judging(self) -> PosteriorSuccess:
        """Functions and residuals that judge what others have chosen."""
        return self.surrogate.success(self.which, self.judging_draws, self.judging_points, JUDGEMENT)

    def frame(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each action over the observations, (k,) each."""
        return self.surrogate.scaler.moments(self.names)

    def starts(self, count: int) -> Tensor:
        """Actions of evenly spaced observations, projected onto the box, (count, B, k)."""
        overlap = self.surrogate.overlap
        place = [overlap.names.index(name) for name in self.names]
        size = min(count, len(overlap.rows))
        some = torch.linspace(0, len(overlap.rows) - 1, size, dtype=torch.float64).round().long()
        actions = overlap.location[place] + overlap.scale[place] * overlap.rows[some][:, place]
        return self.project(actions.unsqueeze(1).expand(-1, len(self.cases), -1))

    def judge(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Estimates and their intervals from draws of their own, (B, k) -> (B,) each."""
        judging = self.judging
        shares = judging.once(self.contexts, self.standardised(actions))
        residuals = len(judging.models.outcomes[0].residuals)
        return interval(shares, judging.members, residuals, self.level)

    @torch.no_grad()
    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None]:
        """See `AlterationObjective.contrast`: by the same functions and residuals for both."""
        judging = self.judging
        one, other = (
            judging.desired_once(self.contexts, self.standardised(each)) for each in (first, second)
        )
        residuals = len(judging.models.outcomes[0].residuals)
        points, lowers, uppers = paired_interval(one, other, judging.members, residuals, self.level)
        # Of an action and itself, nothing is unknown.
        same = (first == second).all(-1)
        lowers, uppers = (torch.where(same, points, each) for each in (lowers, uppers))
        rows = zip(points.tolist(), lowers.tolist(), uppers.tolist(), strict=True)
        return [difference(*row, self.level) for row in rows]

    @torch.no_grad()
    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """See `AlterationObjective.appraise`. Trace: ``support``, the effective number of observations like
        the decision; ``beyond``, the share of the points at which it is judged that no row is near;
        ``modelled``: success, where the outcomes have no slack to regress.
        """
        return withheld(self.assessed(actions), self.beyond(actions), self.at_risk)

    @torch.no_grad()
    def assessed(self, actions: Tensor) -> list[Appraisal]:
        """The same, whether or not rows are near."""
        points, lowers, uppers = self.judge(actions)
        support = self.surrogate.support(self.which, self.contexts, self.standardised(actions))
        coded = self.surrogate.task.coded
        reasons = [sentence_in_words(each, coded) for each in self.surrogate.adjustments[self.which].reasons]
        modelled = {"modelled": "success"} if self.surrogate.outcome_kind.of_success else {}
        appraisals = []
        for index in range(len(self.cases)):
            here = (points[index], lowers[index], uppers[index], self.before[index].mean(), support[index])
            estimated, lower, upper, baseline, near = (round(float(number), 6) for number in here)
            refused = declined = None
            findings = [Finding("adjustment", reason) for reason in reasons]
            if near < self.low_support:
                text = f"the model knows this place as well as from {near:.2g} observations of it"
                findings.append(Finding("support", text, {"effective_rows": near}))
            if near < self.min_support:
                refused = Finding(
                    "no_support",
                    f"no support: what is unknown of the outcomes' response there exceeds their noise "
                    f"(effective number of observations {near:.2g}, fewer than {self.min_support:g}); "
                    "collect data there or widen the task",
                    {"support": near},
                )
            elif upper < baseline:
                declined = worse_than_nothing(estimated, baseline)
            claims = chance(estimated, lower, upper, self.level), chance(baseline)
            trace = {"support": round(near, 2)} | modelled
            appraisals.append(Appraisal(*claims, tuple(findings), refused, declined, trace))
        return appraisals


def interval(shares: Tensor, members: int, rows: int, level: float) -> tuple[Tensor, Tensor, Tensor]:
    """The mean of the shares of draws p_d, (B, D), those of E members side by side, and its interval, given n
    residuals that they were drawn from. Returns means, lower and upper ends, (B,) each.
    """
    mean = shares.mean(-1)
    lower, upper = _ends(shares, mean * (1 - mean) / rows, members, level)
    # All draws may agree, all or none successful: a success more or less in n rows is still possible.
    floor = torch.full_like(mean, -math.expm1(math.log((1 - level) / 2) / rows))
    lower, upper = torch.minimum(lower, 1 - floor), torch.maximum(upper, floor)
    return mean, torch.minimum(lower, mean).clamp(0, 1), torch.maximum(upper, mean).clamp(0, 1)


def _ends(draws: Tensor, counting: Tensor, members: int, level: float) -> tuple[Tensor, Tensor]:
    """The ends around the mean of draws, (B, D), given the variance of counting, before any limits."""
    mean, ends = draws.mean(-1), draws.new_tensor([(1 - level) / 2, (1 + level) / 2])
    low, high = torch.quantile(draws, ends, dim=-1)
    fits = draws.unflatten(-1, (members, -1)).mean(-1)
    between = fits.var(-1) if members > 1 else torch.zeros_like(mean)
    rest = torch.special.ndtri(ends[1]).square() * (counting + 2 * between / members)
    return mean - ((mean - low).square() + rest).sqrt(), mean + ((high - mean).square() + rest).sqrt()


def paired_interval(
    one: Tensor, other: Tensor, members: int, rows: int, level: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The mean difference of two shares counted with the same draws, (B, D, P) each, and its interval, (B,)
    each.

    Like `interval`, with p (1 - p) replaced by the variance of the paired difference of two indicators, in
    {-1, 0, 1}: residuals that both actions bring into the region, or neither, tell nothing apart.
    """
    apart = one.to(torch.float64) - other.to(torch.float64)
    draws = apart.mean(-1)
    mean = draws.mean(-1)
    lower, upper = _ends(draws, (apart.square().mean((-2, -1)) - mean.square()) / rows, members, level)
    # Residuals by which one of the two alone succeeds may be missing among n rows, where no draw has any.
    floor = -math.expm1(math.log((1 - level) / 2) / rows)
    fewer, more = ((sign * apart <= 0).all(-1).all(-1).to(mean) * floor for sign in (-1, 1))
    lower, upper = torch.minimum(lower, mean - fewer), torch.maximum(upper, mean + more)
    return mean, torch.minimum(lower, mean).clamp(-1, 1), torch.maximum(upper, mean).clamp(-1, 1)
