"""User-supplied experiments: the trials so far, and the question which experiment to run next.

Each row of a comma-separated file is an experiment: the actions that were set, and the resulting value of
every node. The task is a few lines of YAML:

    graph: {parents: {temperature: [valve], yield: [temperature, dose]}}  # actions are named like any cause
    actions: {valve: [0, 1], dose: {values: [0, 2, 5]}}                   # what may be set: bounds, or levels
    reward: yield            # or {weights: {yield: 1, cost: -0.1}}, or {targets: {yield: 3}}
    limits: {normals: [[1, 1]], offsets: [5]}   # optional: linear constraints M a <= d on the actions

A node that was itself set in an experiment (a hard intervention) has a column ``set:NODE`` with 1 in that
row; the row is then not used for that node's mechanism. Of a settable node it says in which rows its value is
a setting. Suggestions are not scored: their value is unknown until they are tried.

Rows may wait for their result, and a column ``state`` may hold their state:

    valve,dose,temperature,yield,state
    0.2,1,24.1,3.9,completed
    0.7,2,,,                         proposed, and not measured yet
    0.9,5,31.0,,failed

A row is ``completed``, ``running`` (or ``pending``: not proposed again), ``stopped`` (of both, what was
measured is learnt from), ``failed`` (not learnt from, nor proposed again) or ``abandoned`` (as if it were not
there); capitals and blanks do not count. A row of none of the last three waits if its actions are there and a
node that the reward reads is empty. One in which another node, or the context, is empty is completed, and not
used for the mechanism of that node. One in which an action is empty is a fault, unless the task states what
it was `before`. Where a variable of the graph is called ``state``, the column is that variable; so of a
column ``reason``, which is kept with what has failed.

While no model can be fitted, space-filling experiments are proposed. Point n of this start design depends on
the task, the seed and n alone, so that it can be continued and extended to any length. The levels of an
action occur equally often (`candidate_region`). Where there are few settings, it ends with the last of them.

Source: Ren et al. (2025), Alg. 1 (observations of all nodes after each action); Sobol (1967) and Owen
(1998), as in `candidate_region`; pending trials as in Ax (Bakshy et al., 2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.causal_task import MIN_ROWS, POSITIVE, CausalTask
from rehearsal_torch.data.codings.coding import coded
from rehearsal_torch.data.finding import recorded
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.problem_file.task_file import task_content
from rehearsal_torch.data.problem_file.trials_schema import TASK_PARTS
from rehearsal_torch.data.records import Records
from rehearsal_torch.data.tables.csv_file import cells_as_written
from rehearsal_torch.data.tables.header_checks import line_words
from rehearsal_torch.data.tables.in_memory import SET, data_frame
from rehearsal_torch.data.tables.reader import ReadTable, TableError, number_columns, numbers_of, read_table
from rehearsal_torch.data.trials.trial import Settings, State, Trial
from rehearsal_torch.data.trials.typed_settings import outside_bounds
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import meant
from rehearsal_torch.problems.problem import CausalProblem, Experiments, Facts, OwnData, as_table, ranges_of
from rehearsal_torch.spaces.box import as_tensor, setting_text

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from torch import Tensor

    from rehearsal_torch.data.decision import Decision, DecisionContext, RehearsalCase
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.data.trials.trial_log import TrialLog

MOST_LINES = 5
EXACT = 2**53  # Whole numbers below it are exact.

STATE, REASON = "state", "reason"
WORDS: Mapping[str, State] = {
    "completed": "completed",
    "failed": "failed",
    "stopped": "stopped",
    "abandoned": "abandoned",
    "running": "pending",
    "pending": "pending",
}


def states_of(frame: pd.DataFrame, task: CausalTask, source: str) -> np.ndarray:
    """The state of each row, (n,); TableError if one is none of `WORDS`."""
    needed = [*task.reward.names, *task.required]
    waiting = np.zeros(len(frame), dtype=bool)
    if set(needed) <= {str(name) for name in frame.columns}:
        empty = frame[list(task.reward.names)].isna().any(axis=1)
        waiting = (empty & frame[list(task.required)].notna().all(axis=1)).to_numpy(dtype=bool)
    states = np.full(len(frame), "completed", dtype=object)
    names = [str(name) for name in frame.columns if str(name) not in task.graph.names]
    column = next((name for name in names if name.strip().lower() == STATE), None)
    faults = []
    for row, cell in enumerate([] if column is None else frame[column]):
        word = "" if pd.isna(cell) else str(cell).strip().lower()
        if word in WORDS:
            states[row] = WORDS[word]
        elif word:
            faults.append(f"{beginning(repr(cell), 60)} in {line_words(int(frame.index[row]))}")
    if faults:
        rest = f" (and {len(faults) - MOST_LINES} more)" if len(faults) > MOST_LINES else ""
        expected = "expected completed, failed, stopped, abandoned or running, or an empty cell"
        raise TableError(f"{source}: {column}: {expected}; got {', '.join(faults[:MOST_LINES])}{rest}")
    states[waiting & (states == "completed")] = "pending"
    return states


def backdated(table: ReadTable, task: CausalTask) -> ReadTable:
    """The table with what actions were `before` where it does not say it, and a note of that."""
    frame, notes = table.frame, list(table.notes)
    for name, value in task.before.items():
        cells = frame[name] if name in frame.columns else pd.Series(math.nan, frame.index)
        if count := int(cells.isna().sum()):
            rows = f"in {count} of {len(frame)} rows, which do not say it"
            notes.append(f"{name} is {setting_text(value)}, as stated, {rows}")
        cells = cells.astype(object) if isinstance(value, str) else cells
        frame = frame.assign(**{name: cells.where(cells.notna(), value)})
    return replace(table, frame=frame, notes=tuple(notes))


def row_notes(frame: pd.DataFrame, task: CausalTask, source: str) -> list[str]:
    """A sentence on rows by state, and one for each node that others lack, with their line numbers."""
    states = states_of(frame, task, source)
    verb_forms, unused = ("waits for its result", "wait for their result"), "not learnt from"
    unused_again, partial = f"{unused}, and not proposed again", "learnt from as far as it was measured"
    notes: list[tuple[tuple[str, ...], Any, tuple[str, str], str]]
    measured = frame.reindex(columns=task.reward.names)[states == "pending"].notna().all(axis=1).any()
    unknown = () if measured else task.reward.names
    notes = [(unknown, states == "pending", verb_forms, f"{partial}, and not proposed again")]
    notes += [((), states == "stopped", ("was stopped", "were stopped"), partial)]
    notes += [((), states == "failed", ("failed", "failed"), unused_again)]
    notes += [((), states == "abandoned", ("was abandoned", "were abandoned"), unused)]
    for name in gaps_in(frame, task):
        mask = frame[name].isna().to_numpy(dtype=bool) & (states == "completed")
        consequence = f"not learnt from for {name}, and with more doubt for what it acts on"
        notes.append(((name,), mask, ("is incomplete", "are incomplete"), consequence))
    sentences = []
    for names, mask, verbs, consequence in notes:
        lines = [int(index) + 2 for index in frame.index[mask]]
        if lines:
            plural = len(lines) > 1
            rest = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
            rows = f"{len(lines)} row{'s' * plural}"
            rows += f" without a value of {' or '.join(names)}" if names else ""
            position = f"line{'s' * plural} {', '.join(map(str, lines[:MOST_LINES]))}{rest}"
            sentences.append(f"{source}: {rows} {verbs[plural]} ({position}): {consequence}")
    return sentences


def gaps_in(frame: pd.DataFrame, task: CausalTask) -> list[str]:
    """Context and nodes with empty cells that the reward does not read."""
    names = [name for name in (*task.context, *task.nodes) if name not in task.reward.names]
    return [name for name in names if name in frame.columns and frame[name].isna().any()]


def with_proposals(
    frame: pd.DataFrame, task: CausalTask, settings: Sequence[Settings], written: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The table (cells as `written`) with all columns, and a row with each proposed setting, else empty."""
    cells_of = {str(name): [*map(as_short, frame[name].astype(object))] for name in frame.columns}
    texts = cells_of if written is None else {name: written[name].tolist() for name in cells_of}
    columns = {}
    for name in dict.fromkeys((*cells_of, *task.columns, *(f"{SET}{name}" for name in task.settable))):
        cells = cells_of.get(name, [None] * len(frame))
        values = [setting.get(name) for setting in settings]
        if name.startswith(SET):
            values = [float(name[len(SET) :] in setting) for setting in settings]
        columns[name] = pd.Series([*texts.get(name, cells), *map(_cell_writer(cells), values)], dtype=object)
    return pd.DataFrame(columns)


