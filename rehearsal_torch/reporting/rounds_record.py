"""The record of a study of rounds: which repeats are done, and their rows.

``rounds.csv`` holds a row a round, ``jobs.csv`` a line a repeat. A repeat's rows are written first and its line after them, so that a repeat
without a line is not done: whatever rows it left behind are dropped when the record is taken up again (`mend`), and it begins anew. Repeats
that failed are dropped likewise, to be tried again. Reading alone changes nothing, so that it may be done while a study is running.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rehearsal_torch.reporting.online_rows import COLUMNS, KEY, Row, online_typed
from rehearsal_torch.reporting.rehearsal_rows import written
from rehearsal_torch.reporting.study_record import append, replace, whole_lines

LINE = (*KEY, "state", "rounds", "seconds", "commit", "message")
Key = tuple[str, ...]


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
        rows: The file of the rows.
        jobs: The file of the repeats.
    """

    def __init__(self, folder: Path, rows: str = "rounds.csv", jobs: str = "jobs.csv") -> None:
        self.rows_file, self.jobs_file = folder / rows, folder / jobs
        lines = whole_lines(self.jobs_file)
        self.jobs: dict[Key, dict[str, str]] = {_key(line): line for line in lines if line.get("state") == "ok"}

    def mend(self) -> None:
        """Drops what failed and what was left behind; to be called by whoever is going to add, before anything is added."""
        lines = whole_lines(self.jobs_file)
        if lines and len(self.jobs) != len(lines):
            replace(self.jobs_file, written(list(self.jobs.values()), LINE))
        raw = whole_lines(self.rows_file)
        kept = [line for line in raw if _key(line) in self.jobs]
        whole = not self.rows_file.is_file() or self.rows_file.read_text(encoding="utf-8").endswith("\n")
        if len(kept) != len(raw) or not whole:
            replace(self.rows_file, written(kept, COLUMNS))

    def todo(self, repeats: Sequence[Repeat]) -> list[Repeat]:
        """The repeats that are not done."""
        return [each for each in repeats if each.key not in self.jobs]

    def add(self, repeat: Repeat, rows: Sequence[Row], line: Mapping[str, object]) -> None:
        """Writes what came of a repeat: its rows, then its line."""
        if rows:
            append(self.rows_file, rows, COLUMNS)
        whole = dict(zip(KEY, repeat.key, strict=True)) | dict(line)
        append(self.jobs_file, [whole], LINE)
        if whole["state"] == "ok":
            self.jobs[repeat.key] = {name: str(value) for name, value in whole.items()}

    def rows(self) -> list[Row]:
        """All rows of repeats that are done, with numbers as numbers."""
        return online_typed(line for line in whole_lines(self.rows_file) if _key(line) in self.jobs)


def _key(line: Mapping[str, str]) -> Key:
    return tuple(line[name] for name in KEY)
