"""The log of a task's trials: suggestions, reports, and the assignment of reports to trials.

A log is immutable; every step returns the next log, so that every step is atomic. The rows for a model are
the completed trials in the order of their numbers, regardless of the order of the reports.

Settings without a number belong to the pending trial that they are up to rounding: every action lies within a
tolerance of what was suggested. It is half a unit of the last digit that is written, 0.005 for 0.12, and at
most a twentieth of the action's range; or it is given, as a share of each range or in an action's own unit.
Between levels it is at most a quarter of their distance. Of several such trials it is the nearest.

Source: the steps are those of ask-and-tell interfaces (Collette et al., 2013, "Object-oriented programming of
optimizers").
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.records import Records
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
from rehearsal_torch.files.redaction import beginning

# A trial, its number, or its settings.
Reference = int | Trial | Mapping[str, float]
# Settings closer than this fraction of each action's range count as the same experiment, and are not
# suggested again.
SAME = 1e-4
# A report this close to a pending trial, but not equal to it, was probably meant for it; nor does rounding to
# few digits count beyond.
NEAR = 0.05


@dataclass(frozen=True)
class TrialLog:
    """All trials of a task so far, in the order of their numbers; `tolerance` as `CausalTask.tolerances`."""

    task: CausalTask
    trials: tuple[Trial, ...] = ()
    tolerance: tuple[float, ...] | None = None

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
            [trial.settings[name] for name in names[:width]]
            + [trial.nodes.get(name, math.nan) for name in names[width:]]
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

    def times(self, action: Tensor, *states: State) -> Tensor:
        """How many trials in some states are the same experiment as actions (..., k), asked or run, (...)."""
        some = torch.tensor([trial.state in states for trial in self.trials], dtype=torch.bool)
        away = (action.unsqueeze(-2).unsqueeze(-2) - self._points[some].to(action)).abs()
        same = (away / self.task.box.width.to(action) <= SAME) & (away <= self.task.box.near.to(action))
        return same.all(-1).any(-1).sum(-1)

    def contains(self, action: Tensor, *states: State) -> Tensor:
        """Whether actions (..., k) are the same experiment as a trial in some states, asked or run, (...)."""
        return self.times(action, *states) > 0

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
    ) -> tuple["TrialLog", Trial, list[str]]:
        """Returns the log with one trial completed, corrected or added; the trial; and warnings about it.

        Args:
            reference: The trial; None, or settings that no pending trial has, for one that was not suggested.
            nodes: The measured value of every node of the task; others are ignored.
            altered: Nodes that were also set by hard interventions.
            ran: The settings actually used, if they differ from the suggestion; they may lie outside bounds
                and limits.

        Raises:
            TrialError: if the reference names no trial, or a value is no finite number.
        """
        faults, notes = list[str](), list[str]()
        trial, done = self._found(reference, ran, faults, notes)
        measured = named_numbers(nodes, self.task.nodes, "node", faults, others=True)
        if isinstance(altered, str | Tensor) or not isinstance(altered, Collection):
            expected = f"expected names of nodes, such as ['{self.task.nodes[0]}']"
            faults.append(f"altered: {expected}; got {beginning(repr(altered), 60)}")
            altered = ()
        faults += unknown_names(altered, self.task.nodes, "altered, but not a node of the task")
        if not faults and (trial is None or done is not None):
            try:
                self.task.check_action(self._rows([done or {}])[0])
            except ValueError as error:
                if trial is None and ran is None:
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

    def take(self, done: Records, others: Iterable[Trial] = ()) -> tuple["TrialLog", int, list[str]]:
        """Returns the log with the rows of a table; the number of completed rows that equal, to the last bit,
        trials that are completed already; and what should be reviewed.

        Args:
            done: The completed rows. Columns are the actions, in the task's order, before the nodes.
            others: The rows in other states, whatever their numbers.

        A row is the trial that it equals; else the pending one whose settings it has, or, if it failed or was
        abandoned, the completed one with exactly these; else a new one. A row that waits is any trial with
        its settings, asked or run. No trial is two rows. A value that only one of the two has is kept.
        """
        log, left_out, notes, left = self, 0, list[str](), dict[int, Trial]()
        at, rest = defaultdict[tuple[float, ...], list[Trial]](list), list[Trial]()
        for trial in self.trials:
            left[trial.id] = trial
            for part in {self._key(part) for part in (trial.asked, trial.ran) if part is not None}:
                at[part].append(trial)
        for row in (*_rows_of(done, len(self.task.actions)), *sorted(others, key=_order)):
            there = [trial for trial in at[self._key(row.settings)] if trial.id in left]
            same = next((trial for trial in there if self._is(row, trial)), None)
            if same is None:
                rest.append(row)
            else:
                del left[same.id]
                if {*row.nodes} <= {*same.nodes}:
                    left_out += row.state == "completed"
                else:
                    log = log._with(same.with_changes(nodes={**same.nodes, **row.nodes}))
        for row in rest:
            if row.state == "pending":
                log, _ = log.ask(self._rows([row.settings])[0])
                continue
            told: list[str] = []
            one, exact = log._pending_at(row.settings, told, left)
            if one is None and row.state != "completed":
                there = [each for each in at[self._key(row.settings)] if each.id in left]
                one = next((each for each in there if each.state == "completed"), None)
            if one is not None:
                del left[one.id]
            elif row.state == "completed":
                told += log._near(row.settings, left)
            new = {name: getattr(row, name) for name in ("nodes", "altered", "reason")}
            made = log._changed(one, row.state, None if exact else row.settings, new)
            log, notes = log._with(made), [*notes, *(f"trial {made.id}: {note}" for note in told)]
        return log, left_out, notes

    def _is(self, row: Trial, trial: Trial) -> bool:
        """Whether a row is a trial with its settings."""
        if row.state == "pending":
            return True
        measured = row.state != "completed" or (
            self._key(row.settings) == self._key(trial.settings)
            and all(trial.nodes[name] == row.nodes[name] for name in {*trial.nodes} & {*row.nodes})
            and set(trial.altered) == set(row.altered)
        )
        return trial.state == row.state and measured

    def _key(self, settings: Mapping[str, float]) -> tuple[float, ...]:
        return tuple(settings[name] for name in self.task.actions)

    def fail(
        self, reference: Reference, reason: str = "", nodes: Any = None, ran: Any = None
    ) -> tuple["TrialLog", Trial]:
        """Returns the log with one trial failed, and the trial: its measurements are kept, and its settings
        are not suggested again.
        """
        faults: list[str] = []
        trial, done = self._found(reference, ran, faults, [])
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
        trial, _ = self._found(reference, None, faults, [])
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
                needed = [name for name in self.task.nodes if name in {*trial.nodes, *self.task.reward.names}]
                named_numbers(trial.nodes, needed, "node", here, others=True)
            found += [f"trial {trial.id}: {fault}" for fault in dict.fromkeys(here)]
        return found

    def _found(
        self, reference: Any, ran: Any, faults: list[str], notes: list[str]
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
        found, exact = self._pending_at(given, notes)
        if found is not None:
            return found, done if exact or done is not None else given
        return None, given if done is None else done

    def _pending_at(
        self, given: Mapping[str, float], notes: list[str], among: Collection[int] | None = None
    ) -> tuple[Trial | None, bool]:
        """The pending trial of some settings, None if there is none, and whether it has exactly these; a note
        if several would do. With `among`, one of these numbers.
        """
        waiting = [each for each in self.in_states("pending") if among is None or each.id in among]
        if not waiting:
            return None, False
        box, point = self.task.box, self._rows([given])[0]
        digits = [Decimal(repr(float(each))).normalize().as_tuple().exponent for each in point.tolist()]
        slack = torch.tensor([0.5000001 * 10.0 ** min(int(each), 0) for each in digits], dtype=torch.float64)
        slack = torch.minimum(slack, NEAR * box.width)
        if self.tolerance is not None:
            wished = torch.tensor(self.tolerance, dtype=torch.float64)
            slack = torch.where(wished.isnan(), slack, wished)
        exact = torch.minimum(1e-9 + 1e-6 * box.width, box.near)
        away = (self._rows(trial.settings for trial in waiting) - point).abs()
        fits = (away <= torch.maximum(torch.minimum(slack, box.near), exact)).all(-1)
        if not bool(fits.any()):
            return None, False
        place = int(torch.where(fits, (away / box.width).amax(-1), torch.inf).argmin())
        same = bool((away[place] <= exact).all())
        if int(fits.sum()) > 1 and not same:
            numbers = [trial.id for trial, each in zip(waiting, fits.tolist(), strict=True) if each]
            notes.append(
                f"pending trials {numbers} have these settings up to rounding, and it is the nearest"
            )
        return waiting[place], same

    def _numbered(self, number: int, faults: list[str]) -> Trial | None:
        for trial in self.trials:
            if trial.id == number:
                return trial
        there = f"there are trials 1 to {self._last}" if self.trials else "there are none yet"
        faults.append(f"no trial has the number {number}; {there}")
        return None

    def _near(self, done: Mapping[str, float], among: Collection[int] | None = None) -> list[str]:
        """A warning if a new trial may have been meant for a pending one, with `among` one of these."""
        waiting = [each for each in self.in_states("pending") if among is None or each.id in among]
        if not waiting:
            return []
        away = (self._rows(each.settings for each in waiting) - self._rows([done])[0]).abs()
        away = (away / self.task.box.width).amax(-1)
        place = int(away.argmin())
        if float(away[place]) > NEAR:
            return []
        near = waiting[place]
        asked = ", ".join(f"{name} {value:g}" for name, value in near.settings.items())
        what = f"trial {near.id} ({asked}) is close to it and stays pending: if it was that one, abandon it"
        return [f"recorded as a trial that was not suggested; {what}, and set a larger tolerance"]

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


def _order(row: Trial) -> bool:
    """Rows that wait come last: they may be trials that another row is."""
    return row.state == "pending"


def _rows_of(done: Records, width: int) -> Iterator[Trial]:
    """Completed rows as trials: `width` actions, and nodes."""
    names, set_cells = done.names, np.zeros(done.values.shape, bool) if done.altered is None else done.altered
    for place, (values, marks) in enumerate(zip(done.values.tolist(), set_cells.tolist(), strict=True)):
        row = {name: value for name, value in zip(names, values, strict=True) if not math.isnan(value)}
        ran = {name: row.pop(name) for name in names[:width]}
        altered = [name for name, mark in zip(names[width:], marks[width:], strict=True) if mark]
        yield Trial(id=place + 1, state="completed", ran=ran, nodes=row, altered=tuple(altered))
