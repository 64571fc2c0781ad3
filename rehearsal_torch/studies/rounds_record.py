"""The record of a study of rounds: which repeats are done, and their rows.

One file holds a row a round (``rounds.csv`` or ``traces.csv``), ``jobs.csv`` a line a repeat. A repeat's rows
are written first and its line after them, so that a repeat without a line is not done: whatever rows it left
behind are dropped when the record is taken up again (`mend`), and it begins anew. Repeats that failed are
dropped likewise, to be tried again. Reading alone changes nothing, so that it may be done while a study is
running.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rehearsal_torch.evaluation import online_rows, trial_rows
from rehearsal_torch.evaluation.rehearsal_rows import written
from rehearsal_torch.files.rows import read_rows, torn
from rehearsal_torch.studies.record import append, replace

Key = tuple[str, ...]
Row = dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """What the rows of a study look like.

    Attributes:
        rows: Their file.
        key: The columns that name a repeat.
        columns: All columns.
        numbers: Those that hold numbers.
        whole: Those that hold whole numbers.
        typed: Makes numbers of what was read from CSV.
    """

    rows: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    numbers: tuple[str, ...]
    whole: tuple[str, ...]
    typed: Callable[[Iterable[Mapping[str, str]]], list[Row]]

    @property
    def line(self) -> tuple[str, ...]:
        """The columns of ``jobs.csv``."""
        return (*self.key, "state", "rounds", "seconds", "commit", "message")


ONLINE = Layout(
    "rounds.csv",
    online_rows.KEY,
    online_rows.COLUMNS,
    online_rows.NUMBERS,
    online_rows.WHOLE,
    online_rows.online_typed,
)
TRIALS = Layout(
    "traces.csv",
    trial_rows.KEY,
    trial_rows.COLUMNS,
    trial_rows.NUMBERS,
    trial_rows.WHOLE,
    trial_rows.trial_typed,
)


class Keyed(Protocol):
    """Something that a study does once."""

    @property
    def key(self) -> Key:
        """The texts that it is known by."""


Each = TypeVar("Each", bound=Keyed)


@dataclass(frozen=True)
class Repeat:
    """A method in a world, once through all rounds.

    Attributes:
        world: The world's name in the study.
        method: The method's name in the study.
        tau: The probability asked for, as text; empty for a method without one.
        repeat: The seed of world and method.
        overrides: What makes it so, as one would type it.
    """

    world: str
    method: str
    tau: str
    repeat: int
    overrides: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """The texts that the repeat is known by."""
        return (self.world, self.method, self.tau, str(self.repeat))


class RoundsRecord:
    """The record on disk.

    Args:
        folder: Where it is, or is going to be.
        layout: What its rows look like.

    Raises:
        PlainFileError: if jobs.csv is damaged.
    """

    def __init__(self, folder: Path, layout: Layout = ONLINE) -> None:
        self.layout, self.rows_file, self.jobs_file = layout, folder / layout.rows, folder / "jobs.csv"
        self.jobs: dict[Key, dict[str, str]] = {
            self._key(line): line for line in self._lines() if line.get("state") == "ok"
        }

    def mend(self) -> None:
        """Drops what failed and what was left behind; to be called by whoever is going to add, before
        anything is added.
        """
        lines, raw = self._lines(), self._raw()
        if len(self.jobs) != len(lines) or torn(self.jobs_file):
            replace(self.jobs_file, written(list(self.jobs.values()), self.layout.line))
        kept = [line for line in raw if self._key(line) in self.jobs]
        if len(kept) != len(raw) or torn(self.rows_file):
            replace(self.rows_file, written(kept, self.layout.columns))

    def todo(self, repeats: Sequence[Each]) -> list[Each]:
        """The repeats that are not done."""
        return [each for each in repeats if each.key not in self.jobs]

    def add(self, repeat: Keyed, rows: Sequence[Row], line: Mapping[str, object]) -> None:
        """Writes what came of a repeat: its rows, then its line."""
        if rows:
            append(self.rows_file, rows, self.layout.columns)
        whole = dict(zip(self.layout.key, repeat.key, strict=True)) | dict(line)
        append(self.jobs_file, [whole], self.layout.line)
        if whole["state"] == "ok":
            self.jobs[repeat.key] = {name: str(value) for name, value in whole.items()}

    def rows(self) -> list[Row]:
        """All rows of repeats that are done, with numbers as numbers."""
        return self.layout.typed(line for line in self._raw() if self._key(line) in self.jobs)

    def _lines(self) -> list[dict[str, str]]:
        return read_rows(self.jobs_file, self.layout.line, ("rounds", "seconds"))

    def _raw(self) -> list[dict[str, str]]:
        return read_rows(self.rows_file, self.layout.columns, self.layout.numbers, self.layout.whole)

    def _key(self, line: Mapping[str, str]) -> Key:
        return tuple(line[name] for name in self.layout.key)
