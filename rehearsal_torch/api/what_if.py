"""What a fitted method claims of alterations that somebody else proposes, one alone or two beside each other.

The claim is the method's own, with the interval and the diagnostics of its decisions; nothing is searched. In
a comparison both are judged by the same draws of the model, or by the posterior of their difference
(`AlterationObjective.contrast`): two alterations may have wide intervals, as little is known of the case, and
still be told apart. Alterations of different variables are compared by `objectives.set_difference`.

A claim outside the data has no number in its sentence: the warning takes its place, as on the page of
``rehearsal explore``. `WhatIf.estimate` keeps it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rehearsal_torch.claims.rules import claimed
from rehearsal_torch.data.codings.recorded import wanted_in
from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.data.estimates.percent import (
    Intervals,
    chance_of,
    decimals,
    ends_of,
    in_words,
    is_chance,
)
from rehearsal_torch.data.finding import Finding, further, outside
from rehearsal_torch.data.finite import in_numbers
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates, objective_for
from rehearsal_torch.objectives.set_difference import between_sets
from rehearsal_torch.reporting.page.probability_sentences import settings
from rehearsal_torch.seeding import paired_seed, seed_draws
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.user_error import RequestError

if TYPE_CHECKING:
    from rehearsal_torch.api.rehearsal_model import RehearsalModel
    from rehearsal_torch.data.decision import RehearsalCase

# Findings that compare with no action.
AGAINST_NOTHING = ("gain", "no_gain")
WITH_INTERVALS = "cme_stack, cme, outcome_regression or care"


@dataclass(frozen=True)
class WhatIf:
    """What a method claims of one alteration in one case.

    Attributes:
        alteration: Name to value.
        estimate: The probability of a desired outcome after it, with its interval.
        baseline: The same without an alteration; None if the method has no such estimate.
        unchanged: The same with the present values of the altered variables; None if they are unknown.
        gain: The estimate minus `unchanged`, with the interval of the difference; None if there is none.
        support: How many observations are near, as the method counts them; None if it does not.
        distance: The distance to the 5th nearest observation, in standard deviations; None if it is unknown.
        findings: What the reader must know.
        against: Why the method would not recommend it; empty if there is no reason.
        refused: Why the method cannot answer, so that its estimate is none to rely on; empty if it can.
        cost: What the alteration costs; None where costs are not known.
        net_gain: The net value above that of changing nothing; None where no worth is known.
        texts: The alteration with texts in place of codes; empty where it is one of numbers alone.
        wanted: The desired region in words (`data.codings.recorded`); empty where these are too long.
        units: Variable to its unit, where it is known.
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
        gain = None if self.unchanged is None else self.gain
        each = [(one.point, *(ends_of(one) or ())) if one else () for one in (against, self.estimate, gain)]
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
        """The claim alone in words.

        Args:
            left: What changing nothing leaves as it is, where the present values are known.
        """
        one, told, usual = self.estimate, Intervals(), self.baseline
        against = usual if self.unchanged is None else self.unchanged
        fine = self.decimals
        setting = settings(self.setting, "at", self.units)
        said = f"With {setting}, the estimated {in_words(one.of, self.wanted)} is "
        said += chance_of(one, told, fine)
        if against is not None:
            where = "no action" if self.unchanged is None else left
            said += f", against {chance_of(against, told, fine)} with {where}"
        if self.gain is not None and self.unchanged is not None:
            said += f": a difference of {in_points(self.gain, told, fine)}"
        if usual is not None and self.unchanged is not None:
            said += f". With what is usual in such a case, it is {chance_of(usual, told)}"
        return f"{said}. It {self.costs()}." if self.cost is not None else f"{said}."

    def costs(self) -> str:
        """What it costs, and what it nets above changing nothing, in words; empty if nothing is known."""
        if self.cost is None:
            return ""
        one = self.net_gain
        if one is None:
            return f"costs {self.cost:.4g}"
        ends = "" if one.lower is None else f" [{one.lower:+.4g}, {one.upper:+.4g}]"
        return f"costs {self.cost:.4g}, nets {one.point:+.4g}{ends} above changing nothing"

    def __str__(self) -> str:
        return "\n".join(self._said())

    def _repr_html_(self) -> str:
        return _html(self._said())

    def _said(self) -> list[str]:
        first = self.sentence()
        against = [self.against] if self.against and self.against not in first else []
        return [first, *further(self.findings, first), *against]


