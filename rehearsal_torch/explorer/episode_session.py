"""A fitted model of episodes that is asked by a page: what other actions would have led to.

Two questions are answered for each episode: the best sequence with at most k changes, which a search finds
within a time limit (the decision of `rt.look_back`), and the replay of a sequence that was put together by
hand. One answer is computed at a time; a question that comes meanwhile is turned away. Nothing that is asked
is kept.

Steps are places from 0 in what is asked and in lists. What a reader sees calls them as the report does: by
the times of the table where these are known (`Wording.at`), else from 0; the page adds ``start`` to places.

What the page shows of a sequence of actions is its changes, its return beside the observed one, its proof:

proven       no other allowed sequence with at most k changes has a larger return, by the fitted model
best found   the search ended before it had a proof; with an upper bound on what is missing where one is
             known
outside      the replay leaves the range of the observations: a sentence stands in place of its numbers

The questions:

POST  /api/episode       {episode}: the episode as observed
POST  /api/look-back     {episode, changes, fixed, seconds}: the best sequence with so many changes
POST  /api/replay        {episode, actions}: a sequence that was put together by hand

The course of an episode under a sequence of actions holds rewards and states, step by step:

    observed     what was recorded
    after        what the fitted model replays under the sequence, with the noise that it finds in the episode
    lower, upper the range over the models of an ensemble

Rewards are in the words of the run: minus a variable is told as that variable. Where the episode, or one
model's course under the sequence, leaves the range of the observations, the replay is an extrapolation:
`beyond` says so, and no number of it is given. A predicted state may lie beyond the range by a twentieth of
it: predictions for a state at its limit scatter around that limit.
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
from rehearsal_torch.explorer.open_run import OpenedEpisodes
from rehearsal_torch.explorer.server import PATIENCE, Asked, Questions, Turns
from rehearsal_torch.methods.run_parts import Method
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, given_doses, return_record
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.reporting.labels import Wording, telling_gap
from rehearsal_torch.reporting.page.data_card import question
from rehearsal_torch.reporting.page.page_content import counted, finite, mapping, shown
from rehearsal_torch.reporting.page.reasons import SEQUENCES, warnings_of_run
from rehearsal_torch.reporting.page.sentences import said_of_episode
from rehearsal_torch.round_record import Round
from rehearsal_torch.search.search import Budget, Search
from rehearsal_torch.search.sequences.decision_process import Effort, sequence_decision
from rehearsal_torch.user_error import RequestError, UserError

# The share of its range by which a predicted state may leave it.
SLACK = 0.05
UNDEFINED = "the model has no finite number under these actions"


def beyond(objective: CounterfactualReturn, sequence: Tensor) -> list[str]:
    """Where the replay of a sequence (H,) of actions lies outside the data, a sentence each; empty if it does
    not.
    """
    own = _ranges(objective.warnings())
    if not bool((sequence != objective.observed).any()):
        return own
    states = _states(objective, sequence)
    if not bool(states.isfinite().all()):
        return [*own, UNDEFINED]
    surrogate, episode = objective.surrogate, objective.case.episode
    # One row for each step of each model's course.
    rows = episode.values.unsqueeze(1).repeat(1, states.shape[1], 1)
    rows[..., [episode.names.index(name) for name in surrogate.names]] = states.to(rows)
    left = surrogate.outside(Episode(episode.identity, episode.names, rows.flatten(0, 1)), SLACK)
    return [*own, *(f"under these actions {text}" for text in _ranges(left) if text not in own)]


def _ranges(findings: Sequence[Finding]) -> list[str]:
    """The sentences of the findings of values outside their range."""
    return [finding.text for finding in findings if finding.kind == "range"]


def course(
    objective: CounterfactualReturn, sequence: Tensor, record: Mapping[str, Any], words: Wording, shown: bool
) -> dict[str, Any]:
    """The rewards and the states at each step, as observed and under a sequence.

    Returns:
        ``rewards`` and ``states``, lists of series with ``name``, ``observed``, ``after``, ``lower`` and
        ``upper`` (T numbers each; the last three None where nothing is shown, or there is one model alone).
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
        states = _states(objective, sequence)
        after = states.mean(1)
        lower, upper = (states.amin(1), states.amax(1)) if states.shape[1] > 1 else (None, None)
    parts = {"observed": before, "after": after, "lower": lower, "upper": upper}
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
            | {part: None if states is None else states[:, column].tolist() for part, states in parts.items()}
            for column, name in enumerate(names)
        ],
    }