def as_short(cell: object) -> object:
    """A whole number without decimals; any other cell as it is."""
    whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < EXACT
    return int(cell) if whole else cell  # type: ignore[call-overload]


def as_text(frame: pd.DataFrame, separator: str, decimal: str) -> str:
    """A table as separated text, which begins as spreadsheets need it for letters beyond ASCII."""

    def text(cell: object) -> object:
        decimal_number = isinstance(cell, float | np.floating) and not math.isnan(cell)
        return str(cell).replace(".", decimal) if decimal_number else cell

    if decimal != ".":
        # Not by DataFrame.map, which makes numbers with decimals of whole ones beside an empty cell.
        columns = {name: pd.Series([*map(text, frame[name])], dtype=object) for name in frame.columns}
        frame = pd.DataFrame(columns)
    written = str(frame.to_csv(index=False, lineterminator="\n", sep=separator))
    return written if written.isascii() else f"\ufeff{written}"


def _cell_writer(cells: Sequence[object]) -> Callable[[float | str | None], object]:
    """The writer of a column's numbers: truth values as such, whole numbers without a decimal sign."""
    values = [cell for cell in cells if not pd.isna(cell)]  # type: ignore[call-overload]
    if values and all(isinstance(cell, bool | np.bool_) for cell in values):
        return lambda value: None if value is None else bool(value)
    return as_short


