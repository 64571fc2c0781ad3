"""A fitted rehearsal method that is asked by a page: its description, and its answers as plain data.

One question is answered at a time, since a method draws from torch's random state. Nothing that is asked is
kept.
"""

import math
from collections.abc import Mapping
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.explorer.answers import OUTSIDE, answer, decision_answer
from rehearsal_torch.explorer.charts import curves, densities
from rehearsal_torch.explorer.recorded_model import Opened
from rehearsal_torch.files.schema import LARGEST
from rehearsal_torch.reporting.page.assumptions import ALTERATIONS
from rehearsal_torch.reporting.page.cautions import of_the_run
from rehearsal_torch.reporting.page.grouped import name_of
from rehearsal_torch.reporting.page.material import counted, finite, listed, mapping
from rehearsal_torch.reporting.page.question import of_alterations
from rehearsal_torch.verbs.configured import decisions, in_words, undisturbed
from rehearsal_torch.verbs.methods import RequestError
from rehearsal_torch.verbs.model_card import LIMITS, intended_use
from rehearsal_torch.verbs.new_cases import NewCases
from rehearsal_torch.verbs.what_if import WhatIf, what_if

# The cases of a run that the page offers.
CASES = 200


class RehearsalSession:
    """The answers of one fitted method.

    Args:
        found: The method and what its folder says.
    """

    def __init__(self, found: Opened) -> None:
        self.model, self.material, self.notes = found.model, found.material, found.notes
        self.recorded = self.material.run.decisions[:CASES]
        self._one_at_a_time = Lock()

    def describe(self) -> dict[str, Any]:
        """What the page shows before anything is asked: question, variables, cases and cautions."""
        task, overlap = self.model.task, self.model.surrogate.overlap
        known = overlap.fitted and overlap.known
        ranges = (
            {
                name: [float(overlap.lowest[place]), float(overlap.highest[place])]
                for place, name in enumerate(overlap.names)
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
            "cautions": [*self.notes, *of_the_run(self.material)],
            "context": [{"name": name, "range": ranges.get(name)} for name in task.context],
            "usual": {name: _short(means[name]) for name in task.context if name in means},
            "sets": [list(names) for names in task.candidates],
            "actions": {
                name: {
                    "bounds": list(bounds),
                    "levels": list(task.box.levels[name]) if name in task.box.levels else None,
                    "range": ranges.get(name),
                }
                for name, bounds in task.box.bounds().items()
            },
            "cases": [
                {
                    "name": name_of(one),
                    "given": self._given(one),
                    "bounds": self._bounds(one),
                    "set": mapping(one.get("alteration")) or None,
                }
                for one in self.recorded
            ],
            "more": max(0, every - len(self.recorded)),
        }

    def first_answer(self) -> None:
        """Asks for one claim, so that a method that has none is known before a page is opened.

        Raises:
            RequestError: if the method has no claims with intervals.
        """
        told = self.describe()
        whole = [
            place for place, one in enumerate(told["cases"]) if len(one["given"]) == len(told["context"])
        ]
        case = whole[0] if whole else None
        given = told["usual"] if case is None else told["cases"][case]["given"]
        if len(given) < len(told["context"]):
            return
        one = self._problem(case, given).case(0)
        setting = {name: one.levels.get(name, one.feasible[name])[0] for name in told["sets"][0]}
        self.what_if(case, given, setting)

    def what_if(self, case: int | None, given: Mapping[str, float], setting: Mapping[str, float]) -> Any:
        """The claim of a setting in a case (`answers.answer`).

        Args:
            case: The number of a recorded case, whose own bounds apply; None for the task's.
            given: The context, complete.
            setting: Values for all variables of a candidate set.

        Raises:
            RequestError: if the case or the setting cannot be used.
        """
        problem = self._problem(case, given)
        with self._one_at_a_time, in_words(), undisturbed():
            one = problem.case(0)
            return answer(what_if(self.model, one, setting), self._unknown(problem.given[0]), one.present)

    def charts(self, case: int | None, given: Mapping[str, float], setting: Mapping[str, float]) -> Any:
        """The curves of a setting, and the outcomes beside the region (`charts`); see `what_if`."""
        problem = self._problem(case, given)
        one, unknown = problem.case(0), self._unknown(problem.given[0])
        with self._one_at_a_time, in_words(), undisturbed():
            found = what_if(self.model, one, setting)
            shown = answer(found, unknown, one.present)
            # In the order of the candidate set, as everything else.
            setting = found.alteration
            return {
                "baseline": shown["baseline"],
                "curves": curves(self.model, one, setting, _withheld),
                "outcomes": None if shown["withheld"] else densities(self.model, one, setting, not unknown),
                "withheld": bool(shown["withheld"]),
            }

    def recommend(self, case: int | None, given: Mapping[str, float]) -> Any:
        """What the method decides in a case (`answers.decision_answer`); see `what_if`."""
        problem = self._problem(case, given)
        with self._one_at_a_time, in_words(), undisturbed():
            (made,) = decisions(
                problem, self.model.surrogate, self.model.method, self.model.seed,
                overturning=self.model.overturning,
            )  # fmt: skip
        return decision_answer(made, problem.present[0])

    def _fitted(self) -> str:
        """What the method was fitted to, in a sentence; empty if the card does not say."""
        rows, source = finite(self.material.card.get("rows")), self.material.card.get("source")
        if rows is None:
            return ""
        of = f" of {source}" if isinstance(source, str) else ""
        return f"Answers of {self.model.name or 'the method'}, fitted to {counted(int(rows), 'row')}{of}."

    def _problem(self, case: int | None, given: Mapping[str, float]) -> NewCases:
        """The case that is asked about, alone.

        Raises:
            RequestError: if there is no such case, or the context is incomplete or out of bounds.
        """
        task = self.model.task
        if case is not None and not 0 <= case < len(self.recorded):
            raise RequestError(f"case: expected one of the {len(self.recorded)} cases; got {case}")
        missing = [name for name in task.context if name not in given]
        unknown = [name for name in given if name not in task.context]
        if missing or unknown:
            said = [f"no value for {', '.join(missing)}"] if missing else []
            said += [f"{', '.join(unknown)} is no variable of the context"] if unknown else []
            raise RequestError(f"the case: {'; '.join(said)}; expected {', '.join(task.context)}")
        large = [name for name, value in given.items() if not abs(value) <= LARGEST]
        if large:
            raise RequestError(f"{large[0]}: expected a number of at most {LARGEST:g} in size")
        row = torch.tensor([[float(given[name]) for name in task.context]], dtype=torch.float64)
        bounds = {} if case is None else self._bounds(self.recorded[case])
        present = {} if case is None else self._present(self.recorded[case])
        return NewCases(task, row.reshape(1, len(task.context)), ("the case",), (present,), _pairs(bounds))

    def _present(self, one: Mapping[str, Any]) -> dict[str, float]:
        """The present values of actions that a recorded case states."""
        stated = {name: finite(value) for name, value in mapping(one.get("present")).items()}
        return {name: value for name in self.model.task.box.names if (value := stated.get(name)) is not None}

    def _given(self, one: Mapping[str, Any]) -> dict[str, float]:
        """The context of a recorded case, as far as it is one of numbers."""
        stated = {name: finite(value) for name, value in mapping(one.get("given")).items()}
        return {name: value for name in self.model.task.context if (value := stated.get(name)) is not None}

    def _bounds(self, one: Mapping[str, Any]) -> dict[str, list[float]]:
        """The bounds that a recorded case has of its own, within those of the task."""
        found = {}
        for name, stated in mapping(one.get("bounds")).items():
            ends = [finite(each) for each in listed(stated)]
            if name not in self.model.task.box.names or len(ends) != 2:
                continue
            lower, upper = self.model.task.box.bounds()[name]
            low, high = (
                outer if own is None else min(max(own, lower), upper)
                for own, outer in zip(ends, (lower, upper), strict=True)
            )
            if low <= high:
                found[name] = [low, high]
        return found

    def _unknown(self, given: Tensor) -> list[str]:
        """Why a context lies outside the range of the observations; empty if it does not."""
        overlap = self.model.surrogate.overlap
        if not overlap.fitted or not overlap.known:
            return []
        return overlap.outside(self.model.task.context, given.tolist())


def _withheld(found: WhatIf) -> bool:
    return bool(found.refused) or any(text.startswith(OUTSIDE) for text in found.warnings)


def _pairs(bounds: Mapping[str, list[float]]) -> dict[str, tuple[float, float]]:
    return {name: (low, high) for name, (low, high) in bounds.items()}


def _short(value: float) -> float:
    """A number with three significant digits, as a first value to change."""
    return float(f"{value:.3g}") if math.isfinite(value) else 0.0