def signed(values: Any, words: Wording) -> Any:
    """Rewards in the words of the run; None stays None."""
    if isinstance(values, list):
        return [signed(value, words) for value in values]
    return None if values is None else words.sign * values + 0.0


@torch.no_grad()
def _states(objective: CounterfactualReturn, sequence: Tensor) -> Tensor:
    """Each model's states in the variables' units, (T, M, D)."""
    return objective.surrogate.member_units(objective.replay(sequence.unsqueeze(0))[0])


MOST = 10_000
Steps = Annotated[list[int], Field(max_length=MOST)]


class EpisodeAsked(Asked):
    """A question about an episode, by its number on the page."""

    episode: int


class ChangesAsked(EpisodeAsked):
    """A question for the best sequence with at most so many changes, without the fixed steps."""

    changes: int
    fixed: Steps = Field(default_factory=list)
    seconds: FiniteFloat


class SequenceAsked(EpisodeAsked):
    """A question about a sequence: one action number for each step."""

    actions: Steps


def sequence_answer(
    objective: CounterfactualReturn, decision: Decision, words: Wording, *, searched: bool
) -> dict[str, Any]:
    """What the page shows of a decision for an episode.

    Returns:
        Plain data; ``value`` and all else that is replayed is None, with the reason under ``withheld``,
        where the replay lies outside the data.
    """
    sequence = objective.sequence(decision)
    record = return_record(objective, decision)
    reasons = beyond(objective, sequence)
    withheld = f"outside the data: {'; '.join(reasons)}" if reasons else ""
    changed = (sequence != objective.observed).nonzero()[:, 0].tolist()
    # Without changes, the return is the observed one, which is no claim of the model.
    hidden = bool(withheld) and bool(changed)
    # The decision as a line of decisions.jsonl.
    made = Round(0, objective.case, decision, None, {}, trajectory=dict(record), kind="look_back")
    line = mapping(json.loads(made.line()))
    if hidden:
        known = ("observed_actions", "observed_doses", "level_doses", "doses")
        line["trajectory"] = {key: line["trajectory"][key] for key in known}
    _, headline, sentences = said_of_episode({**line, "findings": []}, words)
    if not searched:
        by_hand = f"Your own sequence: {len(changed)} of {counted(len(sequence), 'action')} changed."
        headline = by_hand if changed else "As observed: nothing is changed."
    overturned = ""
    if searched and not hidden and decision.hidden_cause is not None:
        sentence = decision.hidden_cause.sentence(words.actions)
        overturned = f"{sentence[:1].upper()}{sentence[1:]}."
    return {
        "headline": headline,
        "said": sentences,
        "state": optimality(decision, objective.changes, words, hidden) if searched else "",
        "proven": bool(decision.trace.get("proven")) if searched else None,
        "withheld": withheld,
        "warnings": [finding.text for finding in decision.findings if finding.kind != "range"],
        "overturned": overturned,
        "status": decision.status,
        "undecided": decision.undecided,
        "actions": sequence.tolist(),
        "changed": changed,
        "observed": signed(record["observed"], words),
        "value": None if hidden else signed(record["value"], words),
        "range": None if hidden or not changed else _range(objective, sequence, words),
        "course": course(objective, sequence, record, words, not withheld),
        "seconds": round(decision.seconds, 3),
    }


def optimality(decision: Decision, changes: int, words: Wording, hidden: bool = False) -> str:
    """Whether a sequence is proven to be the best, and how far it may be from it; empty for a refusal."""
    if decision.undecided:
        return ""
    trace, most = decision.trace, f"at most {counted(changes, 'changed action')}"
    if trace.get("proven"):
        return f"Proven: by this model, no other allowed sequence with {most} is better."
    before = None if decision.baseline is None else decision.baseline.point
    gap, limit = telling_gap(finite(trace.get("gap")), decision.value, before), finite(trace.get("limit_s"))
    reason = "" if decision.alteration is None else str(decision.reason or "")
    reason = reason or str(trace.get("stopped") or "")
    if limit is not None:
        reason = f"the search stopped at its time limit of {limit:g} s"
    unit = f" {words.unit}" if words.unit else ""
    much = "" if hidden or gap is None else f", by {shown(gap)}{unit} at most"
    better = f"another one with {most} may be better{much}"
    if gap is None:
        better = f"how much better another one with {most} may be is not known"
    return f"The best found, not proven: {better}.{f' Why: {reason}.' if reason else ''}"


