"""Session of a fitted rehearsal method: its description, claims and decisions as plain data for a page.

A claim is shown with its number, its interval and its sentence, beside that of no action and, where the case
states the present values of what is set, of leaving these; or with the reason for which it has no number:

    outside the data    a context variable or an action lies outside the range of the observations
                        (``range:``), or few of them are near (``support:``)
    refused             the method cannot answer

A number that is withheld does not leave the server. Nothing that is asked is kept.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import torch
from pydantic import Field, FiniteFloat
from torch import Tensor

from rehearsal_torch.api.fit_and_decide import decided, in_words, undisturbed
from rehearsal_torch.api.rehearsal_model import LIMITS, intended_use
from rehearsal_torch.api.rehearsal_request import NewCases
from rehearsal_torch.api.what_if import what_if
from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import line_in_codes, line_in_texts, region_in_words
from rehearsal_torch.data.codings.one_hot_actions import in_indicators, in_places, offered_places
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finding import OUTSIDE, Finding, outside
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.explorer.charts import (
    answer,
    claims_picture,
    curve,
    curve_picture,
    densities,
    outcome_picture,
)
from rehearsal_torch.explorer.open_run import Opened, beside, cautions_of, source_of
from rehearsal_torch.explorer.server import Asked, Question, Questions, Turns
from rehearsal_torch.files.schema import LARGEST
from rehearsal_torch.reporting import no_action_score
from rehearsal_torch.reporting.labels import with_unit
from rehearsal_torch.reporting.page.data_card import of_alterations, region
from rehearsal_torch.reporting.page.html import name_of
from rehearsal_torch.reporting.page.page_content import (
    and_list,
    counted,
    finite,
    listed,
    mapping,
    named,
    shown,
)
from rehearsal_torch.reporting.page.reasons import ALTERATIONS
from rehearsal_torch.reporting.page.sentences import chances, headline
from rehearsal_torch.surrogates.rehearsal_surrogate import ROUNDING
from rehearsal_torch.user_error import RequestError

# Values of a question, and actions with a curve, at most.
MOST, MOST_CURVES = 1000, 6
Numbers = Annotated[dict[str, FiniteFloat], Field(max_length=MOST)]


class CaseAsked(Asked):
    """What the form holds: a case, by its number if it is a recorded one, and a setting.

    Attributes:
        given: Its context; of coded variables, the number of a level is in `levels`.
        set: The values of the candidate set; those of actions in other sets are in `other`.
        chosen: The candidate set that is to be shown.
    """

    case: int | None = None
    given: Numbers = Field(default_factory=dict)
    levels: Annotated[dict[str, int], Field(max_length=MOST)] = Field(default_factory=dict)
    set: Numbers = Field(default_factory=dict)
    other: Numbers = Field(default_factory=dict)
    chosen: int = 0

    @property
    def values(self) -> dict[str, float]:
        """The values of all actions."""
        return {**self.other, **self.set}


def offered(task: RehearsalTask) -> dict[str, dict[str, Any]]:
    """The actions of the page: ``bounds``, ``levels`` if there are some (of classes places), ``texts``."""
    actions: dict[str, dict[str, Any]] = {}
    for name in task.variables(task.box.names):
        coding = task.coded.get(name)
        if coding is not None and coding.reference is not None:
            levels = [float(index) for index in offered_places(coding, task.box.levels)]
            ends = [levels[0], levels[-1]]
        else:
            levels, ends = list(task.box.levels.get(name, ())), list(task.box.bounds()[name])
        texts = None if coding is None else list(coding.levels)
        actions[name] = {"bounds": ends, "levels": levels or None, "texts": texts}
    return actions


def usual(task: RehearsalTask, means: Mapping[str, float]) -> dict[str, float]:
    """A first value for each coded column of the context: the mean, nearest level or commonest class."""
    observed = {name: means[name] for name in task.context if name in means}
    first_values = {name: float(f"{m:.3g}") if math.isfinite(m) else 0.0 for name, m in observed.items()}
    for coding in task.codings:
        if not set(coding.columns) <= set(first_values):
            continue
        row = [means[name] for name in coding.columns]
        if coding.reference is None:
            level_index = min(range(len(coding.levels)), key=lambda index: abs(index - row[0]))
        else:
            shares = {level: means.get(f"{coding.name}={level}", 1 - sum(row)) for level in coding.levels}
            level_index = max(range(len(coding.levels)), key=lambda index: shares[coding.levels[index]])
        first_values |= dict(zip(coding.columns, coding.rows[level_index].tolist(), strict=True))
    return first_values


def context_field(
    name: str, coding: Coding | None, observed: Sequence[float], given: Mapping[str, float], label: str
) -> dict[str, Any]:
    """The field of a variable of the context, with the texts of its levels if it has some."""
    field: dict[str, Any] = {"name": name, "label": label, "levels": [], "hint": ""} | number(given.get(name))
    if coding is not None:
        values = [given.get(column) for column in coding.columns]
        chosen = coding.rows.tolist().index(values) if values in coding.rows.tolist() else 0
        return field | {"levels": list(coding.levels), "chosen": chosen}
    return field | {"hint": f"observed: {shown(observed[0])} to {shown(observed[1])}" if observed else ""}


def action_field(
    name: str, action: Mapping[str, Any], case: Mapping[str, Any], value: float | None, label: str
) -> dict[str, Any]:
    """The field of an action (of `offered`), at the allowed value nearest to one."""
    (low, high), texts = case["bounds"].get(name, action["bounds"]), action["texts"]
    levels = [level for level in action["levels"] or () if low <= level <= high]
    value = (low + high) / 2 if value is None else min(max(value, low), high)
    value = min(levels, key=lambda level: abs(level - value)) if levels else value
    hints = [] if levels else [f"from {shown(low)} to {shown(high)}"]
    if name in case["present"]:
        hints.append(f"now {level_text(texts, case['present'][name])}")
    choices = [{"value": digits(level), "text": level_text(texts, level)} for level in levels]
    field = {"name": name, "label": label, "levels": choices, "hint": "; ".join(hints)}
    return field | {"low": low, "high": high} | number(value)


def number(value: float | None) -> dict[str, str]:
    """A number as a form shows it, and with all its digits."""
    return {"value": "", "exact": ""} if value is None else {"value": f"{value:.6g}", "exact": digits(value)}


def digits(value: float) -> str:
    """A number with all its digits."""
    return repr(value).removesuffix(".0")


def level_text(texts: Sequence[str] | None, value: float) -> str:
    """A value of an action in words."""
    return shown(value) if texts is None else texts[int(value)]


def decision_answer(
    decision: Decision,
    present: Mapping[str, float],
    codings: Mapping[str, Coding] | None = None,
    wanted: str = "",
    units: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What the page shows of a decision of the method: headline and sentences, in the words of a report."""
    setting = decision.to_dict()["alteration"]
    line = line_in_texts(decision.to_dict() | {"present": dict(present)}, codings or {})
    outside_reason, further = outside(decision.findings)
    sentences = chances(line, wanted)
    if decision.alteration is None and decision.reason:
        sentences.append(f"Why: {decision.reason}.")
    warnings = [*further, *(finding.text for finding in decision.findings if finding.kind not in OUTSIDE)]
    sensitivity = None if outside_reason or decision.sensitivity is None else decision.sensitivity.sentence()
    if sensitivity:
        sentences.append(f"{sensitivity[0].upper()}{sensitivity[1:]}.")
    return {
        "status": decision.status,
        "undecided": decision.undecided,
        "headline": headline(line, units or {}),
        "said": sentences,
        "warnings": warnings,
        "setting": setting,
    }


