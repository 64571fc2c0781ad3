"""Worker processes of a study, each with one thread.

The common argument is sent to each process once; the other argument of a task is small. Results are returned
as they are finished, in any order, and must identify their task. No task begins after the deadline.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from uuid import uuid4

from rehearsal_torch.workers import begin

Shared = TypeVar("Shared")
Task = TypeVar("Task")
Result = TypeVar("Result")


def shared(
    work: Callable[[Shared, Task], Result],
    common: Shared,
    tasks: Iterable[Task],
    workers: int,
    deadline: float | None = None,
) -> Iterator[Result]:
    """The results of work(common, task), in the order in which they are finished.

    Args:
        work: A function of a module, since other processes look it up by name.
        common: The first argument of all tasks.
        tasks: The second argument of each task.
        workers: Number of processes; 1 runs all tasks in this process.
        deadline: Time on the clock of `time.monotonic`; None for no deadline.
    """
    due = (task for task in tasks if deadline is None or time.monotonic() < deadline)
    if workers == 1:
        yield from (work(common, task) for task in due)
        return
    from joblib import Parallel, delayed

    # The token keeps joblib from reusing processes that were started with other arguments.
    start = {"initializer": _receive, "initargs": (work, common, uuid4().hex, os.getpid())}
    parallel = Parallel(
        n_jobs=workers,
        backend="loky",
        return_as="generator_unordered",
        pre_dispatch=f"{2 * workers}",
        batch_size=1,
        **start,
    )
    yield from parallel(delayed(_carry_out)(task) for task in due)


_received: list[Any] = []


def _receive(
    work: Callable[[Shared, Task], Result],
    common: Shared,
    token: str,  # noqa: ARG001
    parent: int,
) -> None:
    begin(parent)
    _received[:] = [work, common]


def _carry_out(task: Any) -> Any:
    work, common = _received
    return work(common, task)
