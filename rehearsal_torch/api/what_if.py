"""What-if claims: a fitted method's estimates of alterations that are proposed to it, alone or compared.

The claim is the method's own, with the interval and the diagnostics of its decisions; nothing is searched. In
a comparison both are judged by the same draws of the model, or by the posterior of their difference
(`AlterationObjective.contrast`): two alterations may have wide intervals, as little is known of the case, and
still be told apart. Alterations of different variables are compared by `objectives.gaussian_success`.

A claim outside the data has no number in its sentence: the warning takes its place, as on the page of
``rehearsal explore``. `WhatIf.estimate` keeps it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import torch

from rehearsal_torch.claims.abstention_rules import Claimed, claimed
from rehearsal_torch.data.codings.decision_texts import region_in_words
from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.estimate import Ends, Intervals, chance_of, decimals, ends_of, in_words, is_chance
from rehearsal_torch.data.finding import Finding, further, outside
from rehearsal_torch.data.mean_gain import counted_beyond
from rehearsal_torch.data.non_finite import in_numbers
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.methods.run_parts import Method
from rehearsal_torch.objectives.gaussian_success import between_sets
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates, objective_for
from rehearsal_torch.reporting.page.sentences import settings
from rehearsal_torch.seeding import paired_seed, seed_draws
from rehearsal_torch.spaces.box import Alteration, setting_text
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.tipping_strength import Overturning
from rehearsal_torch.user_error import RequestError

# Findings that compare with no action.
AGAINST_NOTHING = ("gain", "no_gain")
WITH_INTERVALS = "outcome_regression, cme or care"


class InSentences(ABC):
    """What is printed as sentences, one a line, and in notebooks as paragraphs."""

    @abstractmethod
    def _sentences(self) -> list[str]: ...

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    def _repr_html_(self) -> str:
        return "<div>" + "".join(f"<p>{escape(text)}</p>" for text in self._sentences()) + "</div>"


class FittedMethod:
    """What claims and explanations use of a fitted method, such as its objective, search and seed."""

    surrogate: RehearsalSurrogate
    method: Method
    name: str
    seed: int
    overturning: Overturning
    units: Mapping[str, str]

    @property
    def task(self) -> RehearsalTask:
        """The task that it answers."""
        return self.surrogate.task


@dataclass(frozen=True)
class WhatIf(InSentences):
    """What a method claims of one alteration in one case.

    Attributes:
        estimate: The probability of a desired outcome after it, with its interval.
        unchanged: The same with the present values of the altered variables; None if they are unknown.
        gain: The estimate minus `unchanged`, or else the `baseline`, with its interval, or None.
        support: How many observations are near, as the method counts them; None if it does not.
        distance: The distance to the 5th nearest observation, in standard deviations; None if it is unknown.
        refused: Why the method cannot answer and its estimate is not shown; empty if it can.
        net_gain: The net value above that of changing nothing; None where no worth is known.
        beyond: S, the share of such cases in which no row is near; None if the method does not tell it.
        hull: The interval with anything from 0 to 1 there, printed where S is large (`data.mean_gain`).
        texts: The alteration with texts in place of codes; empty where it is one of numbers alone.
    """

    alteration: Mapping[str, float]
    estimate: Estimate
    baseline: Estimate | None = None
    support: float | None = None
    distance: float | None = None
    findings: tuple[Finding, ...] = field(default=())
    against: str = ""
    unchanged: Estimate | None = None
    gain: Estimate | None = None
    refused: str = ""
    texts: Mapping[str, Any] = field(default_factory=dict)
    cost: float | None = None
    net_gain: Estimate | None = None
    wanted: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    beyond: float | None = None
    hull: Ends = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of the findings."""
        return tuple(finding.text for finding in self.findings)

    @property
    def setting(self) -> Mapping[str, Any]:
        """The alteration in words: texts where its variables have some."""
        return self.texts or self.alteration

    @property
    def withheld(self) -> str:
        """Why its number is not shown: no answer, or outside the data; else empty."""
        return f"refused: {self.refused}" if self.refused else outside(self.findings)[0]

    @property
    def decimals(self) -> int:
        """The decimals of the chances of its sentence, and of their difference (`percent.decimals`)."""
        against = self.unchanged or self.baseline
        if against is None or not is_chance(self.estimate.of):
            return 0
        estimates = (against, self.estimate, self.gain)
        numbers = [(estimate.point, *(ends_of(estimate) or ())) if estimate else () for estimate in estimates]
        return decimals(*numbers)

    @property
    def note(self) -> str:
        """Why the method would not recommend it, else the first warning; may be empty."""
        if self.against:
            return f"the method would not set this: {self.against}"
        return self.findings[0].text if self.findings else ""

    def sentence(self) -> str:
        """The claim in words with a note; where it is withheld, the reason in place of the number."""
        if self.withheld:
            return f"{in_settings(self.setting)}: {self.withheld}"
        return f"{self.claim()} Note: {self.note}." if self.note else self.claim()

    def claim(self, left: str = "the present values") -> str:
        """The claim alone in words; `left` is what remains where nothing is changed."""
        intervals, usual, fine = Intervals(), self.baseline, self.decimals
        quantity = in_words(self.estimate.of, self.wanted)
        text = f"With {settings(self.setting, 'at', self.units)}, the estimated {quantity} is "
        text += chance_of(self.estimate, intervals, fine)
        against = (self.unchanged, left) if self.unchanged is not None else (usual, "no action")
        if against[0] is not None:
            text += f", against {chance_of(against[0], intervals, fine)} with {against[1]}"
            if self.gain is not None:
                text += f": a difference of {in_points(self.gain, intervals, fine)}"
        if self.unchanged is not None and usual is not None:
            text += f". With what is usual in such a case, it is {chance_of(usual, intervals)}"
        counted = counted_beyond({} if self.beyond is None else {"beyond": self.beyond})
        text += f". {counted}" if counted else ""
        return f"{text}. It {self.costs()}." if self.cost is not None else f"{text}."

    def costs(self) -> str:
        """What it costs, and what it nets above changing nothing, in words; empty if nothing is known."""
        if self.cost is None:
            return ""
        if (net := self.net_gain) is None:
            return f"costs {setting_text(self.cost)}"
        ends = "" if net.lower is None else f" [{net.lower:+.4g}, {net.upper:+.4g}]"
        return f"costs {setting_text(self.cost)}, nets {net.point:+.4g}{ends} above changing nothing"

    def _sentences(self) -> list[str]:
        first = self.sentence()
        against = [self.against] if self.against and self.against not in first else []
        return [first, *further(self.findings, first), *against]


