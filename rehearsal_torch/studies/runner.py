"""The runner of all studies: runs unfinished jobs in worker processes and records each when it is finished.

A study is a `Reproduction`, which defines the jobs of its stages and its README.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.committed import check_clean, pack, unpack
from rehearsal_torch.studies.record import Each, Outcome, Record
from rehearsal_torch.studies.request import FIGURES, Request
from rehearsal_torch.studies.results_folder import agree, note, own
from rehearsal_torch.studies.workers import shared

Common = TypeVar("Common")
# With more jobs, only one line per 2% of the jobs is printed.
_FEW = 200


@dataclass(frozen=True)
class Work(Generic[Common, Each]):
    """Jobs that are run by the same function.

    Attributes:
        name: Name in messages.
        record: Their record.
        jobs: All jobs, finished or not, in the order of running.
        do: Runs a job, given the common argument; a function of a module, or a partial of one.
        common: The common argument of all jobs.
        summary: A short summary of a successful outcome.
        alone: Whether jobs run one at a time.
    """

    name: str
    record: Record
    jobs: Sequence[Each]
    do: Callable[[Common, Each], Outcome[Each]]
    common: Common
    summary: Callable[[Outcome[Each]], str]
    alone: bool = False


class Reproduction(ABC):
    """A study as the runner sees it.

    Args:
        request: What the user asked for.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.out = RunFolder(request.out)

    def begin(self) -> dict[str, Any] | None:
        """Checks that new rows have the settings of those in the folder.

        Returns:
            The entries of ``run.json`` that hold for all rows; None if the command adds no rows.

        Raises:
            UserError: if the rows in the folder have other settings.
        """
        if not self.request.working:
            return None
        return agree(self.out, self.request.shared(), self.request.overrides)

    @abstractmethod
    def works(self) -> Iterator[Work[Any, Any]]:
        """The jobs of the requested stages, in order."""

    @abstractmethod
    def documents(self) -> None:
        """Writes README.md and ``figures/``."""

    def seed(self) -> int:
        """The seed recorded in ``run.json``."""
        return 0


def run(make: Callable[[Request], Reproduction], request: Request, typed: Sequence[str]) -> int:
    """Runs the requested stages, with a lock on the study's folder.

    Args:
        make: Creates the study of a request.
        request: What the user asked for.
        typed: The arguments of the command, for ``run.json``.

    Returns:
        The exit code: 0, or 1 if jobs remain unfinished.

    Raises:
        UserError: for a folder that the study must not write to, or settings that differ from those of its
            rows.
    """
    began = time.monotonic()
    minutes = request.budget_minutes
    deadline = None if minutes is None else began + 60 * minutes
    with own(request.out).lock():
        check_clean(request.out)
        unpack(request.out)
        try:
            study = make(request)
            facts = study.begin()
            if facts is not None:
                note(study.out, typed, facts, study.seed())
            left = sum(carried_out(work, request.workers, deadline, began) for work in study.works())
            if FIGURES in request.stages:
                study.documents()
                say(began, f"figures and README.md in {request.out}")
        finally:
            pack(request.out)
    if left:
        say(began, f"{left} {request.study.unit}s are not done: type the same again to go on with them")
    return 1 if left else 0


def carried_out(work: Work[Any, Any], workers: int, deadline: float | None, began: float) -> int:
    """Runs the unfinished jobs.

    Args:
        work: The jobs.
        workers: Number of processes, one thread each.
        deadline: Time on the clock of `time.monotonic` after which no job begins; None for no deadline.
        began: Start of the command, on the same clock.

    Returns:
        The number of jobs that remain unfinished.
    """
    work.record.mend()
    todo = work.record.todo(work.jobs)
    say(began, f"{work.name}: {len(todo)} of {len(work.jobs)} to do")
    count = 1 if work.alone else min(workers, max(len(todo), 1))
    for number, outcome in enumerate(shared(work.do, work.common, todo, count, deadline), 1):
        work.record.add(outcome)
        named = f"{number}/{len(todo)}  {' '.join(text for text in outcome.job.key if text)}"
        if outcome.line["state"] != "ok":
            say(began, f"{named} FAILED: {outcome.line['message']}")
        elif len(todo) <= _FEW or number * 50 // len(todo) > (number - 1) * 50 // len(todo):
            say(began, f"{named}: {work.summary(outcome)}")
    return len(work.record.todo(work.jobs))


def say(began: float, text: str) -> None:
    """Prints a line that begins with the seconds since the start of the command.

    Args:
        began: Start of the command, on the clock of `time.monotonic`.
        text: The rest of the line.
    """
    print(f"{time.monotonic() - began:7.0f} s  {text}", flush=True)
