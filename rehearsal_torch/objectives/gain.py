"""The gain of an action over no action, where the rows can tell it, under one posterior.

All numbers are sums over the same draws (`surrogates.outcome.shared_draws`): P(a), P(none), the gain, S (the
share of such cases in which no row is near), the worst case `low` in which nothing succeeds there, and
`credit`, in which no benefit counts there. An action is allowed if

    S <= `MOST_BEYOND`    or    the mean of low(a) - P(none) is above -`MOST_LOST`:

rows speak for nearly all of it, or there is hardly anything to lose, as where success is rare without an
action. Of what is allowed the largest mean gain is sought. Where nothing allowed gains, the largest credit
is: a benefit that can be expected from what is known, though most of it lies beyond the rows; it can only be
a *may*, and is not offered below `LEAST_CREDIT`. Searches see both as one value,

    1 + g    allowed, g > 0        credit    credit > `LEAST_CREDIT`        g - 2    otherwise,

g being the gain in which a benefit where no row is near counts by `DISCOUNT` less, so that of actions that
gain nearly the same one is taken whose gain can be told; costs in units of the worth of a desired outcome are
taken off.

Where S exceeds `TOLD_BEYOND`, the model's interval is not what is known, and the interval that is said is the
hull: from the lower end of the worst case to the upper end of it plus S (success there is anything from 0 to
1). The gain is told from zero if its interval lies above zero.

Actions are compared by some of the draws, and what is said of the chosen ones comes from all of them, at
other points.

Source: Manski (1990) (bounds where nothing is observed); Robins (1986); the rule is ours, its figures stand
in docs/results/calibration.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.codings.decision_texts import sentence_in_words
from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.estimate import percents
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.mean_gain import TOLD_BEYOND, GainDraws, central
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.objectives.objective import (
    AT_ONCE,
    AlterationObjective,
    Appraisal,
    chance,
    difference,
    worse_than_nothing,
)
from rehearsal_torch.surrogates.outcome.case_draws import CaseDraws, Values
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression

MOST_BEYOND, MOST_LOST = 0.2, 0.02
# What a benefit counts less where no row is near, when actions are compared.
DISCOUNT = 0.5
# The least credit for which an action that is not allowed is offered.
LEAST_CREDIT = 0.01
# How far within the rule a search stays, which compares by fewer draws than those that judge.
MARGIN_BEYOND, MARGIN_LOST = 0.03, 0.003
SEARCH, JUDGEMENT = 0, 1


class SupportedGain(AlterationObjective):
    """The gain of altering one candidate set over no action.

    Args:
        searched: G, the number of functions of each block by which actions are compared.
        points: Number of points of each block by which actions are compared.
        near: Number of these that are compared with the rows.
        judged: Number of points of each block by which chosen actions are judged, by all functions.
        judged_near: Number of these that are compared with the rows.
        level: Coverage probability of the intervals.
    """

    takes = (OutcomeRegression,)
    of_success = True
    pools = True
    ranks_acceptable = True
    level: float

    def __init__(
        self,
        surrogate: OutcomeRegression,
        cases: Sequence[RehearsalCase],
        names: Sequence[str],
        searched: int = 3,
        points: int = 16,
        near: int = 4,
        judged: int = 64,
        judged_near: int = 8,
        level: float = 0.95,
    ) -> None:
        super().__init__(cases, names, surrogate.device)
        require(min(searched, points, near, judged, judged_near) >= 1, "positive numbers", points=points)
        require(0 < level < 1, "level in (0, 1)", level=level)
        surrogate.require_fitted()
        self.surrogate, self.level = surrogate, level
        self.which = surrogate.task.candidates.index(tuple(names))
        self.searched, self.points, self.near = min(searched, surrogate.functions), points, near
        self.judged, self.judged_near = judged, judged_near
        self.contexts = surrogate.contexts(surrogate.task.given(cases))
        # Shared with the same objective in other bounds.
        self._draws: dict[int, CaseDraws] = {}
        # What was asked last: searches ask for values and acceptance of the same actions.
        self._last: tuple[CaseDraws, Tensor, Values] | None = None

    @property
    def comparing(self) -> CaseDraws:
        """The draws by which actions are compared."""
        return self._drawn(SEARCH, self.searched, self.points, self.near)

    @property
    def judging(self) -> CaseDraws:
        """The draws by which chosen actions are judged."""
        return self._drawn(JUDGEMENT, self.surrogate.functions, self.judged, self.judged_near)

    def _drawn(self, purpose: int, functions: int, points: int, near: int) -> CaseDraws:
        if purpose not in self._draws:
            draws = self.surrogate.draws(self.which, functions, points, near, purpose)
            self._draws[purpose] = CaseDraws(draws, self.contexts, many=purpose == SEARCH)
        return self._draws[purpose]

    def standardised(self, actions: Tensor) -> Tensor:
        """From the actions' units to standardised actions, (..., k)."""
        return self.surrogate.scaler.standardised(self.names, actions.to(torch.float64))

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

    @torch.no_grad()
    def __call__(self, actions: Tensor) -> Tensor:
        """P(a), (..., B, k) -> (..., B)."""
        return self._said(self.comparing, actions).success.mean(-1)

    def _said(self, draws: CaseDraws, actions: Tensor) -> Values:
        last = self._last
        if last is not None and last[0] is draws and last[1].equal(actions):
            return last[2]
        flat = self.standardised(actions).reshape(-1, *actions.shape[-2:])
        said = draws.values(flat)
        values = Values(*(each.reshape(*actions.shape[:-2], *each.shape[1:]) for each in vars(said).values()))
        self._last = draws, actions.clone(), values
        return values

    @torch.no_grad()
    def sought(self, actions: Tensor) -> Tensor:
        """See above, (..., B, k) -> (..., B)."""
        return self._ranked(self._said(self.comparing, actions), actions, MARGIN_BEYOND, MARGIN_LOST)

    @torch.no_grad()
    def sought_at_last(self, actions: Tensor) -> Tensor:
        """The same by the draws that judge."""
        return self._ranked(self._said(self.judging, actions), actions, 0.0, 0.0)

    @torch.no_grad()
    def level_value(self, actions: Tensor) -> Tensor:
        """See `sought_at_last`."""
        return self.sought_at_last(actions)

    def _net(self, free: object, actions: Tensor) -> Tensor:  # noqa: ARG002
        return self.sought_at_last(actions)

    def _ranked(self, said: Values, actions: Tensor, beyond: float, lost: float) -> Tensor:
        cost = 0.0 if self.charge is None else self.charge(actions)
        gain, credit = said.gain.mean(-1), said.credit.mean(-1)
        gain, credit = gain - DISCOUNT * (gain - credit) - cost, credit - cost
        if self.unidentified:
            return gain - 2
        allowed = self._allowed(said, beyond, lost)
        rest = torch.where(credit > LEAST_CREDIT, credit, gain - 2)
        return torch.where(allowed & (gain > 0), 1 + gain, rest)

    def _allowed(self, said: Values, beyond: float = 0.0, lost: float = 0.0) -> Tensor:
        """Whether actions may be recommended by the rows, (..., B) bool."""
        worst = (said.low - said.none).mean(-1)
        return (said.beyond <= MOST_BEYOND - beyond) | (worst > lost - MOST_LOST)

    @torch.no_grad()
    def highest(self, actions: Tensor) -> Tensor:
        """See `AlterationObjective.highest`: what is acceptable comes first in what is sought."""
        blocks = [block.unsqueeze(1).expand(-1, len(self.cases), -1) for block in actions.split(AT_ONCE)]
        return actions[torch.cat([self.sought_at_last(block) for block in blocks]).argmax(0)]

    @torch.no_grad()
    def probability(self, actions: Tensor) -> Tensor:
        """P(a) by the draws that judge."""
        return self._said(self.judging, actions).success.mean(-1)

    @torch.no_grad()
    def acceptable(self, actions: Tensor) -> Tensor:
        """Whether an action is allowed, or has a credit, and the graph lets its effect be told."""
        said = self._said(self.judging, actions)
        may = self._allowed(said) | (said.credit.mean(-1) > LEAST_CREDIT)
        return may & (not self.unidentified)

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Why the graph does not let the effect be told from observations, in words; empty if it does."""
        reasons, coded = self.surrogate.adjustments[self.which].reasons, self.surrogate.task.coded
        return tuple(sentence_in_words(each, coded) for each in reasons)

    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None]:
        """See `AlterationObjective.contrast`: by the same draws for both."""
        return [draws.estimate() for draws in self.contrast_draws(first, second)]

    @torch.no_grad()
    def contrast_draws(self, first: Tensor, second: Tensor) -> list[GainDraws]:
        """See `AlterationObjective.contrast_draws`: beyond the rows, either may succeed or fail."""
        one, other = (self._said(self.judging, each.unsqueeze(0)) for each in (first, second))
        differ = (first != second).any(-1)
        beyond = torch.where(differ, one.beyond + other.beyond, 0.0)[0].clamp_max(1)
        gain = one.success - other.success
        lowest = torch.where(differ.unsqueeze(-1), one.low - other.low - other.beyond.unsqueeze(-1), 0.0)
        return [
            GainDraws(*each, self.surrogate.members, self.level)
            for each in zip(gain[0].cpu(), lowest[0].cpu(), beyond.tolist(), strict=True)
        ]

    def _ends(self, draws: Tensor) -> tuple[Tensor, Tensor]:
        """The central interval of draws, (..., D) -> (...) each."""
        return central(draws, self.surrogate.members, self.level)

    @torch.no_grad()
    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """See `AlterationObjective.appraise`. Trace: ``beyond``, S; ``model`` and ``hull``, intervals of the
        estimate and of the gain, by the model and with anything possible where no row is near; ``worst`` and
        ``credit``, the gain if nothing succeeds there, and without a benefit there.
        """
        several = self._said(self.judging, actions.unsqueeze(0))
        allowed = self._allowed(several)[0].tolist()
        said = Values(*(each[0] for each in vars(several).values()))
        intervals = self._intervals(said)
        coded = self.surrogate.task.coded
        assumed = self.surrogate.adjustments[self.which].assumed
        doubts = (*self.surrogate.score.doubt(), *self.surrogate.contradictions(self.which))
        general = (*doubts, *(Finding("assumption", sentence_in_words(each, coded)) for each in assumed))
        return [
            self._appraisal(said, index, intervals[index], allowed[index], general)
            for index in range(len(self.cases))
        ]

    def _intervals(self, said: Values) -> list[dict[str, dict[str, list[float]]]]:
        """For each case, the intervals of estimate, gain and baseline by the model, and those of the hull."""
        highest = (said.low + said.beyond.unsqueeze(-1)).clamp_max(1)
        draws = {
            "model": {
                "estimate": (said.success,) * 2,
                "gain": (said.gain,) * 2,
                "baseline": (said.none,) * 2,
            },
            "hull": {"estimate": (said.low, highest), "gain": (said.low - said.none, highest - said.none)},
        }
        ends = {
            (name, what): torch.stack((self._ends(least)[0], self._ends(most)[1]), -1)
            .clamp(-1.0 if what == "gain" else 0.0, 1.0)
            .tolist()
            for name, parts in draws.items()
            for what, (least, most) in parts.items()
        }
        return [
            {
                name: {what: [round(end, 6) for end in ends[name, what][index]] for what in parts}
                for name, parts in draws.items()
            }
            for index in range(len(self.cases))
        ]

    def _appraisal(
        self,
        said: Values,
        index: int,
        intervals: Mapping[str, Mapping[str, list[float]]],
        allowed: bool,
        general: tuple[Finding, ...],
    ) -> Appraisal:
        """The assessment of one case."""
        share, credit = float(said.beyond[index]), float(said.credit[index].mean())
        point, before, worst = (
            float(each[index].mean()) for each in (said.success, said.none, said.low - said.none)
        )
        model, hull = intervals["model"], intervals["hull"]
        printed = hull if share > TOLD_BEYOND else model
        # What chance rows without a success, or a failure, leave open.
        floor = self._floor()
        lower, upper = min(printed["estimate"][0], 1 - floor), max(printed["estimate"][1], floor)
        offered = credit > LEAST_CREDIT
        beyond = () if allowed or not offered else (_beyond_rows(share, point),)
        # Draws are kept beside decisions, which are on the CPU.
        lowest = (said.low - said.none)[index].cpu()
        draws = GainDraws(said.gain[index].cpu(), lowest, share, self.surrogate.members, self.level)
        less, more = model["baseline"]
        unsupported = None if allowed or offered else _unsupported(share, point, before, max(0.0, -worst))
        if reasons := self.unidentified:
            unsupported = Finding(
                "adjustment",
                f"the effect is not identified by adjustment or the front door: {'; '.join(reasons)}; "
                "measure the common cause, or run an experiment",
            )
        return Appraisal(
            chance(round(point, 6), lower, upper, self.level),
            chance(round(before, 6), less, more, self.level),
            findings=(*general, *beyond),
            declined=worse_than_nothing(point, before) if printed["gain"][1] < 0 else None,
            unsupported=unsupported,
            trace={
                "beyond": round(share, 4),
                "worst": round(worst, 6),
                "credit": round(credit, 6),
                "model": {name: model[name] for name in hull},
                "hull": dict(hull),
            },
            gain=difference(point - before, printed["gain"][0], printed["gain"][1], self.level),
            gain_draws=draws,
        )

    def _floor(self) -> float:
        """What chance n rows without a success leave open at this level."""
        member = self.surrogate.fits[self.which][0]
        return -math.expm1(math.log((1 - self.level) / 2) / max(len(member.residuals), 1))


def _beyond_rows(share: float, point: float) -> Finding:
    here, alone = percents([share, point])
    return Finding(
        "support",
        f"no row is like this for {here} of such cases; the model alone says {alone}",
        {"beyond": share, "estimate": point},
    )


def _unsupported(share: float, point: float, before: float, lost: float) -> Finding:
    here, most, alone, usual = percents([share, MOST_BEYOND, point, before])
    return Finding(
        "no_support",
        f"the records cannot tell: for {here} of such cases no row is near this action (at most {most} may "
        f"be so); the model alone says {alone} where doing nothing gives {usual}; collect rows there, or "
        "offer actions that such cases have had",
        {"beyond": share, "worst": -lost},
    )
