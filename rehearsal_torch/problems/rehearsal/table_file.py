"""Rows of a Parquet file, or of a folder of them, that need not fit in memory, and cases to decide on.

The table is that of `problems.rehearsal.own_table`, with the same task, checks and cases. It is read part by
part (`data.tables.row_groups`): once to check it, and once more if a model is fitted. Then the numbers of the
task's variables are written to a temporary file, 8 bytes each (`data.tables.row_spool`), and the model reads
blocks of rows from there as often as it needs to. A job that has a checkpoint, such as a shard, writes none.

Rows drawn by the seed are in memory: those held out to decide on, if no other cases are given, and a sample
of those to learn from. The card, the fingerprint and every check beyond that of the cells rest on the sample,
together with the rows in which a variable has its least or largest value: ranges are those of all rows.

Source: ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from rehearsal_torch.data.reading import ReadTable, TableError, number_columns, number_faults
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.blocks import Blocks
from rehearsal_torch.data.tables.columnar import ROWS
from rehearsal_torch.data.tables.in_memory import SET
from rehearsal_torch.data.tables.row_faults import set_faults
from rehearsal_torch.data.tables.row_groups import columns_and_rows, parquet_files, read_parts
from rehearsal_torch.data.tables.row_spool import RowSpool
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.data.written_task import written_task
from rehearsal_torch.files.schema import listed
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable, Rows
from rehearsal_torch.seeding import world_generator

MOST = 200_000
"""Rows to learn from in memory, at most, beside those with extreme values."""
HELD_OUT, SHARE = 1000, 5


class TableFile(RehearsalTable):
    """A Parquet table of any size and a task.

    Args:
        path: A .parquet file, or a folder of them: one table, in the order of the files' names.
        task: The roles of the variables: a YAML file, or its content; without `unit` and `codings`.
        contexts: The cases, as in `RehearsalTable`; None decides on held-out rows.
        identity: A column of the cases' file with their names; None takes the row's line in the file.
        cases: How many rows are held out at random, without `contexts`: a fifth of the rows at most.
        seed: Seed of the rows that are held out, and of the sample.
        rows: Rows that are read at a time.

    Attributes:
        count_of_rows: The number of rows to learn from.

    Raises:
        TableError: if there is no such file, or the table has faults; those of a part are listed.
        TaskError: if the task has faults, or asks for what needs a table in memory; all are listed.
        ValueError: if an argument is out of range, or there are too few rows.
        OSError: if the folder of temporary files is full or cannot be written.
    """

    def __init__(
        self,
        path: str | Path | None,
        task: str | Path | Mapping[str, Any] | None,
        contexts: Rows | None = None,
        identity: str | None = None,
        cases: int = HELD_OUT,
        seed: int = 0,
        rows: int = ROWS,
    ) -> None:
        if cases < 1 or rows < 1:
            raise ValueError(f"expected cases and rows of at least 1; got {cases} and {rows}")
        if path is None:
            raise TableError("no table is given: set path=FILE.parquet, or a folder of Parquet files")
        files = columns_and_rows(path)
        read = written_task(task, columns=files[0][1])
        _in_parts(read.unit, bool(read.codings))
        names = read.graph.names
        for source, columns, _ in files:
            if faults := number_faults(pd.DataFrame(columns=columns), names, 0):
                raise TableError(listed(source, faults))
        self._begins = dict(
            zip([file for file, *_ in files], np.cumsum([0, *(n for *_, n in files)]), strict=False)
        )
        total = sum(count for *_, count in files)
        held = 0 if contexts is not None else min(cases, total // SHARE)
        drawn = world_generator(seed, 0).permutation(total)[: held + MOST]
        self._aside, some = np.sort(drawn[:held]), np.sort(drawn[held:])
        del drawn
        self._path, self._names, self._rows, self._state = path, names, rows, _state(path)
        self._spool: RowSpool | None = None
        kept, desired, self.count_of_rows = _Kept(names), 0, 0
        for values, places, out in self._parts():
            kept.take(values, places, _among(places, some), out)
            values = values[torch.from_numpy(~out)]
            self.count_of_rows += len(values)
            inside = read.region.contains(values[:, [names.index(name) for name in read.outcomes]])
            desired += int(inside.sum())
        found, last = kept.frame()
        validation = (last + 0.5) / max(len(found), 1) if last else 0.0
        super().__init__(ReadTable(found, str(path)), task, contexts, identity, validation, "last", seed)
        self.source = Path(path).name
        self.share = desired / self.count_of_rows

    def _parts(self) -> Iterator[tuple[torch.Tensor, np.ndarray, np.ndarray]]:
        """The checked numbers (n, d) of each part, the places (n,) of its rows in the whole, and which of
        them are held out (n,).

        Raises:
            TableError: if a part has faults; they are listed.
        """
        names = self._names
        for source, frame in read_parts(
            self._path, (*names, *(f"{SET}{name}" for name in names)), self._rows
        ):
            if faults := [*set_faults(frame, names), *number_faults(frame, names, 0)]:
                raise TableError(listed(source, faults))
            places = frame.index.to_numpy() + self._begins[source]
            yield number_columns(frame, names, source, 0), places, _among(places, self._aside)

    def training_rows(self) -> Blocks[Table]:
        """The rows to learn from, in the file's units, in blocks; the first call reads the table again.

        Raises:
            TableError: if the table has changed meanwhile.
            OSError: if the folder of temporary files is full or cannot be written.
        """
        if self._spool is None:
            spool = RowSpool(self._names)
            for values, _, out in self._parts():
                spool.append(values[torch.from_numpy(~out)])
            if spool.count != self.count_of_rows or _state(self._path) != self._state:
                raise TableError(
                    f"{self._path}: was written to since it was checked, with {self.count_of_rows:,} rows to "
                    f"learn from (now {spool.count:,}): leave it unchanged while a command runs"
                )
            self._spool = spool
        return self._spool.blocks()

    def notes(self) -> Sequence[str]:
        """Those of the table, and what part of it is in memory."""
        return (*super().notes(), *self._sampled().values())

    def region_notes(self) -> Sequence[str]:
        """That none of the rows to learn from, or every one, lies in the desired region."""
        return () if 0 < self.share < 1 else super().region_notes()

    def card(self) -> Mapping[str, Any]:
        """As of a table; `rows` counts all rows to learn from."""
        return {**super().card(), "rows": self.count_of_rows, **self._sampled()}

    def _sampled(self) -> dict[str, str]:
        if len(self.past) == self.count_of_rows:
            return {}
        return {
            "caution: sample": f"the model is fitted to {self.count_of_rows:,} rows; the fingerprint, the "
            "checks of graph and levels, usual values, the choice of a method and cross-fitted claims rest "
            f"on {len(self.past):,} of them, drawn by the seed"
        }

    def __getstate__(self) -> dict[str, Any]:
        """Without the numbers on disk, which stay with the process that wrote them."""
        return {**self.__dict__, "_spool": None}

    def close(self) -> None:
        """Deletes the numbers on disk; `training_rows` writes them again."""
        if self._spool is not None:
            self._spool.close()
        self._spool = None


class _Kept:
    """Rows in memory: the sample, the rows with the least and the largest value of each of the d columns, and
    the held-out rows.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._some: list[pd.DataFrame] = []
        self._aside: list[pd.DataFrame] = []
        self._ends = pd.DataFrame(columns=list(names), dtype=float)

    def take(self, values: torch.Tensor, places: np.ndarray, some: np.ndarray, out: np.ndarray) -> None:
        """Takes what belongs here of the rows (n, d) at places (n,), by two masks (n,)."""
        frame = pd.DataFrame(values.numpy(), columns=list(self.names), index=places)
        self._some.append(frame[some].copy())
        self._aside.append(frame[out].copy())
        rest = frame[~out]
        if len(rest):
            before = [self._ends] if len(self._ends) else []
            both = pd.concat([*before, rest.loc[self._extreme(rest)]])
            self._ends = both.loc[self._extreme(both)]

    @staticmethod
    def _extreme(frame: pd.DataFrame) -> list[int]:
        return list(dict.fromkeys([*frame.idxmin(), *frame.idxmax()]))

    def frame(self) -> tuple[pd.DataFrame, int]:
        """The rows to learn from and then those held out, each in the file's order, and how many of these."""
        past = pd.concat([*self._some, self._ends]) if self._some else self._ends
        past = past[~past.index.duplicated()].sort_index()
        aside = pd.concat(self._aside) if self._aside else self._ends[:0]
        return pd.concat([past, aside]) if len(aside) else past, len(aside)


def _state(path: str | Path) -> list[tuple[str, int, int]]:
    """Name, size and time of change (in ns) of each file of a table."""
    found = [(file.name, file.stat()) for file in parquet_files(path)]
    return [(name, each.st_size, each.st_mtime_ns) for name, each in found]


def _among(places: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Which of the places (n,) are among those chosen (m,), in rising order."""
    found = np.searchsorted(chosen, places)
    inside = found < len(chosen)
    inside[inside] = chosen[found[inside]] == places[inside]
    return inside


def _in_parts(unit: str | None, coded: bool) -> None:
    """Refuses what needs a table in memory.

    Raises:
        TaskError: naming each of them.
    """
    faults = []
    if unit is not None:
        faults.append(
            f"unit: rows that are read in parts are not grouped ({unit!r}): leave unit out if rows stand "
            "alone, or read the table at once (dataset=table)"
        )
    if coded:
        faults.append(
            "codings: columns of texts are coded in memory: write them as numbers, or read the table at once "
            "(dataset=table)"
        )
    if faults:
        raise TaskError("the task", faults)