# Characters of what is wanted in the title, at most.
LONGEST = 50
# Candidate sets whose claims are shown beside each other, and curves that are kept, at most.
SETS, CURVES = 16, 64


class RehearsalSession:
    """The answers of one fitted method; a question that cannot be used raises `RequestError`. A setting has a
    value for all variables of a candidate set, of classes their places.
    """

    page = "cases.html"

    def __init__(self, opened: Opened) -> None:
        self.model, self.material, self.notes = opened.model, opened.material, opened.notes
        self._words = self.model.task.worded
        # The page sends and gets codes; what it says has the texts.
        coded = self.model.task.coded
        self.recorded = [line_in_codes(decision, coded) for decision in self.material.run.decisions]
        self._turns, self._curves = Turns(), dict[str, dict[str, Any]]()
        overlap = self.model.surrogate.overlap
        names = overlap.names if overlap.fitted and overlap.known else ()
        observed = torch.stack([overlap.lowest, overlap.highest], -1).tolist() if names else []
        self._ranges = dict(zip(names, observed, strict=True))
        means = dict(zip(names, overlap.location.tolist() if names else [], strict=True))
        self._usual, self._actions = usual(self.model.task, means), offered(self.model.task)
        self._sets = [self.model.task.variables(names) for names in self.model.task.candidates]

    def questions(self) -> Questions:
        """Its questions, by name."""
        return {
            "controls": Question(CaseAsked, self._picked, ("context", "settings", "recommended")),
            "settings": Question(CaseAsked, self._changed, ("settings", "recommended")),
            "what-if": Question(CaseAsked, self._answered, ("answer",)),
            "charts": Question(CaseAsked, self._pictured, ("charts",)),
            "recommend": Question(CaseAsked, self._recommended, ("recommended",)),
        }

    def describe(self) -> dict[str, Any]:
        """What all parts of the page use: question, variables, cases, and findings beside them."""
        wanted = " and ".join(region(self.material.card))
        wanted = wanted if 0 < len(wanted) <= LONGEST else "a desired outcome"
        return {
            "title": f"{source_of(self.material)}: which action makes {wanted} likely?",
            "method": self.model.name,
            "use": intended_use(self.model.task),
            "fitted": self._fitted_sentence(),
            "held_out": self._held_out(),
            "question": of_alterations(self.material.card, any(map(self._present_values, self.recorded))),
            "assumptions": list(ALTERATIONS),
            "limits": list(LIMITS),
            "cautions": cautions_of(self.material),
            "beside": beside(self.material, self.notes),
            "sets": list(map(list, self._sets)),
            "actions": self._actions,
            "cases": [
                {"name": name_of(decision), "words": named(mapping(decision.get("given")))}
                for decision in self.material.run.decisions
            ],
        }

    def opening(self) -> dict[str, Any]:
        """The first case, before anything is asked."""
        first = CaseAsked(case=0 if self.recorded else None, given=self._usual)
        return self._picked(first) | {"answer": None, "pictures": None}

    def case_of(self, number: int) -> dict[str, Any]:
        """The context, the bounds, the present values and the setting of a recorded case."""
        decision, codings = self.recorded[number], self.model.task.codings
        return {
            "given": _recorded_numbers(decision, "given", self.model.task.context),
            "bounds": self._bounds(decision),
            "present": in_places(self._present_values(decision), codings),
            "set": in_places(mapping(decision.get("alteration")), codings) or None,
        }

    def _given(self, form: CaseAsked) -> tuple[int | None, dict[str, float]]:
        """The case of a form and its context; a case whose context was changed is one of one's own."""
        given, coded = dict(form.given), self.model.task.coded
        for name, level in form.levels.items():
            count = len(coded[name].levels) if name in coded else 0
            if not 0 <= level < count:
                raise RequestError(f"{name}: expected one of its {count} levels; got {level}")
            given |= dict(zip(coded[name].columns, coded[name].rows[level].tolist(), strict=True))
        self._check_case(form.case)
        same = form.case is not None and given == self.case_of(form.case)["given"]
        return (form.case if same else None), given

    def _check_case(self, case: int | None) -> None:
        if case is not None and not 0 <= case < len(self.recorded):
            raise RequestError(f"case: expected one of the {len(self.recorded)} cases; got {case}")

    def _picked(self, form: CaseAsked) -> dict[str, Any]:
        """The fields of another case, with what was decided for it."""
        self._check_case(form.case)
        if form.case is None:
            return self._controls(None, self._given(form)[1], form.chosen, form.values)
        case = self.case_of(form.case)
        values = {**form.values, **case["present"], **(case["set"] or {})}
        chosen = self._set_of(case["set"] or (), form.chosen)
        return self._controls(form.case, {**self._usual, **case["given"]}, chosen, values)

    def _set_of(self, names: Iterable[str], default: int) -> int:
        """The number of the candidate set of these variables."""
        same = (index for index, variables in enumerate(self._sets) if set(variables) == set(names))
        return next(same, default)

    def _changed(self, form: CaseAsked) -> dict[str, Any]:
        """The fields of the action, where the context or the candidate set is another one."""
        case, given = self._given(form)
        return self._controls(case, given, form.chosen, form.values, form.case)

    def _controls(
        self,
        case: int | None,
        given: Mapping[str, float],
        chosen: int,
        values: Mapping[str, float],
        of: int | None = None,
    ) -> dict[str, Any]:
        """The fields of the page; `of` is the case whose context was changed."""
        if not 0 <= chosen < len(self._sets):
            raise RequestError(f"chosen: expected one of the {len(self._sets)} sets; got {chosen}")
        known: dict[str, Any] = {"bounds": {}, "present": {}} if case is None else self.case_of(case)
        fields = {
            name: action_field(name, action, known, values.get(name), self._label(name))
            for name, action in self._actions.items()
        }
        note, names = "", self._sets[chosen]
        if known["bounds"]:
            note = f"The bounds of {and_list(list(known['bounds']))} are those of this case."
        elif case is None and of is not None:
            note = f"It was changed: this is no longer case {name_of(self.material.run.decisions[of])}."
        task = self.model.task
        context = [
            context_field(name, task.coded.get(name), self._ranges.get(name, ()), given, self._label(name))
            for name in task.variables(task.context)
        ]
        own, other = [fields.pop(name) for name in names], list(fields.values())
        controls = {"context": context, "chosen": chosen, "set": own, "other": other, "note": note}
        # What was decided for another case is left standing no longer.
        return {"controls": controls, "decision": None}

    def _label(self, name: str) -> str:
        return with_unit(name, self.model.units.get(name, ""))

    def _answered(self, form: CaseAsked) -> dict[str, Any]:
        return {"answer": self.what_if(*self._given(form), form.set)}

    def _recommended(self, form: CaseAsked) -> dict[str, Any]:
        case, given = self._given(form)
        decision = self.recommend(case, given)
        setting = decision["setting"] or {}
        fields = self._controls(case, given, self._set_of(setting, form.chosen), {**form.values, **setting})
        return {**fields, "decision": decision}

    def _pictured(self, form: CaseAsked) -> dict[str, Any]:
        """The pictures of a setting, and the claims of all candidate sets at the values of the form."""
        case, given = self._given(form)
        data, rows = self.charts(case, given, form.set), self._claims_of_sets(case, given, form)
        own = next(row for row in rows if row["chosen"])
        pictures = [claims_picture(rows)]
        # Of an action with one level there is nothing to see.
        for series in (series for series in data["curves"] if len(series["at"]) > 1):
            name = series["name"]
            present, label = data["present"].get(name), self._label(name)
            setting = form.set[name]
            pictures.append(curve_picture(series, setting, own["estimate"], data["baseline"], present, label))
        if data["outcomes"]:
            pictures += map(outcome_picture, data["outcomes"]["coordinates"])
        known, more = any(row["unchanged"] for row in rows), len(self._sets) - len(rows)
        return {
            "pictures": pictures,
            "rows": rows,
            "known": known,
            "more": more,
            "outcomes": data["outcomes"],
        }

    def _claims_of_sets(
        self, case: int | None, given: Mapping[str, float], form: CaseAsked
    ) -> list[dict[str, Any]]:
        """The answer for each candidate set, the one that is set among them."""
        values = form.values
        sets = [names for names in self._sets if set(names) == set(form.set)]
        sets += [names for names in self._sets if names not in sets and set(names) <= set(values)]
        shown_sets = sorted(sets[:SETS], key=self._sets.index)
        answers = [self.what_if(case, given, {name: values[name] for name in names}) for names in shown_sets]
        return [
            {**claim, "name": " and ".join(names), "chosen": set(names) == set(form.set)}
            for names, claim in zip(shown_sets, answers, strict=True)
        ]

    def first_answer(self) -> None:
        """Computes one claim, so that a method that has none fails before a page is opened."""
        contexts: list[tuple[int | None, dict[str, float]]] = [(None, self._usual)]
        contexts[:0] = [(case, self.case_of(case)["given"]) for case in range(len(self.recorded))]
        complete = [pair for pair in contexts if len(pair[1]) == len(self.model.task.context)]
        if not complete:
            return
        case, given = complete[0]
        asked_case, names = self._problem(case, given).case(0), self.model.task.candidates[0]
        setting = {name: asked_case.levels.get(name, asked_case.feasible[name])[0] for name in names}
        self.what_if(case, given, in_places(setting, asked_case.codings))

    def what_if(self, case: int | None, given: Mapping[str, float], setting: Mapping[str, float]) -> Any:
        """The claim of a setting in a case (`answer`)."""
        problem = self._problem(case, given)
        with self._turns.turn(), in_words(), undisturbed():
            asked_case, unknown = problem.case(0), self._outside_context(problem.given[0])
            claim = what_if(self.model, asked_case, self._with_indicators(setting))
            left = self._outside_if_unchanged(asked_case, tuple(claim.alteration))
            return self._with_places(answer(claim, unknown, self._words(asked_case.present), left))

    def charts(self, case: int | None, given: Mapping[str, float], setting: Mapping[str, float]) -> Any:
        """The curves of a setting, and its outcomes beside the region (`explorer.charts`)."""
        problem = self._problem(case, given)
        asked_case, unknown = problem.case(0), self._outside_context(problem.given[0])
        with self._turns.turn(), in_words(), undisturbed():
            claim = what_if(self.model, asked_case, self._with_indicators(setting))
            claim_data = answer(claim, unknown, self._words(asked_case.present))
            # In the order of the candidate set, as everything else.
            values, withheld = claim.alteration, bool(claim_data["withheld"])
            return {
                "baseline": claim_data["baseline"],
                "present": in_places(asked_case.present, asked_case.codings),
                "curves": self._curves_of(
                    case, problem.given[0].tolist(), asked_case, in_places(values, asked_case.codings)
                ),
                "outcomes": None if withheld else densities(self.model, asked_case, values, not unknown),
                "withheld": withheld,
            }

    def _curves_of(
        self,
        case: int | None,
        given: Sequence[float],
        asked_case: RehearsalCase,
        setting: Mapping[str, float],
    ) -> list[dict[str, Any]]:
        """The curve of each action; one that only its own action has moved along is not computed again."""
        found = []
        for name in list(setting)[:MOST_CURVES]:
            key = repr((case, given, name, {**setting, name: None}))
            if key not in self._curves:
                if len(self._curves) >= CURVES:
                    self._curves.clear()
                self._curves[key] = curve(self.model, asked_case, setting, name)
            found.append(self._curves[key])
        return found

    def recommend(self, case: int | None, given: Mapping[str, float]) -> Any:
        """What the method decides in a case (`decision_answer`)."""
        problem = self._problem(case, given)
        with self._turns.turn(), in_words(), undisturbed():
            (answer,) = decided(
                problem, self.model.surrogate, self.model.method, self.model.seed,
                overturning=self.model.overturning,
            )  # fmt: skip
        task, units = self.model.task, self.model.units
        return self._with_places(
            decision_answer(answer.decision, problem.present[0], task.coded, region_in_words(task), units)
        )

    def _with_places(self, data: dict[str, Any]) -> dict[str, Any]:
        """The data with the setting of classes as places."""
        return data | {"setting": data["setting"] and in_places(data["setting"], self.model.task.codings)}

    def _with_indicators(self, setting: Mapping[str, float]) -> dict[str, Any]:
        """The setting with indicators in place of the places of classes."""
        try:
            return in_indicators(setting, self.model.task.codings)
        except ValueError as error:
            raise RequestError(str(error)) from None

    def _outside_if_unchanged(self, asked_case: RehearsalCase, names: tuple[str, ...]) -> list[Finding]:
        """Why leaving the present values of variables would lie outside the data; empty if it would not."""
        overlap, task = self.model.surrogate.overlap, self.model.task
        present = asked_case.kept(names)
        if present is None or not overlap.fitted or not overlap.known:
            return []
        reasons = overlap.outside(names, present.values.tolist())
        if not reasons and names in task.candidates:
            distance = float(
                overlap.distance(names, task.given([asked_case]), present.values.unsqueeze(0))[0]
            )
            if distance > overlap.limit(names) + ROUNDING:
                text = f"the 5th nearest observation is {distance:.2f} standard deviations away"
                return [Finding("support", text)]
        return reasons

    def _fitted_sentence(self) -> str:
        rows, source = finite(self.material.card.get("rows")), self.material.card.get("source")
        if rows is None:
            return ""
        origin = f" of {source}" if isinstance(source, str) else ""
        return f"Answers of {self.model.name or 'the method'}, fitted to {counted(int(rows), 'row')}{origin}."

    def _held_out(self) -> str:
        """How well the method predicts rows that it has not seen, in a sentence; empty if unknown."""
        run, held_out = self.material.run, self.model.card.get("held_out")
        if not run.choices:
            return str(held_out.get("in words", "") if isinstance(held_out, Mapping) else held_out or "")
        score = None if run.held_out_seen else no_action_score.scored(run)
        return score.line(run.held_out_seen is not None) if score else no_action_score.line(run)

    def _problem(self, case: int | None, given: Mapping[str, float]) -> NewCases:
        """The case that a question is about, as a problem of one case."""
        task = self.model.task
        self._check_case(case)
        missing = [name for name in task.context if name not in given]
        unknown = [name for name in given if name not in task.context]
        if missing or unknown:
            problems = [f"no value for {', '.join(missing)}"] if missing else []
            problems += [f"{', '.join(unknown)} is no variable of the context"] if unknown else []
            raise RequestError(f"the case: {'; '.join(problems)}; expected {', '.join(task.context)}")
        large = [name for name, value in given.items() if not abs(value) <= LARGEST]
        if large:
            raise RequestError(f"{large[0]}: expected a number of at most {LARGEST:g} in size")
        uncoded = [
            coding
            for coding in task.codings
            if set(coding.columns) <= set(given)
            and coding.text([given[name] for name in coding.columns]) is None
        ]
        if uncoded:
            raise RequestError(f"{uncoded[0].name}: expected one of {', '.join(uncoded[0].levels)}")
        recorded = {} if case is None else self.recorded[case]
        costs = _recorded_numbers(recorded, "costs", tuple(mapping(recorded.get("costs"))))
        prices = {name: cost for name, cost in costs.items() if cost >= 0}
        if any(coding.column and name not in prices for name, coding in task.costs.items()):
            # A case that somebody makes up has no costs of its own.
            task = replace(task, costs={}, worth=None)
        bounds = {name: (low, high) for name, (low, high) in self._bounds(recorded).items()}
        row = torch.tensor([[float(given[name]) for name in task.context]], dtype=torch.float64)
        return NewCases(task, row, ("the case",), (self._present_values(recorded),), bounds, (prices,))

    def _present_values(self, decision: Mapping[str, Any]) -> dict[str, float]:
        return _recorded_numbers(decision, "present", self.model.task.box.names)

    def _bounds(self, decision: Mapping[str, Any]) -> dict[str, list[float]]:
        """The bounds of its own that a recorded case has, within those of the task."""
        bounds = {}
        for name, stated in mapping(decision.get("bounds")).items():
            ends = [finite(end) for end in listed(stated)]
            if name not in self.model.task.box.names or len(ends) != 2:
                continue
            lower, upper = self.model.task.box.bounds()[name]
            low, high = (
                limit if bound is None else min(max(bound, lower), upper)
                for bound, limit in zip(ends, (lower, upper), strict=True)
            )
            if low <= high:
                bounds[name] = [low, high]
        return bounds

    def _outside_context(self, given: Tensor) -> list[Finding]:
        """Why a context lies outside the range of the observations; empty if it does not."""
        overlap = self.model.surrogate.overlap
        if not overlap.fitted or not overlap.known:
            return []
        return overlap.outside(self.model.task.context, given.tolist())


def _recorded_numbers(decision: Mapping[str, Any], part: str, names: Sequence[str]) -> dict[str, float]:
    """The finite numbers that a recorded case states under these names."""
    stated = mapping(decision.get(part))
    numbers = {name: finite(stated[name]) for name in names if name in stated}
    return {name: value for name, value in numbers.items() if value is not None}