@dataclass(frozen=True)
class Comparison:
    """Two alterations in the same case.

    Attributes:
        first: The claim of the first.
        second: The claim of the second.
        difference: The first minus the second, with the interval of the difference.
        basis: How the interval was found where the two set different variables; empty where they set the
            same.
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
        verdict = (
            "the first is better" if lower > 0 else "the second is better" if upper < 0 else "not told apart"
        )
        # How each compares with no action stands in its own sentence.
        notes = dict.fromkeys(
            f"{in_settings(each.setting)}: {each.note}"
            for each in (self.first, self.second)
            if each.note and (each.against or each.findings[0].kind not in AGAINST_NOTHING)
        )
        basis = f" ({self.basis})" if self.basis else ""
        said = (
            f"{both}: {verdict}: a difference of {in_points(self.difference)} in the estimated "
            f"{in_words(self.first.estimate.of, self.first.wanted)}{basis}."
        )
        return " ".join([said, *(f"Note: {each}." for each in notes)])

    def __str__(self) -> str:
        return "\n".join(self._said())

    def _repr_html_(self) -> str:
        return _html(self._said())

    def _said(self) -> list[str]:
        return [self.sentence(), self.first.sentence(), self.second.sentence()]


def what_if(model: "RehearsalModel", case: "RehearsalCase", alteration: Mapping[str, float]) -> WhatIf:
    """See `RehearsalModel.what_if`."""
    return what_ifs(model, case, [alteration])[0]


def what_ifs(
    model: "RehearsalModel", case: "RehearsalCase", alterations: Sequence[Mapping[str, float]]
) -> list[WhatIf]:
    """What `what_if` claims of each of several alterations in the same case, in one batch.

    Args:
        alterations: Values for all variables of a candidate set each; the sets may differ.

    Raises:
        RequestError: if one of them may not be set, or the method has no interval.
    """
    settings = [_checked(model, case, each) for each in alterations]
    with in_numbers("the fitted surrogate"), torch.random.fork_rng(devices=[]):
        return _claims(model, objectives_in(model, [case] * len(settings)), settings)


def compare(
    model: "RehearsalModel", case: "RehearsalCase", first: Mapping[str, float], second: Mapping[str, float]
) -> Comparison:
    """See `RehearsalModel.compare`."""
    settings = [_checked(model, case, each) for each in (first, second)]
    names = [each.names for each in settings]
    with in_numbers("the fitted surrogate"), torch.random.fork_rng(devices=[]):
        objective = objectives_in(model, [case])
        claims = [_claims(model, objective, [each])[0] for each in settings]
        whole = {each.names: each for each in objective.whole}
        one, other = (whole[each] for each in names)
        rows = [_rows(each, setting.values) for each, setting in zip((one, other), settings, strict=True)]
        if names[0] == names[1]:
            told = one.contrast(*rows)
            found = None if told is None or told[0] is None else (told[0], "")
        else:
            found = between_sets(one, rows[0], other, rows[1])
    if found is None:
        raise RequestError(
            f"compare: the method {model.name!r} has no interval for the difference of two alterations: "
            f"choose a method that has, such as {WITH_INTERVALS}"
        )
    return Comparison(claims[0], claims[1], *found)


def _checked(model: "RehearsalModel", case: "RehearsalCase", given: Mapping[str, float]) -> Alteration:
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
    wrong = [
        name for name in names if isinstance(given[name], bool) or not isinstance(given[name], int | float)
    ]
    if wrong:
        raise RequestError(f"{wrong[0]}: expected a number; got {given[wrong[0]]!r}")
    setting = Alteration(names, torch.tensor([float(given[name]) for name in names], dtype=torch.float64))
    try:
        case.check(setting)
    except ValueError as error:
        raise RequestError(str(error)) from None
    return setting


def objectives_in(
    model: "RehearsalModel", cases: "Sequence[RehearsalCase]"
) -> Candidates[AlterationObjective]:
    """The method's objective in B cases, as the loop of decisions builds it.

    Raises:
        RequestError: if it does not judge given alterations.
    """
    seed_draws(paired_seed(model.seed, 0))
    made = objective_for(model.method.objective, model.surrogate, cases)
    if not isinstance(made, Candidates):
        raise RequestError(f"the method {model.name!r} does not judge alterations that it has not chosen")
    return made


def _claims(
    model: "RehearsalModel", objective: Candidates[AlterationObjective], settings: Sequence[Alteration]
) -> list[WhatIf]:
    """The claim of the alteration of each of B cases, with the warnings of a decision."""
    found = claimed(objective, settings)
    whole = []
    for one in found:
        if one is None or one.estimate is None or one.estimate.lower is None:
            what = "no estimate" if one is None else "no interval"
            raise RequestError(
                f"the method {model.name!r} has {what} of the probability of a desired outcome: choose a "
                f"method that has, such as {WITH_INTERVALS}"
            )
        whole.append(one)
    return [_claim(objective, each, model.units) for each in whole]


def _claim(objective: Candidates[AlterationObjective], guarded: Decision, units: Mapping[str, str]) -> WhatIf:
    """What a decision says that has been through the rule of when to decline."""
    setting, estimate = guarded.alteration, guarded.estimate
    assert setting is not None
    assert estimate is not None
    pathless = "" if objective.linked(setting.names) else objective.no_path(setting.names).text
    refused, unsupported = (str(guarded.trace[name]) for name in ("refused", "unsupported"))
    values = dict(zip(setting.names, setting.values.tolist(), strict=True))
    task = objective.surrogate.task if objective.surrogate is not None else None
    return WhatIf(
        values,
        estimate,
        guarded.baseline,
        number(guarded.trace.get("support")),
        number(guarded.trace.get("distance")),
        guarded.findings,
        # What is worse than usual may still be better than the present.
        pathless or ((refused or unsupported) if guarded.unchanged else str(guarded.reason or "")),
        guarded.unchanged,
        guarded.gain,
        pathless or refused,
        task.worded(values) if task is not None and task.codings else {},
        guarded.cost,
        guarded.net_gain,
        "" if task is None else wanted_in(task),
        units,
    )


def _rows(objective: AlterationObjective, values: Tensor) -> Tensor:
    """An action of the only case, (1, k), where the objective's own actions are."""
    return values.reshape(1, -1).to(objective.starts(1).device)


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


def _html(sentences: list[str]) -> str:
    from html import escape

    return "<div>" + "".join(f"<p>{escape(text)}</p>" for text in sentences) + "</div>"
