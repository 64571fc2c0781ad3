"""The rows of a paper's jobs, in CSV files that grow job by job.

``jobs.csv`` has one line per finished job, written after the rows of the job; rows without such a line are
those of an interrupted job, and are removed before anything is added. A record without ``jobs.csv`` takes a
job as finished when the file has its rows. While jobs run, files are plain; in git those above 100 kB are
compressed.
"""

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rehearsal_torch.evaluation.claim_rows import written
from rehearsal_torch.files.atomic_write import write_bytes, write_text
from rehearsal_torch.files.csv_rows import cell, read_rows

Key = tuple[str, ...]
Row = dict[str, Any]
LOG = "jobs.csv"
# Files with more bytes are compressed.
LARGE = 100_000


class Recorded(Protocol):
    """A job as a record sees it: the stage that planned it, and the cells that identify its rows."""

    @property
    def stage(self) -> str:
        """The stage whose file has its rows."""

    @property
    def key(self) -> Key:
        """The cells that identify its rows."""


Each = TypeVar("Each", bound=Recorded)


@dataclass(frozen=True)
class Layout:
    """The file of a stage.

    Attributes:
        file: Its name; several stages may have the same file.
        key: The columns that identify a job; "stage" is the name of the stage, and a column that the file
            lacks counts as empty.
        columns: All columns.
        exact: Whether numbers are written with all digits; six significant digits otherwise.
        count: The number of rows of a finished job, for a record without ``jobs.csv``; 0 for any number.
    """

    file: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    exact: bool = False
    count: int = 0

    def written(self, rows: Iterable[Mapping[str, object]], *, head: bool) -> str:
        """Rows as CSV, with a header if `head`; ValueError for an unknown column."""
        if not self.exact:
            return written(list(rows), self.columns, head=head)
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        if head:
            writer.writeheader()
        writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)
        return text.getvalue()


class Record:
    """The finished jobs in a folder, and their rows.

    Args:
        folder: The folder; may not exist yet.
        layouts: Stage to the file of its rows.
        log: The columns of ``jobs.csv``, the key's first; empty for a record without one.

    Attributes:
        lines: Key to line of ``jobs.csv``, for all finished jobs; the lines are empty without it.
    """

    def __init__(self, folder: Path, layouts: Mapping[str, Layout], log: Sequence[str] = ()) -> None:
        self.folder, self.layouts, self.log = folder, dict(layouts), tuple(log)
        self._stages = {layout.file: stage for stage, layout in reversed(self.layouts.items())}
        self.lines: dict[Key, dict[str, str]] = {}
        if self.log:
            key = next(iter(self.layouts.values())).key
            lines = read_rows(folder / LOG, self.log)
            self.lines = {tuple(line[name] for name in key): line for line in lines if line["state"] == "ok"}
        else:
            for stage in self._stages.values():
                counts = Counter(self._key(stage, row) for row in self._read(stage))
                expected = self.layouts[stage].count
                self.lines |= {key: {} for key, count in counts.items() if count == expected or not expected}

    def mend(self) -> None:
        """Removes failed jobs and the rows of unfinished ones; to be called before anything is added."""
        texts = {LOG: written(list(self.lines.values()), self.log)} if self.log else {}
        for file, stage in self._stages.items():
            kept = [row for row in self._read(stage) if self._key(stage, row) in self.lines]
            texts[file] = self.layouts[stage].written(kept, head=True)
        for file, text in texts.items():
            path = self.folder / file
            if path.is_file() and path.read_text(encoding="utf-8") != text:
                write_text(path, text)

    def todo(self, jobs: Iterable[Each]) -> list[Each]:
        """The jobs that are not finished."""
        return [job for job in jobs if job.key not in self.lines]

    def add(self, job: Recorded, rows: Sequence[Row], line: Mapping[str, Any]) -> None:
        """Writes the rows of a job, then its line, whose ``state`` is "ok" or "failed"."""
        layout = self.layouts[job.stage]
        if rows:
            _append(self.folder / layout.file, lambda head: layout.written(rows, head=head))
        whole = {**line, **dict(zip(layout.key, job.key, strict=True))}
        if self.log:
            cells = {name: whole.get(name, "") for name in self.log}
            _append(self.folder / LOG, lambda head: written([cells], self.log, head=head))
        if line["state"] == "ok":
            self.lines[job.key] = {name: str(value) for name, value in whole.items()}

    def rows(self, stage: str) -> list[dict[str, str]]:
        """The rows of finished jobs in the file of a stage, with all cells as strings."""
        first = self._stages[self.layouts[stage].file]
        return [row for row in self._read(first) if self._key(first, row) in self.lines]

    def _read(self, stage: str) -> list[dict[str, str]]:
        layout = self.layouts[stage]
        rows = read_rows(self.folder / layout.file, layout.key[-1:])
        return [{**dict.fromkeys(layout.columns, ""), **row} for row in rows]

    def _key(self, stage: str, row: Mapping[str, str]) -> Key:
        return tuple(stage if name == "stage" else row.get(name, "") for name in self.layouts[stage].key)


def _append(path: Path, text: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = not path.is_file() or path.stat().st_size == 0
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text(head))


def pack(folder: Path) -> None:
    """Compresses the large CSV files of a folder; equal rows give equal bytes."""
    for path in sorted(folder.glob("*.csv")):
        if path.stat().st_size > LARGE:
            write_bytes(path.with_name(f"{path.name}.gz"), gzip.compress(path.read_bytes(), mtime=0))
            path.unlink()


def unpack(folder: Path) -> None:
    """Unpacks the compressed CSV files; a plain file beside one is newer and stays."""
    for path in sorted(folder.glob("*.csv.gz")):
        plain = path.with_suffix("")
        if not plain.exists():
            write_bytes(plain, gzip.decompress(path.read_bytes()))
        path.unlink()
