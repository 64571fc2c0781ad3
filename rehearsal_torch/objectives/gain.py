"""The gain of an action over no action, as far as the rows support it, under one posterior.

All numbers are means over the same draws (`surrogates.outcome.shared_draws`): P(a), P(none), the gain, S (the
share of such cases in which no row is near), the worst case `low` in which nothing succeeds there, and
`credit`, in which no benefit counts there. An action is allowed if

    S <= `MOST_BEYOND`    or    the mean of low(a) - P(none) is above -`MOST_LOST`:

rows support nearly all of it, or there is hardly anything to lose, as where success is rare without an
action. Of the allowed actions the largest mean gain is sought; where none gains, the largest credit, a
benefit that rows support although most cases lie beyond them: it can only be a *may*, and is not offered
below `LEAST_CREDIT`. Searches see both as one value,

    1 + g    allowed, g > 0        credit    credit > `LEAST_CREDIT`        g - 2    otherwise,

g being the gain in which a benefit where no row is near counts by `DISCOUNT` less, so that among nearly equal
gains a supported one is taken; costs in units of the worth of a desired outcome are subtracted.

Where S exceeds `TOLD_BEYOND`, the reported interval is not the model's but the hull: from the lower end of
the worst case to the upper end of it plus S (success there is anything from 0 to 1). The gain is told from
zero if its interval lies above zero.

Actions are compared by some of the draws, and the chosen ones reported by all of them, at other points.

Source: Manski (1990) (bounds where nothing is observed); Robins (1986). The figures of the rule stand in
docs/results/calibration.
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
DISCOUNT = 0.5  # By how much less a benefit counts where no row is near, when actions are compared
LEAST_CREDIT = 0.01  # for which an action that is not allowed is offered
# How far within the rule a search stays, since it uses fewer draws than the final judgement.
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
        # A cache of one entry: searches ask for values and acceptance of the same actions.
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
        columns = [overlap.names.index(name) for name in self.names]
        size = min(count, len(overlap.rows))
        rows = torch.linspace(0, len(overlap.rows) - 1, size, dtype=torch.float64).round().long()
        actions = overlap.location[columns] + overlap.scale[columns] * overlap.rows[rows][:, columns]
        return self.project(actions.unsqueeze(1).expand(-1, len(self.cases), -1))

    @torch.no_grad()
    def __call__(self, actions: Tensor) -> Tensor:
        """P(a), (..., B, k) -> (..., B)."""
        return self._values(self.comparing, actions).success.mean(-1)

    def _values(self, draws: CaseDraws, actions: Tensor) -> Values:
        cache = self._last
        if cache is not None and cache[0] is draws and cache[1].equal(actions):
            return cache[2]
        flat_values = draws.values(self.standardised(actions).reshape(-1, *actions.shape[-2:]))
        shape = actions.shape[:-2]
        values = Values(*(value.reshape(*shape, *value.shape[1:]) for value in vars(flat_values).values()))
        self._last = draws, actions.clone(), values
        return values

    @torch.no_grad()
    def sought(self, actions: Tensor) -> Tensor:
        """The value of the module's docstring, (..., B, k) -> (..., B)."""
        return self._ranked(self._values(self.comparing, actions), actions, MARGIN_BEYOND, MARGIN_LOST)

    @torch.no_grad()
    def sought_at_last(self, actions: Tensor) -> Tensor:
        """The same by the draws that judge."""
        return self._ranked(self._values(self.judging, actions), actions, 0.0, 0.0)

    @torch.no_grad()
    def level_value(self, actions: Tensor) -> Tensor:
        """See `sought_at_last`."""
        return self.sought_at_last(actions)

    def _net(self, free: object, actions: Tensor) -> Tensor:  # noqa: ARG002
        return self.sought_at_last(actions)

    def _ranked(self, values: Values, actions: Tensor, share: float, loss: float) -> Tensor:
        cost = 0.0 if self.charge is None else self.charge(actions)
        gain, credit = values.gain.mean(-1), values.credit.mean(-1)
        gain, credit = gain - DISCOUNT * (gain - credit) - cost, credit - cost
        if self.unidentified:
            return gain - 2
        allowed = self._allowed(values, share, loss)
        otherwise = torch.where(credit > LEAST_CREDIT, credit, gain - 2)
        return torch.where(allowed & (gain > 0), 1 + gain, otherwise)

    def _allowed(self, values: Values, share: float = 0.0, loss: float = 0.0) -> Tensor:
        """Whether actions may be recommended by the rows, (..., B) bool."""
        worst = (values.low - values.none).mean(-1)
        return (values.beyond <= MOST_BEYOND - share) | (worst > loss - MOST_LOST)

    @torch.no_grad()
    def highest(self, actions: Tensor) -> Tensor:
        """See `AlterationObjective.highest`: acceptable actions have higher values than others."""
        actions = self.project(actions.unsqueeze(1).expand(-1, len(self.cases), -1))
        best = torch.cat([self.sought_at_last(block) for block in actions.split(AT_ONCE)]).argmax(0)
        return actions[best, torch.arange(len(best), device=actions.device)]

    @torch.no_grad()
    def probability(self, actions: Tensor) -> Tensor:
        """P(a) by the draws that judge."""
        return self._values(self.judging, actions).success.mean(-1)

    @torch.no_grad()
    def acceptable(self, actions: Tensor) -> Tensor:
        """Whether an action is allowed, or has a credit, and its effect is identified in the graph."""
        values = self._values(self.judging, actions)
        credited = self._allowed(values) | (values.credit.mean(-1) > LEAST_CREDIT)
        return credited & (not self.unidentified)

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Why the graph does not identify the effect from observations, in words; empty if it does."""
        reasons, coded = self.surrogate.adjustments[self.which].reasons, self.surrogate.task.coded
        return tuple(sentence_in_words(reason, coded) for reason in reasons)

    def contrast(self, first: Tensor, second: Tensor) -> list[Estimate | None]:
        """See `AlterationObjective.contrast`: by the same draws for both."""
        return [draws.estimate() for draws in self.contrast_draws(first, second)]

    @torch.no_grad()
    def contrast_draws(self, first: Tensor, second: Tensor) -> list[GainDraws]:
        """See `AlterationObjective.contrast_draws`: beyond the rows, either may succeed or fail."""
        lead, rival = (self._values(self.judging, action.unsqueeze(0)) for action in (first, second))
        different = (first != second).any(-1)
        beyond = torch.where(different, lead.beyond + rival.beyond, 0.0)[0].clamp_max(1)
        gain = lead.success - rival.success
        lowest = torch.where(different.unsqueeze(-1), lead.low - rival.low - rival.beyond.unsqueeze(-1), 0.0)
        return [
            GainDraws(*case_draws, self.surrogate.members, self.level)
            for case_draws in zip(gain[0].cpu(), lowest[0].cpu(), beyond.tolist(), strict=True)
        ]

    def _ends(self, draws: Tensor) -> tuple[Tensor, Tensor]:
        """The central interval of draws, (..., D) -> (...) each."""
        return central(draws, self.surrogate.members, self.level)

    @torch.no_grad()
    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """See `AlterationObjective.appraise`. Trace: ``beyond``, S; ``model`` and ``hull``, intervals by the
        model, and with anything possible where no row is near; ``worst`` and ``credit``, gains.
        """
        batch = self._values(self.judging, actions.unsqueeze(0))
        allowed = self._allowed(batch)[0].tolist()
        values = Values(*(value[0] for value in vars(batch).values()))
        intervals = self._intervals(values)
        coded = self.surrogate.task.coded
        assumed = self.surrogate.adjustments[self.which].assumed
        warnings = (*self.surrogate.score.doubt(), *self.surrogate.contradictions(self.which))
        findings = (*warnings, *(Finding("assumption", sentence_in_words(text, coded)) for text in assumed))
        rows = enumerate(zip(intervals, allowed, strict=True))
        return [self._appraisal(values, index, *row, findings) for index, row in rows]

    def _intervals(self, values: Values) -> list[dict[str, dict[str, list[float]]]]:
        """For each case, the intervals of estimate, gain and baseline by the model, and those of the hull."""
        success, gain, none, low = values.success, values.gain, values.none, values.low
        high = (low + values.beyond.unsqueeze(-1)).clamp_max(1)
        draws = {
            "model": {"estimate": (success, success), "gain": (gain, gain), "baseline": (none, none)},
            "hull": {"estimate": (low, high), "gain": (low - none, high - none)},
        }
        ends = {
            (name, quantity): torch.stack((self._ends(least)[0], self._ends(most)[1]), -1)
            .clamp(-1.0 if quantity == "gain" else 0.0, 1.0)
            .tolist()
            for name, parts in draws.items()
            for quantity, (least, most) in parts.items()
        }
        return [
            {
                name: {quantity: [round(end, 6) for end in ends[name, quantity][index]] for quantity in parts}
                for name, parts in draws.items()
            }
            for index in range(len(self.cases))
        ]

    def _appraisal(
        self,
        values: Values,
        index: int,
        intervals: Mapping[str, Mapping[str, list[float]]],
        allowed: bool,
        findings: tuple[Finding, ...],
    ) -> Appraisal:
        share, credit = float(values.beyond[index]), float(values.credit[index].mean())
        draws = (values.success, values.none, values.low - values.none)
        point, before, worst = (float(part[index].mean()) for part in draws)
        model, hull = intervals["model"], intervals["hull"]
        reported = hull if share > TOLD_BEYOND else model
        # The largest probability that the rows of a fold do not exclude if none of them is a success.
        rows = max(len(self.surrogate.fits[self.which][0].residuals), 1)
        floor = -math.expm1(math.log((1 - self.level) / 2) / rows)
        lower, upper = min(reported["estimate"][0], 1 - floor), max(reported["estimate"][1], floor)
        offered = credit > LEAST_CREDIT
        beyond = () if allowed or not offered else (_beyond_rows(share, point),)
        # Draws are kept beside decisions, which are on the CPU.
        lowest = (values.low - values.none)[index].cpu()
        gain_draws = GainDraws(values.gain[index].cpu(), lowest, share, self.surrogate.members, self.level)
        low, high = model["baseline"]
        unsupported = None if allowed or offered else _unsupported(share, point, before, max(0.0, -worst))
        if reasons := self.unidentified:
            unsupported = Finding(
                "adjustment",
                f"the effect is not identified by adjustment or the front door: {'; '.join(reasons)}; "
                "measure the common cause, or run an experiment",
            )
        return Appraisal(
            chance(round(point, 6), lower, upper, self.level),
            chance(round(before, 6), low, high, self.level),
            findings=(*findings, *beyond),
            declined=worse_than_nothing(point, before) if reported["gain"][1] < 0 else None,
            unsupported=unsupported,
            trace={
                "beyond": round(share, 4),
                "worst": round(worst, 6),
                "credit": round(credit, 6),
                "model": {name: model[name] for name in hull},
                "hull": dict(hull),
            },
            gain=difference(point - before, reported["gain"][0], reported["gain"][1], self.level),
            gain_draws=gain_draws,
        )


def _beyond_rows(share: float, point: float) -> Finding:
    beyond, model = percents([share, point])
    return Finding(
        "support",
        f"too few rows are like this for {beyond} of such cases; the model alone says {model}",
        {"beyond": share, "estimate": point},
    )


def _unsupported(share: float, point: float, before: float, loss: float) -> Finding:
    beyond, most, model, usual = percents([share, MOST_BEYOND, point, before])
    return Finding(
        "no_support",
        f"the records cannot tell: for {beyond} of such cases too few rows are near this action (at most "
        f"{most} may be so); the model alone says {model} where doing nothing gives {usual}; collect rows "
        "there, or offer actions that such cases have had",
        {"beyond": share, "worst": -loss},
    )
