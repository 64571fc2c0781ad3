"""A user-supplied table of episodes: units, observed at successive time steps under actions of the past.

The table has one row for each unit and time; a task (`problems.episodes.task`) says what its columns mean.
Units are split at random by their names, so that no unit is learnt from and decided for. Dose levels are
fitted to the units to learn from. What other actions would have brought is unknown, so no decision is scored.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 2 (what is given); the checks are ours.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.reading import ReadTable, TableError, table_file
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.files.schema import listed, meant
from rehearsal_torch.problems.episodes.episode_problem import CAUTION, SHARES, EpisodeProblem
from rehearsal_torch.problems.episodes.fixed_columns import fixed_columns
from rehearsal_torch.problems.episodes.roles import EpisodeRoles
from rehearsal_torch.problems.episodes.splits import split as split_units
from rehearsal_torch.problems.episodes.steps import read_episodes
from rehearsal_torch.problems.episodes.task import episode_task


class EpisodeTable(EpisodeProblem):
    """Units of a table, split by unit.

    Args:
        path: The table: a file (see `data.reading`), a data frame, or a table that was read.
        task: What its columns mean: a YAML file, or its content.
        seed: Seed of the split.
        min_length: Shortest episode, in steps.
        max_length: Longest episode; later steps are left out. None for no limit.
        horizon: If given, cases are the first `horizon` steps of those episodes that are long enough.
        split: The split that the cases come from: "train", "validation" or "test".
        keep_last: How many actions at the end of each episode stay as they were, because what they bring
            comes after it. With costs, the last action would else be dropped for its cost alone.

    Raises:
        TableError: if there is no such file, or the table has faults; all are listed.
        TaskError: if the task has faults; all are listed.
        ValueError: if no case is left, or an argument is out of range.
    """

    def __init__(
        self,
        path: str | Path | pd.DataFrame | ReadTable | None,
        task: str | Path | Mapping[str, Any] | EpisodeRoles | None,
        seed: int = 0,
        min_length: int = 2,
        max_length: int | None = None,
        horizon: int | None = None,
        split: str = "test",
        keep_last: int = 1,
    ) -> None:
        if split not in SHARES:
            raise ValueError(f"expected split train, validation or test; got {split!r}")
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
            frame, where = table_file(path, needed=lambda names: _needed(task, names)), str(path)
            self.source = Path(where).name
        self.roles, self.split, self.keep_last = _task(task, frame, where), split, keep_last
        found = read_episodes(frame, self.roles, where, min_length, max_length)
        del frame  # of many rows, the largest thing in memory
        self.all, self.length, self.counts = found.episodes, found.length, found.counts
        self.first, self.step = found.first, found.step
        units = self.roles.words.units
        if not self.all:
            raise ValueError(
                f"{where}: no {self.roles.words.unit} with at least {min_length} steps is left "
                f"({dict(self.counts) or 'the table is too short'}): lower `min_length`, or see `missing` in "
                "the task"
            )
        self.splits = split_units([each.identity for each in self.all], SHARES, seed, self.roles.words.unit)
        self._check(where)
        wanted = self.episodes(split)
        if horizon is not None:
            wanted = [each.first(horizon) for each in wanted if each.horizon >= horizon]
        self.chosen = wanted
        if not wanted:
            raise ValueError(f"{where}: no {units} of split {split!r} have {horizon} steps: lower `horizon`")

    def wording(self) -> Mapping[str, Any]:
        """What units, steps and columns are called in reports, and the time of the first step, if it is the
        same for all units.
        """
        said = super().wording()
        return said if self.first is None else {**said, "first": self.first}

    def observations(self) -> Table:
        """Transitions of the units to learn from, in the table's units."""
        return transitions(self.episodes("train"))

    def held_out(self) -> Table:
        """Transitions of the validation units."""
        return transitions(self.episodes("validation"))

    def episodes(self, split: str = "train") -> list[Episode]:
        """The episodes of a split."""
        return [self.all[place] for place in self.splits[split]]

    def card(self) -> Mapping[str, Any]:
        """Sizes, ranges, what was left out, levels, splits, source, words and caution."""
        words, rows = self.roles.words, torch.cat([each.values for each in self.all])
        lengths = sorted(each.horizon for each in self.all)
        levels = self._levels()
        learnt = len(self.splits["train"])
        return {
            "source": self.source,
            "caution": CAUTION,
            words.units: len(self.all),
            "transitions": sum(lengths) - len(lengths),
            "horizons": {
                "min": lengths[0],
                "median": lengths[len(lengths) // 2],
                "max": lengths[-1],
                "steps": dict(sorted(Counter(lengths).items())),
            },
            "length of a step": self.step,
            "missing": {"policy": self._policy(), **self.counts},
            "splits": {name: {words.units: len(places)} for name, places in self.splits.items()},
            **self._few(learnt),
            **{f"caution: {name}": note for name, note in self._unseen(levels).items()},
            "actions": self._amounts(levels),
            "features": self._features(rows),
            "fingerprint": transitions(self.all).fingerprint(),
        }

    def _check(self, where: str) -> None:
        """Refuses columns that have one value, and actions that never are, or always are, at their lowest
        level, among the units to learn from.

        Raises:
            TableError: naming each of them.
        """
        values = self.observations().columns(self.roles.names)
        least, largest = values.amin(0), values.amax(0)
        self.largest = dict(zip(self.roles.names, largest.tolist(), strict=True))
        faults = fixed_columns(self.roles, least, largest)
        if faults:
            raise TableError(listed(where, faults, "nothing was fitted"))


def _needed(
    task: str | Path | Mapping[str, Any] | EpisodeRoles | None, names: Sequence[str]
) -> Sequence[str]:
    """The columns that a task needs, of a file with these names; all of them where it has faults or the file
    lacks some, since messages say what there is.
    """
    try:
        roles = episode_task(task)
    except TaskError:
        return names
    wanted = {roles.unit, roles.time, *roles.columns}
    return [name for name in names if name in wanted] if wanted <= set(names) else names


def _task(
    task: str | Path | Mapping[str, Any] | EpisodeRoles | None, frame: pd.DataFrame, where: str
) -> EpisodeRoles:
    """The task; if it has faults, columns that it names and the table lacks are reported with them."""
    try:
        return episode_task(task)
    except TaskError as error:
        names = [str(name) for name in frame.columns]
        absent = [f"no column {name!r}; {meant(name, names)}" for name in error.named if name not in names]
        if not absent:
            raise
        raise TaskError(f"{error.source} and {where}", [*error.faults, *absent], error.named) from error
