"""What a fitted method claims of alterations that somebody else proposes, one alone or two beside each other.

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
from rehearsal_torch.data.codings.decision_texts import wanted_in
from rehearsal_torch.data.decision import Estimate, RehearsalCase
from rehearsal_torch.data.estimate import (
    Ends,
    Intervals,
    chance_of,
    decimals,
    ends_of,
    in_words,
    is_chance,
)
from rehearsal_torch.data.finding import Finding, further, outside
from rehearsal_torch.data.mean_gain import counted_beyond
from rehearsal_torch.data.non_finite import in_numbers
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.methods.run_parts import Method
from rehearsal_torch.objectives.gaussian_success import between_sets
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates, objective_for
from rehearsal_torch.reporting.page.sentences import settings
from rehearsal_torch.seeding import paired_seed, seed_draws
from rehearsal_torch.spaces.box import Alteration
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
    """What claims and explanations need of a fitted method (`api.rehearsal_model`): the objective and search
    by which it decides, the seed of all draws, what would overturn a recommendation, and the units of
    variables.
    """

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
        baseline: The same without an alteration; None if the method has no such estimate.
        unchanged: The same with the present values of the altered variables; None if they are unknown.
        gain: The estimate minus `unchanged`, or the `baseline` where the present values are unknown, with the
            interval of the difference; None if there is none.
        support: How many observations are near, as the method counts them; None if it does not.
        distance: The distance to the 5th nearest observation, in standard deviations; None if it is unknown.
        against: Why the method would not recommend it; empty if there is no reason.
        refused: Why the method cannot answer, so that its estimate is none to rely on; empty if it can.
        cost: What the alteration costs; None where costs are not known.
        net_gain: The net value above that of changing nothing; None where no worth is known.
        beyond: S, the share of such cases in which no row is near; None if the method does not tell it.
        hull: The interval of the estimate with anything from 0 to 1 there, which is the printed one where S
            is large (`data.mean_gain`); None as above.
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
        return tuple(each.text for each in self.findings)

    @property
    def setting(self) -> Mapping[str, Any]:
        """The alteration in words: texts where its variables have some."""
        return self.texts or self.alteration

    @property
    def withheld(self) -> str:
        """Why its number is none to rely on: the method cannot answer, or the claim lies outside the data;
        empty if neither is so.
        """
        return f"refused: {self.refused}" if self.refused else outside(self.findings)[0]

    @property
    def decimals(self) -> int:
        """The decimals of the chances of its sentence, and of their difference (`percent.decimals`)."""
        against = self.unchanged or self.baseline
        if against is None or not is_chance(self.estimate.of):
            return 0
        several = (against, self.estimate, self.gain)
        each = [(one.point, *(ends_of(one) or ())) if one else () for one in several]
        return decimals(*each)

    @property
    def note(self) -> str:
        """What is to be known of the number: why the method would not recommend it, else the first warning;
        empty if there is nothing.
        """
        if self.against:
            return f"the method would not set this: {self.against}"
        return self.findings[0].text if self.findings else ""

    def sentence(self) -> str:
        """The claim in words, with why the method would not recommend it, or the first warning; where the
        claim lies outside the data, or the method cannot answer, that reason in place of the number.
        """
        if self.withheld:
            return f"{in_settings(self.setting)}: {self.withheld}"
        return f"{self.claim()} Note: {self.note}." if self.note else self.claim()

    def claim(self, left: str = "the present values") -> str:
        """The claim alone in words; changing nothing leaves `left` as it is, where the present values are
        known.
        """
        intervals, usual, fine = Intervals(), self.baseline, self.decimals
        what = in_words(self.estimate.of, self.wanted)
        text = f"With {settings(self.setting, 'at', self.units)}, the estimated {what} is "
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
            return f"costs {self.cost:.4g}"
        ends = "" if net.lower is None else f" [{net.lower:+.4g}, {net.upper:+.4g}]"
        return f"costs {self.cost:.4g}, nets {net.point:+.4g}{ends} above changing nothing"

    def _sentences(self) -> list[str]:
        first = self.sentence()
        against = [self.against] if self.against and self.against not in first else []
        return [first, *further(self.findings, first), *against]


@dataclass(frozen=True)
class Comparison(InSentences):
    """Two alterations in the same case: their claims, and the first minus the second, with the interval of
    the difference.

    Attributes:
        basis: How the interval was found where the two set different variables; else empty.
    """

    first: WhatIf
    second: WhatIf
    difference: Estimate
    basis: str = ""

    def sentence(self) -> str:
        """Which of the two is better, in words, and what is to be known of the claims; where one of them has
        no number, the reason.
        """
        both = f"{in_settings(self.first.setting)} against {in_settings(self.second.setting)}"
        for each in (self.first, self.second):
            if each.withheld:
                return f"{both}: not compared; {in_settings(each.setting)}: {each.withheld}"
        lower, upper = self.difference.lower, self.difference.upper
        assert lower is not None
        assert upper is not None
        better = "the first is better" if lower > 0 else "the second is better"
        verdict = "not told apart" if lower <= 0 <= upper else better
        # How each compares with no action stands in its own sentence.
        notes = dict.fromkeys(
            f" Note: {in_settings(each.setting)}: {each.note}."
            for each in (self.first, self.second)
            if each.note and (each.against or each.findings[0].kind not in AGAINST_NOTHING)
        )
        basis = f" ({self.basis})" if self.basis else ""
        return (
            f"{both}: {verdict}: a difference of {in_points(self.difference)} in the estimated "
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
    """What `what_if` claims of each of several alterations in the same case, in one batch; their sets may
    differ.
    """
    settings = [_checked(model, case, each) for each in alterations]
    with in_numbers("the fitted surrogate"), torch.random.fork_rng(devices=[]):
        return _claims(model, objectives_in(model, [case] * len(settings)), settings)


def compare(
    model: FittedMethod, case: RehearsalCase, first: Mapping[str, float], second: Mapping[str, float]
) -> Comparison:
    """Two alterations in the same case, as `RehearsalModel.compare` has them."""
    settings = [_checked(model, case, each) for each in (first, second)]
    with in_numbers("the fitted surrogate"), torch.random.fork_rng(devices=[]):
        objective = objectives_in(model, [case])
        claims = [_claims(model, objective, [each])[0] for each in settings]
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
    """The first alteration minus the second in the only case, with its interval, and how that was found:
    empty where both set the same variables. None if the method has none.
    """
    whole = {each.names: each for each in objective.whole}
    judge, other = whole[first.names], whole[second.names]
    # Where the objective's own actions are.
    row = first.values.reshape(1, -1).to(judge.starts(1).device)
    against = second.values.reshape(1, -1).to(other.starts(1).device)
    if first.names != second.names:
        return between_sets(judge, row, other, against)
    contrast = judge.contrast(row, against)
    return None if contrast is None or contrast[0] is None else (contrast[0], "")


def _checked(model: FittedMethod, case: RehearsalCase, given: Mapping[str, float]) -> Alteration:
    """An alteration of a candidate set, in the set's order."""
    sets = model.task.candidates
    if not isinstance(given, Mapping) or not given:
        first = model.task.variables(sets[0])[0]
        raise RequestError(f"expected an alteration, such as {{{first!r}: VALUE}}; got {given!r}")
    names = next((each for each in sets if set(each) == set(given)), None)
    if names is None:
        offered = ", ".join("{" + ", ".join(model.task.variables(each)) + "}" for each in sets)
        raise RequestError(
            f"expected values for one of the candidate sets {offered}; got {list(map(str, given))}: set all "
            "variables of one set, or name the set in the task"
        )
    for name in names:
        if isinstance(given[name], bool) or not isinstance(given[name], int | float):
            raise RequestError(f"{name}: expected a number; got {given[name]!r}")
    setting = Alteration(names, torch.tensor([float(given[name]) for name in names], dtype=torch.float64))
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
    for found in claimed(objective, settings):
        estimate = None if found is None else found.decision.estimate
        if found is None or estimate is None or estimate.lower is None:
            what = "no estimate" if found is None else "no interval"
            raise RequestError(
                f"the method {model.name!r} has {what} of the probability of a desired outcome: choose a "
                f"method that has, such as {WITH_INTERVALS}"
            )
        claims.append(_claim(objective, found, estimate, model.units))
    return claims