# Experiments outside of what may be set that are named, and experiments that the data card lists.
SHOWN, LISTED = 3, 200
NEAR = 0.01  # The share of an action's range within which two settings count as the same.
SPARE = 16  # Points of the start design that are looked at beyond those that were run.


def start_points(
    task: CausalTask, count: int, seed: int, held: Mapping[str, Sequence[float]] | None = None
) -> Tensor:
    """The first `count` points of the start design, (m, k), in the actions' units, with a context that is
    held, in every set of nodes that may be set in turn; maybe fewer.
    """
    context, sets = [held[name][0] for name in task.context if held and name in held], list[np.ndarray]()
    for number, levels in enumerate(task.sets(held or {})):
        # A node that two sets have in common takes other values in each.
        region = task.region(levels)
        settings = region.finite(seed + number)
        points = region.units(region.spread(count, seed + number) if settings is None else settings[:count])
        # What is not set varies anew in every experiment.
        sets.append(np.resize(points.numpy(), (count, points.shape[1])) if task.settable else points.numpy())
    turns = [row for rows in zip_longest(*sets) for row in rows if row is not None][:count]
    return as_tensor(np.concatenate([turns, np.tile(context, (len(turns), 1))], -1))


def open_points(
    task: CausalTask,
    done: Tensor,
    begun: Tensor,
    count: int,
    seed: int,
    held: Mapping[str, Sequence[float]] | None = None,
) -> Tensor:
    """The first `count` points of the start design that are neither `done`, (n, k), nor `begun`, (m, k), in
    the actions' units; else the one done least often. Points within `NEAR` of each range are equal.
    """
    points = start_points(task, len(done) + len(begun) + max(count, SPARE), seed, held)

    def near(settings: Tensor) -> Tensor:
        width = len(task.actions)
        done, asked = (task.coordinates(part[:, :width].to(points)) for part in (settings, points))
        distances = (done - asked[:, None]).abs()
        distances[done.isnan() & asked[:, None].isnan()] = 0.0
        return ((distances / task.width <= NEAR) & (distances <= task.near)).all(-1)

    points = points[~near(begun).any(-1) & ~near(points).tril(-1).any(-1)]
    often = near(done).sum(-1)
    return points[often == 0][:count] if bool((often == 0).any()) else points[often.argsort(stable=True)][:1]


FRAME = "the data frame"


def causal_task(task: str | Path | Mapping[str, Any] | CausalTask | None) -> CausalTask:
    """A task from a YAML file, or from its content; TaskError with all faults if there are some."""
    if isinstance(task, CausalTask):
        return task
    source, content = task_content(task, TASK_PARTS)
    return CausalTask.of(content, source)


