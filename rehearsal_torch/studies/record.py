"""The record of a study: the finished jobs and their rows.

The rows of a stage are in a CSV file; several stages may have the same file. With a log, ``jobs.csv`` has one
line per job, written after the job's rows: a job without a line is unfinished. Without a log, a job is
finished when the file has all its rows (`Layout.count`).

Rows of unfinished jobs and lines of failed jobs are removed before anything is added (`Record.mend`); these
jobs are then run again. Reading changes nothing, so a record can be read while its study is running.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rehearsal_torch.evaluation.rehearsal_rows import written
from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.files.rows import cell, ends_incomplete, read_rows
from rehearsal_torch.files.writing import write_text

Key = tuple[str, ...]
Row = dict[str, Any]
LOG = "jobs.csv"


class Recorded(Protocol):
    """A job as a record sees it."""

    @property
    def stage(self) -> str:
        """The stage whose file has its rows."""

    @property
    def key(self) -> Key:
        """The identifying cells of its rows."""


Each = TypeVar("Each", bound=Recorded)


@dataclass(frozen=True)
class Outcome(Generic[Each]):
    """The outcome of a job.

    Attributes:
        job: The job.
        rows: Its rows; empty if it failed.
        line: Its line in the log, without the key; ``state`` is "ok" or "failed".
    """

    job: Each
    rows: Sequence[Row] = ()
    line: Mapping[str, Any] = field(default_factory=lambda: {"state": "ok"})


@dataclass(frozen=True)
class Layout:
    """The format of the rows of a stage.

    Attributes:
        file: Name of the file.
        key: The columns that identify a job; "stage" is the name of the stage, and a column that the file
            lacks counts as empty.
        columns: All columns of the file.
        optional: Columns after them, which files of earlier versions lack; read as empty there.
        numbers: The columns of numbers.
        whole: The columns of whole numbers.
        exact: Whether numbers are written with all digits; six significant digits otherwise.
        count: The number of rows of a finished job, for a record without a log; 0 for any number.
    """

    file: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    exact: bool = False
    count: int = 0
    optional: tuple[str, ...] = ()

    def written(self, rows: Iterable[Mapping[str, object]], *, head: bool) -> str:
        """Rows as CSV.

        Args:
            rows: The rows; the order of their columns does not matter.
            head: Whether to begin with the header.

        Raises:
            ValueError: if a row has an unknown column.
        """
        if not self.exact:
            return written(list(rows), (*self.columns, *self.optional), head=head)
        text = io.StringIO()
        writer = csv.DictWriter(text, [*self.columns, *self.optional], lineterminator="\n")
        if head:
            writer.writeheader()
        writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)
        return text.getvalue()


@dataclass(frozen=True)
class Log:
    """The format of ``jobs.csv``.

    Attributes:
        key: The columns that identify a job.
        facts: Further columns of numbers, between ``state`` and ``commit``.
        whole: The columns of whole numbers.
    """

    key: tuple[str, ...]
    facts: tuple[str, ...]
    whole: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns."""
        return (*self.key, "state", *self.facts, "commit", "message")


