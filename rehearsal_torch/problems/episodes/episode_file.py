"""Episodes of a Parquet file, or of a folder of them, that need not fit in memory.

The table is that of `problems.episodes.own_episodes`, with the same task, checks, episodes and split of the
units by their names. It is read once, part by part (`data.tables.row_groups`). Checked episodes to learn from
are written to the system's folder of temporary files, 8 bytes a number (`data.tables.episode_spool`), and a
model reads blocks of transitions from there as often as it needs to; they are deleted with the object. Of the
units to decide on, the first ones are kept in memory.

The rows of a unit must lie next to each other, in any order of their times: a file sorted by unit is fine.

Source: ours.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.reading import TableError
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.blocks import Blocks, sample
from rehearsal_torch.data.tables.columnar import ROWS
from rehearsal_torch.data.tables.episode_spool import EpisodeSpool
from rehearsal_torch.data.tables.row_groups import read_parts
from rehearsal_torch.files.schema import listed
from rehearsal_torch.problems.episodes.episode_problem import CAUTION, SHARES, EpisodeProblem
from rehearsal_torch.problems.episodes.fixed_columns import fixed_columns
from rehearsal_torch.problems.episodes.roles import EpisodeRoles
from rehearsal_torch.problems.episodes.splits import split_of
from rehearsal_torch.problems.episodes.steps import read_episodes
from rehearsal_torch.problems.episodes.task import episode_task

TRAIN, VALIDATION = "train", "validation"
MOST = 200_000
"""Transitions of a split in memory, at most."""


class EpisodeFile(EpisodeProblem):
    """Units of a Parquet table of any size, split by unit.

    Args:
        path: A .parquet file, or a folder of them: one table, in the order of the files' names. The rows of a
            unit lie next to each other.
        task: What its columns mean: a YAML file, or its content.
        seed: Seed of the split.
        min_length: Shortest episode, in steps.
        max_length: Longest episode; later steps are left out. None for no limit.
        split: The split that the cases come from: "train", "validation" or "test".
        keep_last: How many actions at the end of each case stay as they were.
        cases: How many units of that split are kept in memory as cases, the first ones of the table.
        rows: Rows that are read at a time.

    Attributes:
        roles: The content of the task.
        counts: What was merged, carried and left out, reason to count.
        length: The length of a step; without one in the task, the most frequent distance in the first part.
        step: The same in words.
        counted: The number of units of each split.
        rows: The number of transitions to learn from and of those held out.

    Raises:
        TableError: if there is no such file, or the table has faults; those of a part are listed.
        TaskError: if the task has faults; all are listed.
        ValueError: if a split is empty, or an argument is out of range.
        OSError: if the folder of temporary files is full or cannot be written.
    """

    def __init__(
        self,
        path: str | Path | None,
        task: str | Path | Mapping[str, Any] | EpisodeRoles | None,
        seed: int = 0,
        min_length: int = 2,
        max_length: int | None = None,
        split: str = "test",
        keep_last: int = 1,
        cases: int = 1000,
        rows: int = ROWS,
    ) -> None:
        if split not in SHARES:
            raise ValueError(f"expected split train, validation or test; got {split!r}")
        if keep_last < 0 or cases < 0 or rows < 1:
            raise ValueError(
                f"expected keep_last and cases of at least 0 and rows of at least 1; got {keep_last}, "
                f"{cases} and {rows}"
            )
        if path is None:
            raise TableError("no table is given: set path=FILE.parquet, or a folder of Parquet files")
        self.roles, self.keep_last, self.split = episode_task(task), keep_last, split
        self.counts: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()
        self.length, self.step = 0.0, ""
        self._spools = {name: EpisodeSpool(self.roles.names) for name in (TRAIN, VALIDATION)}
        self.chosen: list[Episode] = []
        for source, frame in _whole_units(path, self.roles, rows):
            # The first part, of some ten thousand rows, says how long a step is.
            found = read_episodes(frame, self.roles, source, min_length, max_length, self.length or None)
            self.length, self.step = found.length, found.step
            self.counts.update(found.counts)
            parts: dict[str, list[Episode]] = {name: [] for name in SHARES}
            for each in found.episodes:
                parts[split_of(each.identity, SHARES, seed)].append(each)
            for name, episodes in parts.items():
                self.counted[name] += len(episodes)
                if name in self._spools:
                    self._spools[name].append(episodes)
            self.chosen += parts[split][: max(cases - len(self.chosen), 0)]
        called = self.roles.words
        if empty := [name for name in SHARES if not self.counted[name]]:
            raise ValueError(
                f"{path}: no {called.unit} fell into split {empty} of {sum(self.counted.values())} "
                f"{called.units}: use more {called.units}, or see `missing` in the task"
            )
        self.source = Path(path).name
        self.rows = {name: len(spool.transitions()) for name, spool in self._spools.items()}
        self._check(str(path))
        self._samples = {name: sample(spool.transitions(), MOST) for name, spool in self._spools.items()}

    def training_rows(self) -> Blocks[Table]:
        """Transitions of the units to learn from, in the table's units, in blocks."""
        return self._spools[TRAIN].transitions()

    def held_out_rows(self) -> Blocks[Table]:
        """Transitions of the validation units, in blocks."""
        return self._spools[VALIDATION].transitions()

    def observations(self) -> Table:
        """A sample of the transitions to learn from, at most 200,000; all of them if there are no more."""
        return self._samples[TRAIN]

    def held_out(self) -> Table:
        """A sample of the transitions of the validation units, likewise."""
        return self._samples[VALIDATION]

    def episodes(self, split: str = "train") -> list[Episode] | None:
        """The cases, if they are of this split; other episodes are not in memory."""
        return list(self.chosen) if split == self.split else None

    def card(self) -> Mapping[str, Any]:
        """Sizes, ranges, what was left out, levels, splits, source, words and caution. Levels and medians are
        those of the sample.
        """
        words, table = self.roles.words, self.observations()
        levels = self._levels()
        return {
            "source": self.source,
            "caution": CAUTION,
            words.units: sum(self.counted.values()),
            "transitions to learn from": self.rows[TRAIN],
            "length of a step": self.step,
            "missing": {"policy": self._policy(), **self.counts},
            "splits": {name: {words.units: self.counted[name]} for name in SHARES},
            **self._few(self.counted[TRAIN]),
            **{f"caution: {name}": note for name, note in self._unseen(levels).items()},
            **self._sampled(),
            "actions": self._amounts(levels),
            "features": self._features(table.columns(self.roles.names)),
            "fingerprint": table.fingerprint(),
        }

    def notes(self) -> Sequence[str]:
        """What part of the table is in memory."""
        return tuple(self._sampled().values())

    def _sampled(self) -> dict[str, str]:
        count = len(self.observations())
        if count == self.rows[TRAIN]:
            return {}
        return {
            "caution: sample": f"the model is fitted to {self.rows[TRAIN]:,} transitions; the "
            "fingerprint, the ranges of this card and what could overturn a decision rest on "
            f"{count:,} of them"
        }

    def __getstate__(self) -> dict[str, Any]:
        """Without the numbers on disk, which stay with the process that wrote them."""
        return {name: value for name, value in self.__dict__.items() if name != "_spools"}

    def close(self) -> None:
        """Deletes the numbers on disk; observations cannot be read any more."""
        for spool in self._spools.values():
            spool.close()

    def _check(self, where: str) -> None:
        """Refuses columns from which nothing can be learnt; see `fixed_columns`.

        Raises:
            TableError: naming each of them.
        """
        width = len(self.roles.names)
        ends = [each for rows in self.training_rows() for each in (rows.values.amin(0), rows.values.amax(0))]
        least, largest = (each[:width] for each in torch.stack(ends).aminmax(dim=0))
        self.largest = dict(zip(self.roles.names, largest.tolist(), strict=True))
        if faults := fixed_columns(self.roles, least, largest):
            raise TableError(listed(where, faults, "nothing was fitted"))


