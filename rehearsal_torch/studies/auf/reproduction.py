"""The study of avoiding undesired futures: each job fits a method in a world, decides in its contexts, and
asks the world.

It builds what ``scripts/decide.py`` builds, from the same configuration, and decides through the same loop.
jobs.csv says of every job how long its fit took, and which commit it came from.

Source: Du et al. (2026), Sec. 4 and App. D and E.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rehearsal_torch.cli.batch_decisions import played
from rehearsal_torch.cli.run import build
from rehearsal_torch.cli.verbs.fitting import learnt
from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS, NUMBERS, Row, row
from rehearsal_torch.studies.job import Protocol, attempted, configured
from rehearsal_torch.studies.plan import Job, jobs
from rehearsal_torch.studies.record import Layout, Log, Outcome, Record
from rehearsal_torch.studies.runner import Reproduction, Work
from rehearsal_torch.studies.study_files import study

KEY = ("stage", "dataset", "method", "setting", "seed")
COUNTS = ("decisions", "idle", "warned")
LOG = Log(KEY, ("fit_seconds", *COUNTS), ("seed",))
# The rows of table 1 have no setting.
PLAIN = "table1"
# The rows of a job without a number of its own.
ROWS = 1000


def record_in(folder: Path) -> Record:
    """The study's record.

    Args:
        folder: Where it is, or is going to be.

    Raises:
        PlainFileError: if its jobs.csv is damaged.
    """
    return Record(
        folder, {name: _layout(name, stage.file) for name, stage in study("auf").stages.items()}, LOG
    )


def _layout(stage: str, file: str) -> Layout:
    columns = COLUMNS if stage == PLAIN else (*COLUMNS[:2], "setting", *COLUMNS[2:])
    return Layout(file, KEY, columns, NUMBERS, ("seed",))


def done(protocol: Protocol, job: Job) -> Outcome[Job]:
    """Does a job; an error becomes its line's message, so that the others go on."""
    return attempted(job, lambda: _decided(protocol, job), protocol.commit)


def _decided(protocol: Protocol, job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """A row for each decision, and the facts of the job's line."""
    contexts = f"dataset.contexts={protocol.options['contexts']}"
    run = build(configured(protocol.conf, [*job.overrides, contexts, *protocol.overrides]))
    with TemporaryDirectory() as folder:
        fitted = learnt(run, Path(folder))
    made = list(played(run, fitted.surrogate))
    lines = [json.loads(each.line()) | {"seconds": each.decision.seconds} for each in made]
    rows = [row(job.world, job.method, job.seed, line) for line in lines]
    facts = {
        "fit_seconds": fitted.seconds,
        "decisions": len(lines),
        "idle": sum(line["alteration"] is None for line in lines),
        "warned": sum(bool(line.get("warnings")) and line["alteration"] is not None for line in lines),
    }
    return [each if job.stage == PLAIN else {**each, "setting": job.setting} for each in rows], facts


class AvoidingUndesiredFutures(Reproduction):
    """The study, stage by stage."""

    def works(self) -> Iterator[Work[Protocol, Job]]:
        """See `Reproduction.works`."""
        record, protocol, most = (
            record_in(self.out.path),
            Protocol.of(self.request),
            self.request.options["max_rows"],
        )
        for stage in self.request.working:
            planned = jobs(self.request.study, stage, **self.request.names, seeds=self.request.seeds)
            few = [job for job in planned if most is None or _rows(job) <= most]
            yield Work(stage, record, few, done, protocol, _summary, self.request.study.stages[stage].alone)

    def documents(self) -> None:
        """See `Reproduction.documents`."""
        from rehearsal_torch.studies.auf.documents import documents

        nhanes = self.request.options["nhanes"]
        documents(self.out, record_in(self.out.path), None if nhanes is None else Path(nhanes))


def _rows(job: Job) -> int:
    told = [text.partition("=")[2] for text in job.overrides if text.startswith("dataset.rows=")]
    return int(told[0]) if told else ROWS


def _summary(outcome: Outcome[Job]) -> str:
    mean = sum(row["auf"] for row in outcome.rows) / len(outcome.rows)
    return f"{mean:.3f}, fit {outcome.line['fit_seconds']:.2f} s"
