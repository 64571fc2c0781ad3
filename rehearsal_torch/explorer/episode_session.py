"""Session of a fitted model of episodes: counterfactual sequences of actions, searched or chosen by hand.

The best sequence with at most k changes is found by a search with a time limit (`rt.look_back`). One answer
is computed at a time; a question that comes meanwhile is turned away. Nothing that is asked is kept. Steps
are counted from 0 in questions and lists; texts name them as the report does (`Wording.at`), and the page
adds ``start`` to their numbers. The page shows the changes of a sequence, its return beside the observed one,
and the state of its proof:

proven       no other allowed sequence with at most k changes has a larger return, by the fitted model
best found   the search ended before it had a proof; with an upper bound on what is missing if one is known
outside      the replay leaves the range of the observations: a sentence stands in place of its numbers

The course of an episode under a sequence holds rewards and states, step by step: ``observed``; ``after``,
what the fitted model replays, with the noise that it finds in the episode; ``lower`` and ``upper``, the range
over the models of an ensemble. Rewards are in the words of the run: minus a variable is that variable.

Where the episode, or one model's course under the sequence, leaves the range of the observations, the replay
is an extrapolation, and has no number (`beyond`). A predicted state may lie beyond the range by a twentieth
of it: predictions for a state at its limit scatter around that limit.
"""

import json
import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import torch
from pydantic import Field, FiniteFloat
from torch import Tensor

from rehearsal_torch.api.episode_query import OneEpisode
from rehearsal_torch.api.fit_and_decide import decided, in_words, undisturbed
from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.explorer.charts import course_picture
from rehearsal_torch.explorer.open_run import OpenedEpisodes, beside, cautions_of, source_of
from rehearsal_torch.explorer.server import PATIENCE, Asked, Question, Questions, Turns
from rehearsal_torch.methods.run_parts import Method
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, given_doses, return_record
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.reporting.labels import Wording, telling_gap, with_unit
from rehearsal_torch.reporting.page.data_card import question
from rehearsal_torch.reporting.page.page_content import counted, finite, mapping, shown
from rehearsal_torch.reporting.page.reasons import SEQUENCES
from rehearsal_torch.reporting.page.sentences import said_of_episode
from rehearsal_torch.round_record import Round
from rehearsal_torch.search.search import Budget, Search
from rehearsal_torch.search.sequences.decision_process import Effort, sequence_decision
from rehearsal_torch.user_error import RequestError, UserError

# Share of its range by which a predicted state may leave it.
SLACK = 0.05
UNDEFINED = "the model has no finite number under these actions"


def beyond(objective: CounterfactualReturn, sequence: Tensor) -> list[str]:
    """Why the replay of a sequence (H,) of actions lies outside the data, a sentence each; else empty."""
    reasons = _range_sentences(objective.warnings())
    if not bool((sequence != objective.observed).any()):
        return reasons
    states = _member_states(objective, sequence)
    if not bool(states.isfinite().all()):
        return [*reasons, UNDEFINED]
    surrogate, episode = objective.surrogate, objective.case.episode
    # One row for each step of each model's course.
    rows = episode.values.unsqueeze(1).repeat(1, states.shape[1], 1)
    rows[..., [episode.names.index(name) for name in surrogate.names]] = states.to(rows)
    findings = surrogate.outside(Episode(episode.identity, episode.names, rows.flatten(0, 1)), SLACK)
    new = [text for text in _range_sentences(findings) if text not in reasons]
    return reasons + [f"under these actions {text}" for text in new]


def _range_sentences(findings: Sequence[Finding]) -> list[str]:
    return [finding.text for finding in findings if finding.kind == "range"]


