"""The runner of all studies: jobs that are not done are shared among processes, each is written as it comes.

A study is a `Reproduction`: it says what its stages run and how its page is made, and nothing else.
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
# Above this number of jobs, one line is printed for each fiftieth part of them.
_FEW = 200


@dataclass(frozen=True)
class Work(Generic[Common, Each]):
    """Jobs that are done alike.

    Attributes:
        name: What they are called in messages.
        record: Where they are kept.
        jobs: All of them, in the order in which they are done.
        do: Does one; a function of a module.
        common: What all of them share.
        summary: A few words on one that went well.
        alone: Whether they are done one at a time.
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
        request: What is asked for.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.out = RunFolder(request.out)

    def begin(self) -> dict[str, Any] | None:
        """Checks that new rows go with those that are there.

        Returns:
            What run.json says of all rows; None where the command adds no rows.

        Raises:
            UserError: if the rows there were made with other settings.
        """
        if not self.request.working:
            return None
        return agree(self.out, self.request.shared(), self.request.overrides)

    @abstractmethod
    def works(self) -> Iterator[Work[Any, Any]]:
        """What the stages asked for run, in order."""

    @abstractmethod
    def documents(self) -> None:
        """Writes README.md and figures/."""

    def seed(self) -> int:
        """The seed that run.json records."""
        return 0


def run(make: Callable[[Request], Reproduction], request: Request, typed: Sequence[str]) -> int:
    """Runs the stages asked for, while nobody else writes into the study's folder.

    Args:
        make: Makes the study of a request.
        request: What is asked for.
        typed: What was typed behind the command, for the record.

    Returns:
        The exit code: 0, or 1 where jobs are left to be done.

    Raises:
        UserError: for a folder that the study may not write to, or settings that its rows do not share.
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
    """Does the jobs that are not done.

    Args:
        work: The jobs.
        workers: Processes, one thread each.
        deadline: No job begins after it, on `time.monotonic`'s clock; None for none.
        began: When the command began, on the same clock.

    Returns:
        How many are left.
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
    """Prints a line with the seconds since `began`."""
    print(f"{time.monotonic() - began:7.0f} s  {text}", flush=True)