@dataclass(frozen=True)
class Comparison(InSentences):
    """Two alterations in one case, and their difference; `basis` says how its interval was found."""

    first: WhatIf
    second: WhatIf
    difference: Estimate
    basis: str = ""

    def sentence(self) -> str:
        """Which one is better, with notes on the claims; where one is withheld, the reason."""
        pair = f"{in_settings(self.first.setting)} against {in_settings(self.second.setting)}"
        for claim in (self.first, self.second):
            if claim.withheld:
                return f"{pair}: not compared; {in_settings(claim.setting)}: {claim.withheld}"
        lower, upper = self.difference.lower, self.difference.upper
        assert lower is not None
        assert upper is not None
        better = "the first is better" if lower > 0 else "the second is better"
        verdict = "not told apart" if lower <= 0 <= upper else better
        # How each compares with no action stands in its own sentence.
        notes = dict.fromkeys(
            f" Note: {in_settings(claim.setting)}: {claim.note}."
            for claim in (self.first, self.second)
            if claim.note and (claim.against or claim.findings[0].kind not in AGAINST_NOTHING)
        )
        basis = f" ({self.basis})" if self.basis else ""
        return (
            f"{pair}: {verdict}: a difference of {in_points(self.difference)} in the estimated "
            f"{in_words(self.first.estimate.of, self.first.wanted)}{basis}.{''.join(notes)}"
        )

    def _sentences(self) -> list[str]:
        return [self.sentence(), self.first.sentence(), self.second.sentence()]


def what_if(model: FittedMethod, case: RehearsalCase, alteration: Mapping[str, float]) -> WhatIf:
    """What a method claims of an alteration, as `RehearsalModel.what_if` has it."""
    return what_ifs(model, case, [alteration])[0]


def what_ifs(
    model: FittedMethod, case: RehearsalCase, alterations: Sequence[Mapping[str, float]]
) -> list[WhatIf]:
    """Claims of several alterations, of any candidate sets, in the same case, in one batch."""
    settings = [_validated(model, case, alteration) for alteration in alterations]
    with in_numbers("the fitted surrogate"), torch.random.fork_rng(devices=[]):
        return _claims(model, objectives_in(model, [case] * len(settings)), settings)


def compare(
    model: FittedMethod, case: RehearsalCase, first: Mapping[str, float], second: Mapping[str, float]
) -> Comparison:
    """Two alterations in the same case, as `RehearsalModel.compare` has them."""
    settings = [_validated(model, case, alteration) for alteration in (first, second)]
    with in_numbers("the fitted surrogate"), torch.random.fork_rng(devices=[]):
        objective = objectives_in(model, [case])
        claims = [_claims(model, objective, [setting])[0] for setting in settings]
        difference = difference_of(objective, *settings)
    if difference is None:
        raise RequestError(
            f"compare: the method {model.name!r} has no interval for the difference of two alterations: "
            f"choose a method that has, such as {WITH_INTERVALS}"
        )
    return Comparison(claims[0], claims[1], *difference)


