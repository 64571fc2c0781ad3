"""The record of a study: which jobs are done, and the rows they gave.

``jobs.csv`` has a line a job; the rows of a stage stand in a file of their own. A job's rows are written
first and its line after them, so a job without a line is not done, and whatever rows it left behind are
dropped when the record is taken up again. Jobs that failed are dropped likewise, to be tried again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS, NUMBERS, Row, number, typed, written
from rehearsal_torch.files.rows import read_rows, torn

KEY = ("stage", "dataset", "method", "setting", "seed")
COUNTS = ("decisions", "idle", "warned")
LINE = (*KEY, "state", "fit_seconds", *COUNTS, "commit", "message")
Key = tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """A method in a world, with one seed.

    Attributes:
        stage: Which part of the study.
        dataset: The world's name in ``conf/dataset``.
        method: The method's name.
        setting: What else distinguishes the job, such as ``eta=3``; empty for nothing.
        seed: Of world and method.
        overrides: What makes it so, as one would type it.
    """

    stage: str
    dataset: str
    method: str
    setting: str
    seed: int
    overrides: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """The texts that a job is known by."""
        return (self.stage, self.dataset, self.method, self.setting, str(self.seed))


@dataclass(frozen=True)
class Outcome:
    """What came of a job.

    Attributes:
        job: Which.
        rows: A row a decision; none where it failed.
        line: Its line in ``jobs.csv``, but for what the job says itself.
    """

    job: Job
    rows: Sequence[Row]
    line: Mapping[str, object]


class StudyRecord:
    """The record on disk.

    Args:
        folder: Where it is, or is going to be.
        files: Stage to the file of its rows.
        plain: The stages whose rows have no column ``setting``.

    Raises:
        PlainFileError: if a file of it is damaged; nothing is changed then.
    """

    def __init__(self, folder: Path, files: Mapping[str, str], plain: Sequence[str] = ()) -> None:
        self.folder, self.files, self.plain = folder, dict(files), tuple(plain)
        lines = read_rows(folder / "jobs.csv", LINE, ("fit_seconds", *COUNTS), ("seed",))
        raws = {stage: self._lines(stage) for stage in self.files}
        self.jobs: dict[Key, dict[str, str]] = {
            tuple(line[name] for name in KEY): line for line in lines if line.get("state") == "ok"
        }
        if len(self.jobs) != len(lines) or torn(folder / "jobs.csv"):
            replace(folder / "jobs.csv", written(list(self.jobs.values()), LINE))
        for stage in self.files:
            raw = raws[stage]
            kept = [line for line in raw if self._key(stage, line) in self.jobs]
            if len(kept) != len(raw) or torn(self._file(stage)):
                replace(self._file(stage), written(kept, self._columns(stage)))

    def todo(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs that are not done."""
        return [job for job in jobs if job.key not in self.jobs]

    def add(self, outcome: Outcome) -> None:
        """Writes what came of a job: its rows, then its line."""
        job = outcome.job
        line = dict(zip(KEY, job.key, strict=True)) | dict(outcome.line)
        if outcome.rows:
            rows = [
                row if job.stage in self.plain else {**row, "setting": job.setting} for row in outcome.rows
            ]
            append(self._file(job.stage), rows, self._columns(job.stage))
        append(self.folder / "jobs.csv", [line], LINE)
        if line["state"] == "ok":
            self.jobs[job.key] = {name: str(value) for name, value in line.items()}

    def rows(self, stage: str) -> list[Row]:
        """A stage's rows, with numbers as numbers, ``setting``, and what the job says: ``fit_seconds``."""
        found = []
        for line in typed(self._lines(stage)):
            told = self.jobs.get(self._key(stage, line))
            if told is not None:
                found.append({"setting": "", **line, "fit_seconds": number(told["fit_seconds"])})
        return found

    def counts(self, stage: str, column: str) -> dict[tuple[object, object], int]:
        """(world, method) to the sum over jobs of ``idle``, ``warned`` or ``decisions``."""
        found: dict[tuple[object, object], int] = {}
        for line in self.jobs.values():
            if line["stage"] == stage:
                place = (line["dataset"], line["method"])
                found[place] = found.get(place, 0) + _count(line[column])
        return found

    def _file(self, stage: str) -> Path:
        return self.folder / self.files[stage]

    def _lines(self, stage: str) -> list[dict[str, str]]:
        return read_rows(self._file(stage), self._columns(stage), NUMBERS, ("seed",))

    def _columns(self, stage: str) -> tuple[str, ...]:
        return COLUMNS if stage in self.plain else (*COLUMNS[:2], "setting", *COLUMNS[2:])

    def _key(self, stage: str, line: Mapping[str, object]) -> Key:
        return (
            stage,
            str(line["dataset"]),
            str(line["method"]),
            str(line.get("setting", "")),
            str(line["seed"]),
        )


def _count(text: str) -> int:
    """A count as a job's line says it; 0 where it says nothing."""
    value = number(text)
    return 0 if math.isnan(value) else int(value)


def append(path: Path, rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Adds rows to a CSV, with a head where it is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.is_file() and path.stat().st_size > 0
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(written(rows, columns, head=not begun))


def replace(path: Path, text: str) -> None:
    """Writes a file as a whole, so that nobody ever reads half of it."""
    beside = path.with_name(f".{path.name}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
