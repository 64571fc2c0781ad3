"""The study of avoiding undesired futures: each job fits a method in a world and decides in its contexts.

Every stage has a file with one row per decision. ``jobs.csv`` has one line per job, with the seconds of its
fit, the number of its decisions, and how many of them were without action (``idle``) or bore warnings.

Source: Du et al. (2026), Sec. 4 and App. D and E.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS, NUMBERS, Row, number, row, typed
from rehearsal_torch.studies.job import Protocol, attempted, configured, decided_cases
from rehearsal_torch.studies.plan import Job
from rehearsal_torch.studies.record import Layout, Log, Outcome, Record
from rehearsal_torch.studies.runner import Reproduction, Work
from rehearsal_torch.studies.study import Stage
from rehearsal_torch.studies.study_files import study

KEY = ("stage", "dataset", "method", "setting", "seed")
LOG = Log(KEY, ("fit_seconds", "decisions", "idle", "warned"), ("seed",))
# The stage whose rows have no setting.
TABLE1 = "table1"
# The number of observations of a job that does not set it.
DEFAULT_ROWS = 1000


def _layout(stage: Stage) -> Layout:
    columns = COLUMNS if stage.name == TABLE1 else (*COLUMNS[:2], "setting", *COLUMNS[2:])
    return Layout(stage.file, KEY, columns, NUMBERS, ("seed",))


# The record of the study in a folder.
record_in = partial(
    Record, layouts={name: _layout(stage) for name, stage in study("auf").stages.items()}, log=LOG
)


def rows_of(protocol: Protocol, job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job, one per decision, and the further columns of its line.

    Args:
        protocol: What all jobs have in common.
        job: The job.
    """
    contexts = f"dataset.size.contexts={protocol.options['contexts']}"
    config = configured(protocol.conf, [*job.overrides, contexts, *protocol.overrides])
    decisions, fit_seconds = decided_cases(config)
    setting = {} if job.stage == TABLE1 else {"setting": job.setting}
    rows = [row(job.world, job.method, job.seed, each) | setting for each in decisions]
    acted = [each for each in decisions if each["alteration"] is not None]
    facts = {
        "fit_seconds": fit_seconds,
        "decisions": len(decisions),
        "idle": len(decisions) - len(acted),
        "warned": sum(bool(each.get("warnings")) for each in acted),
    }
    return rows, facts


def recorded_rows(record: Record, stage: str) -> list[Row]:
    """The rows of a stage, with numbers as numbers.

    Each row also has the columns ``setting`` (empty for a stage without settings) and ``fit_seconds``, the
    seconds of its job's fit.

    Args:
        record: The study's record.
        stage: One of its stages.
    """
    found = []
    for line in typed(record.rows(stage)):
        key = (stage, *(str(line.get(name, "")) for name in KEY[1:]))
        found.append({"setting": "", **line, "fit_seconds": number(record.lines[key]["fit_seconds"])})
    return found


def job_totals(record: Record, stage: str, column: str) -> dict[tuple[object, object], int]:
    """(world, method) to the sum over the jobs of a stage.

    Args:
        record: The study's record.
        stage: One of its stages.
        column: The summed column of ``jobs.csv``: "decisions", "idle" or "warned"; an empty cell counts as 0.
    """
    found: dict[tuple[object, object], int] = {}
    for line in record.lines.values():
        if line["stage"] == stage:
            value = number(line[column])
            key = (line["dataset"], line["method"])
            found[key] = found.get(key, 0) + (0 if math.isnan(value) else int(value))
    return found


class AvoidingUndesiredFutures(Reproduction):
    """The study, stage by stage."""

    def works(self) -> Iterator[Work[Protocol, Job]]:
        """See `Reproduction.works`."""
        record, protocol = record_in(self.out.path), Protocol.of(self.request)
        compute, max_rows = partial(attempted, rows_of), self.request.options["max_rows"]
        for stage in self.request.working:
            jobs = [job for job in self.request.jobs(stage) if max_rows is None or _size(job) <= max_rows]
            alone = self.request.study.stages[stage].alone
            yield Work(stage, record, jobs, compute, protocol, _summary, alone)

    def documents(self) -> None:
        """See `Reproduction.documents`."""
        from rehearsal_torch.studies.auf.documents import documents

        nhanes = self.request.options["nhanes"]
        documents(self.out, record_in(self.out.path), None if nhanes is None else Path(nhanes))


def _size(job: Job) -> int:
    """The number of observations that a job asks for."""
    given = [text.partition("=")[2] for text in job.overrides if text.startswith("dataset.size.rows=")]
    return int(given[0]) if given else DEFAULT_ROWS


def _summary(outcome: Outcome[Job]) -> str:
    mean = sum(row["auf"] for row in outcome.rows) / len(outcome.rows)
    return f"{mean:.3f}, fit {outcome.line['fit_seconds']:.2f} s"