def experiments_of(
    source: str | Path | IntoDataFrame | ReadTable | None, task: CausalTask
) -> tuple[Records, tuple[Trial, ...]]:
    """The completed experiments of a file or a data frame, and the rows in other states as trials, numbered
    by their lines. TableError if columns are missing, not numeric or incomplete, a state is unknown, or a
    ``set:`` column names no node or has values other than 0 and 1.
    """
    table = backdated(read_rows(source), task)
    encoded = coded(table.frame, task.places)
    if encoded.faults:
        raise TableError("; ".join(f"{table.where}: {fault}" for fault in encoded.faults))
    table = replace(table, frame=encoded.frame)
    _check_positive(table.frame, task, table.where)
    states, trials = states_of(table.frame, task, table.where), list[Trial]()
    completed = _parse_experiments(table.frame[states == "completed"], task, table.where)
    # Abandoned rows without settings are left out.
    has_settings = np.ones(len(states), dtype=bool)
    if set(task.required) <= {str(name) for name in table.frame.columns}:
        has_settings = table.frame[list(task.required)].notna().all(axis=1).to_numpy(dtype=bool)
    open_rows = (states != "completed") & (has_settings | (states != "abandoned"))
    rows = table.frame[open_rows]
    actions = number_columns(rows, task.required, table.where, 0) if len(rows) else np.zeros((0, 1))
    names = [name for name in (*task.context, *task.nodes) if name in rows.columns]
    cells = np.stack([numbers_of(rows[name]) for name in names], -1) if names else np.zeros((len(rows), 0))
    own = REASON in rows.columns and REASON not in task.graph.names
    reasons = rows[REASON].where(rows[REASON].notna(), "").astype(str) if own else [""] * len(rows)
    marks = pd.Series(0, rows.index)
    columns = rows.index, states[open_rows], actions.tolist(), cells, reasons
    for line, state, setting, row, reason in zip(*columns, strict=True):
        nodes = {name: float(cell) for name, cell in zip(names, row, strict=True) if np.isfinite(cell)}
        applied = [name for name in task.settable if rows.get(f"{SET}{name}", marks)[line] == 1]
        known = {name: nodes.pop(name) for name in (*applied, *task.context) if name in nodes}
        settings = task.shown(dict(zip(task.required, setting, strict=True)) | known)
        if state == "stopped" and not nodes:
            fault = "stopped, and nothing was measured: say what was, or that it failed or was abandoned"
            raise TableError(f"{table.where}, {line_words(int(line))}: {fault}")
        if state == "pending":
            trials.append(Trial(id=int(line) + 2, state=state, asked=settings, nodes=nodes))
        else:
            trials.append(Trial(id=int(line) + 2, state=state, ran=settings, nodes=nodes, reason=reason))
    return completed, tuple(trials)


def _check_positive(frame: pd.DataFrame, task: CausalTask, source: str) -> None:
    """A TableError for numbers that are not above 0 on a log scale."""
    for name in task.logs:
        cells = numbers_of(frame[name]) if name in frame.columns else np.ones(len(frame))
        if (low := cells <= 0).any():
            got = f"got {cells[low][0]:g} in {line_words(int(frame.index[low][0]))}"
            raise TableError(f"{source}: {name}: {POSITIVE}; {got}: leave such rows out, or scale: log")


def read_rows(source: str | Path | IntoDataFrame | ReadTable | None) -> ReadTable:
    """The rows of a file (see `data.tables.reader`) or a data frame."""
    if isinstance(source, ReadTable):
        return source
    if source is None or isinstance(source, str | Path):
        return read_table(source)
    return ReadTable(data_frame(source, FRAME), FRAME)


def _parse_experiments(frame: pd.DataFrame, task: CausalTask, source: str) -> Records:
    """The experiments of a data frame, if any: settings, then nodes as in the task, NaN if not measured."""
    names = task.columns
    set_nodes = [name for name in task.nodes if f"{SET}{name}" in frame.columns]
    gaps = {name: frame[name].isna().to_numpy(dtype=bool) for name in gaps_in(frame, task)}
    filled = frame.assign(**{name: frame[name].astype(object).where(~gap, 0) for name, gap in gaps.items()})
    columns = number_columns(filled, [*names, *(f"{SET}{name}" for name in set_nodes)], source, 0)
    values, marks = columns[:, : len(names)], columns[:, len(names) :]
    for name, gap in gaps.items():
        values[gap, names.index(name)] = math.nan
    faults = [
        f"{column}: no node of the graph; {meant(column[len(SET) :], task.graph.names)}"
        for column in map(str, frame.columns)
        if column.startswith(SET) and column[len(SET) :] not in task.graph.names
    ]
    faults += [
        f"{SET}{name}: expected 0 or 1, 1 where the node was set by hand"
        for name, column in zip(set_nodes, marks.T, strict=True)
        if not ((column == 0) | (column == 1)).all()
    ]
    if faults:
        raise TableError(f"{source}: " + "; ".join(faults))
    altered = np.zeros(values.shape, dtype=bool)
    altered[:, : len(task.required)] = True
    for name, column in zip(set_nodes, marks.T, strict=True):
        altered[:, names.index(name)] = column != 0
    return Records(names, np.ascontiguousarray(values), altered=altered)