def course(
    objective: CounterfactualReturn, sequence: Tensor, record: Mapping[str, Any], words: Wording, shown: bool
) -> dict[str, Any]:
    """The rewards and the states at each step, as observed and under a sequence.

    Returns:
        ``rewards`` and ``states``, series with ``name``, ``observed``, ``after``, ``lower`` and ``upper``: T
        numbers each, the last three None if the replay is not shown, or there is one model alone.
    """
    changed = bool((sequence != objective.observed).any())
    replayed = shown and changed
    ends = [record.get(name) for name in ("rewards_lower", "rewards_upper")] if replayed else [None, None]
    if words.sign < 0:
        ends.reverse()
    names = objective.surrogate.names
    before = objective.case.episode.columns(names)
    after = lower = upper = None
    if replayed:
        states = _member_states(objective, sequence)
        after = states.mean(1)
        lower, upper = (states.amin(1), states.amax(1)) if states.shape[1] > 1 else (None, None)
    series = {"observed": before, "after": after, "lower": lower, "upper": upper}
    return {
        "rewards": {
            "name": words.level,
            "observed": signed(record["observed_rewards"], words),
            "after": signed(record["rewards"], words) if replayed else None,
            "lower": signed(ends[0], words),
            "upper": signed(ends[1], words),
        },
        "states": [
            {"name": name}
            | {key: None if states is None else states[:, column].tolist() for key, states in series.items()}
            for column, name in enumerate(names)
        ],
    }


def signed(values: Any, words: Wording) -> Any:
    """Rewards in the words of the run; None stays None."""
    if isinstance(values, list):
        return [signed(value, words) for value in values]
    return None if values is None else words.sign * values + 0.0


@torch.no_grad()
def _member_states(objective: CounterfactualReturn, sequence: Tensor) -> Tensor:
    """Each model's states in the variables' units, (T, M, D)."""
    return objective.surrogate.member_units(objective.replay(sequence.unsqueeze(0))[0])


MOST = 10_000
Steps = Annotated[list[int], Field(max_length=MOST)]
Actions = Annotated[dict[str, int], Field(max_length=MOST)]


class EpisodeAsked(Asked):
    """What the form holds: an episode by its number, and a sequence, or what is asked of a search.

    Attributes:
        changes: How many actions may differ, at most.
        fixed: Steps that keep their action.
        seconds: The time limit of a search.
        actions: The action of each step with a choice, by its number.
    """

    episode: int
    changes: int = 0
    fixed: Steps = Field(default_factory=list)
    seconds: FiniteFloat = 20.0
    actions: Actions = Field(default_factory=dict)


def sequence_answer(
    objective: CounterfactualReturn, decision: Decision, words: Wording, *, searched: bool
) -> dict[str, Any]:
    """A decision for an episode, as the page shows it; where ``withheld`` says why, nothing replayed."""
    sequence = objective.sequence(decision)
    record = return_record(objective, decision)
    outside_reasons = beyond(objective, sequence)
    withheld = f"outside the data: {'; '.join(outside_reasons)}" if outside_reasons else ""
    changed = (sequence != objective.observed).nonzero()[:, 0].tolist()
    # Without changes, the return is the observed one, which is no claim of the model.
    hidden = bool(withheld) and bool(changed)
    # As a line of decisions.jsonl.
    round_line = Round(0, objective.case, decision, None, {}, trajectory=dict(record), kind="look_back")
    line = mapping(json.loads(round_line.line()))
    if hidden:
        recorded = ("observed_actions", "observed_doses", "level_doses", "doses")
        line["trajectory"] = {key: line["trajectory"][key] for key in recorded}
    _, headline, sentences = said_of_episode({**line, "findings": []}, words)
    if not searched:
        by_hand = f"Your own sequence: {len(changed)} of {counted(len(sequence), 'action')} changed."
        headline = by_hand if changed else "As observed: nothing is changed."
    hidden_cause = ""
    if searched and not hidden and decision.hidden_cause is not None:
        sentence = decision.hidden_cause.sentence(words.actions)
        hidden_cause = f"{sentence[:1].upper()}{sentence[1:]}."
    return {
        "headline": headline,
        "said": sentences,
        "state": optimality(decision, objective.changes) if searched else "",
        "effort": search_effort(decision, words, hidden) if searched else [],
        "proven": bool(decision.trace.get("proven")) if searched else None,
        "withheld": withheld,
        "warnings": [finding.text for finding in decision.findings if finding.kind != "range"],
        "overturned": hidden_cause,
        "status": decision.status,
        "undecided": decision.undecided,
        "actions": sequence.tolist(),
        "changed": changed,
        "observed": signed(record["observed"], words),
        "value": None if hidden else signed(record["value"], words),
        "range": None if hidden or not changed else _return_range(objective, sequence, words),
        "course": course(objective, sequence, record, words, not withheld),
        "seconds": round(decision.seconds, 3),
    }


