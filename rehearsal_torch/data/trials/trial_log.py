"""The log of a task's trials: suggestions, reports, and the assignment of reports to trials.

A log is immutable; every step returns the next log, so that every step is atomic. The rows for a model are
the completed trials in the order of their numbers, regardless of the order of the reports.

Settings without a number belong to the pending trial that they are up to rounding: every action lies within a
tolerance of what was suggested. It is half a unit of the last digit that is written, 0.005 for 0.12, and at
most a twentieth of the action's range; or it is given, as a share of each range or in an action's own unit.
Between levels it is at most a quarter of their distance. Of several such trials it is the nearest. Distances
are those of `CausalTask.coordinates`.

Settings include the context, which a report measures anew: it does not count for which trial a report is of,
but the same actions in another context are another experiment.

A task may get another action in the middle of a campaign: earlier trials then have the value that the task
states for them, or what was measured of it, as if they had been asked and run at it. An action that trials
have set stays in the task, for what they say holds at its values alone: it is held at one (`fixed`), or is a
context.

Source: ask-and-tell interfaces (Collette et al., 2013, "Object-oriented programming of optimizers").
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.records import Records
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.recommendation_history import PastRecommendation
from rehearsal_torch.data.trials.trial import (
    Settings,
    State,
    Suggestion,
    Trial,
    named_numbers,
    number_after,
    reason_faults,
    refused,
    unknown_names,
)
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.spaces.box import setting_text

Reference = int | Trial | Settings  # A trial, its number, or its settings.
# Settings closer than this fraction of each action's range count as the same experiment, and are not
# suggested again.
SAME = 1e-4
# A report this close to a pending trial, but not equal to it, was probably meant for it; nor does rounding to
# few digits count beyond.
NEAR = 0.05
# An experiment this close to recommended settings has tried them.
TRIED = 0.01


@dataclass(frozen=True)
class TrialLog:
    """All trials of a task so far, in the order of their numbers; `tolerance` as `CausalTask.tolerances`."""

    task: CausalTask
    trials: tuple[Trial, ...] = ()
    tolerance: tuple[float, ...] | None = None
    recommended: tuple[PastRecommendation, ...] = ()

    def backdated(self) -> "TrialLog":
        """The log with settings that trials lack, as measured, or else as the task states (`before`)."""

        def filled(trial: Trial, settings: Settings | None) -> dict[str, Any] | None:
            known: dict[str, Any] = {**self.task.before, **trial.nodes}
            names = [name for name in (*self.task.required, *self.task.context) if name in known]
            names = [name for name in names if name not in (settings or {})]
            return None if settings is None else {**settings, **{name: known[name] for name in names}}

        def changed(trial: Trial) -> Trial:
            asked, ran = filled(trial, trial.asked), filled(trial, trial.ran)
            same = (asked, ran) == (trial.asked, trial.ran)
            return trial if same else trial.with_changes(asked=asked, ran=ran)

        past = (
            entry.model_copy(update={"action": {**self.task.before, **entry.action}})
            for entry in self.recommended
        )
        return replace(self, trials=tuple(map(changed, self.trials)), recommended=tuple(past))

    @property
    def next_id(self) -> int:
        """The number of the next trial; see `number_after`."""
        return number_after(self._last_number)

    @property
    def _last_number(self) -> int:
        return self.trials[-1].id if self.trials else 0

    def in_states(self, *states: State) -> tuple[Trial, ...]:
        """The trials in the given states."""
        return tuple(trial for trial in self.trials if trial.state in states)

    @cached_property
    def table(self) -> Table:
        """The completed trials, one row per trial, actions first."""
        return self._table_of(self.in_states("completed"))

    @cached_property
    def learnt(self) -> Table:
        """What a model is fitted to: the completed trials, then what was measured of running ones and of
        those that were stopped.
        """
        return self.table + self.partial("pending", "stopped")

    def partial(self, *states: State) -> Table:
        """The trials in the given states of which some nodes were measured."""
        return self._table_of(trial for trial in self.in_states(*states) if trial.nodes)

    def _table_of(self, trials: Iterable[Trial]) -> Table:
        names, rows, marks = self.task.columns, list[list[float]](), list[list[bool]]()
        for trial in trials:
            settings = zip(self.task.settings, self.task.row(trial.settings), strict=True)
            known = {**trial.nodes, **{name: value for name, value in settings if name in trial.settings}}
            altered = {*trial.altered, *trial.settings} - {*self.task.context}
            rows.append([known.get(name, math.nan) for name in names])
            marks.append([name in altered for name in names])
        values = torch.tensor(rows, dtype=torch.float64).reshape(-1, len(names))
        return Table(names, values, torch.tensor(marks, dtype=torch.bool).reshape(values.shape))

    @cached_property
    def _points(self) -> Tensor:
        """The suggested and the used settings of each trial, (n, 2, k), infinite where there are none."""
        return self._points_of(self.trials)

    def _points_of(self, trials: Iterable[Trial]) -> Tensor:
        pairs = [settings for trial in trials for settings in (trial.asked, trial.ran)]
        points = self._rows(settings or {} for settings in pairs)
        points[[settings is None for settings in pairs]] = math.inf
        return points.reshape(-1, 2, len(self.task.settings))

    def settings(self, *states: State) -> Tensor:
        """The settings of the trials in the given states, (m, k): those used, else those suggested."""
        return self._rows(trial.settings for trial in self.in_states(*states))

    def times(self, action: Tensor, *states: State) -> Tensor:
        """How many trials in some states are the same experiment as actions (..., k), asked or run, (...)."""
        chosen = torch.tensor([trial.state in states for trial in self.trials], dtype=torch.bool)
        point, points = map(self.task.coordinates, (action, self._points[chosen].to(action)))
        gap = _gap(point.unsqueeze(-2).unsqueeze(-2), points)
        slack = torch.minimum(SAME * self.task.width, self.task.near).to(action)
        slack = torch.nn.functional.pad(slack, (0, len(self.task.context)))
        return (gap <= slack).all(-1).any(-1).sum(-1)

    def contains(self, action: Tensor, *states: State) -> Tensor:
        """Whether actions (..., k) are the same experiment as a trial in some states, asked or run, (...)."""
        return self.times(action, *states) > 0

    def tried_at(self, settings: Settings) -> tuple[Trial, ...]:
        """The completed trials within `TRIED` of settings."""
        completed, point = map(self.task.coordinates, (self.settings("completed"), self._rows([settings])))
        width, gap = self.task.width, _gap(completed, point)
        observed = [numbers.max() - numbers.min() for numbers in completed[:, len(width) :].mT]
        close = gap <= TRIED * torch.cat([width, width.new_tensor(observed)])
        close[:, : len(width)] &= gap[:, : len(width)] <= self.task.near
        near = close.all(-1).tolist()
        return tuple(trial for trial, hit in zip(self.in_states("completed"), near, strict=True) if hit)

    def ask(self, action: Tensor) -> tuple["TrialLog", Suggestion]:
        """Returns the log with a further pending trial at an action (k,), and its suggestion."""
        trial = Trial(id=self.next_id, state="pending", asked=self.task.shown(self.task.named(action)))
        return self._with(trial), Suggestion(trial)

    def complete(
        self, reference: Reference | None, nodes: Any, altered: Collection[str] = (), ran: Any = None
    ) -> tuple["TrialLog", Trial, list[str]]:
        """Returns the log with one trial completed, corrected or added; the trial; and warnings about it. A
        TrialError if the reference names no trial, or a value is no finite number.

        Args:
            reference: None, or settings that no pending trial has, for one that was not suggested.
            nodes: As of `CausalOptimiser.tell`.
            altered: Nodes that were also set by hard interventions.
            ran: The settings actually used, if others; bounds and limits do not apply.
        """
        faults, notes = list[str](), list[str]()
        trial, settings = self._reported(reference, ran, nodes, faults, notes)
        before = dict(trial.nodes) if trial is not None and trial.state == "pending" else {}
        nodes = {**before, **nodes} if isinstance(nodes, Mapping) else nodes
        applied = settings if settings is not None or trial is None else trial.settings
        wanted = [name for name in self.task.nodes if name not in (applied or ())]
        gaps = {*self.task.nodes} - {*self.task.reward.names}
        measured = before | named_numbers(nodes, wanted, "node", faults, others=True, gaps=gaps)
        if isinstance(altered, str | Tensor) or not isinstance(altered, Collection):
            expected = f"expected names of nodes, such as ['{self.task.nodes[0]}']"
            faults.append(f"altered: {expected}; got {beginning(repr(altered), 60)}")
            altered = ()
        names = [name for name in self.task.nodes if name not in self.task.settable]
        faults += unknown_names(altered, names, "altered, but not a node of the task that is never a setting")
        if not faults and (trial is None or settings is not None):
            try:
                self.task.check_action(self._actions([settings or {}])[0])
            except ValueError as error:
                if trial is None and ran is None:
                    faults.append(f"{error}; if it was actually run there, pass the settings as ran=")
                notes.append(f"{error}: kept as an observation, but no action will be suggested there")
        if faults:
            raise refused("the experiment is not recorded", faults)
        marks = tuple(name for name in self.task.nodes if name in altered)
        fields = {"nodes": measured, "altered": marks, "reason": ""}
        if trial is None:
            notes += self._near_pending(settings or {})
        completed = self._changed(trial, "completed", settings, fields)
        return self._with(completed), completed, [f"trial {completed.id}: {note}" for note in notes]

    def take(self, done: Records, others: Iterable[Trial] = ()) -> tuple["TrialLog", int, list[str]]:
        """Returns the log with the completed rows of a table, actions before nodes, and other rows; the
        number of completed ones that equal completed trials to the last bit; and warnings.

        A row is the trial that it equals; else the pending one whose settings it has, or, if it failed or was
        abandoned, the completed one with exactly these; else a new one. A row that waits is any trial with
        its settings, asked or run. No trial is two rows. A value that only one of the two has is kept.
        """
        log, repeated, notes, unmatched = self, 0, list[str](), dict[int, Trial]()
        trials_at, unequal = defaultdict[tuple[float | str | None, ...], list[Trial]](list), list[Trial]()
        for trial in self.trials:
            unmatched[trial.id] = trial
            for key in {self._key(values) for values in (trial.asked, trial.ran) if values is not None}:
                trials_at[key].append(trial)
        # Pending rows come last: they may be trials that another row is.
        later = sorted(others, key=lambda row: row.state == "pending")
        for row in (*rows_of(done, self.task), *later):
            candidates = [trial for trial in trials_at[self._key(row.settings)] if trial.id in unmatched]
            match = next((trial for trial in candidates if self._same_trial(row, trial)), None)
            if match is None:
                unequal.append(row)
            else:
                del unmatched[match.id]
                if {*row.nodes} <= {*match.nodes}:
                    repeated += row.state == "completed"
                else:
                    log = log._with(match.with_changes(nodes={**match.nodes, **row.nodes}))
        for row in unequal:
            if row.state == "pending":
                log, _ = log.ask(self._rows([row.settings])[0])
                log = log._with(log.trials[-1].with_changes(nodes=row.nodes)) if row.nodes else log
                continue
            warnings: list[str] = []
            pending, exact = log._pending_at(row.settings, warnings, unmatched)
            if pending is None and row.state != "completed":
                candidates = [t for t in trials_at[self._key(row.settings)] if t.id in unmatched]
                pending = next((t for t in candidates if t.state == "completed"), None)
            if pending is not None:
                del unmatched[pending.id]
            elif row.state == "completed":
                warnings += log._near_pending(row.settings, unmatched)
            fields = {name: getattr(row, name) for name in ("nodes", "altered", "reason")}
            settings = None if exact else log._in_context(pending, row.settings)
            changed = log._changed(pending, row.state, settings, fields)
            log, notes = log._with(changed), [*notes, *(f"trial {changed.id}: {note}" for note in warnings)]
        return log, repeated, notes

    def revise(self, rows: Iterable[Trial]) -> tuple["TrialLog", int]:
        """Returns the log with reports by the number of a trial, and how many of them change nothing; those
        of the state pending are of what was measured so far, and say nothing of trials in other states.
        """
        log, repeated, known = self, 0, {trial.id: trial for trial in self.trials}
        for row in rows:
            trial = known[row.id]
            if row.state == "pending" and not (row.nodes and trial.state == "pending"):
                continue
            gap = _gap(self._coordinates([row.settings]), self._coordinates([trial.settings]))
            moved = not bool((gap[:, : len(self.task.actions)] <= self._exact).all())
            moved |= any(row.settings.get(name) != trial.settings.get(name) for name in self.task.context)
            fields = {name: getattr(row, name) for name in ("nodes", "altered", "reason")}
            changed = log._changed(trial, row.state, row.settings if moved else None, fields)
            repeated += changed == trial
            log = log._with(changed)
        return log, repeated

    def _same_trial(self, row: Trial, trial: Trial) -> bool:
        if row.state == "pending":
            return True
        measured = row.state != "completed" or (
            self._key(row.settings) == self._key(trial.settings)
            and all(trial.nodes[name] == row.nodes[name] for name in {*trial.nodes} & {*row.nodes})
            and set(trial.altered) == set(row.altered)
        )
        return trial.state == row.state and measured

    def _key(self, settings: Settings) -> tuple[float | str | None, ...]:
        return tuple(map(settings.get, self.task.settings))

    def fail(
        self,
        reference: Reference,
        reason: str = "",
        nodes: Any = None,
        ran: Any = None,
        state: State = "failed",
    ) -> tuple["TrialLog", Trial]:
        """The log with a trial that failed, was stopped or still runs, and the trial; `nodes` are any that
        were measured, beside those of a running trial so far.
        """
        faults: list[str] = []
        trial, settings = self._reported(reference, ran, nodes, faults, [])
        measurements = nodes if isinstance(nodes, Mapping | pd.Series) else ()
        names = [name for name in self.task.nodes if name in measurements]
        measured = {} if nodes is None else named_numbers(nodes, names, "node", faults, others=True)
        if trial is None and not faults and ran is None:
            try:
                self.task.check_action(self._actions([settings or {}])[0])
            except ValueError as error:
                faults.append(str(error))
        faults += reason_faults(reason)
        kept = trial is not None and (nodes is None or trial.state == "pending")
        values = {**(trial.nodes if trial is not None and kept else {}), **measured}
        if state != "failed" and not faults and not values:
            faults.append(f"expected a measurement of {list(self.task.nodes)}; got none")
        if state == "pending" and (trial is None or trial.state != "pending"):
            faults.append("no pending trial is meant: give its number")
        if faults:
            raise refused(f"the {'failure' if state == 'failed' else 'report'} is not recorded", faults)
        reported = self._changed(trial, state, settings, {"nodes": values, "reason": reason})
        return self._with(reported), reported

    def running(self, reference: Reference) -> tuple["TrialLog", Trial]:
        """A pending trial of which some nodes were measured, and the log as if it were stopped."""
        faults: list[str] = []
        trial, _ = self._referenced(reference, None, faults, [])
        if not faults and (trial is None or trial.state != "pending" or not trial.nodes):
            faults.append("expected a pending trial of which some nodes were measured: observe() them first")
        if faults or trial is None:
            raise refused("nothing is known of the rest", faults)
        return self._with(trial.with_changes(state="stopped")), trial

    def _changed(
        self, trial: Trial | None, state: State, settings: dict[str, Any] | None, fields: dict[str, Any]
    ) -> Trial:
        """A trial, or a new one, in a state after it was run at some settings."""
        if trial is None:
            return Trial(id=self.next_id, state=state, ran=settings, **fields)
        ran = trial.ran if settings is None else self._other_settings(trial, settings)
        return trial.with_changes(state=state, ran=ran, **fields)

    def abandon(self, reference: Reference, reason: str = "") -> tuple["TrialLog", Trial]:
        """Returns the log with one trial abandoned, and the trial: not fitted, it may be suggested again."""
        faults: list[str] = []
        trial, _ = self._referenced(reference, None, faults, [])
        if trial is None and not faults:
            numbers = [trial.id for trial in self.in_states("pending")]
            waiting = f"the pending trials are {numbers}" if numbers else "nothing is pending"
            faults.append(f"no pending trial has these settings; {waiting}")
        faults += reason_faults(reason)
        if faults or trial is None:
            raise refused("nothing is abandoned", faults)
        abandoned = trial.with_changes(state="abandoned", reason=reason)
        return self._with(abandoned), abandoned

    def faults(self) -> list[str]:
        """Inconsistencies of the trials with the task: missing values, unknown names."""
        faults, known = list[str](), {trial.id: trial.settings for trial in self.trials}
        for name in self.task.required:
            if lacking := [number for number, settings in known.items() if name not in settings]:
                remedy = f"write what it was then, {name}: {{..., before: NUMBER}}"
                faults.append(f"{name}: no value of this action in {_numbered(lacking)}: {remedy}")
        for name in dict.fromkeys(name for settings in known.values() for name in settings):
            if name not in self.task.settings:
                having = [number for number, settings in known.items() if name in settings]
                words = f"the task has no such action, which was set in {_numbered(having)}"
                remedy = f"keep it as an action, and hold it where it is now, fixed: {{{name}: NUMBER}}"
                faults.append(f"{name}: {words}: {remedy}, or as a context")
        for trial in self.trials:
            trial_faults: list[str] = []
            for settings in (trial.asked or {}, trial.ran or {}):
                names = [name for name in self.task.settings if name in settings]
                self.task.numbers(settings, names, "action", trial_faults, others=True)
            if trial.state == "completed":
                names = [name for name in self.task.nodes if name in {*trial.nodes, *self.task.reward.names}]
                named_numbers(trial.nodes, names, "node", trial_faults, others=True)
            faults += [f"trial {trial.id}: {fault}" for fault in dict.fromkeys(trial_faults)]
        return faults

    def _reported(
        self, reference: Any, ran: Any, nodes: Any, faults: list[str], notes: list[str]
    ) -> tuple[Trial | None, dict[str, Any] | None]:
        """As `_referenced`, with the context: as measured, else as in the settings, else as in the trial."""
        trial, settings = self._referenced(reference, ran, faults, notes)
        measured = dict(nodes) if isinstance(nodes, Mapping | pd.Series) else {}
        complete = self._in_context(trial, settings, measured)
        names = [name for name in self.task.context if trial is None or name in complete]
        complete |= self.task.shown(self.task.numbers(complete, names, "context", faults, others=True))
        known = settings is None and (trial is None or complete == trial.settings)
        return trial, None if known else complete

    def _in_context(
        self,
        trial: Trial | None,
        settings: Settings | None,
        measured: Mapping[str, Any] = MappingProxyType({}),
    ) -> dict[str, Any]:
        earlier = {} if trial is None else trial.settings
        known = {**earlier, **(settings or {}), **measured}
        context = {name: known[name] for name in self.task.context if name in known}
        return {**(earlier if settings is None else settings), **context}

    def _numbers(self, settings: Any, faults: list[str]) -> dict[str, Any]:
        """Settings as numbers and texts; of the context those that are there."""
        known = settings if isinstance(settings, Mapping | pd.Series) else {}
        others = (*self.task.settable, *self.task.context)
        names = [*self.task.required, *(name for name in others if name in known)]
        return self.task.shown(self.task.numbers(settings, names, "action", faults))

    def _referenced(
        self, reference: Any, ran: Any, faults: list[str], notes: list[str]
    ) -> tuple[Trial | None, dict[str, Any] | None]:
        """The referenced trial, None for a new one; and the settings used, None if they are known."""
        actual = None if ran is None else self._numbers(ran, faults)
        if reference is None:
            if ran is None:
                expected = "expected a trial's number, a trial, or settings"
                faults.append(f"{expected}; got None without ran=, the settings used")
            return None, actual
        if isinstance(reference, int) and not isinstance(reference, bool):
            return self._by_number(reference, faults), actual
        if isinstance(reference, Trial):
            numbered = self._by_number(reference.id, faults)
            if numbered is not None and numbered.asked != reference.asked:
                difference = f"{reference.asked} in its own log, and {numbered.asked} in this one"
                remedy = "report it to the log that suggested it"
                faults.append(f"trial {reference.id} has the settings {difference}: {remedy}")
            return numbered, actual
        if not isinstance(reference, Mapping | pd.Series):
            kind = f"{type(reference).__name__} {beginning(repr(reference), 60)}"
            faults.append(f"expected a trial's number, a trial, or settings (name to value); got {kind}")
            return None, actual
        earlier = len(faults)
        settings = self._numbers(reference, faults)
        if len(faults) > earlier:
            return None, actual
        if isinstance(reference, Suggestion):
            for trial in self.trials:
                suggested = trial.id == reference.trial and trial.asked == reference.asked
                if suggested and trial.state != "completed":
                    return trial, actual if actual is not None else self._other_settings(trial, settings)
        pending, exact = self._pending_at(settings, notes)
        if pending is not None:
            return pending, actual if exact or actual is not None else settings
        return None, settings if actual is None else actual

    def _pending_at(
        self, settings: Settings, notes: list[str], among: Collection[int] | None = None
    ) -> tuple[Trial | None, bool]:
        """The nearest pending trial of settings (`among` some numbers), or None; and whether it is exact. Of
        trials whose actions are as near it is the one whose context is nearest.
        """
        waiting = [trial for trial in self.in_states("pending") if among is None or trial.id in among]
        if not waiting:
            return None, False
        task, points = self.task, self._coordinates(trial.settings for trial in waiting)
        gap, width, near = _gap(points, self._coordinates([settings])), task.width, task.near
        distance, context = gap.split([len(task.actions), len(task.context)], -1)
        context = context[:, [name in settings for name in task.context]].nan_to_num(torch.inf).sum(-1)
        point = self._actions([settings])[0].nan_to_num(1.0)
        digits = [Decimal(repr(float(number))).normalize().as_tuple().exponent for number in point.tolist()]
        slack = torch.tensor([0.5000001 * 10.0 ** min(int(n), 0) for n in digits], dtype=torch.float64)
        slack = torch.minimum(task.coordinates(point + slack) - task.coordinates(point), NEAR * width)
        if self.tolerance is not None:
            chosen = torch.tensor(self.tolerance, dtype=torch.float64)
            slack = torch.where(chosen.isnan(), slack, chosen)
        close = (distance <= torch.maximum(torch.minimum(slack, near), self._exact)).all(-1)
        if not bool(close.any()):
            return None, False
        same, away = (distance <= self._exact).all(-1), (distance / width).amax(-1)
        ranks = zip((~same).tolist(), context.tolist(), away.tolist(), range(len(waiting)), strict=True)
        nearest = min(rank for rank, near in zip(ranks, close.tolist(), strict=True) if near)[-1]
        equal = bool(same[nearest]) and not float(context[nearest])
        if int(close.sum()) > 1 and not equal:
            numbers = [trial.id for trial, near in zip(waiting, close.tolist(), strict=True) if near]
            notes.append(
                f"pending trials {numbers} have these settings up to rounding, and it is the nearest"
            )
        return waiting[nearest], equal

    def _by_number(self, number: int, faults: list[str]) -> Trial | None:
        for trial in self.trials:
            if trial.id == number:
                return trial
        numbers = f"there are trials 1 to {self._last_number}" if self.trials else "there are none yet"
        faults.append(f"no trial has the number {number}; {numbers}")
        return None

    def _near_pending(self, settings: Settings, among: Collection[int] | None = None) -> list[str]:
        """A warning if a new trial may have been meant for a pending one, with `among` one of these."""
        waiting = [trial for trial in self.in_states("pending") if among is None or trial.id in among]
        if not waiting:
            return []
        gap = _gap(self._coordinates(trial.settings for trial in waiting), self._coordinates([settings]))
        distance = (gap[:, : len(self.task.actions)] / self.task.width).nan_to_num(math.inf).amax(-1)
        nearest = int(distance.argmin())
        if float(distance[nearest]) > NEAR:
            return []
        trial = waiting[nearest]
        near = ", ".join(f"{name} {setting_text(value, 6)}" for name, value in trial.settings.items())
        remedy = f"trial {trial.id} ({near}) is close to it and stays pending: if it was that one, abandon it"
        return [f"recorded as a trial that was not suggested; {remedy}, and set a larger tolerance"]

    def _other_settings(self, trial: Trial, settings: dict[str, Any]) -> dict[str, Any] | None:
        return None if settings == trial.asked else settings

    def _actions(self, settings: Iterable[Settings]) -> Tensor:
        return self._rows(settings)[:, : len(self.task.actions)]

    def _coordinates(self, settings: Iterable[Settings]) -> Tensor:
        return self.task.coordinates(self._rows(settings))

    @property
    def _exact(self) -> Tensor:
        """The distances at which settings are equal, (k,)."""
        return torch.minimum(1e-9 + 1e-6 * self.task.width, self.task.near)

    def _rows(self, settings: Iterable[Settings]) -> Tensor:
        rows = [self.task.row(values) for values in settings]
        return torch.tensor(rows, dtype=torch.float64).reshape(-1, len(self.task.settings))

    def _with(self, new: Trial) -> "TrialLog":
        """The log with a trial added or replaced; table and points of the others are kept for speed."""
        index = len(self.trials)
        if new.id <= self._last_number:
            index = next(i for i, trial in enumerate(self.trials) if trial.id == new.id)
        replaced, later = self.trials[index : index + 1], self.trials[index + 1 :]
        log = replace(self, trials=(*self.trials[:index], new, *later))
        points = self._points[:index], self._points_of([new]), self._points[index + 1 :]
        log.__dict__["_points"] = torch.cat(points)
        if any(trial.state == "completed" for trial in replaced):
            return log
        if new.state != "completed":
            log.__dict__["table"] = self.table
        elif all(trial.state != "completed" for trial in later):
            rows = self.table, self._table_of([new])
            values, altered = ([getattr(table, name) for table in rows] for name in ("values", "altered"))
            log.__dict__["table"] = Table(rows[0].names, torch.cat(values), torch.cat(altered))
        return log


def _numbered(numbers: Sequence[int]) -> str:
    """Numbers of trials in words."""
    ends = f" {numbers[0]}" if len(numbers) == 1 else f"s {numbers[0]} to {numbers[-1]}"
    scattered = numbers[-1] - numbers[0] >= len(numbers)
    return f"{len(numbers)} of the trials{ends}" if scattered else f"trial{ends}"


def _gap(first: Tensor, second: Tensor) -> Tensor:
    """The distances of settings, 0 where neither is set, and NaN where one is."""
    return (first - second).abs().masked_fill(first.isnan() & second.isnan(), 0.0)


def rows_of(rows: Records, task: CausalTask) -> Iterator[Trial]:
    """Completed rows as trials: settings, and nodes."""
    names, altered_cells = rows.names, np.zeros(rows.values.shape, dtype=bool)
    altered_cells = altered_cells if rows.altered is None else rows.altered
    for index, (values, marks) in enumerate(zip(rows.values.tolist(), altered_cells.tolist(), strict=True)):
        row = {name: value for name, value in zip(names, values, strict=True) if not math.isnan(value)}
        marked = [name for name, mark in zip(names, marks, strict=True) if mark]
        applied = [name for name in task.settings if name in marked or name not in task.settable]
        settings = task.shown({name: row.pop(name) for name in applied if name in row})
        altered = tuple(name for name in marked if name not in task.settings)
        yield Trial(id=index + 1, state="completed", ran=settings, nodes=row, altered=altered)