def objectives_in(model: FittedMethod, cases: Sequence[RehearsalCase]) -> Candidates[AlterationObjective]:
    """The method's objective in B cases, as the loop of decisions builds it."""
    seed_draws(paired_seed(model.seed, 0))
    objective = objective_for(model.method.objective, model.surrogate, cases)
    if not isinstance(objective, Candidates):
        raise RequestError(f"the method {model.name!r} does not judge alterations that it has not chosen")
    return objective


def difference_of(
    objective: Candidates[AlterationObjective], first: Alteration, second: Alteration
) -> tuple[Estimate, str] | None:
    """The difference of two alterations in the only case, and how its interval was found; or None."""
    by_set = {objective_of_set.names: objective_of_set for objective_of_set in objective.whole}
    judge, second_judge = by_set[first.names], by_set[second.names]
    # Where the objective's own actions are.
    row = first.values.reshape(1, -1).to(judge.starts(1).device)
    second_row = second.values.reshape(1, -1).to(second_judge.starts(1).device)
    if first.names != second.names:
        return between_sets(judge, row, second_judge, second_row)
    contrast = judge.contrast(row, second_row)
    return None if contrast is None or contrast[0] is None else (contrast[0], "")


def _validated(model: FittedMethod, case: RehearsalCase, values: Mapping[str, float]) -> Alteration:
    """An alteration of a candidate set, in the set's order."""
    sets = model.task.candidates
    if not isinstance(values, Mapping) or not values:
        first = model.task.variables(sets[0])[0]
        raise RequestError(f"expected an alteration, such as {{{first!r}: VALUE}}; got {values!r}")
    names = next((candidate for candidate in sets if set(candidate) == set(values)), None)
    if names is None:
        offered = ", ".join("{" + ", ".join(model.task.variables(candidate)) + "}" for candidate in sets)
        raise RequestError(
            f"expected values for one of the candidate sets {offered}; got {list(map(str, values))}: set all "
            "variables of one set, or name the set in the task"
        )
    for name in names:
        if isinstance(values[name], bool) or not isinstance(values[name], int | float):
            raise RequestError(f"{name}: expected a number; got {values[name]!r}")
    setting = Alteration(names, torch.tensor([float(values[name]) for name in names], dtype=torch.float64))
    try:
        case.check(setting)
    except ValueError as error:
        raise RequestError(str(error)) from None
    return setting


def _claims(
    model: FittedMethod, objective: Candidates[AlterationObjective], settings: Sequence[Alteration]
) -> list[WhatIf]:
    """The claim of the alteration of each of B cases, with the warnings of a decision."""
    claims = []
    for claim in claimed(objective, settings):
        estimate = None if claim is None else claim.decision.estimate
        if claim is None or estimate is None or estimate.lower is None:
            lacking = "no estimate" if claim is None else "no interval"
            raise RequestError(
                f"the method {model.name!r} has {lacking} of the probability of a desired outcome: choose a "
                f"method that has, such as {WITH_INTERVALS}"
            )
        claims.append(_claim(objective, claim, estimate, model.units))
    return claims


def _claim(
    objective: Candidates[AlterationObjective], claim: Claimed, estimate: Estimate, units: Mapping[str, str]
) -> WhatIf:
    decision, setting = claim.decision, claim.decision.alteration
    assert setting is not None
    pathless = None if objective.linked(setting.names) else objective.no_path(setting.names)
    refused = pathless or claim.refused
    against = (refused or claim.unsupported) if decision.unchanged else (pathless or decision.reason)
    values = dict(zip(setting.names, setting.values.tolist(), strict=True))
    task = objective.surrogate.task if objective.surrogate is not None else None
    hull = decision.trace.get("hull", {}).get("estimate")
    return WhatIf(
        values,
        estimate,
        decision.baseline,
        number(decision.trace.get("support")),
        number(decision.trace.get("distance")),
        decision.findings,
        # What is worse than usual may still be better than the present.
        str(against or ""),
        decision.unchanged,
        decision.gain,
        str(refused or ""),
        task.worded(values) if task is not None and task.codings else {},
        decision.cost,
        decision.net_gain,
        "" if task is None else region_in_words(task),
        units,
        number(decision.trace.get("beyond")),
        None if hull is None else (float(hull[0]), float(hull[1])),
    )


def number(value: Any) -> float | None:
    """An entry of a trace as a float; None if it is no number."""
    return float(value) if isinstance(value, int | float) else None


def in_settings(alteration: Mapping[str, float | str]) -> str:
    """The settings of an alteration as text."""
    return ", ".join(
        f"{name}={value}" if isinstance(value, str) else f"{name}={setting_text(value, 6)}"
        for name, value in alteration.items()
    )


def in_points(difference: Estimate, told: Intervals | None = None, fine: int = 0) -> str:
    """A difference of two estimates in words: of chances in percentage points, with its interval."""
    intervals, ends = told or Intervals(), ends_of(difference)
    if is_chance(difference.of):
        return intervals.difference(difference.point, ends, difference.level, fine)
    return intervals.plain(difference.point, ends, difference.level)
