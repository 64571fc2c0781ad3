"""Processes that share a study, each with one thread.

What all tasks need travels to each process once; a task is a pair of small arguments. Results come as they
are finished, in any order, so they must say what they are of. No new task is handed out after the deadline.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from uuid import uuid4

import torch

from rehearsal_torch.workers import end_with

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
    """The results of work(common, task), in the order in which they come.

    Args:
        work: A function of a module (other processes look it up by name).
        common: What every task needs.
        tasks: One argument a task.
        workers: Processes; 1 works in this one.
        deadline: On `time.monotonic`'s clock; None for none.
    """
    due = (task for task in tasks if deadline is None or time.monotonic() < deadline)
    if workers == 1:
        yield from (work(common, task) for task in due)
        return
    from joblib import Parallel, delayed

    # The token keeps joblib from taking up processes again that hold something else.
    start = {"initializer": _receive, "initargs": (work, common, uuid4().hex, os.getpid())}
    share = Parallel(
        n_jobs=workers,
        backend="loky",
        return_as="generator_unordered",
        pre_dispatch=f"{2 * workers}",
        batch_size=1,
        **start,
    )
    yield from share(delayed(_carry_out)(task) for task in due)


_received: list[Any] = []


def _receive(
    work: Callable[[Shared, Task], Result],
    common: Shared,
    token: str,  # noqa: ARG001
    parent: int,
) -> None:
    end_with(parent)
    torch.set_num_threads(1)
    _received[:] = [work, common]


def _carry_out(task: Any) -> Any:
    work, common = _received
    return work(common, task)
