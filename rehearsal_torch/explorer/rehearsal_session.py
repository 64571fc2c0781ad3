"""A fitted rehearsal method that is asked by a page: its description, and its answers as plain data.

One question is answered at a time, since a method draws from torch's random state. Nothing that is asked is
kept.

What the page shows of a claim is its numbers and its sentence, or the reason for which there are none:

    outside the data    a context variable or an action lies outside the range of the observations
                        (``range:``), or few of them are near (``support:``): the number is withheld, and the
                        warning stands in its place
    refused             the method cannot answer: the reason stands in its place
    otherwise           the claim with its interval, beside that of no action, and, where the case states the
                        present values of what is set, of leaving these

A number that is withheld does not leave the server.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import torch
from pydantic import Field, FiniteFloat
from torch import Tensor

from rehearsal_torch.api.fit_and_decide import decided, in_words, undisturbed
from rehearsal_torch.api.rehearsal_model import LIMITS, intended_use
from rehearsal_torch.api.rehearsal_request import NewCases
from rehearsal_torch.api.what_if import WhatIf, what_if
from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import in_line, said, wanted_in
from rehearsal_torch.data.codings.one_hot_actions import in_indicators, in_places
from rehearsal_torch.data.codings.one_hot_actions import offered as offered_places
from rehearsal_torch.data.decision import Decision, Estimate, RehearsalCase
from rehearsal_torch.data.estimate import ends_of, percents
from rehearsal_torch.data.finding import OUTSIDE, Finding, outside
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.explorer.charts import curves, densities
from rehearsal_torch.explorer.open_run import Opened
from rehearsal_torch.explorer.server import Asked, Questions, Turns
from rehearsal_torch.files.schema import LARGEST
from rehearsal_torch.reporting.page.data_card import of_alterations
from rehearsal_torch.reporting.page.html import name_of
from rehearsal_torch.reporting.page.page_content import counted, finite, listed, mapping, shown
from rehearsal_torch.reporting.page.reasons import ALTERATIONS, warnings_of_run
from rehearsal_torch.reporting.page.sentences import chances, headline
from rehearsal_torch.surrogates.rehearsal_surrogate import ROUNDING
from rehearsal_torch.user_error import RequestError

MOST = 1000
Numbers = Annotated[dict[str, FiniteFloat], Field(max_length=MOST)]


class CaseAsked(Asked):
    """A question about a case: its context, and the number of a recorded case, whose own bounds apply in
    place of the task's.
    """

    case: int | None = None
    given: Numbers


class SettingAsked(CaseAsked):
    """A question about a setting in a case."""

    set: Numbers


def answer(
    claim: WhatIf, unknown: Sequence[Finding], present: Mapping[str, Any], left: Sequence[Finding] = ()
) -> dict[str, Any]:
    """What the page shows of a claim. `unknown` says why the context lies outside the data, so that no action
    has no number either, `left` why leaving the `present` values has none.
    """
    beyond, more = outside(claim.findings)
    if unknown:
        claim = replace(claim, baseline=None)
    if left and claim.unchanged is not None:
        claim = replace(claim, unchanged=None, net_gain=None)
        more = [*more, f"leaving the present values has no number: {outside(left)[0]}"]
    withheld = f"refused: {claim.refused}" if claim.refused else beyond
    apart = (*OUTSIDE, "no_gain", *(["gain"] if withheld else []))
    others = [finding.text for finding in claim.findings if finding.kind not in apart]
    return {
        "setting": dict(claim.alteration),
        "withheld": withheld,
        "also": beyond if claim.refused else "",
        "estimate": None if withheld else _numbers(claim.estimate),
        "baseline": _numbers(claim.baseline),
        "unchanged": None if withheld else _numbers(claim.unchanged),
        "cost": claim.cost,
        "net_gain": None if withheld or unknown else _numbers(claim.net_gain),
        "told": None if withheld else _told(claim),
        "sentence": withheld or _sentence(claim, present),
        "warnings": list(dict.fromkeys([*more, *others])),
        "against": "" if withheld or not claim.against else f"The method would not set this: {claim.against}",
        "near": None if withheld or claim.distance is None else round(claim.distance, 2),
        "beyond": "" if withheld else _beyond(claim),
    }


def _beyond(claim: WhatIf) -> str:
    """For which share of such cases no row is near, and the hull, in words; empty if unknown."""
    if claim.beyond is None or claim.hull is None:
        return ""
    share, lower, upper = percents([claim.beyond, *claim.hull])
    anything = f"if anything may happen there, the interval is {lower} to {upper}"
    return f"For {share} of such cases no row is near this setting; {anything}."


def decision_answer(
    decision: Decision,
    present: Mapping[str, float],
    codings: Mapping[str, Coding] | None = None,
    wanted: str = "",
    units: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What the page shows of a decision of the method: headline and sentences, in the words of a report."""
    setting = decision.to_dict()["alteration"]
    plain = said(decision.to_dict() | {"present": dict(present)}, codings or {})
    beyond, more = outside(decision.findings)
    sentences = chances(plain, wanted)
    if decision.alteration is None and decision.reason:
        sentences.append(f"Why: {decision.reason}.")
    others = [*more, *(finding.text for finding in decision.findings if finding.kind not in OUTSIDE)]
    overturned = None if beyond or decision.sensitivity is None else decision.sensitivity.sentence()
    if overturned:
        sentences.append(f"{overturned[0].upper()}{overturned[1:]}.")
    return {
        "status": decision.status,
        "undecided": decision.undecided,
        "headline": headline(plain, units or {}),
        "said": sentences,
        "warnings": others,
        "setting": setting,
        "outside": bool(beyond),
    }