def _whole_units(path: str | Path, roles: EpisodeRoles, rows: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """Parts of a table that hold all rows of each of their units.

    Raises:
        TableError: if the rows of a unit lie apart, or there are no rows.
    """
    left: pd.DataFrame | None = None
    seen, source = set[int](), str(path)
    wanted = (roles.unit, roles.time, *roles.columns)
    for source, frame in read_parts(path, wanted, rows):
        joined = frame if left is None else pd.concat([left, frame])
        left = None
        if roles.unit not in joined:
            yield source, joined  # the reader of episodes says what is missing
            continue
        names = joined[roles.unit]
        other = (names != names.iloc[-1]).to_numpy()
        begin = int(other.nonzero()[0][-1]) + 1 if other.any() else 0
        done, left = joined.iloc[:begin], joined.iloc[begin:]
        if len(done):
            _new(done, roles, seen, source)
            yield source, done
    if left is None:
        if not seen:
            raise TableError(f"{path}: expected rows; the table has none")
        return
    _new(left, roles, seen, source)
    yield source, left


def _new(part: pd.DataFrame, roles: EpisodeRoles, seen: set[int], source: str) -> None:
    """Notes the units of a part.

    Raises:
        TableError: if one of them was in a part before.
    """
    names = pd.Series(part[roles.unit].dropna().unique())
    marks = pd.util.hash_array(names.astype(str).to_numpy(object)).tolist()
    again = next((name for name, mark in zip(names, marks, strict=True) if mark in seen), None)
    if again is not None:
        raise TableError(
            f"{source}: the rows of {roles.words.unit} {again} lie apart: a table that is read in parts has "
            f"the rows of each {roles.words.unit} next to each other; sort it by {roles.unit} and "
            f"{roles.time}"
        )
    seen.update(marks)