def optimality(decision: Decision, changes: int) -> str:
    """Whether a sequence is proven to be the best; empty for a refusal."""
    if decision.undecided:
        return ""
    most = f"at most {counted(changes, 'changed action')}"
    if decision.trace.get("proven"):
        return f"Proven: by this model, no other allowed sequence with {most} is better."
    return f"The best found, not proven: another one with {most} may be better."


def search_effort(decision: Decision, words: Wording, hidden: bool = False) -> list[str]:
    """How the search ended, and how far an unproven sequence may be from the best, a sentence each."""
    trace = decision.trace
    sentences = [f"The search took {decision.seconds:.2g} s."]
    if decision.undecided or trace.get("proven"):
        return sentences
    before = None if decision.baseline is None else decision.baseline.point
    gap, limit = telling_gap(finite(trace.get("gap")), decision.value, before), finite(trace.get("limit_s"))
    reason = "" if decision.alteration is None else str(decision.reason or "")
    reason = reason or str(trace.get("stopped") or "")
    if limit is not None:
        reason = f"the search stopped at its time limit of {limit:g} s"
    if reason:
        sentences.append(f"Why there is no proof: {reason}.")
    if gap is None:
        sentences.append("How much better another one may be is not known.")
    elif not hidden:
        unit = f" {words.unit}" if words.unit else ""
        sentences.append(f"Another one is better by {shown(gap)}{unit} at most.")
    return sentences


@torch.no_grad()
def _return_range(objective: CounterfactualReturn, sequence: Any, words: Wording) -> list[float] | None:
    """The smallest and the largest return over the models of an ensemble; None for a single model."""
    if objective.surrogate.members == 1:
        return None
    returns: list[float] = signed(objective.member_returns(sequence).tolist(), words)
    return [min(returns), max(returns)]


# Time limits of a search that the page offers, and the largest that is accepted, in seconds.
SECONDS, LONGEST = (5, 20, 60, 300), 600.0