class Record:
    """The record of a study in a folder.

    Args:
        folder: The folder; may not exist yet.
        layouts: Stage to the format of its rows.
        log: The format of ``jobs.csv``; None for a record without a log.

    Attributes:
        lines: Key to line of the log, for all finished jobs; without a log the lines are empty.

    Raises:
        PlainFileError: if a file is damaged; nothing is changed then.
    """

    def __init__(self, folder: Path, layouts: Mapping[str, Layout], log: Log | None = None) -> None:
        self.folder, self.layouts, self.log = folder, dict(layouts), log
        self._stages = {layout.file: stage for stage, layout in reversed(self.layouts.items())}
        self.lines: dict[Key, dict[str, str]] = {}
        if log is None:
            for stage in self._stages.values():
                self.lines |= {key: {} for key in self._finished(stage, self._read(stage))}
        else:
            self.lines = {
                tuple(line[name] for name in log.key): line
                for line in self._logged()
                if line["state"] == "ok"
            }

    def mend(self) -> None:
        """Removes failed jobs and rows of unfinished ones; to be called before anything is added.

        Raises:
            PlainFileError: if a file is damaged; nothing is changed then.
        """
        read = {file: (stage, self._read(stage)) for file, stage in self._stages.items()}
        if self.log is not None:
            path = self.folder / LOG
            if len(self.lines) != len(self._logged()) or ends_incomplete(path):
                write_text(path, written(list(self.lines.values()), self.log.columns))
        for file, (stage, rows) in read.items():
            kept = [row for row in rows if self._key(stage, row) in self.lines]
            if len(kept) != len(rows) or ends_incomplete(self.folder / file) or self._lacks(stage):
                write_text(self.folder / file, self.layouts[stage].written(kept, head=True))

    def todo(self, jobs: Iterable[Each]) -> list[Each]:
        """The jobs that are not finished.

        Args:
            jobs: Planned jobs.
        """
        return [job for job in jobs if job.key not in self.lines]

    def add(self, outcome: Outcome[Any]) -> None:
        """Writes the rows of a job, then its line.

        Args:
            outcome: The outcome of the job.

        Raises:
            ValueError: if a row has an unknown column.
        """
        job, layout = outcome.job, self.layouts[outcome.job.stage]
        if outcome.rows:
            path = self.folder / layout.file
            _append(path, layout.written(outcome.rows, head=_is_new(path)))
        line = dict(outcome.line)
        if self.log is not None:
            whole = {**line, **dict(zip(self.log.key, job.key, strict=True))}
            line = {name: whole.get(name, "") for name in self.log.columns}
            path = self.folder / LOG
            _append(path, written([line], self.log.columns, head=_is_new(path)))
        if line["state"] == "ok":
            self.lines[job.key] = {name: str(value) for name, value in line.items()}

    def rows(self, stage: str) -> list[dict[str, str]]:
        """The rows of finished jobs, with all cells as strings.

        Args:
            stage: The stage, or one with the same file.
        """
        stage = self._stages[self.layouts[stage].file]
        return [row for row in self._read(stage) if self._key(stage, row) in self.lines]

    def _logged(self) -> list[dict[str, str]]:
        assert self.log is not None
        return read_rows(self.folder / LOG, self.log.columns, self.log.facts, self.log.whole)

    def _read(self, stage: str) -> list[dict[str, str]]:
        layout = self.layouts[stage]
        numbers = (*layout.numbers, *layout.optional)
        rows = read_rows(self.folder / layout.file, layout.columns, numbers, layout.whole)
        whole = (*layout.columns, *layout.optional)
        if rows and tuple(rows[0]) not in (layout.columns, whole):
            raise PlainFileError(
                f"{self.folder / layout.file}: expected the columns {','.join(whole)}; got "
                f"{beginning(','.join(rows[0]), 200)}: move the file away"
            )
        return [{**dict.fromkeys(whole, ""), **row} for row in rows]

    def _lacks(self, stage: str) -> bool:
        """Whether the file of a stage was written without its optional columns."""
        layout = self.layouts[stage]
        path = self.folder / layout.file
        if not layout.optional or not path.is_file():
            return False
        with path.open(encoding="utf-8") as file:
            return layout.optional[-1] not in file.readline(100_000).rstrip("\n").split(",")

    def _finished(self, stage: str, rows: Sequence[Mapping[str, str]]) -> list[Key]:
        layout = self.layouts[stage]
        counts = Counter(self._key(stage, row) for row in rows)
        if layout.count:
            return [key for key, count in counts.items() if count == layout.count]
        cut = self._key(stage, rows[-1]) if rows and ends_incomplete(self.folder / layout.file) else None
        return [key for key in counts if key != cut]

    def _key(self, stage: str, row: Mapping[str, str]) -> Key:
        return tuple(stage if name == "stage" else row.get(name, "") for name in self.layouts[stage].key)


def _is_new(path: Path) -> bool:
    return not path.is_file() or path.stat().st_size == 0


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text)