def _claim(
    objective: Candidates[AlterationObjective], found: Claimed, estimate: Estimate, units: Mapping[str, str]
) -> WhatIf:
    guarded, setting = found.decision, found.decision.alteration
    assert setting is not None
    pathless = None if objective.linked(setting.names) else objective.no_path(setting.names)
    refused = pathless or found.refused
    against = (refused or found.unsupported) if guarded.unchanged else (pathless or guarded.reason)
    values = dict(zip(setting.names, setting.values.tolist(), strict=True))
    task = objective.surrogate.task if objective.surrogate is not None else None
    hull = guarded.trace.get("hull", {}).get("estimate")
    return WhatIf(
        values,
        estimate,
        guarded.baseline,
        number(guarded.trace.get("support")),
        number(guarded.trace.get("distance")),
        guarded.findings,
        # What is worse than usual may still be better than the present.
        str(against or ""),
        guarded.unchanged,
        guarded.gain,
        str(refused or ""),
        task.worded(values) if task is not None and task.codings else {},
        guarded.cost,
        guarded.net_gain,
        "" if task is None else wanted_in(task),
        units,
        number(guarded.trace.get("beyond")),
        None if hull is None else (float(hull[0]), float(hull[1])),
    )


def number(value: Any) -> float | None:
    """An entry of a trace as a number; None if it is none."""
    return float(value) if isinstance(value, int | float) else None


def in_settings(alteration: Mapping[str, float | str]) -> str:
    """The settings of an alteration as text."""
    return ", ".join(
        f"{name}={value}" if isinstance(value, str) else f"{name}={value:.6g}"
        for name, value in alteration.items()
    )


def in_points(difference: Estimate, told: Intervals | None = None, fine: int = 0) -> str:
    """A difference of two estimates in words: of chances in percentage points, with its interval."""
    intervals, ends = told or Intervals(), ends_of(difference)
    if is_chance(difference.of):
        return intervals.difference(difference.point, ends, difference.level, fine)
    return intervals.plain(difference.point, ends, difference.level)
