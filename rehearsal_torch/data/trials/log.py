"""The log of a task's trials: suggestions, reports, and the assignment of reports to trials.

A log is immutable; every step returns the next log, so that every step is atomic. The rows for a model are
the completed trials in the order of their numbers, regardless of the order of the reports.

Source: the steps are those of ask-and-tell interfaces (Collette et al., 2013, "Object-oriented programming of
optimizers").
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.trial import (
    State,
    Suggestion,
    Trial,
    named_numbers,
    number_after,
    reason_faults,
    refused,
    unknown_names,
)
from rehearsal_torch.files.addresses import beginning

# A trial, its number, or its settings.
Reference = int | Trial | Mapping[str, float]
# Settings closer than this fraction of each action's range count as the same experiment, and are not
# suggested again.
SAME = 1e-4
# A report this close to a pending trial, but not equal to it, was probably meant for it.
NEAR = 0.05


@dataclass(frozen=True)
class TrialLog:
    """All trials of a task so far, in the order of their numbers."""

    task: CausalTask
    trials: tuple[Trial, ...] = ()

    @property
    def next_id(self) -> int:
        """The number of the next trial; see `number_after`."""
        return number_after(self._last)

    @property
    def _last(self) -> int:
        return self.trials[-1].id if self.trials else 0

    def in_states(self, *states: State) -> tuple[Trial, ...]:
        """The trials in the given states."""
        return tuple(trial for trial in self.trials if trial.state in states)

    @cached_property
    def table(self) -> Table:
        """The completed trials, one row per trial, actions first."""
        return self._table_of(self.in_states("completed"))

    def _table_of(self, done: Iterable[Trial]) -> Table:
        trials, width = list(done), len(self.task.actions)
        names = (*self.task.actions, *self.task.nodes)
        rows = [
            [trial.settings[name] for name in names[:width]] + [trial.nodes[name] for name in names[width:]]
            for trial in trials
        ]
        marks = [[True] * width + [name in trial.altered for name in names[width:]] for trial in trials]
        values = torch.tensor(rows, dtype=torch.float64).reshape(-1, len(names))
        return Table(names, values, torch.tensor(marks, dtype=torch.bool).reshape(values.shape))

    @cached_property
    def _points(self) -> Tensor:
        """The suggested and the used settings of each trial, (n, 2, k); NaN where there are none."""
        return self._points_of(self.trials)

    def _points_of(self, trials: Iterable[Trial]) -> Tensor:
        lacking = dict.fromkeys(self.task.actions, math.nan)
        both = (each or lacking for trial in trials for each in (trial.asked, trial.ran))
        return self._rows(both).reshape(-1, 2, len(self.task.actions))

    def settings(self, *states: State) -> Tensor:
        """The settings of the trials in the given states, (m, k): those used, else those suggested."""
        return self._rows(trial.settings for trial in self.in_states(*states))

    def contains(self, action: Tensor, *states: State) -> Tensor:
        """Whether actions (..., k) are the same experiment as a trial in some states, asked or run, (...)."""
        some = torch.tensor([trial.state in states for trial in self.trials], dtype=torch.bool)
        away = (action.unsqueeze(-2) - self._points[some].flatten(0, 1).to(action)).abs()
        same = (away / self.task.box.width.to(action) <= SAME) & (away <= self.task.box.near.to(action))
        return same.all(-1).any(-1)

    def ask(self, action: Tensor) -> tuple["TrialLog", Suggestion]:
        """Returns the log with a further pending trial at an action (k,), and its suggestion."""
        trial = Trial(
            id=self.next_id, state="pending", asked=dict(zip(self.task.actions, action.tolist(), strict=True))
        )
        return self._with(trial), Suggestion(trial)

    def complete(
        self,
        reference: Reference | None,
        nodes: Any,
        altered: Collection[str] = (),
        ran: Any = None,
        anywhere: bool = False,
    ) -> tuple["TrialLog", Trial, list[str]]:
        """Returns the log with one trial completed, corrected or added; the trial; and warnings about it.

        Args:
            reference: The trial; None, or settings that no pending trial has, for one that was not suggested.
            nodes: The measured value of every node of the task; others are ignored.
            altered: Nodes that were also set by hard interventions.
            ran: The settings actually used, if they differ from the suggestion.
            anywhere: Whether settings without a trial may lie outside bounds and limits; those in `ran`
                always may.

        Raises:
            TrialError: if the reference names no trial, or a value is no finite number.
        """
        faults: list[str] = []
        trial, done = self._found(reference, ran, faults)
        measured = named_numbers(nodes, self.task.nodes, "node", faults, others=True)
        if isinstance(altered, str | Tensor) or not isinstance(altered, Collection):
            expected = f"expected names of nodes, such as ['{self.task.nodes[0]}']"
            faults.append(f"altered: {expected}; got {beginning(repr(altered), 60)}")
            altered = ()
        faults += unknown_names(altered, self.task.nodes, "altered, but not a node of the task")
        free = anywhere or ran is not None
        notes = []
        if not faults and (trial is None or done is not None):
            try:
                self.task.check_action(self._rows([done or {}])[0])
            except ValueError as error:
                if trial is None and not free:
                    faults.append(f"{error}; if it was actually run there, pass the settings as ran=")
                notes.append(f"{error}: kept as an observation, but no action will be suggested there")
        if faults:
            raise refused("the experiment is not recorded", faults)
        marks = tuple(name for name in self.task.nodes if name in altered)
        new = {"nodes": measured, "altered": marks, "reason": ""}
        if trial is None:
            notes += self._near(done or {})
        made = self._changed(trial, "completed", done, new)
        return self._with(made), made, [f"trial {made.id}: {note}" for note in notes]

    def complete_rows(self, table: Table) -> tuple["TrialLog", int]:
        """Returns the log with a trial completed or added for each row that equals none to the last bit, and
        the number of those that do. Columns are the actions, in the task's order, before the nodes.
        """
        width, log, left_out = len(self.task.actions), self, 0
        known = Counter(map(tuple, self.table.values.tolist()))
        for values, marks in zip(table.values.tolist(), table.altered.tolist(), strict=True):
            if known[tuple(values)]:
                known[tuple(values)] -= 1
                left_out += 1
                continue
            row = dict(zip(table.names, values, strict=True))
            altered = [name for name, mark in zip(table.names[width:], marks[width:], strict=True) if mark]
            action = {name: row[name] for name in self.task.actions}
            log, _, _ = log.complete(action, row, altered, anywhere=True)
        return log, left_out

    def await_rows(self, actions: Tensor, done: Table) -> "TrialLog":
        """Returns the log with a pending trial for each action (m, k) that waits for its result.

        A setting is awaited as often as the whole table has it, with its completed rows, which the log has,
        less the trials that there are.
        """
        log, rows = self, Counter(map(tuple, done.columns(self.task.actions).tolist()))
        known = Counter(map(tuple, self.settings("pending", "completed", "failed", "abandoned").tolist()))
        for action in actions:
            setting = tuple(action.tolist())
            rows[setting] += 1
            if rows[setting] > known[setting]:
                log, _ = log.ask(action)
        return log

    def fail(
        self, reference: Reference, reason: str = "", nodes: Any = None, ran: Any = None
    ) -> tuple["TrialLog", Trial]:
        """Returns the log with one trial failed, and the trial: its measurements are kept, and its settings
        are not suggested again.
        """
        faults: list[str] = []
        trial, done = self._found(reference, ran, faults)
        known = nodes if isinstance(nodes, Mapping | pd.Series) else ()
        names = [name for name in self.task.nodes if name in known]
        measured = {} if nodes is None else named_numbers(nodes, names, "node", faults, others=True)
        if trial is None and not faults and ran is None:
            try:
                self.task.check_action(self._rows([done or {}])[0])
            except ValueError as error:
                faults.append(str(error))
        faults += reason_faults(reason)
        if faults:
            raise refused("the failure is not recorded", faults)
        kept = trial.nodes if trial is not None and nodes is None else measured
        made = self._changed(trial, "failed", done, {"nodes": kept, "reason": reason})
        return self._with(made), made

    def _changed(
        self, trial: Trial | None, state: State, done: dict[str, float] | None, new: dict[str, Any]
    ) -> Trial:
        """A trial, or another one, in a state after it was run at some settings."""
        if trial is None:
            return Trial(id=self.next_id, state=state, ran=done, **new)
        ran = trial.ran if done is None else self._differing(trial, done)
        return trial.with_changes(state=state, ran=ran, **new)

    def abandon(self, reference: Reference, reason: str = "") -> tuple["TrialLog", Trial]:
        """Returns the log with one trial abandoned, and the trial: not fitted, it may be suggested again."""
        faults: list[str] = []
        trial, _ = self._found(reference, None, faults)
        if trial is None and not faults:
            faults.append(f"no pending trial has these settings; {self._pending_ones()}")
        faults += reason_faults(reason)
        if faults or trial is None:
            raise refused("nothing is abandoned", faults)
        made = trial.with_changes(state="abandoned", reason=reason)
        return self._with(made), made

    def faults(self) -> list[str]:
        """Inconsistencies of the trials with the task: missing values, unknown names."""
        found: list[str] = []
        for trial in self.trials:
            here: list[str] = []
            for part in (trial.asked, trial.ran):
                if part is not None:
                    named_numbers(part, self.task.actions, "action", here)
            if trial.state == "completed":
                named_numbers(trial.nodes, self.task.nodes, "node", here, others=True)
            found += [f"trial {trial.id}: {fault}" for fault in dict.fromkeys(here)]
        return found

    def _found(
        self, reference: Any, ran: Any, faults: list[str]
    ) -> tuple[Trial | None, dict[str, float] | None]:
        """The referenced trial, None for a new one; and the settings used, None if they are known."""
        done = None if ran is None else named_numbers(ran, self.task.actions, "action", faults)
        if reference is None:
            if ran is None:
                expected = "expected a trial's number, a trial, or settings"
                faults.append(f"{expected}; got None without ran=, the settings used")
            return None, done
        if isinstance(reference, int) and not isinstance(reference, bool):
            return self._numbered(reference, faults), done
        if isinstance(reference, Trial):
            known = self._numbered(reference.id, faults)
            if known is not None and known.asked != reference.asked:
                apart = f"{reference.asked} in its own log, and {known.asked} in this one"
                remedy = "report it to the log that suggested it"
                faults.append(f"trial {reference.id} has the settings {apart}: {remedy}")
            return known, done
        if not isinstance(reference, Mapping | pd.Series):
            got = f"{type(reference).__name__} {beginning(repr(reference), 60)}"
            faults.append(f"expected a trial's number, a trial, or settings (name to value); got {got}")
            return None, done
        before = len(faults)
        given = named_numbers(reference, self.task.actions, "action", faults)
        if len(faults) > before:
            return None, done
        if isinstance(reference, Suggestion):
            for trial in self.trials:
                same = trial.id == reference.trial and trial.asked == reference.asked
                if same and trial.state != "completed":
                    return trial, done if done is not None else self._differing(trial, given)
        point, slack = self._rows([given])[0], 1e-9 + 1e-6 * self.task.box.width
        slack = torch.minimum(slack, self.task.box.near)
        for trial in self.in_states("pending"):
            if bool(((self._rows([trial.settings])[0] - point).abs() <= slack).all()):
                return trial, done
        return None, given if done is None else done

    def _numbered(self, number: int, faults: list[str]) -> Trial | None:
        for trial in self.trials:
            if trial.id == number:
                return trial
        there = f"there are trials 1 to {self._last}" if self.trials else "there are none yet"
        faults.append(f"no trial has the number {number}; {there}")
        return None

    def _near(self, done: Mapping[str, float]) -> list[str]:
        """A warning if a new trial may have been meant for a pending one."""
        waiting = self.in_states("pending")
        if not waiting:
            return []
        away = ((self.settings("pending") - self._rows([done])[0]).abs() / self.task.box.width).amax(-1)
        place = int(away.argmin())
        if float(away[place]) > NEAR:
            return []
        near = waiting[place]
        asked = ", ".join(f"{name} {value:g}" for name, value in near.settings.items())
        what = f"trial {near.id} ({asked}) is close to it and stays pending: if it was that one, abandon it"
        return [f"recorded as a trial that was not suggested; {what}"]

    def _differing(self, trial: Trial, done: dict[str, float]) -> dict[str, float] | None:
        return None if done == trial.asked else done

    def _pending_ones(self) -> str:
        numbers = [trial.id for trial in self.in_states("pending")]
        return f"the pending trials are {numbers}" if numbers else "nothing is pending"

    def _rows(self, settings: Iterable[Mapping[str, float]]) -> Tensor:
        rows = [[each[name] for name in self.task.actions] for each in settings]
        return torch.tensor(rows, dtype=torch.float64).reshape(-1, len(self.task.actions))

    def _with(self, made: Trial) -> "TrialLog":
        """The log with a trial in place of that of its number, or behind all others; keeps what is known of
        these, so that a step takes no longer for all that went before.
        """
        place = len(self.trials)
        if made.id <= self._last:
            place = next(at for at, trial in enumerate(self.trials) if trial.id == made.id)
        before, behind = self.trials[place : place + 1], self.trials[place + 1 :]
        after = replace(self, trials=(*self.trials[:place], made, *behind))
        points = self._points[:place], self._points_of([made]), self._points[place + 1 :]
        after.__dict__["_points"] = torch.cat(points)
        if any(trial.state == "completed" for trial in before):
            return after
        if made.state != "completed":
            after.__dict__["table"] = self.table
        elif all(trial.state != "completed" for trial in behind):
            rows = self.table, self._table_of([made])
            values, altered = ([getattr(each, name) for each in rows] for name in ("values", "altered"))
            after.__dict__["table"] = Table(rows[0].names, torch.cat(values), torch.cat(altered))
        return after