@torch.no_grad()
def _range(objective: CounterfactualReturn, sequence: Any, words: Wording) -> list[float] | None:
    """The smallest and the largest return of the models of an ensemble; None for a single model."""
    if objective.surrogate.members == 1:
        return None
    every: list[float] = signed(objective.member_returns(sequence).tolist(), words)
    return [min(every), max(every)]


# Seconds that a search may take: those that the page offers, and the most that is accepted.
SECONDS, LONGEST = (5, 20, 60, 300), 600.0
LIMITS = (
    "A proof holds for the fitted model, not for the world.",
    "A range is that over the models of the ensemble, which saw other draws of the same observations; it is "
    "no confidence interval.",
    "Actions that no observation has, or that the rules exclude, are not offered, and where an episode "
    "leaves the range of the observations, its replay has no numbers.",
)


class EpisodeSession:
    """The answers of one fitted model of episodes; each of them raises `BusyError` while another one is
    given, and `RequestError` where there is no such episode, step or action.

    Raises:
        UserError: if the method of the run is none that judges sequences of actions.
    """

    page = "episodes.html"

    def __init__(self, opened: OpenedEpisodes) -> None:
        self.surrogate, self.run = opened.surrogate, opened.run
        self.cases, self.more = opened.cases, opened.more
        self.material, self.words = opened.material, opened.material.words
        self._turns = Turns(PATIENCE)
        self._records = self.run.problem.observations()
        if not isinstance(first := self._objective(self.cases[0], 0), CounterfactualReturn):
            what = f"expected the return of an episode; got a {type(first).__name__}"
            raise UserError(what, str(self.material.run.path))
        self.usual = int(getattr(self.run.objective, "keywords", {}).get("changes", 3))

    def questions(self) -> Questions:
        """What it can be asked."""
        return {
            "episode": (EpisodeAsked, self.episode),
            "look-back": (ChangesAsked, self.look_back),
            "replay": (SequenceAsked, self.replay),
        }

    def describe(self) -> dict[str, Any]:
        """What the page shows before anything is asked: question, episodes, actions and cautions."""
        words = self.words
        return {
            "title": self.material.run.path.resolve().name,
            "method": self.material.run.choices.get("decision", ""),
            "use": (
                f"For looking back at {words.episodes} like those of the data: what the fitted model says "
                "other actions would have led to. It is a claim of this model, not a prescription."
            ),
            "fitted": f"Answers of {self.material.run.choices.get('decision', '') or 'the method'}.",
            "question": question(self.material),
            "assumptions": list(SEQUENCES),
            "limits": list(LIMITS),
            "cautions": warnings_of_run(self.material),
            "subject": words.episode,
            "episodes": [words.titled(case.identity) for case in self.cases],
            "more": self.more,
            "total": words.total,
            "time": words.time,
            "step": words.one_step,
            "start": words.start,
            "unit": words.unit,
            "doses": [_headed(dose.name, dose.unit) for dose in map(words.dose, range(self._coordinates()))],
            "actions": self._labels(),
            "units": self.material.units,
            "changes": self.usual,
            "seconds": list(SECONDS),
        }

    def episode(self, number: int) -> dict[str, Any]:
        """An episode as observed: its H actions, the ones to which each may be changed, which steps stay as
        they are, its doses (H rows), its course and its return.
        """
        case = self._case(number)
        with self._turns.turn(), in_words(), undisturbed(), torch.no_grad():
            objective = self._objective(case, 0)
            observed = objective.observed
            rewards = objective.by_member(objective.trajectory.states, observed).mean(0).tolist()
            own = _ranges(objective.warnings())
            return {
                "name": self.words.titled(case.identity),
                "steps": len(observed),
                "actions": observed.tolist(),
                "given": self._levels(given_doses(objective)),
                "choices": [choice.nonzero()[:, 0].tolist() for choice in objective.choices],
                "open": objective.open.tolist(),
                "most": len(objective.open),
                "outside": f"outside the data: {'; '.join(own)}" if own else "",
                "observed": signed(objective.outcome(), self.words),
                "course": course(objective, observed, {"observed_rewards": rewards}, self.words, False),
            }

    def first_answer(self) -> None:
        """Looks at one episode, so that a model that cannot replay it is known before a page is opened."""
        self.episode(0)

    def look_back(self, number: int, changes: int, fixed: Sequence[int], seconds: float) -> dict[str, Any]:
        """The best sequence with at most so many changes that the method of the run finds in a time limit
        (the search's own if that is smaller), where the fixed steps keep their action, as do those of the
        run.
        """
        case = self._case(number)
        if not 0 <= changes <= case.episode.horizon:
            raise RequestError(f"changes: expected a number from 0 to {case.episode.horizon}; got {changes}")
        if not 0 < seconds <= LONGEST:
            raise RequestError(f"seconds: expected more than 0, at most {LONGEST:g}; got {seconds:g}")
        kept = self._kept(case, fixed)
        with self._turns.turn(), in_words(), undisturbed():
            method = Method(partial(self.run.objective, changes=changes), self._in_time(seconds), None)
            (line,) = decided(OneEpisode(kept, self._records), self.surrogate, method, self.run.seed)
            return sequence_answer(self._objective(kept, changes), line.decision, self.words, searched=True)

    def replay(self, number: int, actions: Sequence[int]) -> dict[str, Any]:
        """What a sequence that was put together by hand, an action for every step, would have led to."""
        case = self._case(number)
        with self._turns.turn(), in_words(), undisturbed(), torch.no_grad():
            plain = self._objective(case, 0)
            observed = plain.observed.tolist()
            if len(actions) != len(observed):
                what = f"expected one for each of {len(observed)} steps; got {len(actions)}"
                raise RequestError(f"actions: {what}")
            changes = [step for step, action in enumerate(actions) if action != observed[step]]
            for step in changes:
                self._check(plain, step, actions[step])
            objective = self._objective(case, len(changes))
            decision = sequence_decision(
                objective, torch.tensor(list(actions)), Effort(), Budget(), search="by hand", gap=None,
                declines=False, by_hand=True,
            )  # fmt: skip
            (guarded,) = ruled(objective, [decision], declines=False)
            return sequence_answer(objective, guarded, self.words, searched=False)

    def _objective(self, case: EpisodeCase, changes: int) -> CounterfactualReturn:
        objective: CounterfactualReturn = objective_for(
            partial(self.run.objective, changes=changes), self.surrogate, [case], batch=False
        )
        return objective

    def _in_time(self, seconds: float) -> Search[Any]:
        search = copy(self.run.search)
        search.budget_s = min(seconds, math.inf if search.budget_s is None else search.budget_s)
        return search

    def _case(self, number: int) -> EpisodeCase:
        if not 0 <= number < len(self.cases):
            raise RequestError(f"episode: expected one of the {len(self.cases)} episodes; got {number}")
        return self.cases[number]

    def _kept(self, case: EpisodeCase, fixed: Sequence[int]) -> EpisodeCase:
        """The case with further steps fixed."""
        horizon = case.episode.horizon
        wrong = [step for step in fixed if not 0 <= step < horizon]
        if wrong:
            raise RequestError(f"fixed: expected steps from 0 to {horizon - 1}; got {wrong[0]}")
        if not fixed:
            return case
        mask = case.fixed.clone() if len(case.fixed) else torch.zeros(horizon, dtype=torch.bool)
        mask[list(fixed)] = True
        return replace(case, fixed=mask)

    def _check(self, objective: CounterfactualReturn, step: int, action: int) -> None:
        """Refuses an action at a step at which it may not be chosen."""
        when = self.words.at(step)
        if not 0 <= action < objective.actions:
            raise RequestError(f"{when}: expected an action from 0 to {objective.actions - 1}; got {action}")
        if bool(objective.choices[step, action]):
            return
        wanted = " and ".join(self._labels()[action])
        if not bool(objective.choices[step].any()):
            raise RequestError(f"{when}: its action stays as it was; got {wanted}")
        why = "it is what was done, the model has learnt from none, or the rules exclude it (objective.rules)"
        raise RequestError(f"{when}: {wanted} cannot be chosen: {why}")

    def _coordinates(self) -> int:
        return int(self.surrogate.doses(torch.zeros(1, dtype=torch.long)).shape[-1])

    def _labels(self) -> list[list[str]]:
        """The doses of every action, in words."""
        actions = torch.arange(self._objective(self.cases[0], 0).actions)
        return self._levels(self.surrogate.doses(actions))

    def _levels(self, doses: Tensor) -> list[list[str]]:
        return [
            [self.words.dose(number).level(value) or shown(value) for number, value in enumerate(row)]
            for row in doses.tolist()
        ]


def _headed(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name