class EpisodeSession:
    """The answers of one fitted model of episodes; each raises `BusyError` while another one is computed, and
    `RequestError` where there is no such episode, step or action.

    Raises:
        UserError: if the method of the run does not judge sequences of actions.
    """

    page = "episodes.html"

    def __init__(self, opened: OpenedEpisodes) -> None:
        self.surrogate, self.run = opened.surrogate, opened.run
        self.cases = opened.cases
        self.material, self.words, self.notes = opened.material, opened.material.words, opened.notes
        self._turns = Turns(PATIENCE)
        self._records = self.run.problem.observations()
        if not isinstance(first := self._objective(self.cases[0], 0), CounterfactualReturn):
            problem = f"expected the return of an episode; got a {type(first).__name__}"
            raise UserError(problem, str(self.material.run.path))
        self.usual = int(getattr(self.run.objective, "keywords", {}).get("changes", 3))

    def questions(self) -> Questions:
        """Its questions, by name."""
        shown_parts = ("answer", "grid", "course")
        return {
            "episode": Question(EpisodeAsked, self._picked, ("limits", "grid")),
            "look-back": Question(EpisodeAsked, self._searched, ("limits", *shown_parts)),
            "replay": Question(EpisodeAsked, self._replayed, shown_parts),
            "states": Question(EpisodeAsked, self._states, ("states",)),
        }

    def describe(self) -> dict[str, Any]:
        """What all parts of the page use: question, episodes, actions, and findings beside them."""
        words, labels = self.words, self._action_labels()
        doses = map(words.dose, range(len(labels[0])))
        verb = "lowered" if words.sign < 0 else "raised"
        title = f"which changes would have {verb} the cumulative {words.variable}?"
        method = self.material.run.choices.get("decision", "") or "the method"
        return {
            "title": f"{source_of(self.material)}: {title}",
            "fitted": f"Answers of {method}.",
            "question": question(self.material),
            "assumptions": list(SEQUENCES),
            "cautions": cautions_of(self.material),
            "beside": beside(self.material, self.notes),
            "subject": words.episode,
            "subjects": words.episodes,
            "episodes": [words.titled(case.identity) for case in self.cases],
            "total": words.total,
            "step": words.one_step,
            "start": words.start,
            "doses": [with_unit(dose.name, dose.unit) for dose in doses],
            "actions": labels,
            "seconds": list(SECONDS),
        }

    def opening(self) -> dict[str, Any]:
        """The first episode, before anything is asked."""
        return self._picked(EpisodeAsked(episode=0, changes=self.usual)) | {"answer": None}

    def _picked(self, form: EpisodeAsked) -> dict[str, Any]:
        """The fields of another episode, whose actions are those that were observed."""
        return self._fields(form.model_copy(update={"fixed": [], "actions": {}}), self.episode(form.episode))

    def _searched(self, form: EpisodeAsked) -> dict[str, Any]:
        observed = self.episode(form.episode)
        form = form.model_copy(update={"changes": min(form.changes, self._most(form, observed))})
        answer = self.look_back(form.episode, form.changes, form.fixed, form.seconds)
        return {"answer": answer, **self._fields(form, observed, answer["actions"]), **self._course(answer)}

    def _replayed(self, form: EpisodeAsked) -> dict[str, Any]:
        observed = self.episode(form.episode)
        answer = self.replay(form.episode, self._sequence(form, observed))
        return {"answer": answer, **self._fields(form, observed, answer["actions"]), **self._course(answer)}

    def _sequence(self, form: EpisodeAsked, observed: Mapping[str, Any]) -> list[int]:
        """The actions of a form, as observed where it has none."""
        actions = list(observed["actions"])
        for step, action in form.actions.items():
            if not step.isascii() or not step.isdecimal() or not int(step) < len(actions):
                raise RequestError(f"actions: expected steps from 0 to {len(actions) - 1}; got {step}")
            actions[int(step)] = action
        return actions

    def _most(self, form: EpisodeAsked, observed: Mapping[str, Any]) -> int:
        return len(set(observed["open"]) - set(form.fixed))

    def _fields(
        self, form: EpisodeAsked, observed: Mapping[str, Any], actions: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """What may be asked of an episode, as it was observed and under its actions now."""
        now, most = actions or observed["actions"], self._most(form, observed)
        limits = {"changes": min(form.changes, most), "most": most, "seconds": form.seconds}
        return {"observed": observed, "now": now, "fixed": form.fixed, "limits_of": limits}

    def _course(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        rewards = answer["course"]["rewards"]
        place = (answer["changed"], rewards["name"], self.words.time, self.words.start)
        return {"course": [course_picture(rewards, *place, columns=2)]}

    def _states(self, form: EpisodeAsked) -> dict[str, Any]:
        """The course of each state under the actions of a form."""
        answer = self.replay(form.episode, self._sequence(form, self.episode(form.episode)))
        units, pictures = self.material.units, []
        for series in answer["course"]["states"]:
            name = series["name"]
            label = with_unit(name, units.get(name, ""))
            if name != self.words.variable:
                place = (answer["changed"], label, self.words.time, self.words.start)
                pictures.append(course_picture(series, *place))
        return {"states": pictures}

    def episode(self, number: int) -> dict[str, Any]:
        """An episode as observed: H actions, allowed ones, open steps, doses (H rows), course, return."""
        case = self._case(number)
        with self._turns.turn(), in_words(), undisturbed(), torch.no_grad():
            objective = self._objective(case, 0)
            observed = objective.observed
            rewards = objective.by_member(objective.trajectory.states, observed).mean(0).tolist()
            outside_reasons = _range_sentences(objective.warnings())
            return {
                "name": self.words.titled(case.identity),
                "steps": len(observed),
                "actions": observed.tolist(),
                "given": self._dose_texts(given_doses(objective)),
                "choices": [choice.nonzero()[:, 0].tolist() for choice in objective.choices],
                "open": objective.open.tolist(),
                "most": len(objective.open),
                "outside": f"outside the data: {'; '.join(outside_reasons)}" if outside_reasons else "",
                "observed": signed(objective.outcome(), self.words),
                "course": course(objective, observed, {"observed_rewards": rewards}, self.words, False),
            }

    def first_answer(self) -> None:
        """Replays one episode, so that a model that cannot fails before a page is opened."""
        self.episode(0)

    def look_back(self, number: int, changes: int, fixed: Sequence[int], seconds: float) -> dict[str, Any]:
        """The best sequence with at most so many changes that the method of the run finds in a time limit
        (the search's own if that is smaller); fixed steps keep their action, as do those of the run.
        """
        case = self._case(number)
        if not 0 <= changes <= case.episode.horizon:
            raise RequestError(f"changes: expected a number from 0 to {case.episode.horizon}; got {changes}")
        if not 0 < seconds <= LONGEST:
            raise RequestError(f"seconds: expected more than 0, at most {LONGEST:g}; got {seconds:g}")
        episode = self._with_fixed_steps(case, fixed)
        with self._turns.turn(), in_words(), undisturbed():
            method = Method(partial(self.run.objective, changes=changes), self._limited_search(seconds), None)
            (line,) = decided(OneEpisode(episode, self._records), self.surrogate, method, self.run.seed)
            return sequence_answer(
                self._objective(episode, changes), line.decision, self.words, searched=True
            )

    def replay(self, number: int, actions: Sequence[int]) -> dict[str, Any]:
        """The outcome of a sequence that was put together by hand, an action for every step."""
        case = self._case(number)
        with self._turns.turn(), in_words(), undisturbed(), torch.no_grad():
            unchanged = self._objective(case, 0)
            observed = unchanged.observed.tolist()
            if len(actions) != len(observed):
                problem = f"expected one for each of {len(observed)} steps; got {len(actions)}"
                raise RequestError(f"actions: {problem}")
            changes = [step for step, action in enumerate(actions) if action != observed[step]]
            for step in changes:
                self._check_action(unchanged, step, actions[step])
            objective = self._objective(case, len(changes))
            decision = sequence_decision(
                objective, torch.tensor(list(actions)), Effort(), Budget(), search="by hand", gap=None,
                declines=False, by_hand=True,
            )  # fmt: skip
            (checked,) = ruled(objective, [decision], declines=False)
            return sequence_answer(objective, checked, self.words, searched=False)

    def _objective(self, case: EpisodeCase, changes: int) -> CounterfactualReturn:
        factory = partial(self.run.objective, changes=changes)
        objective: CounterfactualReturn = objective_for(factory, self.surrogate, [case], batch=False)
        return objective

    def _limited_search(self, seconds: float) -> Search[Any]:
        search = copy(self.run.search)
        search.budget_s = min(seconds, math.inf if search.budget_s is None else search.budget_s)
        return search

    def _case(self, number: int) -> EpisodeCase:
        if not 0 <= number < len(self.cases):
            raise RequestError(f"episode: expected one of the {len(self.cases)} episodes; got {number}")
        return self.cases[number]

    def _with_fixed_steps(self, case: EpisodeCase, fixed: Sequence[int]) -> EpisodeCase:
        horizon = case.episode.horizon
        unknown_steps = [step for step in fixed if not 0 <= step < horizon]
        if unknown_steps:
            raise RequestError(f"fixed: expected steps from 0 to {horizon - 1}; got {unknown_steps[0]}")
        if not fixed:
            return case
        mask = case.fixed.clone() if len(case.fixed) else torch.zeros(horizon, dtype=torch.bool)
        mask[list(fixed)] = True
        return replace(case, fixed=mask)

    def _check_action(self, objective: CounterfactualReturn, step: int, action: int) -> None:
        """Refuses an action at a step at which it may not be chosen."""
        when = self.words.at(step)
        if not 0 <= action < objective.actions:
            raise RequestError(f"{when}: expected an action from 0 to {objective.actions - 1}; got {action}")
        if bool(objective.choices[step, action]):
            return
        labels = " and ".join(self._action_labels()[action])
        if not bool(objective.choices[step].any()):
            raise RequestError(f"{when}: its action stays as it was; got {labels}")
        why = "it is what was done, the model has learnt from none, or the rules exclude it (objective.rules)"
        raise RequestError(f"{when}: {labels} cannot be chosen: {why}")

    def _action_labels(self) -> list[list[str]]:
        """The doses of every action as texts."""
        actions = torch.arange(self._objective(self.cases[0], 0).actions)
        return self._dose_texts(self.surrogate.doses(actions))

    def _dose_texts(self, doses: Tensor) -> list[list[str]]:
        return [
            [self.words.dose(number).level(value) or shown(value) for number, value in enumerate(row)]
            for row in doses.tolist()
        ]