def _numbers(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate.to_dict()


def _told(claim: WhatIf) -> dict[str, str]:
    """The numbers of a claim as they are said; empty texts for what has none."""
    estimate = claim.estimate
    point, *ends = percents([estimate.point, *(ends_of(estimate) or ())], claim.decimals)
    beside = {"baseline": claim.baseline, "unchanged": claim.unchanged}
    # What the claim is compared with has its decimals.
    compared = "baseline" if claim.unchanged is None else "unchanged"
    texts = {
        name: percents([other.point], claim.decimals if name == compared else 0)[0] if other else ""
        for name, other in beside.items()
    }
    interval = f"{100 * float(estimate.level or 0):g}% interval {ends[0]} to {ends[1]}" if ends else ""
    return {"point": point, "interval": interval, **texts}


def _sentence(claim: WhatIf, present: Mapping[str, Any]) -> str:
    """The claim in a sentence, with that of the present values and of no action if there is one."""
    left = " and ".join(f"{name} left at {shown(present[name])}" for name in claim.setting if name in present)
    return claim.claim(left or "the present values")


def asked(task: RehearsalTask, ranges: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    """What the page asks for: each variable of the context with its ``range``, or with its ``levels``, each a
    ``text`` and the ``values`` of its coded columns.
    """
    variables: list[dict[str, Any]] = []
    for name in task.variables(task.context):
        if (coding := task.coded.get(name)) is None:
            variables.append({"name": name, "range": ranges.get(name)})
            continue
        rows = zip(coding.levels, coding.rows.tolist(), strict=True)
        levels = [{"text": text, "values": dict(zip(coding.columns, row, strict=True))} for text, row in rows]
        variables.append({"name": name, "range": None, "levels": levels})
    return variables


def offered(task: RehearsalTask, ranges: Mapping[str, list[float]]) -> dict[str, dict[str, Any]]:
    """What the page offers for each action: its ``bounds``, or its ``levels``, with their ``texts`` if it has
    some, and the ``range`` of the observations. The levels of classes are their places.
    """
    actions: dict[str, dict[str, Any]] = {}
    for name in task.variables(task.box.names):
        coding = task.coded.get(name)
        if coding is not None and coding.reference is not None:
            levels = [float(index) for index in offered_places(coding, task.box.levels)]
            ends, known = [levels[0], levels[-1]], [levels[0], levels[-1]]
        else:
            levels = list(task.box.levels.get(name, ()))
            ends, known = list(task.box.bounds()[name]), ranges.get(name, [])
        texts = None if coding is None else list(coding.levels)
        actions[name] = {"bounds": ends, "levels": levels or None, "texts": texts, "range": known or None}
    return actions


def usual(task: RehearsalTask, means: Mapping[str, float]) -> dict[str, float]:
    """A first value for each coded column of the context: the mean in three digits, the level that is next to
    it, or the most frequent class.
    """
    first_values = {name: _short(means[name]) for name in task.context if name in means}
    for coding in task.codings:
        if not set(coding.columns) <= set(first_values):
            continue
        known = [means[name] for name in coding.columns]
        if coding.reference is None:
            rest = min(range(len(coding.levels)), key=lambda index: abs(index - known[0]))
        else:
            shares = {level: means.get(f"{coding.name}={level}", 1 - sum(known)) for level in coding.levels}
            rest = max(range(len(coding.levels)), key=lambda index: shares[coding.levels[index]])
        first_values |= dict(zip(coding.columns, coding.rows[rest].tolist(), strict=True))
    return first_values


def _short(value: float) -> float:
    """A number with three significant digits, as a first value to change."""
    return float(f"{value:.3g}") if math.isfinite(value) else 0.0


# The cases of a run that the page offers.
CASES = 200


class RehearsalSession:
    """The answers of one fitted method.

    What a case is asked with is its whole context and, where it is a recorded one, its number; a setting has
    a value for all variables of a candidate set, of classes their places. What cannot be used raises
    `RequestError`.
    """

    page = "explorer.html"

    def __init__(self, opened: Opened) -> None:
        self.model, self.material, self.notes = opened.model, opened.material, opened.notes
        self._words = self.model.task.worded
        # The page sends and gets codes; what it says has the texts.
        coded = self.model.task.coded
        self.recorded = [in_line(decision, coded) for decision in self.material.run.decisions[:CASES]]
        self._turns = Turns()

    def questions(self) -> Questions:
        """What it can be asked."""
        return {
            "what-if": (SettingAsked, self.what_if),
            "charts": (SettingAsked, self.charts),
            "recommend": (CaseAsked, self.recommend),
        }

    def describe(self) -> dict[str, Any]:
        """What the page shows before anything is asked: question, variables, cases and cautions."""
        task, overlap = self.model.task, self.model.surrogate.overlap
        known = overlap.fitted and overlap.known
        ranges = (
            {
                name: [float(overlap.lowest[column]), float(overlap.highest[column])]
                for column, name in enumerate(overlap.names)
            }
            if known
            else {}
        )
        means = dict(zip(overlap.names, overlap.location.tolist(), strict=True)) if known else {}
        every = len(self.material.run.decisions)
        return {
            "title": self.material.run.path.resolve().name,
            "method": self.model.name,
            "use": intended_use(task),
            "fitted": self._fitted(),
            "question": of_alterations(self.material.card, any(map(self._present, self.recorded))),
            "assumptions": list(ALTERATIONS),
            "limits": list(LIMITS),
            "cautions": [*self.notes, *warnings_of_run(self.material)],
            "context": asked(task, ranges),
            "usual": usual(task, means),
            "sets": [list(task.variables(names)) for names in task.candidates],
            "actions": offered(task, ranges),
            "cases": [
                {
                    "name": name_of(decision),
                    "given": _numbers_of(decision, "given", self.model.task.context),
                    "bounds": self._bounds(decision),
                    "present": in_places(self._present(decision), task.codings),
                    "set": in_places(mapping(decision.get("alteration")), task.codings) or None,
                }
                for decision in self.recorded
            ],
            "more": max(0, every - len(self.recorded)),
        }

    def first_answer(self) -> None:
        """Asks for one claim, so that a method that has none is known before a page is opened."""
        described = self.describe()
        whole = [
            number
            for number, asked_case in enumerate(described["cases"])
            if len(asked_case["given"]) == len(self.model.task.context)
        ]
        case = whole[0] if whole else None
        given = described["usual"] if case is None else described["cases"][case]["given"]
        if len(given) < len(self.model.task.context):
            return
        asked_case = self._problem(case, given).case(0)
        setting = {
            name: asked_case.levels.get(name, asked_case.feasible[name])[0]
            for name in self.model.task.candidates[0]
        }
        setting = in_places(setting, asked_case.codings)
        self.what_if(case, given, setting)

    def what_if(self, case: int | None, given: Mapping[str, float], setting: Mapping[str, float]) -> Any:
        """The claim of a setting in a case (`answer`)."""
        problem = self._problem(case, given)
        with self._turns.turn(), in_words(), undisturbed():
            asked_case, unknown = problem.case(0), self._unknown(problem.given[0])
            claim = what_if(self.model, asked_case, self._indicated(setting))
            left = self._left(asked_case, tuple(claim.alteration))
            return self._placed(answer(claim, unknown, self._words(asked_case.present), left))

    def charts(self, case: int | None, given: Mapping[str, float], setting: Mapping[str, float]) -> Any:
        """The curves of a setting, and the outcomes beside the region (`charts`)."""
        problem = self._problem(case, given)
        asked_case, unknown = problem.case(0), self._unknown(problem.given[0])
        with self._turns.turn(), in_words(), undisturbed():
            claim = what_if(self.model, asked_case, self._indicated(setting))
            shown = answer(claim, unknown, self._words(asked_case.present))
            # In the order of the candidate set, as everything else.
            values = claim.alteration
            return {
                "baseline": shown["baseline"],
                "present": in_places(asked_case.present, asked_case.codings),
                "curves": curves(self.model, asked_case, in_places(values, asked_case.codings), _withheld),
                "outcomes": None
                if shown["withheld"]
                else densities(self.model, asked_case, values, not unknown),
                "withheld": bool(shown["withheld"]),
            }

    def recommend(self, case: int | None, given: Mapping[str, float]) -> Any:
        """What the method decides in a case (`decision_answer`)."""
        problem = self._problem(case, given)
        with self._turns.turn(), in_words(), undisturbed():
            (answer,) = decided(
                problem, self.model.surrogate, self.model.method, self.model.seed,
                overturning=self.model.overturning,
            )  # fmt: skip
        task, units = self.model.task, self.model.units
        return self._placed(
            decision_answer(answer.decision, problem.present[0], task.coded, wanted_in(task), units)
        )

    def _placed(self, shown: dict[str, Any]) -> dict[str, Any]:
        """An answer whose setting has the places of classes."""
        return shown | {"setting": shown["setting"] and in_places(shown["setting"], self.model.task.codings)}

    def _indicated(self, setting: Mapping[str, float]) -> dict[str, Any]:
        """A setting with indicators in place of the places of classes."""
        try:
            return in_indicators(setting, self.model.task.codings)
        except ValueError as error:
            raise RequestError(str(error)) from None

    def _left(self, asked_case: RehearsalCase, names: tuple[str, ...]) -> list[Finding]:
        """Why leaving the present values of variables would lie outside the data; empty if it would not."""
        overlap, task = self.model.surrogate.overlap, self.model.task
        now = asked_case.kept(names)
        if now is None or not overlap.fitted or not overlap.known:
            return []
        reasons = overlap.outside(names, now.values.tolist())
        if not reasons and names in task.candidates:
            far = float(overlap.distance(names, task.given([asked_case]), now.values.unsqueeze(0))[0])
            if far > overlap.limit(names) + ROUNDING:
                text = f"the 5th nearest observation is {far:.2f} standard deviations away"
                return [Finding("support", text)]
        return reasons

    def _fitted(self) -> str:
        """What the method was fitted to, in a sentence; empty if the card does not say."""
        rows, source = finite(self.material.card.get("rows")), self.material.card.get("source")
        if rows is None:
            return ""
        of = f" of {source}" if isinstance(source, str) else ""
        return f"Answers of {self.model.name or 'the method'}, fitted to {counted(int(rows), 'row')}{of}."

    def _problem(self, case: int | None, given: Mapping[str, float]) -> NewCases:
        """The case that is asked about, alone."""
        task = self.model.task
        if case is not None and not 0 <= case < len(self.recorded):
            raise RequestError(f"case: expected one of the {len(self.recorded)} cases; got {case}")
        missing = [name for name in task.context if name not in given]
        unknown = [name for name in given if name not in task.context]
        if missing or unknown:
            problems = [f"no value for {', '.join(missing)}"] if missing else []
            problems += [f"{', '.join(unknown)} is no variable of the context"] if unknown else []
            raise RequestError(f"the case: {'; '.join(problems)}; expected {', '.join(task.context)}")
        large = [name for name, value in given.items() if not abs(value) <= LARGEST]
        if large:
            raise RequestError(f"{large[0]}: expected a number of at most {LARGEST:g} in size")
        odd = [
            coding
            for coding in task.codings
            if set(coding.columns) <= set(given)
            and coding.text([given[name] for name in coding.columns]) is None
        ]
        if odd:
            raise RequestError(f"{odd[0].name}: expected one of {', '.join(odd[0].levels)}")
        row = torch.tensor([[float(given[name]) for name in task.context]], dtype=torch.float64)
        recorded = {} if case is None else self.recorded[case]
        costs = _numbers_of(recorded, "costs", tuple(mapping(recorded.get("costs"))))
        stated = {name: cost for name, cost in costs.items() if cost >= 0}
        if any(coding.column and name not in stated for name, coding in task.costs.items()):
            # Costs that each case states are not known of a case that somebody makes up.
            task = replace(task, costs={}, worth=None)
        bounds = {name: (low, high) for name, (low, high) in self._bounds(recorded).items()}
        given_row = row.reshape(1, len(task.context))
        return NewCases(task, given_row, ("the case",), (self._present(recorded),), bounds, (stated,))

    def _present(self, decision: Mapping[str, Any]) -> dict[str, float]:
        """The present values of actions that a recorded case states."""
        return _numbers_of(decision, "present", self.model.task.box.names)

    def _bounds(self, decision: Mapping[str, Any]) -> dict[str, list[float]]:
        """The bounds that a recorded case has of its own, within those of the task."""
        bounds = {}
        for name, stated in mapping(decision.get("bounds")).items():
            ends = [finite(end) for end in listed(stated)]
            if name not in self.model.task.box.names or len(ends) != 2:
                continue
            lower, upper = self.model.task.box.bounds()[name]
            low, high = (
                outer if own is None else min(max(own, lower), upper)
                for own, outer in zip(ends, (lower, upper), strict=True)
            )
            if low <= high:
                bounds[name] = [low, high]
        return bounds

    def _unknown(self, given: Tensor) -> list[Finding]:
        """Why a context lies outside the range of the observations; empty if it does not."""
        overlap = self.model.surrogate.overlap
        if not overlap.fitted or not overlap.known:
            return []
        return overlap.outside(self.model.task.context, given.tolist())


def _withheld(claim: WhatIf) -> bool:
    return bool(claim.refused) or any(finding.kind in OUTSIDE for finding in claim.findings)


def _numbers_of(decision: Mapping[str, Any], part: str, names: Sequence[str]) -> dict[str, float]:
    """What a recorded case states under these names, as far as it is a number."""
    stated = mapping(decision.get(part))
    numbers = {name: finite(stated[name]) for name in names if name in stated}
    return {name: value for name, value in numbers.items() if value is not None}
