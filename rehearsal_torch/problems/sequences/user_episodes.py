"""User-supplied table of episodes: units, observed at successive time steps under actions of the past.

The table has one row for each unit and time; a task (`problems.sequences.sequence_schema`) gives its columns
their roles. Units are split at random by their names, so that none is both learnt from and decided for. Dose
levels are fitted to the units to learn from. Unless the task says by how many levels a dose may change, it
may by as many as 99 % of the recorded changes from one step to the next (`data.dose_cuts`): a model that has
seen small changes alone extrapolates to large ones. The outcome of other actions is unknown, so no decision
is scored.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 2 (what is given).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.dose_cuts import USUAL, DoseCuts, usual_jump
from rehearsal_torch.data.episode import transitions
from rehearsal_torch.data.finding import recorded
from rehearsal_torch.data.problem_file.diagnostics import Findings, TaskError
from rehearsal_torch.data.tables.reader import ReadTable, TableError, table_file
from rehearsal_torch.files.bounded_yaml import sealed
from rehearsal_torch.files.schema import listed, meant
from rehearsal_torch.problems.problem import Facts, OwnData
from rehearsal_torch.problems.sequences.column_roles import Action, EpisodeRoles
from rehearsal_torch.problems.sequences.rows_to_episodes import read_episodes
from rehearsal_torch.problems.sequences.sequence_schema import SequenceProblem, TaskLike
from rehearsal_torch.problems.sequences.unit_splits import (
    SplitEpisodes,
    check_measured,
    check_split,
    repeated_shares,
)

if TYPE_CHECKING:
    from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase

CAUTION = (
    "Observational data: recommendations rest on the model and on the assumption that nothing hidden "
    "influences both actions and states."
)
FEW_UNITS = 100  # Units to learn from below which the card warns.
# Steps that a unit has at least, and that a level occurs in: so many, and such a share of them.
SHORT, RARE, RARE_SHARE = 4, 20, 0.005


class EpisodeTable(OwnData, SplitEpisodes):
    """Units of a table, split by unit.

    Args:
        path: The table: a file (see `data.tables.reader`), a data frame, or a table that was read.
        task: The roles of its columns: a YAML file, its content, or a problem that was read.
        seed: Seed of the split.
        min_length: Shortest episode, in steps.
        max_length: Longest episode; later steps are left out. None for no limit.
        horizon: If given, cases are the first `horizon` steps of those episodes that are long enough.
        split: The split that the cases come from: "train", "validation" or "test".
        keep_last: Number of last actions that stay as they were, as what they bring comes after the episode.
        masked: Whether states that were carried forward are no values for a model to predict.

    Attributes:
        length: The length of a step, in the unit of time.
        first: The time of the first step, if it is the same for all units; None elsewhere.
        largest: Action to its largest amount, or level, among the units to learn from.

    TableError and TaskError list all faults; ValueError if no case is left, or an argument is out of range.
    """

    def __init__(
        self,
        path: str | Path | pd.DataFrame | ReadTable | None,
        task: TaskLike,
        seed: int = 0,
        min_length: int = 2,
        max_length: int | None = None,
        horizon: int | None = None,
        split: str = "test",
        keep_last: int = 1,
        masked: bool = False,
    ) -> None:
        check_split(split)
        lengths = {"horizon": horizon, "max_length": max_length, "min_length": min_length}
        for name, value in lengths.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 2):
                raise ValueError(f"{name}: expected a whole number of at least 2; got {value!r}")
        if keep_last < 0:
            raise ValueError(f"keep_last: expected at least 0 steps; got {keep_last}")
        if isinstance(path, ReadTable):
            frame, where, self.source = path.frame, path.where, Path(path.where).name
        elif isinstance(path, pd.DataFrame):
            frame, where, self.source = path.reset_index(drop=True), "the table", "table in memory"
        else:
            frame, where = table_file(path, needed=lambda names: _needed_columns(task, names)), str(path)
            self.source = Path(where).name
        self.sequence = _read(task, frame, where)
        self.roles, self.keep_last, self.masked = self.sequence.roles(), keep_last, masked
        reading = read_episodes(frame, self.roles, where, min_length, max_length, mask=masked)
        lost = self._lost(frame, len(reading.episodes))
        del frame  # of many rows, the largest thing in memory
        self.length, self.counts, self._read = reading.length, reading.counts, replace(reading, episodes=())
        self.first, self.step, wording = reading.first, reading.step, self.roles.words
        if not reading.episodes:
            reasons = dict(self.counts) or "the table is too short"
            remedy = "lower `min_length`, or see `missing` in the task"
            none_left = f"no {wording.unit} with at least {min_length} steps is left"
            raise ValueError(f"{where}: {none_left} ({reasons}): {remedy}")
        names = [episode.identity for episode in reading.episodes]
        try:
            super().__init__(reading.episodes, names, seed, split, horizon, wording.unit)
        except ValueError as error:
            if not lost:
                raise
            raise ValueError(f"{where}: {lost}; with those left, {error}") from error
        self._check(where)
        self._limit_jumps()
        if not self.chosen:
            too_few = f"no {wording.units} of split {split!r} have {horizon} steps"
            raise ValueError(f"{where}: {too_few}: lower `horizon`")

    def facts(self) -> Facts:
        """The settings of model and reward, the words for reports, and the sealed reading of the table."""
        first = {} if self.first is None else {"first": self.first}
        doses = [action.name for action in self.roles.actions if not action.levels]
        reading = {
            "task": self.sequence.to_plain(),
            "step": self.length,
            "first": self.first,
            "keep_last": self.keep_last,
            "amounts": {name: self.largest[name] for name in doses},
        }
        return replace(
            super().facts(),
            surrogate=self.roles.surrogate_settings(),
            reward=self.roles.reward_settings(),
            rules=self.roles.rule_settings(),
            wording={**self.roles.wording(), **first},
            reading=sealed(reading),
        )

    def case(self, index: int) -> EpisodeCase:
        """Unit number `index` of the split, in retrospect."""
        if not 0 <= index < self.count():
            raise IndexError(f"expected a case in 0 ... {self.count() - 1}; got {index}")
        return self._read.case(self.chosen[index], self.keep_last)

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:  # noqa: ARG002
        """Empty: the outcome of other actions is unknown."""
        return {}

    def card(self) -> Mapping[str, Any]:
        """Sizes, ranges, what was left out, levels, splits, source, words and caution."""
        wording, rows = self.roles.words, np.concatenate([episode.rows for episode in self.all])
        lengths, missing = sorted(episode.horizon for episode in self.all), self.roles.missing
        carried = f"carry forward within {missing.steps} steps{', states not learnt' * self.masked}"
        return {
            "source": self.source,
            "caution": CAUTION,
            wording.units: len(self.all),
            "transitions": sum(lengths) - len(lengths),
            "horizons": {
                "min": lengths[0],
                "median": lengths[len(lengths) // 2],
                "max": lengths[-1],
                "steps": dict(sorted(Counter(lengths).items())),
            },
            "length of a step": self.step,
            "missing": {"policy": carried if missing.rule == "carry" else missing.rule, **self.counts},
            "splits": {name: {wording.units: len(places)} for name, places in self.splits.items()},
            **recorded(self.findings()),
            "actions": {action.name: self._level_text(action) for action in self.roles.actions},
            "features": self._features(rows),
            "fingerprint": transitions(self.all).fingerprint(),
        }

    def _check(self, where: str) -> None:
        """Raises TableError for columns that are constant among the units to learn from."""
        lowest, largest = self._learnt.min(0), self._learnt.max(0)
        self.largest = dict(zip(self.roles.names, largest.tolist(), strict=True))
        if faults := fixed_columns(self.roles, lowest, largest):
            raise TableError(listed(where, faults, "nothing was fitted"))
        if self.masked and self.roles.missing.rule != "carry":
            expected = "expected missing: {carry: m} in the task, as nothing else is filled in"
            raise ValueError(f"{where}: with masked=true, {expected}; got {self.roles.missing.rule}")
        if self.masked:
            check_measured(self.observations(), [column.name for column in self.roles.varying], where)

    def _lost(self, frame: pd.DataFrame, left: int) -> str:
        """How many units were left out, and which column lacks most; empty where most units stay."""
        units, missing = frame[self.roles.unit].nunique(), frame[list(self.roles.columns)].isna().sum()
        if 2 * left >= units or not missing.any():
            return ""
        column = f"{missing.idxmax()} lacks {missing.max()} of {len(frame)} values"
        remedy = "take it out of variables, or change `missing`"
        return f"{units - left} of {units} {self.roles.words.units} were left out; {column}: {remedy}"

    def _limit_jumps(self) -> None:
        """Adds the rule `most_levels` by the recorded changes, unless it is stated or excludes none."""
        self.usual, most = 0, 0
        follows = np.concatenate([np.arange(each.horizon - 1) > 0 for each in self.episodes()])
        for action in self.roles.actions:
            column = self._learnt[:, self.roles.names.index(action.name)]
            levels = column if action.levels else self._doses(action).levels(column)
            jump = usual_jump(levels, follows)
            self.usual, most = max(self.usual, jump), max(most, int(levels.max()))
        if "most_levels" in self.roles.rules or not 0 < self.usual < most:
            self.usual = 0
            return
        rules = self.sequence.rules.model_copy(update={"most_levels": self.usual})
        self.sequence = self.sequence.model_copy(update={"rules": rules})
        self.roles = self.sequence.roles()

    @cached_property
    def _learnt(self) -> np.ndarray:
        """The steps to learn from, which are followed by another one, (n, d)."""
        return np.concatenate([episode.rows[:-1] for episode in self.episodes()])

    def _doses(self, action: Action) -> DoseCuts:
        amounts = self._learnt[:, self.roles.names.index(action.name)]
        return DoseCuts.of(action.name, amounts, self.roles.count)

    def _level_text(self, action: Action) -> str:
        """The levels of an action in words, of amounts by their medians."""
        if action.levels:
            return ", ".join(action.levels)
        amounts = dict.fromkeys(self._doses(action).medians[1:].tolist())
        return f"none, {', '.join(f'{amount:.4g}' for amount in amounts)} {action.unit}".strip()

    def _note(self, findings: Findings) -> None:
        """Few or short units; rare or unseen levels; amounts that share levels; what was left out."""
        units, train_units = self.roles.words.units, len(self.splits["train"])
        if train_units < FEW_UNITS:
            text = f"{train_units} {units} to learn from: below {FEW_UNITS}, claims are worth little"
            findings.warn("data", "rows", text, units=train_units)
        lengths = sorted(episode.horizon for episode in self.all)
        if lengths[len(lengths) // 2] < SHORT:
            text = f"half of the {units} have fewer than {SHORT} steps: little can be changed"
            findings.warn("data", "rows", text)
        if self.usual:
            at_most = f"at most {self.usual} level{'s' * (self.usual > 1)}"
            text = f"{USUAL:.0%} of the changes of actions from one step to the next are by {at_most}"
            text += ": larger ones are not recommended, unless rules.most_levels says so"
            findings.warn("rules", "rows", text, levels=self.usual)
        steps = len(self._learnt)
        for action in self.roles.actions:
            if not action.levels:
                if note := self._doses(action).note:
                    findings.of_variable(action.name, "values", note)
                continue
            counts = level_counts(action, self._learnt[:, self.roles.names.index(action.name)])
            if unseen := ", ".join(level for level, count in counts.items() if not count):
                text = f"{unseen} never occurs among the {units} to learn from, and is not recommended"
                findings.of_variable(action.name, "values", text)
            for level, count in counts.items():
                if 0 < count < max(RARE, RARE_SHARE * steps):
                    text = f"{level} occurs in {count} of {steps} steps to learn from"
                    findings.of_variable(action.name, "values", f"{text}: little is known of it")
        states = [column.name for column in self.roles.varying]
        for name, share in repeated_shares(self.episodes(), states).items():
            text = f"{share:.0%} of its values are exactly those before, as if carried forward"
            findings.of_variable(name, "values", f"{text}: the model learns the copies", share=share)
        for name, (above, row, most) in self._read.above.items():
            if above:
                steps_have = f"{above} steps have" if above > 1 else "1 step has"
                text = f"{steps_have} more than any row ({row:g}), up to {most:g}, as rows are added up"
                text += ": for a rate, write combine: mean"
                findings.of_variable(name, "values", text, steps=above, row=row, most=most)
        for reason, count in self.counts.items():
            findings.warn("missing", "rows", f"{reason}: {count}")

    def _features(self, rows: np.ndarray) -> dict[str, dict[str, float | str]]:
        """Range and median of each column of steps, (n, d), with its unit."""
        units = {feature.name: feature.unit for feature in self.roles.features}
        features: dict[str, dict[str, float | str]] = {}
        for name, column in zip(self.roles.names, rows.T, strict=True):
            middle = np.sort(column)[(len(column) - 1) // 2]
            ends = {"min": column.min(), "median": middle, "max": column.max()}
            features[name] = {key: float(value) for key, value in ends.items()}
            if units.get(name):
                features[name]["unit"] = units[name]
        return features


def fixed_columns(roles: EpisodeRoles, least: np.ndarray, largest: np.ndarray) -> list[str]:
    """The faults of states and contextual columns with one value, and of actions that never or always are at
    their lowest level, by the smallest and largest values of `EpisodeRoles.names`, (d,) each.
    """
    lows = dict(zip(roles.names, least.tolist(), strict=True))
    highs = dict(zip(roles.names, largest.tolist(), strict=True))
    units, settings = roles.words.units, roles.surrogate_settings()
    constant = "a constant carries no information, take the column out"
    faults = [
        f"{name}: all values of the {units} to learn from are {lows[name]:g}: {constant}"
        for name in (*settings["varying"], *settings["contextual"])
        if lows[name] == highs[name]
    ]
    for action in roles.actions:
        lowest = action.levels[0] if action.levels else "0"
        if highs[action.name] == 0:
            always_lowest = f"it is {lowest} in all rows of the {units} to learn from"
            remedy = "nothing can be learnt about other actions, take the column out"
            faults.append(f"{action.name}: {always_lowest}: {remedy}")
        elif lows[action.name] != 0:
            remedy = "take this level out" if action.levels else "subtract the usual amount, or give levels"
            never_lowest = f"it is never {lowest} among the {units} to learn from"
            faults.append(f"{action.name}: {never_lowest}, so that nothing is known about it: {remedy}")
    return faults


def _needed_columns(task: TaskLike, names: Sequence[str]) -> Sequence[str]:
    """The columns that a task needs; all of them where there are faults, as messages say what there is."""
    try:
        roles = SequenceProblem.of(task).roles()
    except TaskError:
        return names
    required = {roles.unit, roles.time, *roles.columns}
    return [name for name in names if name in required] if required <= set(names) else names


def _read(task: TaskLike, frame: pd.DataFrame, where: str) -> SequenceProblem:
    """The task; of one with faults, columns that it names and the table lacks are reported as well."""
    try:
        return SequenceProblem.of(task)
    except TaskError as error:
        names = [str(name) for name in frame.columns]
        absent = [f"no column {name!r}; {meant(name, names)}" for name in error.named if name not in names]
        if not absent:
            raise
        raise TaskError(f"{error.source} and {where}", [*error.faults, *absent], error.named) from error


def level_counts(action: Action, column: np.ndarray) -> dict[str, int]:
    """Level to the number of steps that had it; empty for amounts."""
    return {name: int((column == code).sum()) for code, name in enumerate(action.levels)}