class ExperimentTable(OwnData, CausalProblem, Experiments):
    """A comma-separated file of experiments and a task; `to_begin` lists experiments without a model.

    Args:
        path: The experiments so far: a file (see `data.tables.reader`), a data frame or a table.
        task: Causal graph, actions and reward: a YAML file, or its content.
        fixed: Actions that the next experiment holds at a value, action to value; None for none.
        context: The context of the next experiment, name to value; needed once a model can be fitted.

    A TableError lists all faults of the file; a ValueError says that the task or such a value is invalid.
    """

    def __init__(
        self,
        path: str | Path | IntoDataFrame | ReadTable | None,
        task: str | Path | Mapping[str, Any] | CausalTask | None,
        fixed: Settings | None = None,
        context: Settings | None = None,
    ) -> None:
        self.task = causal_task(task)
        self.held = self.task.held(fixed, context or None)
        self.read = read_rows(path)
        table = backdated(self.read, self.task)
        self.done, self.others = experiments_of(table, self.task)
        self.source = FRAME if table.where == FRAME else Path(table.where).name
        self.states = states_of(table.frame, self.task, self.source)
        notes = row_notes(table.frame, self.task, self.source)
        self.lacking = self.task.lacking(self.done)
        if not self.lacking:
            self.task.held(fixed, context or {})
        settings = self.task.setting_count(self.held) if self.lacking else None
        if settings is not None and settings < self.task.initial_count:
            notes.append(f"{settings} different settings are all that there are")
        self.read_notes = (*table.notes, *notes)

    @cached_property
    def past(self) -> Table:
        """The completed experiments."""
        return as_table(self.done)

    @cached_property
    def waiting(self) -> Tensor:
        """The actions of the rows that wait for their result, (m, k)."""
        return as_tensor(self._settings("pending"))

    @cached_property
    def failed(self) -> Tensor:
        """The actions of the rows that failed, (m, k)."""
        return as_tensor(self._settings("failed"))

    def _settings(self, state: State) -> np.ndarray:
        width = len(self.task.actions)
        rows = [self.task.row(trial.settings)[:width] for trial in self.others if trial.state == state]
        return np.array(rows, dtype=float).reshape(-1, width)

    def best_so_far(self) -> tuple[float, Settings]:
        """The largest reward of a completed experiment, of which there is one, and its setting."""
        rewards = self.task.reward(self.done.columns(self.task.reward.names))
        setting = self.task.settings_of(self.done)[rewards.argmax()]
        return float(rewards.max()), self.task.shown(self.task.named(setting))

    def to_begin(self, seed: int = 0) -> Table | None:
        """Points of the start design that are not in the table yet; None once a model can be fitted."""
        if not self.lacking:
            return None
        completed = self.task.settings_of(self.past)[:, : len(self.task.actions)]
        count = self.task.initial_count - len(completed) - len(self.waiting)
        count = count if count > 0 else int(len(completed) >= MIN_ROWS)
        begun = as_tensor([*self._settings("pending"), *self._settings("failed")]).reshape(
            -1, completed.shape[1]
        )
        points = open_points(self.task, completed, begun, count, seed, self.held).numpy()
        names = (*self.task.actions, *(name for name in self.task.context if name in self.held))
        return as_table(Records(names, points, altered=np.ones(points.shape, dtype=bool)))

    def facts(self) -> Facts:
        """What the reader detected, and the experiments that wait for their result or have failed."""
        return replace(super().facts(), notes=self.read_notes, waiting=self._waiting_trials, experiments=self)

    @cached_property
    def _waiting_trials(self) -> TrialLog | None:
        """The experiments, if some of them wait for their result or have failed."""
        if not len(self._settings("pending")) + len(self._settings("failed")):
            return None
        from rehearsal_torch.data.trials.trial_log import TrialLog

        return TrialLog(self.task).take(self.done, self.others)[0]

    def with_proposals(self, settings: Sequence[Mapping[str, float]]) -> str:
        """The table with its file's signs and cells, and a row for each proposed setting, without result."""
        shown = [*map(self.task.shown, settings)]
        cells = cells_as_written(self.read)
        return as_text(with_proposals(self.read.frame, self.task, shown, cells), *self.read.signs)

    def observations(self) -> Table:
        """All completed experiments, and what was measured of others that run or were stopped."""
        from rehearsal_torch.data.trials.trial_log import TrialLog

        return self.past + TrialLog(self.task, self.others).partial("pending", "stopped")

    def held_out(self) -> Table:
        """The same experiments: they are too costly to hold some out."""
        return self.past

    def count(self) -> int:
        """1: the question which experiment to run next."""
        return 1

    def case(self, index: int) -> RehearsalCase:
        """The next experiment."""
        if index != 0:
            raise IndexError(f"expected case 0; got {index}")
        number = len(self.done) + len(self.waiting) + len(self.failed) + 1
        return self.task.case(f"experiment {number}", self.held)

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:  # noqa: ARG002
        """Empty: the outcome of an experiment that was not run is unknown."""
        return {}

    def _note(self, findings: Findings) -> None:
        """Too few experiments for a model; actions that may not be set any more, or were always the same."""
        rows = len(self.done)
        if self.lacking:
            text = f"there is no model yet: {self.lacking}; the start design goes on"
            findings.warn("data", "rows", text, rows=rows)
        outside = self._outside()
        for sentence in outside[:SHOWN]:
            findings.warn("data", "range", f"{sentence}: kept to learn from, and not proposed")
        if len(outside) > SHOWN:
            text = f"{len(outside) - SHOWN} more experiments lie outside what may be set"
            findings.warn("data", "range", text)
        for name in self.task.required if rows >= MIN_ROWS else ():
            column = self.done.columns((name,))[:, 0]
            if (column == column[0]).all():
                text = "in all experiments, so that nothing is known of its effect yet"
                value = self.task.shown({name: float(column[0])})[name]
                findings.of_variable(name, "values", f"it was {setting_text(value, 6)} {text}")

    def _outside(self) -> list[str]:
        """A sentence for each experiment whose action may not be set any more, with its line."""
        index, states = self.read.frame.index, self.states
        lines = [*index[states == "completed"], *index[states == "pending"]]
        rows = zip(lines, [*self.task.settings_of(self.done), *self._settings("pending")], strict=True)
        settings = {f"{self.source}, line {int(line) + 2}": row for line, row in rows}
        return list(outside_bounds(self.task, settings))

    def last(self) -> list[dict[str, Any]]:
        """The last experiments by line: number among those not abandoned, line, state, values, and reward."""
        lines = [int(line) + 2 for line in self.read.frame.index[self.states == "completed"]]
        rewards = self.task.reward(self.done.columns(self.task.reward.names)).tolist()
        entries = [
            {"line": line, "state": "completed", "values": row, "reward": reward}
            for line, row, reward in zip(lines, self.done.values.tolist(), rewards, strict=True)
        ]
        names = self.done.names
        for trial in self.others:
            if trial.state != "abandoned":
                state = "running" if trial.state == "pending" else trial.state
                settings = zip(self.task.settings, self.task.row(trial.settings), strict=True)
                values = {**trial.nodes, **{name: value for name, value in settings if value == value}}
                row = [values.get(name, math.nan) for name in names]
                entries.append({"line": trial.id, "state": state, "values": row})
        entries.sort(key=lambda entry: entry["line"])
        for number, entry in enumerate(entries, 1):
            pairs = zip(names, entry["values"], strict=True)
            known = {name: cell for name, cell in pairs if cell == cell}
            entry |= {"number": number, "values": self.task.shown(known)}
            if self.task.settable:
                cells = self.read.frame.loc[entry["line"] - 2]
                entry["set"] = [name for name in self.task.settable if cells.get(f"{SET}{name}") == 1]
        return entries[-LISTED:]

    def card(self) -> Mapping[str, Any]:
        """Sizes, roles, ranges, the best reward so far, rows outside the bounds, notes, the last experiments,
        and the fingerprint.
        """
        card: dict[str, Any] = {"source": self.source, "rows": len(self.done), **self.task.to_plain()}
        card |= {"context": list(self.task.context)} if self.task.context else {}
        if self.task.codings:
            card["codings"] = {name: coding.to_plain() for name, coding in self.task.places.items()}
        counts = {"rows that wait for their result": len(self.waiting), "rows that failed": len(self.failed)}
        card |= {words: count for words, count in counts.items() if count}
        if len(self.done):
            ranges = ranges_of(self.done)
            card |= {"ranges": {name: ranges[name] for name in ranges if name not in self.task.coded}}
            if not self.task.reward.labels:
                card["best reward so far"], card["at"] = self.best_so_far()
        if outside := self._outside():
            card["kept as history, though it may not be set any more"] = outside
        card |= {"notes": list(self.read_notes), "experiments": self.last()}
        return card | recorded(self.findings()) | {"fingerprint": self.past.fingerprint()}
